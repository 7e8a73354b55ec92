//! Any body of a form is parsed or refused, and its fields equal those of the other parsers of encoded pairs; a
//! displayed or stored form contains no secret.
#![no_main]

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use libfuzzer_sys::fuzz_target;
use wirephoto::access::oauth::OAuthParameters;
use wirephoto::http::form::{FormFields, form_body};
use wirephoto::http::protocol::request::QueryParameters;
use wirephoto::http::site::{ChannelForm, without_secrets};
use wirephoto::runtime::limits::{FORM_BYTES_MAX, SITE_FORM_FIELDS_MAX};

const KIND: &str = "application/x-www-form-urlencoded; charset=utf-8";

fuzz_target!(|data: &[u8]| {
    let Some(text) = body(data) else { return };
    let Ok(form) = FormFields::parse(&text) else {
        assert!(text.split('&').count() > SITE_FORM_FIELDS_MAX);
        return;
    };
    for (name, _) in form.fields() {
        assert_eq!(form.find(name).is_some(), form.is_ticked(name));
        assert!(form.all(name).all(|value| !value.is_empty() && value.trim() == value));
    }
    check_readers(&text, &form);
    check_kept(&text, &form);
    if let Some(draft) = ChannelForm::from_form(&form) {
        check_channel(&draft);
    }
});

/// The text of a body, which is accepted if it is short and ASCII.
fn body(data: &[u8]) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let request = Request::post("/").header(header::CONTENT_TYPE, KIND);
    let request = request.body(Body::from(data.to_vec())).expect("a request");
    let fits = data.len() <= FORM_BYTES_MAX && data.is_ascii();
    match runtime.block_on(form_body(request)) {
        Ok((_, text)) => {
            assert!(fits && text.as_bytes() == data);
            Some(text)
        }
        Err(error) => {
            assert!(!fits && !error.to_string().is_empty());
            None
        }
    }
}

/// The separate parsers of queries and of OAuth2 parameters find the same fields in the text.
fn check_readers(text: &str, form: &FormFields) {
    // Those refuse names that are not UTF-8, which a form replaces.
    let is_plain = |name: &&str| !name.contains('\u{FFFD}');
    let names = || form.fields().map(|(name, _)| name).filter(is_plain);
    let first = |name: &str| form.fields().find(|(own, _)| *own == name).map(|(_, value)| value);
    if let Ok(query) = QueryParameters::parse(text) {
        for name in names() {
            if let Ok(Some(value)) = query.text(name) {
                assert_eq!(first(name), Some(value), "{name:?}");
            }
        }
    }
    if let Ok(parameters) = OAuthParameters::parse(text) {
        for name in names() {
            let wanted = first(name).filter(|value| !value.is_empty());
            assert_eq!(parameters.find(name), wanted, "{name:?}");
        }
    }
}

/// The stored form has all fields except the token and secrets.
fn check_kept(text: &str, form: &FormFields) {
    let kept = FormFields::parse(&without_secrets(text)).expect("fewer fields");
    let open = |(name, _): &(&str, &str)| *name != "csrf" && !name.starts_with("secret.");
    assert!(kept.fields().eq(form.fields().filter(open)));
}

/// The form of a channel is sent with settings that it has fields for, and reveals no secret of it.
fn check_channel(draft: &ChannelForm) {
    let body = draft.body();
    let fields = draft.fields();
    for name in body.settings.keys() {
        let path = format!("settings.{name}");
        assert!(fields.iter().any(|field| field.path == path), "{path}");
    }
    for field in fields {
        assert!(!field.kind.ends_with("secret") || field.value.is_none(), "{field:?}");
    }
}
