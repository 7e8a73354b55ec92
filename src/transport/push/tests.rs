//! Tests of payloads, sizes, error tables, claims and token ages, without a network.

use std::{path::PathBuf, time::Duration};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        EcdsaSigningAlgorithm, KeyPair as _,
    },
};
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Validation};
use proptest::prelude::*;
use serde_json::{Value, json};
use strum::IntoEnumIterator;
use uuid::Uuid;

use super::{
    Push, PushError, PushMessage,
    apns::{self, ApnsSigner, ProviderTokens},
    client::{PushReply, parse_after},
    fcm,
    payload::{FittedTexts, fit_payload, shorten},
};
use crate::runtime::config::{self, Config, SettingSources};
use crate::runtime::limits;
use model::account::DeviceKind;

const ID: &str = "0190a6c4-7b1e-7c3a-9a55-3f0f3b1f0c11";
const NOTIFICATION: &str = "0190a6c4-0000-7000-8000-000000000001";

fn message(title: &str, body: &str) -> PushMessage {
    PushMessage {
        id: ID.parse().unwrap(),
        device: DeviceKind::Ios,
        token: "00fc13adff785122".to_owned(),
        title: title.to_owned(),
        body: body.to_owned(),
        url: "https://example.org/image/x".to_owned(),
        image: Some("https://example.org/media/image/x_NormalThumbnail.jpg".to_owned()),
        item_uri: "https://example.org/media/image/x".to_owned(),
        media_type: "image".to_owned(),
        notification: NOTIFICATION.parse().unwrap(),
        collapse: "image/x".to_owned(),
    }
}

fn fit_apns(message: &PushMessage) -> Result<Value, PushError> {
    fit_payload(message, |texts| apns::payload(message, texts))
}

fn fit_fcm(message: &PushMessage) -> Result<Value, PushError> {
    fit_payload(message, |texts| fcm::payload(message, texts))
}

#[test]
fn apple_gets_an_alert_with_the_data_beside_it() {
    let expected = json!({
        "aps": {
            "alert": { "title": "Storm", "body": "Vågor" },
            "sound": "default",
            "thread-id": NOTIFICATION,
            "mutable-content": 1,
        },
        "id": ID,
        "url": "https://example.org/image/x",
        "image": "https://example.org/media/image/x_NormalThumbnail.jpg",
        "uri": "https://example.org/media/image/x",
        "mediaType": "image",
        "notification": NOTIFICATION,
    });
    assert_eq!(fit_apns(&message("Storm", "Vågor")).unwrap(), expected);
    let bare = fit_apns(&PushMessage { image: None, ..message("Storm", "") }).unwrap();
    assert_eq!((bare.get("image"), bare["aps"].get("mutable-content")), (None, None));
}

#[test]
fn google_gets_a_notification_with_data_that_are_texts() {
    let expected = json!({
        "notification": {
            "title": "Storm", "body": "Vågor",
            "image": "https://example.org/media/image/x_NormalThumbnail.jpg",
        },
        "data": {
            "id": ID,
            "url": "https://example.org/image/x",
            "image": "https://example.org/media/image/x_NormalThumbnail.jpg",
            "uri": "https://example.org/media/image/x",
            "mediaType": "image",
            "notification": NOTIFICATION,
        },
        "android": { "collapse_key": "image/x", "priority": "high", "ttl": "86400s" },
    });
    assert_eq!(fit_fcm(&message("Storm", "Vågor")).unwrap(), expected);
    let all = PushMessage { collapse: String::new(), ..message("", "") };
    assert_eq!(fit_fcm(&all).unwrap()["android"].get("collapse_key"), None);
}

