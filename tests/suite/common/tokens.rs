//! Access tokens of the demo users.

use reqwest::{blocking::Response, header::CONTENT_TYPE};
use serde_json::Value;

use super::Server;

/// Every scope of an API key, which a token needs to create one.
pub const API_KEY_SCOPES: &str = "openid roles email user customer profile collection";

/// An access token by password grant for the demo client; `scope` is a space-separated list.
pub fn password(server: &Server, user: &str, password: &str, scope: &str) -> String {
    let response = ask(server, user, password, scope);
    let status = response.status();
    let body: Value = response.json().expect("JSON");
    assert_eq!(status, 200, "{body}");
    body["access_token"].as_str().expect("a token").to_owned()
}

/// Returns whether the password is the user's current one.
pub fn is_password(server: &Server, user: &str, password: &str) -> bool {
    ask(server, user, password, "roles").status() == 200
}

fn ask(server: &Server, user: &str, password: &str, scope: &str) -> Response {
    let fields = [
        ("grant_type", "password"),
        ("client_id", "demo-client"),
        ("client_secret", "demo-client-secret"),
        ("username", user),
        ("password", password),
        ("scope", scope),
    ];
    let mut form = form_urlencoded::Serializer::new(String::new());
    let form = form.extend_pairs(fields).finish();
    let request = server.client.post(format!("{}/o/oauth2/token", server.url));
    let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(form);
    request.send().expect("answer")
}

/// A token of the demo administrator with the scopes `roles` and `admin`.
pub fn admin(server: &Server) -> String {
    password(server, "demo-admin", "demo-admin-password", "roles admin")
}
