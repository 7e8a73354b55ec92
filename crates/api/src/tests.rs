//! The whole way of a declaration: reading requests, printing them, and the document.

use crate::collections::{CollectionBody, CollectionChange, CollectionItems};
use crate::content::{RecentSpan, SearchItems, SearchOrder, SuggestTexts};
use crate::deliveries::{ChannelUpdate, DeliveryRepetition};
use crate::ingest::{ChangeItem, ItemPath};
use crate::notifications::{
    CreateScheduledEmailNotification, ReplaceScheduledEmailNotification, SCHEDULE_ZONE_DEFAULT,
};
use crate::operation::{ListMessages, ListRange};
use crate::orders::{
    INVOICE_TEXT_CHARS_MAX, ListOrders, LoadOrder, OrderUpdate, Orders, UpdateOrder,
};
use crate::organization::{PhoneNumberUpdate, UserRightsUpdate, UserUpdate};
use crate::property::{is_email, is_phone_number, is_uri};
use crate::uploads::{TemplateBody, UploadPublish};
use crate::user::{KeyCreate, LoadProfileProperties, Profile, RegisterDevice};
use crate::{
    DecodedParameter, Document, Endpoint, Fault, JsonBody, JsonReader, PartialRequest,
    RequestBody, RequestReader, target,
};
use model::account::MessageState::Parked;
use model::account::{DeviceKind, OrderStatus};
use model::item::PubStatus;
use model::{ItemId, MediaType};
use query::Facet;
use serde_json::{Value, json};

fn pairs(query: &str) -> Vec<DecodedParameter> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.map(|(name, value)| (name.to_owned(), Some(value.to_owned()))).collect()
}

fn short(faults: Vec<Fault>) -> Vec<(&'static str, &'static str, String)> {
    let faults = faults.into_iter();
    faults.map(|fault| (fault.rule, fault.location.as_str(), fault.path)).collect()
}

fn listed(query: &str) -> Result<ListOrders, Vec<(&'static str, &'static str, String)>> {
    RequestReader::<ListOrders>::default().read(&[], &pairs(query)).map_err(short)
}

#[test]
fn ok_absent_parameters_have_their_defaults() {
    let all = ListOrders { start: 0, size: 20, status: OrderStatus::All };
    for query in ["", "ak=x&unknown=1&status=all", "size=&start=&status=", "size=20.0&start=0.0"] {
        assert_eq!(listed(query), Ok(all.clone()), "{query}");
    }
    let expected = ListOrders { start: 40, size: 0, status: OrderStatus::Reported };
    assert_eq!(listed("start=40&size=0&status=reported"), Ok(expected));
}

