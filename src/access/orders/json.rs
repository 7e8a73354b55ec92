//! JSON views of orders and licences for clients (contract purchases-11).

use serde_json::{Map, Value, json};

use model::account::{License, Order, Product};
use model::item::MediaLinks;

/// Creates the view of an order, with the public link to its item.
///
/// The price has the name and description of the product (contract purchases-9).
#[must_use]
pub fn order<L: MediaLinks>(order: &Order, links: &L) -> Value {
    let product = &order.product;
    let agreement_name = order.agreement.name.as_deref();
    let mut price = Map::new();
    price.insert("name".to_owned(), json!(price_name(product, agreement_name)));
    optional(&mut price, "description", product.description.as_deref());
    // The licence is chosen when the order is reported; until then only its product is known.
    let license = match &order.license {
        Some(reported) => license(reported),
        None => json!({ "product": product_json(product) }),
    };
    price.insert("license".to_owned(), license);
    let mut agreement = Map::new();
    agreement.insert("id".to_owned(), json!(order.agreement.id));
    optional(&mut agreement, "name", agreement_name);
    agreement.insert("type".to_owned(), json!(order.agreement.kind));
    // Only agreements with this requirement have the property (contract purchases-15).
    optional(&mut agreement, "approver", order.agreement.approver.stored());
    price.insert("agreement".to_owned(), Value::Object(agreement));
    let item = json!({
        "uri": links.item(&order.item),
        "headline": order.headline,
        "byline": order.byline,
        "source": order.source,
    });
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(order.id));
    fields.insert("item".to_owned(), item);
    fields.insert("price".to_owned(), Value::Object(price));
    optional(&mut fields, "invoiceText", order.invoice_text.as_deref());
    fields.insert("created".to_owned(), json!(order.created));
    fields.insert("downloadableUntil".to_owned(), json!(order.downloadable_until));
    optional(&mut fields, "reportingDeadline", order.reporting_deadline);
    optional(&mut fields, "reported", order.reported);
    optional(&mut fields, "approved", order.approved);
    fields.insert("manual".to_owned(), json!(order.manual));
    Value::Object(fields)
}

/// Creates the view of a licence.
#[must_use]
pub fn license(license: &License) -> Value {
    let mut fields = Map::new();
    fields.insert("uuid".to_owned(), json!(license.uuid.to_string()));
    optional(&mut fields, "period", license.period);
    optional(&mut fields, "volume", license.volume.as_deref());
    optional(&mut fields, "price", license.price);
    optional(&mut fields, "description", license.description.as_deref());
    fields.insert("product".to_owned(), product_json(&license.product));
    Value::Object(fields)
}

/// Creates the product of a licence, with all properties (contract purchases-11).
fn product_json(product: &Product) -> Value {
    json!({
        "name": product.name.as_deref().unwrap_or(&product.code),
        "description": product.description.as_deref().unwrap_or_default(),
        "code": product.code,
    })
}

fn price_name(product: &Product, agreement: Option<&str>) -> String {
    let code = Some(product.code.as_str()).filter(|code| !code.is_empty());
    // A product without a name belongs to an agreement without products (contract purchases-9).
    let names = [product.name.as_deref(), code, agreement];
    names.into_iter().flatten().next().unwrap_or_default().to_owned()
}

fn optional<T: serde::Serialize>(fields: &mut Map<String, Value>, name: &str, value: Option<T>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), json!(value));
    }
}