#[test]
fn a_long_address_costs_the_picture_and_then_the_message() {
    let long = |bytes| format!("https://example.org/{}", "x".repeat(bytes));
    let picture = PushMessage { image: Some(long(4000)), ..message("t", "b") };
    for fitted in [fit_apns(&picture).unwrap(), fit_fcm(&picture).unwrap()] {
        assert!(!fitted.to_string().contains("xxx"), "{fitted}");
    }
    let page = PushMessage { url: long(4096), ..message("t", "b") };
    for fitted in [fit_apns(&page), fit_fcm(&page)] {
        assert!(matches!(fitted, Err(PushError::Permanent { .. })), "{fitted:?}");
    }
}

/// Arbitrary text, some of it long.
fn any_text() -> impl Strategy<Value = String> {
    let ascii = proptest::char::range('\0', '\u{7f}');
    let c = prop_oneof![any::<char>(), ascii, Just('"'), Just('é')];
    prop_oneof![
        proptest::collection::vec(any::<char>(), 0..3000).prop_map(String::from_iter),
        proptest::collection::vec(c, 0..200).prop_map(String::from_iter),
        ("[\\x00-\\x1f\"\\\\a𝄞]{0,20}", 0..300_usize).prop_map(|(text, times)| text.repeat(times)),
    ]
}

fn is_cut(whole: &str, found: &Value) -> bool {
    let found = found.as_str().unwrap();
    found == whole || found.strip_suffix('…').is_some_and(|start| whole.starts_with(start))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_message_stays_within_its_bytes(title in any_text(), body in any_text()) {
        let message = message(&title, &body);
        for payload in [fit_apns(&message), fit_fcm(&message)] {
            let text = payload.unwrap().to_string();
            prop_assert!(text.len() <= limits::PUSH_PAYLOAD_BYTES_MAX, "{} bytes", text.len());
            let read: Value = serde_json::from_str(&text).unwrap();
            let shown = read.get("notification").filter(|one| one.is_object());
            let shown = shown.unwrap_or_else(|| &read["aps"]["alert"]);
            prop_assert!(is_cut(&title, &shown["title"]) && is_cut(&body, &shown["body"]));
        }
    }

    #[test]
    fn a_text_is_cut_only_where_it_has_to_be(text in any_text(), room in 0..5000_usize) {
        let bytes = |text: &str| serde_json::to_string(text).unwrap().len() - 2;
        let cut = shorten(&text, room);
        prop_assert!(bytes(&cut) <= room);
        if bytes(&text) <= room {
            prop_assert_eq!(cut, text);
        } else if room >= 3 {
            let next = text[cut.len() - 3..].chars().next().unwrap();
            prop_assert!(bytes(&cut) + bytes(&next.to_string()) > room);
        }
    }

    #[test]
    fn a_collapse_id_is_one_that_apple_takes(text in "\\PC{1,80}") {
        let id = apns::collapse_id(&text);
        prop_assert!((1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()));
        prop_assert_eq!(id, apns::collapse_id(&text));
    }
}

#[test]
fn a_short_collapse_id_stays_as_it_is() {
    let short = "x".repeat(64);
    assert_eq!(apns::collapse_id(&short), short);
    let hash = "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9";
    assert_eq!(apns::collapse_id(&"x".repeat(65)), hash);
}

#[derive(Debug, PartialEq)]
enum Fate {
    Sent,
    Dead,
    Never,
    Later(Option<u64>),
}

fn fate(judged: &Result<(), PushError>) -> Fate {
    match judged {
        Ok(()) => Fate::Sent,
        Err(PushError::InvalidToken { .. }) => Fate::Dead,
        Err(PushError::Permanent { .. }) => Fate::Never,
        Err(PushError::Retry { after, .. }) => Fate::Later(after.map(|wait| wait.as_secs())),
    }
}

fn answer(status: u16, body: Value) -> PushReply {
    let after = [429, 503].contains(&status).then(|| Duration::from_secs(7));
    PushReply { endpoint: "push.example:443".to_owned(), status, after, body }
}