#[test]
fn err_every_wrong_parameter_is_named() {
    let check = |query: &str, expected: &[(&'static str, &str)]| {
        let expected = expected.iter().map(|(rule, path)| (*rule, "query", (*path).to_owned()));
        assert_eq!(listed(query), Err(expected.collect()), "{query}");
    };
    check(
        "size=a&start=-1&status=Reported",
        &[("type", "size"), ("minimum", "start"), ("enum", "status")],
    );
    check("size=10001", &[("maximum", "size")]);
    check("size=2.5", &[("type", "size")]);
    check("size=1&size=2", &[("type", "size")]);
    check("size=99999999999999999999", &[("maximum", "size")]);
    check("start=4294967296", &[("maximum", "start")]);
}

#[test]
fn err_a_path_that_is_no_number_is_named() {
    let reader = RequestReader::<LoadOrder>::default();
    let read = |id: Option<&str>| {
        let segment = ("id".to_owned(), id.map(str::to_owned));
        reader.read(&[segment], &[]).map(|order| order.id).map_err(short)
    };
    assert_eq!(read(Some("7")), Ok(7));
    assert_eq!(read(Some("x")), Err(vec![("type", "path", "id".to_owned())]));
    assert_eq!(read(None), Err(vec![("format", "path", "id".to_owned())]));
}

fn update(body: &Value) -> Result<OrderUpdate, Vec<(&'static str, &'static str, String)>> {
    let reader = JsonReader::default();
    let body = body.to_string();
    <JsonBody<OrderUpdate> as RequestBody>::read(&reader, body.as_bytes()).map_err(short)
}

#[test]
fn ok_a_body_accepts_null_for_what_may_be_absent() {
    let body = json!({
        "approve": true, "license": { "uuid": "2c916e2d-b755-446d-9e18-d636a1447141", "period": "Single" },
        "invoiceText": "A\nB"
    });
    let found = update(&body).unwrap();
    assert_eq!((found.approve, found.invoice_text.as_deref()), (true, Some("A\nB")));
    let found =
        update(&json!({ "approve": false, "license": null, "invoiceText": null })).unwrap();
    assert_eq!(found, OrderUpdate { approve: false, license: None, invoice_text: None });
}

#[test]
fn err_everything_wrong_with_a_body_is_named() {
    let check = |body: Value, expected: &[(&'static str, &str)]| {
        let expected = expected.iter().map(|(rule, path)| (*rule, "body", (*path).to_owned()));
        let mut found = update(&body).unwrap_err();
        let mut expected: Vec<_> = expected.collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{body}");
    };
    check(json!({}), &[("required", "approve")]);
    check(json!([]), &[("type", "")]);
    check(json!({ "approve": "true" }), &[("type", "approve")]);
    check(json!({ "approve": true, "license": {} }), &[("required", "license.uuid")]);
    check(
        json!({ "approve": true, "license": { "uuid": "1" }, "reported": "now" }),
        &[("format", "license.uuid"), ("additionalProperties", "reported")],
    );
    let long = "x".repeat(INVOICE_TEXT_CHARS_MAX + 1);
    check(json!({ "approve": false, "invoiceText": long }), &[("maximum", "invoiceText")]);
    check(json!({ "approve": false, "invoiceText": "\u{7}" }), &[("pattern", "invoiceText")]);
    let found = <JsonBody<OrderUpdate> as RequestBody>::read(&JsonReader::default(), b" \n");
    assert_eq!(short(found.unwrap_err()), [("required", "body", String::new())]);
}

#[test]
fn a_profile_is_any_object_and_the_name_of_a_key_is_visible() {
    let read = |body: &str| {
        let read =
            <JsonBody<Profile> as RequestBody>::read(&JsonReader::default(), body.as_bytes());
        read.map(|profile| Value::Object(profile.0)).map_err(short)
    };
    let profile = json!({ "a": { "b": [1, null] }, "__proto__": 1 });
    assert_eq!(read(&profile.to_string()), Ok(profile));
    for body in ["[]", "null", "1"] {
        assert_eq!(read(body), Err(vec![("type", "body", String::new())]), "{body}");
    }
    let name = |name: &str| {
        let body = json!({ "name": name }).to_string();
        <JsonBody<KeyCreate> as RequestBody>::read(&JsonReader::default(), body.as_bytes())
    };
    assert_eq!(name(" Desk å ").unwrap().name, " Desk å ");
    for text in ["", " ", "a\nb"] {
        let faults = short(name(text).unwrap_err());
        assert_eq!(faults, [("pattern", "body", "name".to_owned())], "{text:?}");
    }
}

#[test]
fn a_renamed_word_and_the_pattern_of_a_segment_are_read() {
    let segment = |name: &str, text: &str| [(name.to_owned(), Some(text.to_owned()))];
    let reader = RequestReader::<RegisterDevice>::default();
    let read = |token: &str, query: &str| {
        reader.read(&segment("token", token), &pairs(query)).map_err(short)
    };
    let device = RegisterDevice {
        token: "a:b/c".to_owned(),
        kind: DeviceKind::IosSandbox,
        name: None,
        model: "m".to_owned(),
    };
    assert_eq!(read("a:b/c", "type=ios-sandbox&model=m&name="), Ok(device));
    let missing = [("required", "query", "type"), ("required", "query", "model")];
    let missing = missing.map(|(rule, place, path)| (rule, place, path.to_owned()));
    assert_eq!(read("t", ""), Err(missing.to_vec()));
    let reader = RequestReader::<LoadProfileProperties>::default();
    let read = |text: &str| reader.read(&segment("property", text), &[]).map_err(short);
    assert_eq!(read("a, b,").unwrap().property, "a, b,");
    for text in [",", " , "] {
        let error = read(text).unwrap_err();
        assert_eq!(error, [("pattern", "path", "property".to_owned())], "{text}");
    }
}

#[test]
fn a_printed_request_reads_back() {
    let request = ListOrders { start: 40, size: 0, status: OrderStatus::Reported };
    let printed = target(&request);
    assert_eq!(printed, "/user/v1/order?size=0&start=40&status=reported");
    assert_eq!(listed(printed.split_once('?').unwrap().1), Ok(request));
    assert_eq!(target(&UpdateOrder { id: 7 }), "/user/v1/order/7");
}

#[test]
fn the_document_describes_parameters_bodies_and_answers() {
    let mut document = Document::default();
    document.describe::<ListOrders>();
    document.describe::<UpdateOrder>();
    document.describe::<SearchItems>();
    document.describe::<SuggestTexts>();
    let parts = document.finish();
    let list = &parts.paths[ListOrders::PATH]["get"];
    assert_eq!(list["operationId"], "getOrder");
    assert_eq!(list["summary"], "Orders, newest first");
    let size = json!({
        "name": "size", "in": "query", "allowEmptyValue": true, "description": "The maximum number of orders.",
        "schema": { "type": "integer", "minimum": 0, "maximum": 10000, "default": 20 },
    });
    assert_eq!(list["parameters"][0], size);
    assert_eq!(list["parameters"][2]["schema"]["enum"], json!(["reported", "unreported", "all"]));
    let update = &parts.paths[UpdateOrder::PATH]["put"];
    assert_eq!(update["parameters"][0]["required"], true);
    let body = &update["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["$ref"], "#/components/schemas/OrderUpdate");
    assert_eq!(update["responses"]["404"]["$ref"], "#/components/responses/NotFound");
    let answer = &list["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(answer["$ref"], "#/components/schemas/Orders");
    let search = parts.paths[SearchItems::PATH]["get"]["parameters"].as_array().unwrap();
    let described = |name: &str| search.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(described("p")["explode"], false);
    assert_eq!(described("byline").get("explode"), None);
    assert_eq!(described("byline")["schema"]["items"]["type"], "string");
    assert_eq!(described("mediaType")["in"], "path");
    assert_eq!(described("mediaType")["schema"].get("default"), None);
    assert_eq!(described("tr")["schema"]["enum"], json!(["h", "d", "w", "m", "y"]));
    assert_eq!(parts.schemas["OrderUpdate"]["additionalProperties"], false);
    assert_eq!(parts.schemas["Order"]["properties"]["created"]["format"], "date-time");
    let schema = serde_json::to_value(schemars::schema_for!(Orders)).unwrap();
    assert!(schema.is_object());
}

fn user_update(body: &Value) -> Result<UserUpdate, Vec<(&'static str, &'static str, String)>> {
    let body = body.to_string();
    <JsonBody<UserUpdate> as RequestBody>::read(&JsonReader::default(), body.as_bytes())
        .map_err(short)
}

#[test]
fn a_change_keeps_clears_and_sets_properties() {
    let check = |body: Value, expected: UserUpdate| {
        assert_eq!(user_update(&body), Ok(expected.clone()), "{body}");
        assert_eq!(user_update(&json!(expected)), Ok(expected), "{body}");
    };
    check(json!({}), UserUpdate::default());
    let cleared = UserUpdate { phone_number: Some(None), ..UserUpdate::default() };
    check(json!({ "phoneNumber": null }), cleared);
    let phone = PhoneNumberUpdate { direct: None, mobile: Some(None) };
    let changed = UserUpdate {
        first_name: Some("A".to_owned()),
        phone_number: Some(Some(phone)),
        department: Some(Some("B".to_owned())),
        access: Some(UserRightsUpdate { admin: Some(false), mediebank: None }),
        ..UserUpdate::default()
    };
    let body = json!({
        "firstName": "A", "phoneNumber": { "mobile": null }, "department": "B",
        "access": { "admin": false },
    });
    check(body, changed);
}

#[test]
fn err_a_change_clears_nothing_that_must_be_there() {
    let body = json!({
        "emailAddress": null, "firstName": null, "access": { "admin": null, "root": true },
        "department": "\u{7}", "phoneNumber": { "fax": "1", "direct": 1 }
    });
    let expected = [
        ("additionalProperties", "access.root"),
        ("additionalProperties", "phoneNumber.fax"),
        ("pattern", "department"),
        ("type", "access.admin"),
        ("type", "emailAddress"),
        ("type", "firstName"),
        ("type", "phoneNumber.direct"),
    ];
    let mut found = user_update(&body).unwrap_err();
    found.sort();
    assert_eq!(found, expected.map(|(rule, path)| (rule, "body", path.to_owned())));
    let found = user_update(&json!({ "access": null })).unwrap_err();
    assert_eq!(found, [("type", "body", "access".to_owned())]);
    let found = user_update(&json!({ "emailAddress": "nobody" })).unwrap_err();
    assert_eq!(found, [("format", "body", "emailAddress".to_owned())]);
}

#[test]
fn err_a_property_that_may_be_absent_is_not_null() {
    let check = |body: Value, expected: &[(&'static str, &str)]| {
        let body = body.to_string();
        let found = <JsonBody<ChannelUpdate> as RequestBody>::read(
            &JsonReader::default(),
            body.as_bytes(),
        );
        let mut found = found.err().map(short).unwrap_or_default();
        found.sort();
        let expected = expected.iter().map(|(rule, path)| (*rule, "body", (*path).to_owned()));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{body}");
    };
    check(json!({ "method": "email", "formats": [".json"] }), &[]);
    check(
        json!({ "method": "FTP", "formats": [".json", 1], "settings": [], "active": null }),
        &[("enum", "method"), ("type", "active"), ("type", "formats.1"), ("type", "settings")],
    );
}

#[test]
fn err_an_enumeration_of_booleans_names_its_value() {
    let reader = JsonReader::default();
    let found = <JsonBody<DeliveryRepetition> as RequestBody>::read(&reader, b"{\"again\":false}");
    assert_eq!(found.unwrap_err()[0].message, "again must be true");
}

#[test]
fn err_elements_and_alternatives_of_a_body_are_named() {
    fn check<T>(body: &Value, expected: &[(&'static str, &str)])
    where
        JsonBody<T>: RequestBody<Reader = JsonReader<T>>,
        JsonReader<T>: Default,
    {
        let found = JsonBody::<T>::read(&JsonReader::default(), body.to_string().as_bytes());
        let found = found.err().map(short).unwrap_or_default();
        let expected = expected.iter().map(|(rule, path)| (*rule, "body", (*path).to_owned()));
        assert_eq!(found, expected.collect::<Vec<_>>(), "{body}");
    }
    check::<CollectionItems>(&json!([{ "uri": "urn:a:b", "extra": 1 }]), &[]);
    check::<CollectionItems>(&json!([]), &[("minimum", "")]);
    check::<CollectionItems>(&json!({}), &[("type", "")]);
    check::<CollectionItems>(
        &json!([{ "uri": "/media/image/a" }, { "uri": 1 }, "x", {}]),
        &[("format", "0.uri"), ("type", "1.uri"), ("type", "2"), ("required", "3.uri")],
    );
    check::<CollectionBody>(&json!({ "name": "" }), &[("minimum", "name")]);
    let wrong = [("pattern", "name"), ("type", "public")];
    check::<CollectionBody>(&json!({ "name": "a\nb", "public": 1 }), &wrong);
    let wrong = [("type", "public"), ("required", "name")];
    check::<CollectionChange>(&json!({ "public": null }), &wrong);
    check::<CollectionChange>(&json!({ "name": null, "content": [] }), &[("type", "name")]);
    check::<CollectionChange>(&json!({ "content": [], "id": 1 }), &[]);
    let wrong = [("type", "content.1"), ("format", "content.2")];
    check::<CollectionChange>(&json!({ "name": "a", "content": ["urn:a:b", 1, "x y"] }), &wrong);
    let many = json!({ "content": vec!["urn:a:b"; 1001] });
    check::<CollectionChange>(&many, &[("maximum", "content")]);
    let many = json!({ "content": vec!["urn:a:b"; 100_000] });
    check::<CollectionChange>(&many, &[("maximum", "content")]);
}

#[test]
fn a_uri_has_a_scheme_and_only_characters_of_uris() {
    for text in [
        "http://a.example/media/image/x",
        "HTTPS://[::1]:8080/x?y=%C3%A5#z",
        "urn:a:b",
        "x+y-1.z:~!$&'()*+,;=@",
    ] {
        assert!(is_uri(text), "{text}");
    }
    for text in [
        "",
        ":",
        "a:",
        "/media/image/x",
        "1a:b",
        "a b:c",
        "http://a/å",
        "a:b c",
        "a:%",
        "a:%4",
        "a:%gg",
        "a:%é9",
        "a:\n",
        "a:<b>",
        "é:a",
    ] {
        assert!(!is_uri(text), "{text:?}");
    }
}

fn searched(media_type: &str, query: &str) -> PartialRequest<SearchItems> {
    let segment = ("mediaType".to_owned(), Some(media_type.to_owned()));
    RequestReader::<SearchItems>::default().read_valid(&[segment], &pairs(query))
}

#[test]
fn ok_lists_are_split_unless_they_are_repeated() {
    let query = "p=A,+B&p[]=-C&agr=1.0&facets=place.name,byline&pubstatus=replaced&byline=Berg,+Eva&\
                 byline=-Ek&byline=&byline[]=no&tr=w&trs=2026-03-01";
    let found = searched("text", query);
    assert_eq!(found.faults, []);
    let found = found.parameters.unwrap();
    assert_eq!(found.media_type, Some(MediaType::Text));
    assert_eq!(found.scope.p, ["A", "+B", "-C"]);
    assert_eq!(found.scope.agr, [1]);
    assert_eq!(found.facets, [Facet::PlaceName, Facet::Byline]);
    assert_eq!(found.statuses, [PubStatus::Replaced]);
    assert_eq!(found.filters["byline"], ["Berg,+Eva", "-Ek"]);
    assert_eq!(found.filters.len(), 1);
    assert_eq!(found.period.tr, Some(RecentSpan::Week));
    let printed = target(&found);
    let (path, query) = printed.split_once('?').unwrap();
    assert_eq!(path, "/content/v1/text/search");
    let query = query.replace("%2C%2B", ",+").replace("%2B", "+");
    assert_eq!(searched("text", &query).parameters, Some(found));
    assert_eq!(searched("_all", "q=&p=&s=&tr=&byline=").parameters, Some(SearchItems::default()));
}

#[test]
fn filters_with_a_range_or_words_show_them_and_leave_the_check_to_their_parser() {
    let mut document = Document::default();
    document.describe::<SearchItems>();
    let parts = document.finish();
    let search = &parts.paths[SearchItems::PATH]["get"];
    let find = |name: &str| {
        let parameters = search["parameters"].as_array().unwrap();
        parameters.iter().find(|parameter| parameter["name"] == name).unwrap()
    };
    let size = &find("minpx")["schema"];
    assert_eq!((&size["type"], &size["items"]["type"]), (&json!("array"), &json!("integer")));
    let range = (&size["items"]["minimum"], &size["items"]["maximum"]);
    assert_eq!(range, (&json!(1), &json!(1_000_000)));
    assert_eq!(find("terms")["schema"]["items"]["enum"], json!(["special", "none"]));
    let found = searched("image", "minpx=0&terms=some&minpx=big");
    assert_eq!(found.faults, []);
    assert_eq!(found.parameters.unwrap().filters["minpx"], ["0", "big"]);
}

#[test]
fn err_a_wrong_parameter_counts_as_absent_and_others_are_read() {
    let query = "sort=up&facets=x,place.name,y&p=A,-&agr=1,x&q=a&s=10001&tr=hour&tre=2026-02-30";
    let found = searched("images", query);
    let expected = [
        ("enum", "path", "mediaType"),
        ("pattern", "query", "p"),
        ("type", "query", "agr"),
        ("enum", "query", "tr"),
        ("format", "query", "tre"),
        ("maximum", "query", "s"),
        ("enum", "query", "sort"),
        ("enum", "query", "facets"),
    ];
    let expected = expected.map(|(rule, location, path)| (rule, location, path.to_owned()));
    assert_eq!(short(found.faults), expected);
    let valid = SearchItems { q: "a".to_owned(), ..SearchItems::default() };
    assert_eq!(found.parameters, Some(valid));
    for last in ["last=image/new", "duplicates=a&duplicates=b"] {
        assert_eq!(searched("image", last).faults.len(), 1, "{last}");
    }
    assert_eq!(SearchItems::default().sort, SearchOrder::LastArrived);
}

fn scheduled(
    query: &str,
) -> Result<CreateScheduledEmailNotification, Vec<(&'static str, &'static str, String)>> {
    let media_type = ("mediaType".to_owned(), Some("_all".to_owned()));
    let reader = RequestReader::<CreateScheduledEmailNotification>::default();
    reader.read(&[media_type], &pairs(query)).map_err(short)
}

#[test]
fn parameters_of_a_flattened_field_read_back() {
    let query = "title=Ice&q=ice&p[]=FOTO&p=-TT&agr=1,2.0&email=a@b.example&schedule=@daily&tr=d";
    let found = scheduled(query).unwrap();
    assert_eq!((found.query.p.len(), found.query.agr.as_slice()), (2, &[1, 2][..]));
    assert_eq!(found.timezone, SCHEDULE_ZONE_DEFAULT);
    let printed = target(&found);
    let (path, query) = printed.split_once('?').unwrap();
    assert_eq!(path, "/content/v1/_all/notification/scheduled-email");
    let decoded = query.replace("%40", "@").replace("%2F", "/");
    assert_eq!(scheduled(&decoded), Ok(found));
    let mut document = Document::default();
    document.describe::<ReplaceScheduledEmailNotification>();
    let parts = document.finish();
    let replace = &parts.paths[ReplaceScheduledEmailNotification::PATH]["put"];
    assert_eq!(replace["summary"], "Replace scheduled e-mail notification");
    assert_eq!(replace["parameters"].as_array().map(Vec::len), Some(10));
}

#[test]
fn err_a_wrong_element_is_named_by_its_list() {
    let check = |query: &str, expected: &[(&'static str, &str)]| {
        let query = format!("title=Ice&email=a@b.example&schedule=@daily&{query}");
        let expected = expected.iter().map(|(rule, path)| (*rule, "query", (*path).to_owned()));
        assert_eq!(scheduled(&query), Err(expected.collect()), "{query}");
    };
    check("agr=1,x,y&p=A,B\u{7}", &[("pattern", "p"), ("type", "agr")]);
    check(&format!("agr={}", "1,".repeat(201)), &[("maximum", "agr")]);
}

#[test]
fn a_segment_of_several_names_an_item() {
    let reader = RequestReader::<ChangeItem>::default();
    let read = |media_type: &str, id: &str, query: &str| {
        let segments = [("mediaType", media_type), ("id", id)];
        let segments = segments.map(|(name, text)| (name.to_owned(), Some(text.to_owned())));
        reader.read(&segments, &pairs(query)).map_err(short)
    };
    let id = "x".repeat(ItemId::CHARS_MAX);
    let found = read("image", &id, "template=7").unwrap();
    assert_eq!(found.item, ItemPath { media_type: MediaType::Image, id: id.clone() });
    assert_eq!(found.template, Some(7));
    assert_eq!(target(&found), format!("/ingest/v1/image/{id}?template=7"));
    let wrong = read("Image", &format!("{id}x"), "template=0").unwrap_err();
    let place = |rule, location, path: &str| (rule, location, path.to_owned());
    let expected = [
        place("enum", "path", "mediaType"),
        place("pattern", "path", "id"),
        place("minimum", "query", "template"),
    ];
    assert!(expected.iter().all(|fault| wrong.contains(fault)), "{wrong:?}");
    assert_eq!(wrong.len(), expected.len());
    let undecodable = short(reader.read(&[("id".to_owned(), None)], &[]).unwrap_err());
    assert_eq!(undecodable, [place("format", "path", "id")]);
}

#[test]
fn a_property_that_may_be_absent_need_not_accept_null() {
    let read = |body: Value| {
        let body = body.to_string();
        let reader = JsonReader::default();
        <JsonBody<UploadPublish> as RequestBody>::read(&reader, body.as_bytes()).map_err(short)
    };
    assert_eq!(read(json!({ "id": null })), Ok(UploadPublish::default()));
    let all = json!({ "id": "a/b", "existing": "ask", "document": null, "other": 1 });
    let mut found = read(all).unwrap_err();
    found.sort();
    let place = |rule, path: &str| (rule, "body", path.to_owned());
    let expected = [
        place("additionalProperties", "other"),
        place("enum", "existing"),
        place("pattern", "id"),
        place("type", "document"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn err_a_template_names_all_problems_at_once() {
    let check = |body: Value, expected: &[(&'static str, &str)]| {
        let body = body.to_string();
        let found = TemplateBody::read(&JsonReader::default(), body.as_bytes()).map_err(short);
        let expected = expected.iter().map(|(rule, path)| (*rule, "body", (*path).to_owned()));
        assert_eq!(found.unwrap_err(), expected.collect::<Vec<_>>(), "{body}");
    };
    let unknown = json!({ "mood": "calm" });
    let both = [("minimum", "name"), ("additionalProperties", "fields.mood")];
    check(json!({ "name": " ", "fields": unknown }), &both);
    let all = [("type", "shared"), ("minimum", "name"), ("additionalProperties", "fields.mood")];
    check(json!({ "name": " ", "shared": 1, "fields": unknown }), &all);
    let fields = json!({ "headline": { "apply": "guess", "value": "x" } });
    check(json!({ "name": "a", "fields": fields }), &[("enum", "fields.headline")]);
    let wrong = [("required", "name"), ("additionalProperties", "fields.mood")];
    check(json!({ "fields": unknown }), &wrong);
}

#[test]
fn parameters_that_several_operations_share_are_read_with_their_own() {
    let read = |query: &str| RequestReader::<ListMessages>::default().read(&[], &pairs(query));
    let found = read("start=7&state=parked").unwrap();
    assert_eq!((found.range, found.state), (ListRange { size: 20, start: 7 }, Some(Parked)));
    let expected =
        [("minimum", "query", "start".to_owned()), ("enum", "query", "state".to_owned())];
    assert_eq!(short(read("start=-1&state=failed").unwrap_err()), expected);
    assert_eq!(target(&found), "/operator/v1/message?size=20&start=7&state=parked");
}

#[test]
fn ok_email_addresses() {
    let longest = format!("{}@{}.example", "a".repeat(64), "b".repeat(63));
    for text in ["a@b.se", "first.last+tag@sub.desk-1.example", "o'neil@x.co", &longest] {
        assert!(is_email(text), "{text}");
    }
}

#[test]
fn err_what_is_no_email_address() {
    let local = format!("{}@b.se", "a".repeat(65));
    let domain = format!("a@{}.se", "b".repeat(64));
    let whole = format!("a@{}se", "b.".repeat(150));
    for text in [
        "",
        "a",
        "@",
        "a@",
        "@b.se",
        "a@b",
        "a b@c.se",
        "a@b@c.se",
        "a@b..se",
        "a@.se",
        "a@b.se.",
        ".a@b.se",
        "a.@b.se",
        "a..b@c.se",
        "a@-b.se",
        "a@b-.se",
        "a@b.se\r\nBcc: c@d.se",
        "\"a\"@b.se",
        "a@[127.0.0.1]",
        "å@b.se",
        "a@å.se",
        "<a@b.se>",
        &local,
        &domain,
        &whole,
    ] {
        assert!(!is_email(text), "{text}");
    }
}

#[test]
fn err_a_body_that_is_no_json_is_refused() {
    let deep = "[".repeat(100_000).into_bytes();
    for body in [&b"{"[..], b"{} {}", b"\xff", b"\"\\ud800\"", b"1e999", b"NaN", &deep] {
        let found = <JsonBody<OrderUpdate> as RequestBody>::read(&JsonReader::default(), body);
        assert_eq!(short(found.unwrap_err()), [("format", "body", String::new())]);
    }
}

#[test]
fn err_wrong_telephone_numbers_are_named_with_everything_else() {
    let body = json!({ "department": 1, "phoneNumber": { "direct": "none", "mobile": "12" } });
    let read = <JsonBody<UserUpdate> as RequestBody>::read(
        &JsonReader::default(),
        body.to_string().as_bytes(),
    );
    let mut found = short(read.unwrap_err());
    found.sort();
    let expected = [
        ("format", "phoneNumber.direct"),
        ("format", "phoneNumber.mobile"),
        ("type", "department"),
    ];
    assert_eq!(found, expected.map(|(rule, path)| (rule, "body", path.to_owned())));
}

#[test]
fn ok_telephone_numbers_as_people_write_them() {
    for text in ["112", "+46 8 465 004 01", "08-465 004 01", "(08) 465.004/01", "0046846500401"] {
        assert!(is_phone_number(text), "{text:?}");
    }
}

#[test]
fn err_what_is_no_telephone_number() {
    let long = format!("1{}", " 1".repeat(20));
    for text in ["", "11", "+", "none", "08+465", "++4684650", "123 ext 4", "1\n23", &long] {
        assert!(!is_phone_number(text), "{text:?}");
    }
    assert!(!is_phone_number(&"1".repeat(21)));
    assert!(!is_phone_number(&format!("123{}", " ".repeat(40))));
}
