//! Purchases (`docs/contract/purchases.md`): which agreement pays, what a download costs, and what is free.
//!
//! Billing is observed from outside: a prepaid agreement delivers a fixed number of items.

use std::{fs, thread};

use api::user::LoadProfile;
use reqwest::{
    Method,
    blocking::Response,
    header::{
        AUTHORIZATION, CACHE_CONTROL, ETAG, IF_MATCH, IF_NONE_MATCH, RANGE, WWW_AUTHENTICATE,
    },
};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal};
use crate::common::{DEMO_KEY, Server, pictures::Picture};

const KEY: &str = "buyer-key-0000-0000-000000000001";

/// Demo photographs of the product `FOTO`.
const ITEMS: [&str; 10] = [
    "demo-Falcon9-DSCOVR",
    "demo-Hubble_XDF",
    "demo-bridge-cables",
    "demo-dandelion-seeding",
    "demo-fig-in-red-bowl_P3",
    "demo-paint-brushes",
    "demo-picos-de-europa",
    "demo-stream-in-forest-bw",
    "demo-trollslanda",
    "demo-urtavla",
];

fn hires(index: usize) -> String {
    format!("/media/image/{}.jpg", ITEMS[index])
}

/// An agreement of the product `FOTO`.
fn agreement(id: i64, kind: &str) -> Value {
    json!({"id": id, "organization": 70, "type": kind, "superAgreement": false, "products": ["FOTO"]})
}

fn prepaid(id: i64, downloads: u32) -> Value {
    let mut agreement = agreement(id, "Prepaid");
    agreement["prepaids"] = json!({"total": downloads, "remaining": downloads});
    agreement
}

/// Starts a demo server with a buyer who has these agreements.
fn server(agreements: &[Value]) -> Server {
    let server = Server::demo();
    set_agreements(&server, agreements);
    server
}

