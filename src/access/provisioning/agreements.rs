//! Organizations with their agreements, products and licences: lists of them, and commands that add one.
//!
//! The objects are written as entries of an accounts file, so that a list can be imported.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::{Accounts, AccountsError};
use crate::storage::database::ListedAgreement;
use model::account::{
    AgreementId, AgreementType, Approver, License, LicensePeriod, Money, Organization,
    OrganizationAddresses, OrganizationId, PhoneNumbers, PrepaidDownloads, Product, ProductId,
};

/// An organization, as an entry of an accounts file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrganizationRecord {
    pub id: OrganizationId,
    pub name: Option<String>,
    pub currency: Option<String>,
    pub country: Option<String>,
    pub address: OrganizationAddresses,
    /// The telephone number, which is the direct one.
    pub phone_number: PhoneNumbers,
    /// The domains that administrators may use in the e-mail addresses of users; empty allows every domain.
    pub mail_domains: Vec<String>,
}

impl From<Organization> for OrganizationRecord {
    fn from(stored: Organization) -> Self {
        Self {
            id: stored.id,
            name: stored.name,
            currency: stored.currency,
            country: stored.country,
            address: stored.address,
            phone_number: PhoneNumbers { direct: stored.phone_direct, mobile: None },
            mail_domains: stored.mail_domains,
        }
    }
}

/// A product, as an entry of an accounts file.
#[derive(Clone, Debug, Serialize)]
pub struct ProductRecord {
    /// `None` requests the next number.
    pub id: Option<ProductId>,
    pub code: String,
    pub name: Option<String>,
    pub description: Option<String>,
}

impl From<Product> for ProductRecord {
    fn from(stored: Product) -> Self {
        let Product { id, code, name, description } = stored;
        Self { id: Some(id), code, name, description }
    }
}

/// An agreement, as an entry of an accounts file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgreementRecord {
    pub id: AgreementId,
    /// The organization that holds the agreement.
    pub organization: OrganizationId,
    #[serde(rename = "type")]
    pub kind: AgreementType,
    /// True if the agreement covers every item.
    pub super_agreement: bool,
    /// Codes of the products that the agreement covers.
    pub products: Vec<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The time at which the agreement ends; `None` if it never ends.
    pub expires: Option<Timestamp>,
    pub prepaids: Option<PrepaidDownloads>,
    pub approver: Approver,
}

impl From<ListedAgreement> for AgreementRecord {
    fn from(listed: ListedAgreement) -> Self {
        let stored = listed.agreement;
        Self {
            id: stored.id,
            organization: stored.organization,
            kind: stored.kind,
            super_agreement: stored.super_agreement,
            products: stored.products.into_iter().map(|product| product.code).collect(),
            name: stored.name,
            description: stored.description,
            expires: stored.expires,
            prepaids: stored.prepaids,
            approver: listed.approver,
        }
    }
}

/// A licence, as an entry of an accounts file.
#[derive(Clone, Debug, Serialize)]
pub struct LicenseRecord {
    pub uuid: Uuid,
    /// The code of the product that the licence belongs to.
    pub product: String,
    pub period: Option<LicensePeriod>,
    /// The number of uses that the licence covers, in words.
    pub volume: Option<String>,
    pub price: Option<Money>,
    pub description: Option<String>,
}

impl From<License> for LicenseRecord {
    fn from(stored: License) -> Self {
        let License { uuid, product, period, volume, price, description } = stored;
        Self { uuid, product: product.code, period, volume, price, description }
    }
}

impl Accounts {
    /// Lists all organizations by number.
    pub fn list_organizations(&self) -> Result<Vec<OrganizationRecord>, AccountsError> {
        let stored = self.db.read_blocking(|tx| tx.list_stored_organizations())?;
        Ok(stored.into_iter().map(OrganizationRecord::from).collect())
    }

    /// Lists all products by number.
    pub fn list_products(&self) -> Result<Vec<ProductRecord>, AccountsError> {
        let stored = self.db.read_blocking(|tx| tx.list_stored_products())?;
        Ok(stored.into_iter().map(ProductRecord::from).collect())
    }

    /// Lists all agreements by number, including expired ones.
    pub fn list_agreements(&self) -> Result<Vec<AgreementRecord>, AccountsError> {
        let stored = self.db.read_blocking(|tx| tx.list_stored_agreements())?;
        Ok(stored.into_iter().map(AgreementRecord::from).collect())
    }

    /// Lists all licences in the order in which they were added.
    pub fn list_licenses(&self) -> Result<Vec<LicenseRecord>, AccountsError> {
        let stored = self.db.read_blocking(|tx| tx.list_stored_licenses())?;
        Ok(stored.into_iter().map(LicenseRecord::from).collect())
    }

    /// Adds an organization.
    ///
    /// Fails if there is an organization of that number or a property is invalid.
    pub fn add_organization(
        &self,
        new: &OrganizationRecord,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let what = format!("organization {}", new.id);
        self.add(&what, &json!({ "organizations": [new] }), now)
    }

    /// Adds a product.
    ///
    /// Fails if there is a product of that code or number, or a property is invalid.
    pub fn add_product(&self, new: &ProductRecord, now: Timestamp) -> Result<(), AccountsError> {
        self.add(&format!("product {:?}", new.code), &json!({ "products": [new] }), now)
    }

    /// Adds an agreement.
    ///
    /// Fails if there is an agreement of that number, if its organization or a product does not exist, or if a
    /// property is invalid.
    pub fn add_agreement(
        &self,
        new: &AgreementRecord,
        now: Timestamp,
    ) -> Result<(), AccountsError> {
        let what = format!("agreement {}", new.id);
        self.add(&what, &json!({ "agreements": [new] }), now)
    }

    /// Adds a licence.
    ///
    /// Fails if there is a licence of that UUID, if its product does not exist, or if a property is invalid.
    pub fn add_license(&self, new: &LicenseRecord, now: Timestamp) -> Result<(), AccountsError> {
        self.add(&format!("licence {}", new.uuid), &json!({ "licenses": [new] }), now)
    }
}
