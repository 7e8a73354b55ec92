//! The commands for organizations and their agreements, products and licences.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::accounts::ArchiveArgs;
use super::table::{print_list, table};
use super::values::word;
use super::{CommandFailure, print_json, print_line};
use crate::access::provisioning::{
    AccountsError, agreement_entry, license_entry, organization_entry, product_entry,
};
use crate::runtime::clock;
use crate::storage::database::ListedAgreement;
use model::account::{
    AgreementType, Approver, License, LicensePeriod, Money, Organization, PhoneNumbers,
    PrepaidDownloads, Product,
};

/// The subcommands of `wirephoto organization`.
#[derive(Debug, Subcommand)]
pub(super) enum OrganizationCommand {
    /// Lists all organizations by number.
    List(ArchiveArgs),
    /// Shows an organization with all of its properties, which are those of an accounts file.
    Show {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Number of the organization.
        id: i64,
    },
    /// Adds an organization. An accounts file can change it, and give it addresses.
    Add(NewOrganizationArgs),
}

/// An organization to add.
#[derive(Args, Debug)]
pub(super) struct NewOrganizationArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Number of the organization.
    pub(super) id: i64,
    /// Name for invoices and pages.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Currency of its prices, such as SEK.
    #[arg(long, value_name = "CODE")]
    currency: Option<String>,
    /// Country, such as SE.
    #[arg(long, value_name = "CODE")]
    country: Option<String>,
    /// Telephone number of the organization.
    #[arg(long, value_name = "NUMBER")]
    phone: Option<String>,
    /// A domain that administrators may use in users' e-mail addresses; can be repeated; without one, every
    /// domain.
    #[arg(long = "mail-domain", value_name = "DOMAIN")]
    mail_domains: Vec<String>,
}

/// The subcommands of `wirephoto agreement`.
#[derive(Debug, Subcommand)]
pub(super) enum AgreementCommand {
    /// Lists the agreements, including expired ones.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Lists only the agreements of this organization.
        #[arg(long, value_name = "ID")]
        organization: Option<i64>,
    },
    /// Shows an agreement with all of its properties, which are those of an accounts file.
    Show {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Number of the agreement.
        id: i64,
    },
    /// Adds an agreement to an organization. An accounts file can change it.
    Add(NewAgreementArgs),
}

/// An agreement to add.
#[derive(Args, Debug)]
pub(super) struct NewAgreementArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Number of the agreement.
    pub(super) id: i64,
    /// Number of the organization that holds the agreement.
    #[arg(long, value_name = "ID")]
    organization: i64,
    /// Method of payment for downloads: Subscription, Prepaid, Direct or Normal.
    #[arg(long = "type", value_name = "TYPE", value_parser = word::<AgreementType>)]
    kind: AgreementType,
    /// Makes the agreement cover every item.
    #[arg(long = "super")]
    super_agreement: bool,
    /// Code of a product that the agreement covers; can be repeated.
    #[arg(long = "product", value_name = "CODE")]
    products: Vec<String>,
    /// The name for people.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Text about what was agreed.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Time at which the agreement ends, such as 2030-01-01T00:00:00Z; by default never.
    #[arg(long, value_name = "TIME")]
    expires: Option<Timestamp>,
    /// Downloads that were bought, for the type Prepaid.
    #[arg(long, value_name = "N")]
    prepaid: Option<u32>,
    /// Users who approve orders: owner (the user who ordered, or an administrator) or admin.
    #[arg(long, value_name = "WORD", default_value = "owner", value_parser = word::<Approver>)]
    approver: Approver,
}

/// The subcommands of `wirephoto product`.
#[derive(Debug, Subcommand)]
pub(super) enum ProductCommand {
    /// Lists all products by number.
    List(ArchiveArgs),
    /// Shows a product with all of its properties, which are those of an accounts file.
    Show {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Code of the product.
        code: String,
    },
    /// Adds a product. An accounts file can change it.
    Add(NewProductArgs),
}

/// A product to add.
#[derive(Args, Debug)]
pub(super) struct NewProductArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Code of the product in items and agreements.
    pub(super) code: String,
    /// Number in the API; by default the next one.
    #[arg(long, value_name = "ID")]
    id: Option<i64>,
    /// The name for people.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Contents of the product.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

