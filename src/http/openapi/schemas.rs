//! The components of the document: what bodies look like (Spec §2).

#![expect(
    clippy::needless_pass_by_value,
    reason = "parts of the document are made and handed on, never kept"
)]

use serde_json::{Map, Value, json};

use super::news_item;
use crate::runtime::limits::{EMAIL_CHARS_MAX, INVOICE_TEXT_CHARS_MAX, SHORT_TEXT_CHARS_MAX};
use model::account::{AgreementType, Approver, DeliveryState, Period};
use query::Facet;

/// A schema by its name.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn array(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn string() -> Value {
    json!({ "type": "string" })
}

pub(super) fn integer() -> Value {
    json!({ "type": "integer", "format": "int64" })
}

pub(super) fn boolean() -> Value {
    json!({ "type": "boolean" })
}

pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn uuid() -> Value {
    json!({ "type": "string", "format": "uuid" })
}

/// One of `words`.
pub(super) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// The schema with a sentence about it.
pub(super) fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}

/// An object with `properties`, of which those in `required` are there always.
pub(super) fn object(required: &[&str], properties: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    let mut schema = json!({ "type": "object" });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["properties"] = Value::Object(properties);
    schema
}

/// The object with no other properties.
pub(super) fn closed(mut schema: Value) -> Value {
    schema["additionalProperties"] = json!(false);
    schema
}

fn agreement_type() -> Value {
    one_of(&AgreementType::ALL.map(AgreementType::as_str))
}

/// Every component, by name.
pub(super) fn all() -> Map<String, Value> {
    let mut schemas = Map::new();
    let parts = [
        errors(),
        news_item::schemas(),
        facets(),
        agreements(),
        users(),
        user_bodies(),
        super::notifications::schemas(),
        super::collections::schemas(),
    ];
    let more = [organizations(), orders(), order_bodies(), deliveries(), oauth()];
    let more = more.into_iter().chain([super::own::schemas(), super::logins::schemas()]);
    for part in parts.into_iter().chain(more) {
        schemas.extend(part.into_iter().map(|(name, schema)| (name.to_owned(), schema)));
    }
    schemas
}