#[test]
fn what_apple_answers_decides_over_device_and_message() {
    let check = |status, reason: &str, expected| {
        let judged =
            apns::result_of_answer(&answer(status, json!({ "reason": reason })), "abcdef");
        assert_eq!(fate(&judged), expected, "{status} {reason}");
    };
    check(200, "", Fate::Sent);
    for (status, reason) in
        [(410, "Unregistered"), (410, "ExpiredToken"), (410, ""), (400, "BadDeviceToken")]
    {
        check(status, reason, Fate::Dead);
    }
    for (status, reason) in [
        (400, "DeviceTokenNotForTopic"),
        (400, "BadTopic"),
        (400, ""),
        (403, "MissingProviderToken"),
        (403, "Forbidden"),
        (404, "BadPath"),
        (405, "MethodNotAllowed"),
        (413, "PayloadTooLarge"),
        (302, ""),
    ] {
        check(status, reason, Fate::Never);
    }
    for (status, reason) in [
        (400, "IdleTimeout"),
        (403, "ExpiredProviderToken"),
        (403, "InvalidProviderToken"),
        (500, "InternalServerError"),
        (502, ""),
    ] {
        check(status, reason, Fate::Later(None));
    }
    for (status, reason) in [
        (429, "TooManyRequests"),
        (429, "TooManyProviderTokenUpdates"),
        (503, "ServiceUnavailable"),
        (503, "Shutdown"),
    ] {
        check(status, reason, Fate::Later(Some(7)));
    }
}