/// The subcommands of `wirephoto license`.
#[derive(Debug, Subcommand)]
pub(super) enum LicenseCommand {
    /// Lists the licences, which are the price list for orders.
    List {
        #[command(flatten)]
        on: ArchiveArgs,
        /// Lists only the licences of this product.
        #[arg(long, value_name = "CODE")]
        product: Option<String>,
    },
    /// Shows a licence with all of its properties, which are those of an accounts file.
    Show {
        #[command(flatten)]
        on: ArchiveArgs,
        /// UUID of the licence.
        uuid: Uuid,
    },
    /// Adds a licence to a product. An accounts file can change it.
    Add(NewLicenseArgs),
}

/// A licence to add.
#[derive(Args, Debug)]
pub(super) struct NewLicenseArgs {
    #[command(flatten)]
    on: ArchiveArgs,
    /// Code of the product that the licence is for.
    pub(super) product: String,
    /// UUID of the licence; by default a new one.
    #[arg(long, value_name = "UUID")]
    uuid: Option<Uuid>,
    /// Period of use: Year, Month or Single.
    #[arg(long, value_name = "PERIOD", value_parser = word::<LicensePeriod>)]
    period: Option<LicensePeriod>,
    /// Number of uses in words, such as 1-100.
    #[arg(long, value_name = "TEXT")]
    volume: Option<String>,
    /// Price with two decimals, such as 1200.00, in the currency of the organization that orders.
    #[arg(long, value_name = "AMOUNT")]
    price: Option<Money>,
    /// Uses that the licence permits.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(super) fn organization(command: OrganizationCommand) -> Result<(), CommandFailure> {
    match command {
        OrganizationCommand::List(on) => {
            let head = ["ID", "NAME", "CURRENCY", "COUNTRY", "MAIL DOMAINS"];
            let listed = on.open()?.list_organizations()?;
            print_list(on.is_json(), &listed, organization_entry, head, organization_row);
            Ok(())
        }
        OrganizationCommand::Show { on, id } => {
            let listed = on.open()?.list_organizations()?;
            let found = listed.iter().find(|organization| organization.id.0 == id);
            show(&on, &format!("organization {id}"), found.map(organization_entry))
        }
        OrganizationCommand::Add(new) => {
            let entry = json!({
                "id": new.id,
                "name": new.name,
                "currency": new.currency,
                "country": new.country,
                "address": {},
                "phoneNumber": PhoneNumbers { direct: new.phone, mobile: None },
                "mailDomains": new.mail_domains,
            });
            add(&new.on, &format!("organization {}", new.id), "organizations", &entry)
        }
    }
}

fn organization_row(organization: &Organization) -> [String; 5] {
    [
        organization.id.to_string(),
        organization.name.clone().unwrap_or_default(),
        organization.currency.clone().unwrap_or_default(),
        organization.country.clone().unwrap_or_default(),
        organization.mail_domains.join(" "),
    ]
}

pub(super) fn agreement(command: AgreementCommand) -> Result<(), CommandFailure> {
    match command {
        AgreementCommand::List { on, organization } => {
            let mut listed = on.open()?.list_agreements()?;
            listed.retain(|it| organization.is_none_or(|id| it.agreement.organization.0 == id));
            let head = ["ID", "ORGANIZATION", "TYPE", "PRODUCTS", "NAME", "EXPIRES", "LEFT"];
            print_list(on.is_json(), &listed, agreement_entry, head, agreement_row);
            Ok(())
        }
        AgreementCommand::Show { on, id } => {
            let listed = on.open()?.list_agreements()?;
            let found = listed.iter().find(|listed| listed.agreement.id.0 == id);
            show(&on, &format!("agreement {id}"), found.map(agreement_entry))
        }
        AgreementCommand::Add(new) => {
            let entry = json!({
                "id": new.id,
                "organization": new.organization,
                "type": new.kind,
                "superAgreement": new.super_agreement,
                "products": new.products,
                "name": new.name,
                "description": new.description,
                "expires": new.expires,
                "prepaids": new.prepaid.map(|total| PrepaidDownloads { total, remaining: total }),
                "approver": new.approver,
            });
            add(&new.on, &format!("agreement {}", new.id), "agreements", &entry)
        }
    }
}

