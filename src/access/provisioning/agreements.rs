//! Lists of organizations with their agreements, products and licences, and their entries in an accounts file.

use serde_json::{Value, json};

use super::{Accounts, AccountsError};
use crate::storage::database::ListedAgreement;
use model::account::{License, Organization, PhoneNumbers, Product};

/// Returns the entry of an organization in an accounts file.
pub fn organization_entry(stored: &Organization) -> Value {
    json!({
        "id": stored.id,
        "name": stored.name,
        "currency": stored.currency,
        "country": stored.country,
        "address": stored.address,
        "phoneNumber": PhoneNumbers { direct: stored.phone_direct.clone(), mobile: None },
        "mailDomains": stored.mail_domains,
    })
}

/// Returns the entry of a product in an accounts file.
pub fn product_entry(stored: &Product) -> Value {
    let Product { id, code, name, description } = stored;
    json!({ "id": id, "code": code, "name": name, "description": description })
}

/// Returns the entry of an agreement in an accounts file. It names the products by their codes.
pub fn agreement_entry(listed: &ListedAgreement) -> Value {
    let stored = &listed.agreement;
    let products: Vec<_> = stored.products.iter().map(|product| &product.code).collect();
    json!({
        "id": stored.id,
        "organization": stored.organization,
        "type": stored.kind,
        "superAgreement": stored.super_agreement,
        "products": products,
        "name": stored.name,
        "description": stored.description,
        "expires": stored.expires,
        "prepaids": stored.prepaids,
        "approver": listed.approver,
    })
}

/// Returns the entry of a licence in an accounts file. It names the product by its code.
pub fn license_entry(stored: &License) -> Value {
    json!({
        "uuid": stored.uuid,
        "product": stored.product.code,
        "period": stored.period,
        "volume": stored.volume,
        "price": stored.price,
        "description": stored.description,
    })
}

impl Accounts {
    /// Lists all organizations by number.
    pub fn list_organizations(&self) -> Result<Vec<Organization>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_organizations())?)
    }

    /// Lists all products by number.
    pub fn list_products(&self) -> Result<Vec<Product>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_products())?)
    }

    /// Lists all agreements by number, including expired ones.
    pub fn list_agreements(&self) -> Result<Vec<ListedAgreement>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_agreements())?)
    }

    /// Lists all licences in the order in which they were added.
    pub fn list_licenses(&self) -> Result<Vec<License>, AccountsError> {
        Ok(self.db.read_blocking(|tx| tx.list_stored_licenses())?)
    }
}
