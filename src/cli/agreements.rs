//! The commands for organizations and their agreements, products and licences.

use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::CommandFailure;
use super::accounts::ArchiveArgs;
use super::table::{print_list, table};
use super::values::word;
use super::{print_json, print_line};
use crate::access::provisioning::{
    AccountsError, AgreementRecord, LicenseRecord, OrganizationRecord, ProductRecord,
};
use crate::runtime::clock;
use model::account::{
    AgreementId, AgreementType, Approver, LicensePeriod, Money, OrganizationAddresses,
    OrganizationId, PhoneNumbers, PrepaidDownloads, ProductId,
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
    /// How downloads are paid for: Subscription, Prepaid, Direct or Normal.
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
    /// When the agreement ends, such as 2030-01-01T00:00:00Z; by default never.
    #[arg(long, value_name = "TIME")]
    expires: Option<Timestamp>,
    /// Downloads that were bought, for the type Prepaid.
    #[arg(long, value_name = "N")]
    prepaid: Option<u32>,
    /// Who approves orders: owner (the user who ordered, or an administrator) or admin.
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
    /// What the product contains.
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
    /// Which uses the licence permits.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
}

pub(super) fn organization(command: OrganizationCommand) -> Result<(), CommandFailure> {
    match command {
        OrganizationCommand::List(on) => {
            let head = ["ID", "NAME", "CURRENCY", "COUNTRY", "MAIL DOMAINS"];
            let listed = on.open()?.list_organizations()?;
            print_list(on.is_json(), &listed, |entry| json!(entry), head, organization_row);
            Ok(())
        }
        OrganizationCommand::Show { on, id } => {
            let mut listed = on.open()?.list_organizations()?.into_iter();
            let found = listed.find(|entry| entry.id.0 == id);
            show(&on, found.as_ref(), || format!("organization {id}"))
        }
        OrganizationCommand::Add(args) => add_organization(args),
    }
}

fn add_organization(args: NewOrganizationArgs) -> Result<(), CommandFailure> {
    let new = OrganizationRecord {
        id: OrganizationId(args.id),
        name: args.name,
        currency: args.currency,
        country: args.country,
        address: OrganizationAddresses::default(),
        phone_number: PhoneNumbers { direct: args.phone, mobile: None },
        mail_domains: args.mail_domains,
    };
    args.on.open()?.add_organization(&new, clock::now())?;
    args.on.print_done(&format!("organization {} added", new.id), &json!(new));
    Ok(())
}

fn organization_row(entry: &OrganizationRecord) -> [String; 5] {
    [
        entry.id.to_string(),
        entry.name.clone().unwrap_or_default(),
        entry.currency.clone().unwrap_or_default(),
        entry.country.clone().unwrap_or_default(),
        entry.mail_domains.join(" "),
    ]
}

pub(super) fn agreement(command: AgreementCommand) -> Result<(), CommandFailure> {
    match command {
        AgreementCommand::List { on, organization } => {
            let mut listed = on.open()?.list_agreements()?;
            listed.retain(|entry| organization.is_none_or(|id| entry.organization.0 == id));
            let head = ["ID", "ORGANIZATION", "TYPE", "PRODUCTS", "NAME", "EXPIRES", "LEFT"];
            print_list(on.is_json(), &listed, |entry| json!(entry), head, agreement_row);
            Ok(())
        }
        AgreementCommand::Show { on, id } => {
            let mut listed = on.open()?.list_agreements()?.into_iter();
            let found = listed.find(|entry| entry.id.0 == id);
            show(&on, found.as_ref(), || format!("agreement {id}"))
        }
        AgreementCommand::Add(args) => add_agreement(args),
    }
}

fn add_agreement(args: NewAgreementArgs) -> Result<(), CommandFailure> {
    let prepaids = args.prepaid.map(|total| PrepaidDownloads { total, remaining: total });
    let new = AgreementRecord {
        id: AgreementId(args.id),
        organization: OrganizationId(args.organization),
        kind: args.kind,
        super_agreement: args.super_agreement,
        products: args.products,
        name: args.name,
        description: args.description,
        expires: args.expires,
        prepaids,
        approver: args.approver,
    };
    args.on.open()?.add_agreement(&new, clock::now())?;
    args.on.print_done(&format!("agreement {} added", new.id), &json!(new));
    Ok(())
}

