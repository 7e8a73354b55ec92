//! Views of orders and licences for clients (contract purchases-11).

use api::orders::{LicensedProduct, OrderApprover, OrderPrice, OrderedItem};
use model::account::{Approver, License, Order, OrderAgreement, Product};
use model::item::MediaLinks;

/// Creates the view of an order, with the public link to its item.
///
/// The price has the name and description of the product (contract purchases-9).
pub fn order(order: &Order, links: &MediaLinks) -> api::orders::Order {
    let item = OrderedItem {
        uri: links.item(&order.item),
        headline: order.headline.clone(),
        byline: order.byline.clone(),
        source: order.source.clone(),
    };
    api::orders::Order {
        id: order.id.0,
        item,
        price: price(order),
        invoice_text: order.invoice_text.clone(),
        created: order.created,
        downloadable_until: order.downloadable_until,
        reporting_deadline: order.reporting_deadline,
        reported: order.reported,
        approved: order.approved,
        manual: order.manual,
    }
}

fn price(order: &Order) -> OrderPrice {
    let product = &order.product;
    // The licence is chosen when the order is reported; until then only its product is known.
    let license = match &order.license {
        Some(reported) => license(reported),
        None => api::orders::License::of_product(licensed_product(product)),
    };
    OrderPrice {
        name: price_name(product, order.agreement.name.as_deref()),
        description: product.description.clone(),
        license,
        agreement: agreement(&order.agreement),
    }
}

fn agreement(agreement: &OrderAgreement) -> api::orders::OrderAgreement {
    // Only agreements with this requirement have the property (contract purchases-15).
    let approver = match agreement.approver {
        Approver::Admin => Some(OrderApprover::Admin),
        Approver::Owner => None,
    };
    api::orders::OrderAgreement {
        id: agreement.id.0,
        name: agreement.name.clone(),
        kind: agreement.kind,
        approver,
    }
}

/// Creates the view of a licence.
pub fn license(license: &License) -> api::orders::License {
    api::orders::License {
        uuid: Some(license.uuid),
        period: license.period,
        volume: license.volume.clone(),
        price: license.price,
        description: license.description.clone(),
        product: licensed_product(&license.product),
    }
}

/// Creates the product of a licence, with all properties (contract purchases-11).
fn licensed_product(product: &Product) -> LicensedProduct {
    LicensedProduct {
        name: product.name.clone().unwrap_or_else(|| product.code.clone()),
        description: product.description.clone().unwrap_or_default(),
        code: product.code.clone(),
    }
}

fn price_name(product: &Product, agreement: Option<&str>) -> String {
    let code = Some(product.code.as_str()).filter(|code| !code.is_empty());
    // A product without a name belongs to an agreement without products (contract purchases-9).
    let names = [product.name.as_deref(), code, agreement];
    names.into_iter().flatten().next().unwrap_or_default().to_owned()
}