/// Gives the buyer these agreements.
fn set_agreements(server: &Server, agreements: &[Value]) {
    let ids: Vec<&Value> = agreements.iter().map(|agreement| &agreement["id"]).collect();
    let accounts = json!({
        "organizations": [{"id": 70, "name": "Buyers", "address": {}, "phoneNumber": {}}],
        "products": [
            {"id": 10, "code": "FOTO", "name": "Photo"},
            {"id": 71, "code": "OTHER", "name": "Another"},
        ],
        "agreements": agreements,
        "licenses": [
            {"uuid": "7c916e2d-b755-446d-9e18-d636a1447141", "product": "OTHER", "price": "1.00"},
        ],
        "users": [{
            "id": 700, "organization": 70, "userName": "buyer", "firstName": "B", "lastName": "B",
            "emailAddress": "buyer@buyers.example", "roles": ["ROLE_OFP"], "agreements": ids,
        }],
        "apiKeys": [{"user": "buyer", "key": KEY, "name": "test"}],
    });
    let file = server.dir.path().join("buyers.json");
    fs::write(&file, accounts.to_string()).unwrap();
    let output = server.command(&["import", &file.to_string_lossy()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let buyer = ApiCaller::key(server, KEY);
    server.until("the buyer", || buyer.ask(&LoadProfile {}).ok());
}

/// GET with the buyer's key.
fn request(server: &Server, path: &str, headers: &[(&str, &str)]) -> Response {
    let key = format!("ApiKey {KEY}");
    let mut all = vec![("authorization", key.as_str())];
    all.extend(headers);
    server.get_with(path, &all)
}

fn head(server: &Server, path: &str) -> Response {
    let request = server.client.request(Method::HEAD, format!("{}{path}", server.url));
    request.header(AUTHORIZATION, format!("ApiKey {KEY}")).send().unwrap()
}

/// `200`, or the summary of the refusal, of a GET with the buyer's key.
fn outcome(server: &Server, path: &str) -> String {
    let response = request(server, path, &[]);
    if response.status() == 200 {
        return "200".to_owned();
    }
    Refusal::read(response).summary()
}

#[track_caller]
fn delivers(server: &Server, path: &str) {
    assert_eq!(outcome(server, path), "200", "{path}");
}

#[track_caller]
fn refuses(server: &Server, path: &str, code: &str) {
    assert_eq!(outcome(server, path), format!("403 {code} headers"), "{path}");
}

#[test]
fn fifty_concurrent_downloads_of_one_item_use_one_prepaid_download() {
    let server = server(&[prepaid(701, 2)]);
    thread::scope(|scope| {
        let download = || request(&server, &hires(0), &[]).bytes().unwrap().len();
        let threads: Vec<_> = (0..50).map(|_| scope.spawn(download)).collect();
        let lengths: Vec<usize> = threads.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(lengths.iter().all(|length| *length == lengths[0] && *length > 10_000));
    });
    delivers(&server, &hires(1));
    refuses(&server, &hires(2), "agreement_required");
}

#[test]
fn two_prepaid_downloads_deliver_two_of_ten_items_requested_concurrently() {
    let server = server(&[prepaid(701, 2)]);
    let outcomes: Vec<String> = thread::scope(|scope| {
        let ask = |index| outcome(&server, &hires(index));
        let threads: Vec<_> =
            (0..ITEMS.len()).map(|index| scope.spawn(move || ask(index))).collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let count = |start: &str| outcomes.iter().filter(|found| found.starts_with(start)).count();
    assert_eq!((count("200"), count("403")), (2, 8), "{outcomes:?}");
    // Delivered items can be downloaded again, and others cannot.
    for (index, first) in outcomes.iter().enumerate() {
        assert_eq!(outcome(&server, &hires(index)), *first);
    }
}

#[test]
fn requests_that_deliver_no_bytes_are_not_billed() {
    let server = server(&[prepaid(701, 1)]);
    let (path, status) = (hires(0), |response: Response| response.status().as_u16());
    let looked = head(&server, &path);
    let etag = looked.headers()[ETAG].to_str().unwrap().to_owned();
    assert_eq!(status(looked), 200);
    let asked = |name: &str, value: &str| status(request(&server, &path, &[(name, value)]));
    assert_eq!(asked(IF_NONE_MATCH.as_str(), &etag), 304);
    assert_eq!(asked(IF_MATCH.as_str(), "\"other\""), 412);
    assert_eq!(asked(RANGE.as_str(), "bytes=99999999999-"), 416);
    let crop = format!("/media/image/{}-crop_w99999_h1.jpg", ITEMS[0]);
    assert_eq!(status(request(&server, &crop, &[])), 400);
    // The prepaid download is still unused and pays for another item; then none is left for this one.
    delivers(&server, &hires(1));
    refuses(&server, &path, "agreement_required");
    assert_eq!(status(head(&server, &path)), 403);
    assert_eq!(asked(IF_NONE_MATCH.as_str(), &etag), 403, "no 304 for what was never bought");
}

#[test]
fn a_range_request_is_a_purchase_that_covers_every_form_of_the_item() {
    let server = server(&[prepaid(701, 1)]);
    let first = request(&server, &hires(0), &[("range", "bytes=0-99")]);
    assert_eq!((first.status().as_u16(), first.bytes().unwrap().len()), (206, 100));
    refuses(&server, &hires(1), "agreement_required");
    for range in ["bytes=100-199", "bytes=-5", "bytes=0-9,20-29"] {
        assert_eq!(request(&server, &hires(0), &[("range", range)]).status(), 206, "{range}");
    }
    for rest in [".jpg", "_NormalHires.jpg", "-watermark.jpg", "-crop_w9_h9.jpg"] {
        delivers(&server, &format!("/media/image/{}{rest}", ITEMS[0]));
    }
    assert_eq!(head(&server, &hires(0)).status(), 200);
}

#[test]
fn a_purchase_survives_a_restart() {
    let picture = |shade| Picture::flat(64, 48, [shade, 0, 0]).jpeg();
    let server = Server::with_pictures(&[], &[("one", picture(1)), ("two", picture(2))]);
    let mut all = prepaid(701, 1);
    all["superAgreement"] = json!(true);
    set_agreements(&server, &[all]);
    delivers(&server, "/media/image/one-crop_w9_h9.jpg");
    let server = server.restart(&[]);
    delivers(&server, "/media/image/one.jpg");
    refuses(&server, "/media/image/two.jpg", "agreement_required");
}

#[test]
fn agr_selects_the_agreement_that_is_charged() {
    let mut other = prepaid(703, 9);
    other["products"] = json!(["OTHER"]);
    let server = server(&[prepaid(701, 1), prepaid(702, 1), other]);
    delivers(&server, &format!("{}?agr=702", hires(0)));
    refuses(&server, &format!("{}?agr=702", hires(1)), "agreement_required");
    // Without `agr` it is free: the item was bought, under whichever agreement.
    delivers(&server, &hires(0));
    delivers(&server, &hires(1));
    for agr in ["703", "1001", "99", "-1", "0"] {
        refuses(&server, &format!("{}?agr={agr}", hires(0)), "agreement_required");
    }
    for (agr, rule) in
        [("x", "type"), ("702,701", "type"), ("7.5", "type"), ("99999999999999999999", "maximum")]
    {
        let found = outcome(&server, &format!("{}?agr={agr}", hires(0)));
        assert_eq!(found, format!("400 {rule} query agr"), "{agr}");
    }
    let open = format!("/media/image/{}_NormalPreview.jpg?agr=x", ITEMS[0]);
    assert_eq!(server.get(&open).status(), 200, "what is open asks for no agreement");
    assert_eq!(server.get(&format!("{}?agr=x", hires(0))).status(), 401);
}

#[test]
fn a_subscription_is_used_before_a_prepaid_agreement() {
    let server = server(&[prepaid(701, 1), agreement(702, "Subscription")]);
    for index in 0..3 {
        delivers(&server, &hires(index));
    }
    delivers(&server, &format!("{}?agr=701", hires(3)));
    refuses(&server, &format!("{}?agr=701", hires(4)), "agreement_required");
}

#[test]
fn an_agreement_that_has_expired_or_has_other_products_delivers_nothing() {
    let mut expired = agreement(701, "Subscription");
    expired["expires"] = json!("2020-01-01T00:00:00Z");
    let mut other = agreement(702, "Subscription");
    other["products"] = json!(["OTHER"]);
    let server = server(&[expired, other]);
    refuses(&server, &hires(0), "agreement_required");
    refuses(&server, &format!("{}?agr=701", hires(0)), "agreement_required");
    assert_eq!(head(&server, &hires(0)).status(), 403);
}

#[test]
fn direct_and_normal_agreements_need_an_order_first() {
    let server = server(&[prepaid(701, 1), agreement(702, "Direct"), agreement(703, "Normal")]);
    delivers(&server, &hires(0));
    for path in [hires(1), format!("{}?agr=702", hires(0)), format!("{}?agr=703", hires(2))] {
        for _ in 0..2 {
            refuses(&server, &path, "order_required");
        }
        let refused = request(&server, &path, &[]);
        assert_eq!(refused.headers()[CACHE_CONTROL], "no-store");
        assert_eq!(head(&server, &path).status(), 403);
    }
    let crop = format!("/media/image/{}-crop_w99999_h1.jpg", ITEMS[1]);
    assert_eq!(request(&server, &crop, &[]).status(), 400, "what cannot be made is not ordered");
}

#[test]
fn no_rendition_of_the_hires_is_delivered_without_an_agreement() {
    let server = server(&[]);
    let (width, height) = (4272, 2848);
    let whole = format!("-crop_w{width}_h{height}.jpg");
    let key = format!("ApiKey {DEMO_KEY}");
    for rest in [
        ".jpg",
        "_NormalHires.jpg",
        "_normalhires.JPG",
        "_WatermarkHires.jpg",
        "-watermark.jpg",
        "-crop_w1_h1.jpg",
        whole.as_str(),
        "-watermark-crop_w9_h9_NormalHires.jpg",
    ] {
        let path = format!("/media/image/demo-solnedgang-over-bergen{rest}");
        // A request of another user leaves the bytes in the caches.
        let hit = server.get_with(&path, &[("authorization", key.as_str())]);
        assert_eq!(hit.status(), 200, "{rest}");
        refuses(&server, &path, "agreement_required");
        refuses(&server, &format!("{path}?agr=1001"), "agreement_required");
        assert_eq!(server.get(&path).status(), 401, "{rest}");
    }
    for rest in [".pdf", ".eps", ".zip", "_NormalHidef.jpg", "/a000_NormalHires.jpg"] {
        refuses(&server, &format!("/media/image/{}{rest}", ITEMS[0]), "agreement_required");
    }
}

#[test]
fn the_pricelist_has_the_licences_that_the_caller_could_use() {
    let server = server(&[agreement(701, "Direct")]);
    let path = format!("/media/image/{}/pricelist", ITEMS[0]);
    assert_eq!(server.get(&path).status(), 401);
    let response = request(&server, &path, &[]);
    let cached = response.headers()[CACHE_CONTROL].to_str().unwrap().to_owned();
    assert!(cached.starts_with("private"), "{cached}");
    let etag = response.headers()[ETAG].to_str().unwrap().to_owned();
    let list: Value = response.json().unwrap();
    // The demo has three licences for `FOTO`; that for `OTHER` is no licence of this item.
    let licenses = list.as_array().unwrap();
    assert_eq!(licenses.len(), 3);
    for license in licenses {
        assert_eq!(license["product"]["code"], "FOTO");
        assert!(["Single", "Month", "Year"].contains(&license["period"].as_str().unwrap()));
        let (units, cents) = license["price"].as_str().unwrap().split_once('.').unwrap();
        assert!(units.parse::<u32>().is_ok() && cents.len() == 2, "{license}");
        assert_eq!(license["uuid"].as_str().unwrap().len(), 36);
    }
    assert_eq!(request(&server, &path, &[("if-none-match", &etag)]).status(), 304);
    let missing = request(&server, "/media/image/no-such-item/pricelist", &[]);
    assert_eq!(missing.status(), 404);
}

#[test]
fn a_challenge_names_both_authentication_schemes() {
    let server = server(&[]);
    let challenge = |headers: &[(&str, &str)]| {
        let response = server.get_with(&hires(0), headers);
        assert_eq!(response.status(), 401);
        response.headers()[WWW_AUTHENTICATE].to_str().unwrap().to_owned()
    };
    let plain = r#"Bearer realm="wirephoto", ApiKey realm="wirephoto""#;
    assert_eq!(challenge(&[]), plain);
    assert_eq!(challenge(&[("authorization", "ApiKey wrong")]), plain);
    assert_eq!(
        challenge(&[("authorization", "Bearer wrong")]),
        r#"Bearer realm="wirephoto", error="invalid_token", ApiKey realm="wirephoto""#
    );
}