fn agreement_row(entry: &AgreementRecord) -> [String; 7] {
    let products =
        if entry.super_agreement { "every item".to_owned() } else { entry.products.join(" ") };
    let left = entry.prepaids.map(|prepaids| {
        let PrepaidDownloads { total, remaining } = prepaids;
        format!("{remaining} of {total}")
    });
    [
        entry.id.to_string(),
        entry.organization.to_string(),
        entry.kind.as_str().to_owned(),
        products,
        entry.name.clone().unwrap_or_default(),
        entry.expires.map(|expires| expires.to_string()).unwrap_or_default(),
        left.unwrap_or_default(),
    ]
}

pub(super) fn product(command: ProductCommand) -> Result<(), CommandFailure> {
    match command {
        ProductCommand::List(on) => {
            let head = ["ID", "CODE", "NAME", "DESCRIPTION"];
            let listed = on.open()?.list_products()?;
            print_list(on.is_json(), &listed, |entry| json!(entry), head, product_row);
            Ok(())
        }
        ProductCommand::Show { on, code } => {
            let mut listed = on.open()?.list_products()?.into_iter();
            let found = listed.find(|entry| entry.code == code);
            show(&on, found.as_ref(), || format!("product {code:?}"))
        }
        ProductCommand::Add(args) => add_product(args),
    }
}

fn add_product(args: NewProductArgs) -> Result<(), CommandFailure> {
    let new = ProductRecord {
        id: args.id.map(ProductId),
        code: args.code,
        name: args.name,
        description: args.description,
    };
    args.on.open()?.add_product(&new, clock::now())?;
    args.on.print_done(&format!("product {:?} added", new.code), &json!(new));
    Ok(())
}

fn product_row(entry: &ProductRecord) -> [String; 4] {
    [
        entry.id.map(|id| id.to_string()).unwrap_or_default(),
        entry.code.clone(),
        entry.name.clone().unwrap_or_default(),
        entry.description.clone().unwrap_or_default(),
    ]
}

pub(super) fn license(command: LicenseCommand) -> Result<(), CommandFailure> {
    match command {
        LicenseCommand::List { on, product } => {
            let mut listed = on.open()?.list_licenses()?;
            listed.retain(|entry| product.as_ref().is_none_or(|code| entry.product == *code));
            let head = ["UUID", "PRODUCT", "PERIOD", "VOLUME", "PRICE", "DESCRIPTION"];
            print_list(on.is_json(), &listed, |entry| json!(entry), head, license_row);
            Ok(())
        }
        LicenseCommand::Show { on, uuid } => {
            let mut listed = on.open()?.list_licenses()?.into_iter();
            let found = listed.find(|entry| entry.uuid == uuid);
            show(&on, found.as_ref(), || format!("licence {uuid}"))
        }
        LicenseCommand::Add(args) => add_license(args),
    }
}

fn add_license(args: NewLicenseArgs) -> Result<(), CommandFailure> {
    let new = LicenseRecord {
        uuid: args.uuid.unwrap_or_else(Uuid::new_v4),
        product: args.product,
        period: args.period,
        volume: args.volume,
        price: args.price,
        description: args.description,
    };
    args.on.open()?.add_license(&new, clock::now())?;
    args.on.print_done(&format!("licence {} added", new.uuid), &json!(new));
    Ok(())
}

fn license_row(entry: &LicenseRecord) -> [String; 6] {
    [
        entry.uuid.to_string(),
        entry.product.clone(),
        entry.period.map(|period| period.as_str().to_owned()).unwrap_or_default(),
        entry.volume.clone().unwrap_or_default(),
        entry.price.map(|price| price.to_string()).unwrap_or_default(),
        entry.description.clone().unwrap_or_default(),
    ]
}

/// Prints the properties of an object that have a value; fails if it was not found.
fn show<T: Serialize>(
    on: &ArchiveArgs,
    found: Option<&T>,
    what: impl FnOnce() -> String,
) -> Result<(), CommandFailure> {
    let Some(found) = found else { return Err(AccountsError::Unknown(what()).into()) };
    let facts = json!(found);
    if on.is_json() {
        print_json(&facts);
        return Ok(());
    }
    let mut rows = Vec::new();
    for (name, value) in facts.as_object().into_iter().flatten() {
        if !value.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            rows.push([name.clone(), text]);
        }
    }
    print_line(&table(["PROPERTY", "VALUE"], &rows));
    Ok(())
}