fn agreement_row(listed: &ListedAgreement) -> [String; 7] {
    let agreement = &listed.agreement;
    let codes: Vec<_> = agreement.products.iter().map(|product| product.code.as_str()).collect();
    let products =
        if agreement.super_agreement { "every item".to_owned() } else { codes.join(" ") };
    let left = agreement.prepaids.map(|prepaids| {
        let PrepaidDownloads { total, remaining } = prepaids;
        format!("{remaining} of {total}")
    });
    [
        agreement.id.to_string(),
        agreement.organization.to_string(),
        agreement.kind.as_str().to_owned(),
        products,
        agreement.name.clone().unwrap_or_default(),
        agreement.expires.map(|expires| expires.to_string()).unwrap_or_default(),
        left.unwrap_or_default(),
    ]
}

pub(super) fn product(command: ProductCommand) -> Result<(), CommandFailure> {
    match command {
        ProductCommand::List(on) => {
            let head = ["ID", "CODE", "NAME", "DESCRIPTION"];
            let listed = on.open()?.list_products()?;
            print_list(on.is_json(), &listed, product_entry, head, product_row);
            Ok(())
        }
        ProductCommand::Show { on, code } => {
            let listed = on.open()?.list_products()?;
            let found = listed.iter().find(|product| product.code == code);
            show(&on, &format!("product {code:?}"), found.map(product_entry))
        }
        ProductCommand::Add(NewProductArgs { on, code, id, name, description }) => {
            let entry =
                json!({ "id": id, "code": code, "name": name, "description": description });
            add(&on, &format!("product {code:?}"), "products", &entry)
        }
    }
}

fn product_row(product: &Product) -> [String; 4] {
    [
        product.id.to_string(),
        product.code.clone(),
        product.name.clone().unwrap_or_default(),
        product.description.clone().unwrap_or_default(),
    ]
}

pub(super) fn license(command: LicenseCommand) -> Result<(), CommandFailure> {
    match command {
        LicenseCommand::List { on, product } => {
            let mut listed = on.open()?.list_licenses()?;
            listed.retain(|it| product.as_ref().is_none_or(|code| it.product.code == *code));
            let head = ["UUID", "PRODUCT", "PERIOD", "VOLUME", "PRICE", "DESCRIPTION"];
            print_list(on.is_json(), &listed, license_entry, head, license_row);
            Ok(())
        }
        LicenseCommand::Show { on, uuid } => {
            let listed = on.open()?.list_licenses()?;
            let found = listed.iter().find(|license| license.uuid == uuid);
            show(&on, &format!("licence {uuid}"), found.map(license_entry))
        }
        LicenseCommand::Add(new) => {
            let uuid = new.uuid.unwrap_or_else(Uuid::new_v4);
            let entry = json!({
                "uuid": uuid,
                "product": new.product,
                "period": new.period,
                "volume": new.volume,
                "price": new.price,
                "description": new.description,
            });
            add(&new.on, &format!("licence {uuid}"), "licenses", &entry)
        }
    }
}

fn license_row(license: &License) -> [String; 6] {
    [
        license.uuid.to_string(),
        license.product.code.clone(),
        license.period.map(|period| period.as_str().to_owned()).unwrap_or_default(),
        license.volume.clone().unwrap_or_default(),
        license.price.map(|price| price.to_string()).unwrap_or_default(),
        license.description.clone().unwrap_or_default(),
    ]
}

/// Adds the object `what` by its entry in the list `list` of an accounts file, and prints the entry.
fn add(on: &ArchiveArgs, what: &str, list: &str, entry: &Value) -> Result<(), CommandFailure> {
    on.open()?.add(what, list, entry, clock::now())?;
    on.print_done(&format!("{what} added"), entry);
    Ok(())
}

/// Prints the properties of the object `what` that have a value; fails if it was not found.
fn show(on: &ArchiveArgs, what: &str, found: Option<Value>) -> Result<(), CommandFailure> {
    let Some(entry) = found else { return Err(AccountsError::Unknown(what.to_owned()).into()) };
    if on.is_json() {
        print_json(&entry);
        return Ok(());
    }
    let mut rows = Vec::new();
    for (name, value) in entry.as_object().into_iter().flatten() {
        if !value.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            rows.push([name.clone(), text]);
        }
    }
    print_line(&table(["PROPERTY", "VALUE"], &rows));
    Ok(())
}