#[test]
fn what_google_answers_decides_over_device_and_message() {
    let check = |status: u16, code: &str, field: &str, expected| {
        let details = json!([
            { "@type": "type.googleapis.com/google.rpc.BadRequest",
              "fieldViolations": [{ "field": field }] },
            { "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code },
        ]);
        let details = if code.is_empty() { json!([]) } else { details };
        let error = json!({ "code": status, "status": "X", "message": "m", "details": details });
        let judged = fcm::result_of_answer(&answer(status, json!({ "error": error })), &[]);
        assert_eq!(fate(&judged), expected, "{status} {code} {field}");
    };
    check(200, "", "", Fate::Sent);
    check(404, "UNREGISTERED", "", Fate::Dead);
    check(403, "SENDER_ID_MISMATCH", "", Fate::Never);
    check(400, "INVALID_ARGUMENT", "message.token", Fate::Dead);
    check(400, "INVALID_ARGUMENT", "message.data", Fate::Never);
    for status in [400, 403, 404, 405, 302] {
        check(status, "", "", Fate::Never);
    }
    check(401, "THIRD_PARTY_AUTH_ERROR", "", Fate::Later(None));
    check(429, "QUOTA_EXCEEDED", "", Fate::Later(Some(7)));
    check(500, "INTERNAL", "", Fate::Later(None));
    check(503, "UNAVAILABLE", "", Fate::Later(Some(7)));
    check(504, "", "", Fate::Later(None));
    let words = json!({ "error": {
        "message": "The registration token is not a valid FCM registration token",
        "details": [{ "errorCode": "INVALID_ARGUMENT" }],
    } });
    assert_eq!(fate(&fcm::result_of_answer(&answer(400, words), &[])), Fate::Dead);
    // A response of a proxy in between is not JSON.
    assert_eq!(fate(&fcm::result_of_answer(&answer(502, Value::Null), &[])), Fate::Later(None));
}

#[test]
fn errors_contain_neither_device_nor_access_tokens() {
    let error = json!({ "status": "NOT_FOUND", "message": "tok3n\r\nof  acc3ss is\0gone" });
    let judged =
        fcm::result_of_answer(&answer(404, json!({ "error": error })), &["tok3n", "acc3ss"]);
    let text = judged.unwrap_err().to_string();
    assert_eq!(text, "push.example:443 answered 404: NOT_FOUND *** of *** is gone");
    let judged = apns::result_of_answer(&answer(400, json!({ "reason": "Bad00fc" })), "00fc");
    assert_eq!(judged.unwrap_err().to_string(), "push.example:443 answered 400: Bad***");
    let shown = format!("{:?}", message("t", "b"));
    assert!(!shown.contains("00fc13adff785122"), "{shown}");
}

#[test]
fn retry_after_is_seconds_or_a_date_and_a_day_at_most() {
    let now: Timestamp = "2026-03-05T09:00:00Z".parse().unwrap();
    for (text, expected) in [
        ("120", Some(120)),
        (" 0 ", Some(0)),
        ("Thu, 05 Mar 2026 09:01:00 GMT", Some(60)),
        ("Thu, 05 Mar 2026 08:00:00 GMT", Some(0)),
        ("Fri, 05 Mar 2027 08:00:00 GMT", Some(86_400)),
        ("18446744073709551615", Some(86_400)),
        ("99999999999999999999999", None),
        ("-1", None),
        ("soon", None),
    ] {
        assert_eq!(parse_after(text, now).map(|wait| wait.as_secs()), expected, "{text}");
    }
}

fn pem(pkcs8: &[u8]) -> String {
    let text = STANDARD.encode(pkcs8);
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

/// Generates a private key in PEM with its public key.
fn curve_key(algorithm: &'static EcdsaSigningAlgorithm) -> (String, Vec<u8>) {
    let pair = EcdsaKeyPair::generate(algorithm).unwrap();
    let public = pair.public_key().as_ref()[1..].to_vec();
    (pem(pair.to_pkcs8v1().unwrap().as_ref()), public)
}

fn rsa_key() -> (String, Vec<u8>) {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    (pem(pkcs8.as_ref()), pair.public_key().as_ref().to_vec())
}

fn claims(text: &str, key: &DecodingKey, algorithm: Algorithm) -> (Value, Value) {
    let mut validation = Validation::new(algorithm);
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.required_spec_claims.clear();
    let read = jsonwebtoken::decode::<Value>(text, key, &validation).unwrap();
    (serde_json::to_value(read.header).unwrap(), read.claims)
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn signer() -> (ApnsSigner, Vec<u8>) {
    let (pem, public) = curve_key(&ECDSA_P256_SHA256_FIXED_SIGNING);
    let key = EncodingKey::from_ec_pem(pem.as_bytes()).unwrap();
    let (key_id, team_id) = ("KEY4567890".to_owned(), "TEAM567890".to_owned());
    (ApnsSigner { key, key_id, team_id }, public)
}

#[test]
fn the_provider_token_names_key_team_and_time() {
    let (signer, public) = signer();
    let x_y: Vec<String> = public
        .chunks(32)
        .map(|half| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(half))
        .collect();
    let key = DecodingKey::from_ec_components(&x_y[0], &x_y[1]).unwrap();
    let (header, claims) = claims(&signer.sign(at(5)).unwrap(), &key, Algorithm::ES256);
    assert_eq!(header, json!({ "typ": "JWT", "alg": "ES256", "kid": "KEY4567890" }));
    assert_eq!(claims, json!({ "iss": "TEAM567890", "iat": 1_800_000_005 }));
}

#[test]
fn a_provider_token_is_used_for_forty_minutes() {
    let bearers = ProviderTokens::new(signer().0);
    let first = bearers.current_token(at(0)).unwrap();
    assert_eq!(bearers.current_token(at(2399)).unwrap(), first);
    let second = bearers.current_token(at(2400)).unwrap();
    assert_ne!(second, first);
    // The clock was set back: Apple refuses a token from the future.
    assert_ne!(bearers.current_token(at(2000)).unwrap(), second);
}

#[test]
fn a_refused_provider_token_is_replaced_once_in_twenty_minutes() {
    let bearers = ProviderTokens::new(signer().0);
    let first = bearers.current_token(at(0)).unwrap();
    bearers.mark_refused(&first, at(1));
    let second = bearers.current_token(at(2)).unwrap();
    assert_ne!(second, first);
    // Late responses to the first token change nothing.
    bearers.mark_refused(&first, at(3));
    assert_eq!(bearers.current_token(at(3)).unwrap(), second);
    bearers.mark_refused(&second, at(4));
    assert_eq!(bearers.current_token(at(4)).unwrap(), second);
    bearers.mark_refused(&second, at(2 + 1200));
    assert_ne!(bearers.current_token(at(2 + 1200)).unwrap(), second);
}

#[test]
fn the_assertion_asks_google_for_an_hour_of_messaging() {
    let (pem, public) = rsa_key();
    let account = fcm::ServiceAccount {
        email: "push@example.iam".to_owned(),
        key: EncodingKey::from_rsa_pem(pem.as_bytes()).unwrap(),
        key_id: Some("k1".to_owned()),
        token_url: "https://oauth2.googleapis.com/token".parse().unwrap(),
        audience: "https://oauth2.googleapis.com/token".to_owned(),
        project: "p".to_owned(),
    };
    let key = DecodingKey::from_rsa_der(&public);
    let (header, claims) = claims(&account.sign(at(0)).unwrap(), &key, Algorithm::RS256);
    assert_eq!(header, json!({ "typ": "JWT", "alg": "RS256", "kid": "k1" }));
    let expected = json!({
        "iss": "push@example.iam",
        "scope": "https://www.googleapis.com/auth/firebase.messaging",
        "aud": "https://oauth2.googleapis.com/token",
        "iat": 1_800_000_000,
        "exp": 1_800_003_600,
    });
    assert_eq!(claims, expected);
}

/// Loads settings over a folder to which `files` are written and in which their settings name them.
fn load(folder: &tempfile::TempDir, files: &[(&str, &str)], texts: &[(&str, &str)]) -> Config {
    let mut flags = Vec::new();
    for (name, content) in files {
        let path: PathBuf = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        flags.push((format!("push.{name}"), path.display().to_string()));
    }
    flags.extend(texts.iter().map(|(name, text)| (format!("push.{name}"), (*text).to_owned())));
    config::load(&SettingSources { file: None, flags }).unwrap().0
}

fn account_file(key: &str) -> Value {
    json!({
        "client_email": "push@example.iam", "project_id": "example.org:news",
        "private_key": key, "token_uri": "https://oauth2.googleapis.com/token",
    })
}

const NAMES: [(&str, &str); 3] =
    [("apns_key_id", "K"), ("apns_team_id", "T"), ("apns_topic", "org.example.app")];

#[test]
fn ok_settings_say_which_devices_are_reached() {
    let folder = tempfile::tempdir().unwrap();
    let reached = |files: &[(&str, &str)], texts: &[(&str, &str)]| {
        let push = Push::from_config(&load(&folder, files, texts)).unwrap();
        (
            DeviceKind::iter().map(|kind| push.reaches(kind)).collect::<Vec<_>>(),
            format!("{push:?}"),
        )
    };
    assert_eq!(reached(&[], &[]).0, [false, false, false]);
    let key = curve_key(&ECDSA_P256_SHA256_FIXED_SIGNING).0;
    let apple = reached(&[("apns_key", &key)], &NAMES);
    assert_eq!(apple, (vec![true, true, false], r#"["ios", "ios-sandbox"]"#.to_owned()));
    let account = account_file(&rsa_key().0).to_string();
    assert_eq!(reached(&[("fcm_service_account", &account)], &[]).0, [false, false, true]);
}

#[test]
fn err_bad_settings_are_named_and_no_key_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let check = |files: &[(&str, &str)], texts: &[(&str, &str)], part: &str| {
        let error = Push::from_config(&load(&folder, files, texts)).unwrap_err().to_string();
        assert!(error.starts_with(part) && !error.contains("s3cret"), "{error}, expected {part}");
    };
    let key = curve_key(&ECDSA_P256_SHA256_FIXED_SIGNING).0;
    let apple = [("apns_key", key.as_str())];
    check(&[], &[("apns_key", "/none")], "push.apns_key_id: is empty, but push.apns_key is set");
    check(&apple, &NAMES[..2], "push.apns_topic: is empty");
    check(&[], &NAMES[1..2], "push.apns_key: is empty, but push.apns_team_id is set");
    check(&apple, &[NAMES[0], NAMES[1], ("apns_topic", "a b")], "push.apns_topic: expected");
    let missing = [&NAMES[..], &[("apns_key", "/none")]].concat();
    check(&[], &missing, "push.apns_key: /none cannot be read");
    let other = curve_key(&ECDSA_P384_SHA384_FIXED_SIGNING).0;
    check(&[("apns_key", &other)], &NAMES, "push.apns_key: ");
    check(&[("apns_key", "s3cret")], &NAMES, "push.apns_key: ");
    let no_address = [&NAMES[..], &[("apns_sandbox_url", "")]].concat();
    check(&apple, &no_address, "push.apns_sandbox_url: expected an address");
    check(&[("ca", "s3cret")], &[], "push.ca: ");
    check(&[], &[("ca", "/none")], "push.ca: /none cannot be read");
    let account = |name: &str, value: &str| {
        let mut file = account_file("s3cret");
        file[name] = value.into();
        let file = file.to_string();
        let part = format!("push.fcm_service_account: {}", folder.path().display());
        check(&[("fcm_service_account", &file)], &[], &part);
    };
    for name in ["client_email", "private_key", "project_id", "token_uri"] {
        account(name, "");
    }
    account("project_id", "../other");
    account("token_uri", "s3cret");
    check(&[("fcm_service_account", "s3cret")], &[], "push.fcm_service_account: ");
}

/// The fixed time of these tests.
fn noon() -> Timestamp {
    at(0)
}

#[test]
fn a_token_that_is_none_is_dead_and_goes_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let key = curve_key(&ECDSA_P256_SHA256_FIXED_SIGNING).0;
    let account = account_file(&rsa_key().0).to_string();
    // No request may be sent: the services have no working address.
    let nowhere = [("apns_url", "https://0.invalid"), ("fcm_url", "https://0.invalid")];
    let texts = [&NAMES[..], &nowhere].concat();
    let files = [("apns_key", key.as_str()), ("fcm_service_account", account.as_str())];
    let push = Push::from_config(&load(&folder, &files, &texts)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let check = |device, token: &str| {
        let message = PushMessage { device, token: token.to_owned(), ..message("t", "b") };
        let sent = runtime.block_on(push.send(&message, noon));
        assert_eq!(fate(&sent), Fate::Dead, "{token}");
    };
    for token in ["", "../3/device/00", "0g", "00fc 13", "å", &"0".repeat(513)] {
        check(DeviceKind::Ios, token);
        check(DeviceKind::IosSandbox, token);
    }
    for token in ["", "a b", "å", "a\n", &"0".repeat(4097)] {
        check(DeviceKind::Android, token);
    }
}

#[test]
fn a_device_without_a_service_gets_nothing() {
    let push = Push::from_config(&load(&tempfile::tempdir().unwrap(), &[], &[])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sent = runtime.block_on(push.send(&message("t", "b"), noon)).unwrap_err();
    assert_eq!(
        sent,
        PushError::Permanent { reason: "no service for ios devices is set".to_owned() }
    );
    assert_eq!(Uuid::parse_str(ID).unwrap(), message("t", "b").id);
}

#[test]
fn the_parts_of_a_message_are_as_they_were_where_they_fit() {
    let exact = "x".repeat(limits::PUSH_TITLE_BYTES_MAX);
    let long = format!("{exact}x");
    let mut seen = Vec::new();
    for title in [&exact, &long] {
        let message = message(title, "b");
        let write = |texts: FittedTexts<'_>| json!({ "title": texts.title, "body": texts.body });
        seen.push(fit_payload(&message, write).unwrap());
    }
    assert_eq!(seen[0], json!({ "title": exact, "body": "b" }));
    let cut = format!("{}…", &exact[3..]);
    assert_eq!(seen[1], json!({ "title": cut, "body": "b" }));
}
