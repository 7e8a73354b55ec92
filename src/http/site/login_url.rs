//! The URL of the login page.

/// Returns the URL of the login page. After the login, the visitor returns to `here`.
pub(crate) fn login_url(here: &str) -> String {
    let here: String = form_urlencoded::byte_serialize(here.as_bytes()).collect();
    format!("/o/login?return_to={here}")
}