pub(super) type Part = Vec<(&'static str, Value)>;

fn errors() -> Part {
    let error = object(
        &[],
        &[
            (
                "errorCode",
                described(
                    string(),
                    "What went wrong: `<rule>.openapi.requestValidation` with the rule `enum`, \
                     `required`, `type`, `format`, `minimum`, `maximum`, `additionalProperties` \
                     or `pattern`, or a code of its own such as `agreement_required`.",
                ),
            ),
            ("location", one_of(&["path", "query", "headers", "body"])),
            ("message", described(string(), "A sentence for people.")),
            ("path", described(string(), "The parameter, or the property with dots.")),
        ],
    );
    let errors = object(
        &["message", "errors"],
        &[("message", string()), ("errors", array(reference("Error")))],
    );
    vec![("Errors", errors), ("Error", error)]
}

fn facets() -> Part {
    let facet = object(&["key", "count"], &[("key", string()), ("count", integer())]);
    let lists: Vec<_> =
        Facet::ALL.iter().map(|facet| (facet.as_str(), array(reference("Facet")))).collect();
    let hits = array(reference("NewsItem"));
    let result = object(
        &["hits", "total"],
        &[
            ("hits", hits.clone()),
            ("total", described(integer(), "Items that match in all.")),
            ("facets", described(object(&[], &lists), "Only those that were asked for.")),
        ],
    );
    vec![
        ("Facet", facet),
        ("SearchResult", result),
        ("StreamResult", object(&["hits"], &[("hits", hits)])),
    ]
}

fn agreements() -> Part {
    let product = object(
        &["id", "code"],
        &[("id", integer()), ("code", string()), ("name", string()), ("description", string())],
    );
    let prepaids =
        object(&["total", "remaining"], &[("total", integer()), ("remaining", integer())]);
    let agreement = object(
        &["id", "type", "superAgreement", "products"],
        &[
            ("id", integer()),
            ("type", agreement_type()),
            ("superAgreement", described(boolean(), "It covers every item.")),
            ("products", array(reference("Product"))),
            ("name", string()),
            ("description", string()),
            ("expires", time()),
            ("prepaids", described(prepaids, "Downloads that were paid for in advance.")),
        ],
    );
    let nullable = json!({ "type": ["string", "null"] });
    let old_product = object(
        &["description", "code"],
        &[("name", string()), ("description", nullable.clone()), ("code", string())],
    );
    let old = object(
        &["id", "description", "isSuperAgreement", "products"],
        &[
            ("id", integer()),
            ("description", nullable.clone()),
            (
                "type",
                described(
                    one_of(&["Subscription", "Direct", "Normal", "Sketch"]),
                    "Missing where the agreement is of a type that this list has no word for.",
                ),
            ),
            (
                "isSuperAgreement",
                described(boolean(), "It overrides every agreement of the type Subscription."),
            ),
            ("products", array(old_product)),
        ],
    );
    let key_product = object(
        &["id", "name", "description", "productCode"],
        &[
            ("id", integer()),
            ("name", string()),
            ("description", nullable),
            ("productCode", string()),
        ],
    );
    let of_key = json!({ "type": "object", "additionalProperties": array(key_product) });
    vec![
        ("Agreement", agreement),
        ("Product", product),
        ("DeprecatedAgreement", old),
        ("AgreementsOfKey", described(of_key, "Products by the number of their agreement.")),
    ]
}

/// The properties of a user in a list.
fn user_base() -> Vec<(&'static str, Value)> {
    vec![
        ("id", integer()),
        ("customerId", described(integer(), "The organization.")),
        ("userName", string()),
        ("firstName", string()),
        ("lastName", string()),
        ("emailAddress", string()),
        ("department", string()),
        ("active", boolean()),
    ]
}

fn users() -> Part {
    let base = user_base();
    let mut full = base.clone();
    full.extend([
        ("phoneNumber", reference("PhoneNumber")),
        ("agreements", array(reference("Agreement"))),
        ("access", reference("Access")),
    ]);
    let required = ["id", "userName", "phoneNumber", "agreements", "access", "active"];
    let phone = object(&[], &[("direct", string()), ("mobile", string())]);
    let access = closed(object(
        &[],
        &[
            ("admin", described(boolean(), "Administers the users of the organization.")),
            ("mediebank", described(boolean(), "May use the media bank.")),
        ],
    ));
    vec![
        ("User", object(&required, &full)),
        ("UserBase", object(&["id", "userName", "active"], &base)),
        ("PhoneNumber", phone),
        ("Access", access),
        ("Profile", described(json!({ "type": "object" }), "Data of applications, not secret.")),
    ]
}

/// A line of text without control characters.
pub(super) fn short_text() -> Value {
    json!({ "type": "string", "maxLength": SHORT_TEXT_CHARS_MAX, "pattern": NO_CONTROLS })
}

/// No control characters.
pub(super) const NO_CONTROLS: &str = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";

/// The same with `null`, which empties it.
fn or_null(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"], "null"]);
    schema
}

fn user_bodies() -> Part {
    let email = json!({ "type": "string", "format": "email", "maxLength": EMAIL_CHARS_MAX });
    let mut number = or_null(described(
        short_text(),
        "A telephone number: 3 to 20 digits, perhaps behind a `+`, with spaces, `-`, `(`, `)`, \
         `.` and `/` between them.",
    ));
    number["examples"] = json!(["+46 8 123 45 67"]);
    let phone = closed(object(&[], &[("direct", number.clone()), ("mobile", number)]));
    let phone = or_null(phone);
    let body = |required: &[&str]| {
        let properties = [
            ("emailAddress", described(email.clone(), "In lower case it is the user name.")),
            ("firstName", short_text()),
            ("lastName", short_text()),
            ("phoneNumber", phone.clone()),
            ("department", or_null(short_text())),
            ("access", reference("Access")),
        ];
        closed(object(required, &properties))
    };
    vec![
        ("UserCreate", body(&["emailAddress", "firstName", "lastName"])),
        (
            "UserUpdate",
            described(body(&[]), "What is missing stays; `null` empties what may be missing."),
        ),
    ]
}

fn organizations() -> Part {
    let address =
        object(&[], &["street", "box", "zipCode", "city", "country"].map(|name| (name, string())));
    let addresses =
        object(&[], &["visit", "postal", "billing"].map(|name| (name, reference("Address"))));
    let organization = object(
        &["id", "address", "phoneNumber"],
        &[
            ("id", integer()),
            ("name", string()),
            ("currency", string()),
            ("country", string()),
            ("address", addresses),
            ("phoneNumber", object(&[], &[("direct", string())])),
        ],
    );
    vec![("Organization", organization), ("Address", address)]
}

fn orders() -> Part {
    let item = ["uri", "headline", "byline", "source"].map(|name| (name, string()));
    let product = object(
        &["name", "description", "code"],
        &["name", "description", "code"].map(|name| (name, string())),
    );
    let license = object(
        &["product"],
        &[
            ("uuid", uuid()),
            ("period", one_of(&Period::ALL.map(Period::as_str))),
            ("volume", string()),
            ("price", reference("Amount")),
            ("description", string()),
            ("product", product),
        ],
    );
    let agreement = object(
        &["id", "type"],
        &[
            ("id", integer()),
            ("name", string()),
            ("type", agreement_type()),
            (
                "approver",
                described(
                    one_of(&[Approver::Admin.as_str()]),
                    "There where only administrators of the organization may approve the order.",
                ),
            ),
        ],
    );
    let price = object(
        &["name", "license", "agreement"],
        &[
            ("name", string()),
            ("description", string()),
            ("license", reference("License")),
            ("agreement", agreement),
        ],
    );
    let order = object(
        &["id", "item", "price", "created", "downloadableUntil"],
        &[
            ("id", integer()),
            ("item", object(&[], &item)),
            ("price", price),
            ("invoiceText", string()),
            ("created", time()),
            ("downloadableUntil", described(time(), "Until then it is downloaded for free.")),
            ("reportingDeadline", time()),
            ("reported", described(time(), "When its use was reported.")),
            ("approved", described(boolean(), "The download was approved.")),
            ("manual", described(boolean(), "Somebody handles the order by hand.")),
        ],
    );
    let amount = json!({
        "type": "string", "pattern": "^-?\\d+\\.\\d\\d$", "examples": ["1200.00"],
        "description": "An amount of money with two decimals.",
    });
    vec![
        ("Order", order),
        ("Orders", object(&["orders"], &[("orders", array(reference("Order")))])),
        ("License", license),
        ("Amount", amount),
    ]
}

fn order_bodies() -> Part {
    let license = object(&["uuid"], &[("uuid", uuid())]);
    let license =
        or_null(described(license, "One of the item's pricelist; needed when `approve` is true."));
    let text = json!({ "type": ["string", "null"], "maxLength": INVOICE_TEXT_CHARS_MAX });
    let update = closed(object(
        &["approve"],
        &[
            ("approve", boolean()),
            ("license", license),
            ("invoiceText", described(text, "What is to stand on the invoice.")),
        ],
    ));
    vec![("OrderUpdate", update)]
}

fn deliveries() -> Part {
    let told = [
        ("id", uuid()),
        ("state", one_of(&DeliveryState::ALL.map(DeliveryState::as_str))),
        ("channel", described(string(), "`user:<username>:<channel name>`.")),
        ("item", described(string(), "The item's `uri`.")),
    ];
    let names = told.each_ref().map(|(name, _)| *name);
    let mut all = Vec::from(told.clone());
    all.extend([
        ("attempts", described(integer(), "Times that it was tried since it was queued.")),
        ("created", time()),
        ("updated", described(time(), "When its state changed last.")),
        ("agreement", described(integer(), "The agreement that the request named.")),
        ("nextAttempt", described(time(), "When it is tried next, while it is queued.")),
        ("delivered", time()),
        ("error", described(string(), "Why the last try failed.")),
    ]);
    let mut required = Vec::from(names);
    required.extend(["attempts", "created", "updated"]);
    let list = object(&["deliveries"], &[("deliveries", array(reference("Delivery")))]);
    vec![
        ("Triggered", object(&names, &told)),
        ("Delivery", object(&required, &all)),
        ("Deliveries", list),
    ]
}

fn oauth() -> Part {
    let token_set = object(
        &["access_token", "token_type", "expires_in"],
        &[
            ("access_token", string()),
            ("token_type", json!({ "const": "Bearer" })),
            ("expires_in", described(integer(), "Seconds.")),
            ("refresh_token", string()),
            ("id_token", described(string(), "Who the user is, as a signed JWT.")),
            ("scope", described(string(), "Scopes with spaces between them.")),
        ],
    );
    let error = object(&["error"], &[("error", string()), ("error_description", string())]);
    let text = ["sub", "scope", "email", "name", "family_name", "given_name"];
    let mut claims: Vec<_> = text.map(|name| (name, string())).to_vec();
    claims.extend([("roles", array(string())), ("customer_name", string())]);
    claims.extend([("user_id", integer()), ("customer_id", integer())]);
    claims.push(("department", string()));
    let key_set = object(&["keys"], &[("keys", array(json!({ "type": "object" })))]);
    vec![
        ("TokenSet", token_set),
        ("OAuthError", described(error, "RFC 6749 §5.2.")),
        ("UserInfo", object(&["sub", "scope"], &claims)),
        ("KeySet", described(key_set, "RFC 7517.")),
    ]
}
