//! The form of an accounts file: every list and property with its type, length and spelling. What
//! entries refer to is for `check`.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    AccountsError, channels,
    fields::{self, Fields},
    redirect,
};
use crate::runtime::limits::{
    API_KEY_BYTES_MAX, CLIENT_ACCESS_TOKEN_S_MIN, MAIL_DOMAINS_MAX, PASSWORD_BYTES_MAX,
    REDIRECT_URIS_MAX, ROLES_MAX,
};
use crate::storage::database::{
    NewAgreement, NewApiKey, NewChannel, NewClient, NewLicense, NewProduct, NewUser,
};
use model::Hash;
use model::account::{
    Access, Address, Addresses, AgreementId, AgreementType, Approver, Grant, Organization,
    OrganizationId, Period, Phone, Prepaids, ProductId, UserId,
};
use model::limits::USER_NAME_BYTES_MAX;

/// Characters that an API key must have at least, so that it cannot be guessed.
const KEY_CHARS_MIN: usize = 16;
/// Bytes of a product's code, a role's name and a client's id.
const WORD_BYTES_MAX: usize = 128;

/// A password or secret as its owner knows it. It has no `Debug`, so that it enters no log.
pub(super) struct Clear(pub(super) String);

/// An entry with its place in the file.
pub(super) struct Entry<T> {
    /// `users[3] "editor"`.
    pub(super) place: String,
    pub(super) value: T,
}

/// What somebody may log in with, before its password or secret is hashed.
pub(super) struct WithSecret<T> {
    pub(super) new: T,
    pub(super) secret: Option<Clear>,
}

/// An accounts file whose entries have the right form.
#[derive(Default)]
pub(super) struct File {
    pub(super) organizations: Vec<Entry<Organization>>,
    pub(super) products: Vec<Entry<NewProduct>>,
    pub(super) agreements: Vec<Entry<NewAgreement>>,
    pub(super) licenses: Vec<Entry<NewLicense>>,
    pub(super) users: Vec<Entry<WithSecret<NewUser>>>,
    pub(super) clients: Vec<Entry<WithSecret<NewClient>>>,
    pub(super) api_keys: Vec<Entry<NewApiKey>>,
    pub(super) channels: Vec<Entry<NewChannel>>,
}

impl File {
    /// Reads the text of a file.
    pub(super) fn parse(text: &str) -> Result<Self, AccountsError> {
        Self::read(fields::parse(text)?)
    }

    /// Reads a file that was parsed.
    pub(super) fn read(value: Value) -> Result<Self, AccountsError> {
        let mut lists = match Fields::of("the file".to_owned(), value) {
            Ok(lists) => lists,
            Err(_) => return Err(AccountsError::Form("expected an object of lists".to_owned())),
        };
        let file = Self {
            organizations: list(&mut lists, "organizations", organization)?,
            products: list(&mut lists, "products", product)?,
            agreements: list(&mut lists, "agreements", agreement)?,
            licenses: list(&mut lists, "licenses", license)?,
            users: list(&mut lists, "users", user)?,
            clients: list(&mut lists, "clients", client)?,
            api_keys: list(&mut lists, "apiKeys", api_key)?,
            channels: list(&mut lists, "channels", channels::read)?,
        };
        lists.end()?;
        Ok(file)
    }
}

/// Reads a list of the file, each entry by `read`.
fn list<T>(
    lists: &mut Fields,
    name: &str,
    read: fn(&mut Fields) -> Result<T, AccountsError>,
) -> Result<Vec<Entry<T>>, AccountsError> {
    let values = lists.read(name, "a list", fields::into_list)?.unwrap_or_default();
    let mut entries = Vec::with_capacity(values.len());
    for (index, value) in values.into_iter().enumerate() {
        let mut fields = Fields::of(format!("{name}[{index}]"), value)?;
        let value = read(&mut fields)?;
        entries.push(Entry { place: fields.place().to_owned(), value });
        fields.end()?;
    }
    Ok(entries)
}

fn organization(fields: &mut Fields) -> Result<Organization, AccountsError> {
    let id = id(fields)?;
    let mut address = Addresses::default();
    if let Some(mut kinds) = fields.within("address")? {
        address.visit = postal(&mut kinds, "visit")?;
        address.postal = postal(&mut kinds, "postal")?;
        address.billing = postal(&mut kinds, "billing")?;
        kinds.end()?;
    }
    let mut phone_direct = None;
    if let Some(mut phone) = fields.within("phoneNumber")? {
        phone_direct = phone.line("direct")?;
        phone.end()?;
    }
    Ok(Organization {
        id: OrganizationId(id),
        name: fields.line("name")?,
        currency: fields.line("currency")?,
        country: fields.line("country")?,
        address,
        phone_direct,
        mail_domains: mail_domains(fields)?,
    })
}

/// The domains of the addresses that administrators may give to users, in lower case.
fn mail_domains(fields: &mut Fields) -> Result<Vec<String>, AccountsError> {
    let listed = fields.list("mailDomains", "a domain such as desk.example", mail_domain)?;
    let listed = listed.unwrap_or_default();
    if listed.len() > MAIL_DOMAINS_MAX {
        let why = format!("an organization has at most {MAIL_DOMAINS_MAX} mail domains");
        return Err(fields.refuse("mailDomains", &why));
    }
    Ok(listed.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

fn mail_domain(value: Value) -> Option<String> {
    let domain = fields::into_string(value)?.to_lowercase();
    let fits = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
    let good = !domain.is_empty()
        && domain.len() <= USER_NAME_BYTES_MAX
        && domain.chars().all(fits)
        && !domain.starts_with('.')
        && !domain.ends_with('.');
    good.then_some(domain)
}

/// An `id` that must be there; it names the entry.
fn id(fields: &mut Fields) -> Result<i64, AccountsError> {
    let id = fields.id("id")?;
    let id = fields.need("id", id)?;
    fields.name(&id.to_string());
    Ok(id)
}

fn postal(kinds: &mut Fields, name: &str) -> Result<Option<Address>, AccountsError> {
    let Some(mut fields) = kinds.within(name)? else { return Ok(None) };
    let address = Address {
        street: fields.line("street")?,
        r#box: fields.line("box")?,
        zip_code: fields.line("zipCode")?,
        city: fields.line("city")?,
        country: fields.line("country")?,
    };
    fields.end()?;
    Ok(Some(address))
}

fn product(fields: &mut Fields) -> Result<NewProduct, AccountsError> {
    let code = fields.read("code", "a word", word)?;
    let code = fields.need("code", code)?;
    fields.name(&format!("{code:?}"));
    Ok(NewProduct {
        id: fields.id("id")?.map(ProductId),
        code,
        name: fields.line("name")?,
        description: fields.text("description")?,
    })
}

/// A word: ASCII letters, digits and a few signs.
fn word(value: Value) -> Option<String> {
    let text = fields::into_string(value)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    let good = !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.bytes().all(fits);
    good.then_some(text)
}

fn agreement(fields: &mut Fields) -> Result<NewAgreement, AccountsError> {
    let id = id(fields)?;
    let organization = fields.id("organization")?;
    let kind = |value| AgreementType::find(&fields::into_string(value)?);
    let kind = fields.read("type", "Subscription, Direct, Normal or Prepaid", kind)?;
    let kind = fields.need("type", kind)?;
    let products = fields.list("products", "the code of a product", word)?.unwrap_or_default();
    let prepaids = prepaids(fields)?;
    match (kind, prepaids) {
        (AgreementType::Prepaid, None) => {
            return Err(
                fields.refuse("prepaids", "is missing: an agreement of type Prepaid has it")
            );
        }
        (AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal, Some(_)) => {
            return Err(fields.refuse("prepaids", "is only for agreements of type Prepaid"));
        }
        (AgreementType::Prepaid, Some(_))
        | (AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal, None) => {}
    }
    Ok(NewAgreement {
        id: AgreementId(id),
        organization: OrganizationId(fields.need("organization", organization)?),
        kind,
        super_agreement: fields.flag("superAgreement")?.unwrap_or_default(),
        products: products.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
        name: fields.line("name")?,
        description: fields.text("description")?,
        expires: fields.read("expires", "a time such as 2030-01-01T00:00:00Z", time)?,
        prepaids,
        approver: approver(fields)?.unwrap_or_default(),
    })
}

/// Who approves the orders of an agreement.
fn approver(fields: &mut Fields) -> Result<Option<Approver>, AccountsError> {
    let read = |value| Approver::find(&fields::into_string(value)?);
    fields.read("approver", "owner or admin", read)
}

/// A time as in RFC 3339; jiff would take a time without seconds too, or a zone's name.
fn time(value: Value) -> Option<Timestamp> {
    let text = fields::into_string(value)?;
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let form = marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark));
    let tail = |c: char| c.is_ascii_digit() || "-T:.Z+".contains(c);
    if form && text.chars().all(tail) { text.parse().ok() } else { None }
}

fn prepaids(fields: &mut Fields) -> Result<Option<Prepaids>, AccountsError> {
    let Some(mut counts) = fields.within("prepaids")? else { return Ok(None) };
    let total = counts.count("total")?;
    let total = counts.need("total", total)?;
    let remaining = counts.count("remaining")?.unwrap_or(total);
    if remaining > total {
        return Err(counts.refuse("remaining", "is above the total"));
    }
    counts.end()?;
    Ok(Some(Prepaids { total, remaining }))
}

fn license(fields: &mut Fields) -> Result<NewLicense, AccountsError> {
    let uuid = |value| fields::into_string(value)?.parse::<uuid::Uuid>().ok();
    let uuid = fields.read("uuid", "a UUID", uuid)?;
    let uuid = fields.need("uuid", uuid)?;
    fields.name(&uuid.to_string());
    let product = fields.read("product", "the code of a product", word)?;
    let period = |value| Period::find(&fields::into_string(value)?);
    let price = |value| fields::into_string(value)?.parse().ok();
    Ok(NewLicense {
        uuid,
        product: fields.need("product", product)?,
        period: fields.read("period", "Year, Month or Single", period)?,
        volume: fields.line("volume")?,
        price: fields.read("price", "an amount with two decimals, such as \"1200.00\"", price)?,
        description: fields.text("description")?,
    })
}

fn user(fields: &mut Fields) -> Result<WithSecret<NewUser>, AccountsError> {
    let user_name = fields.string("userName")?;
    let user_name = fields.need("userName", user_name)?;
    if user_name.is_empty() || user_name.len() > USER_NAME_BYTES_MAX {
        let why = format!("a user name has 1 to {USER_NAME_BYTES_MAX} bytes");
        return Err(fields.refuse("userName", &why));
    }
    if user_name.chars().any(char::is_control) {
        return Err(fields.refuse("userName", "has control characters"));
    }
    fields.name(&format!("{user_name:?}"));
    let email_address = fields.read("emailAddress", "an e-mail address", email)?;
    let mut phone = Phone::default();
    if let Some(mut numbers) = fields.within("phoneNumber")? {
        phone = Phone { direct: numbers.line("direct")?, mobile: numbers.line("mobile")? };
        numbers.end()?;
    }
    let mut access = Access::default();
    if let Some(mut levels) = fields.within("access")? {
        access.admin = levels.flag("admin")?.unwrap_or_default();
        access.mediebank = levels.flag("mediebank")?.unwrap_or_default();
        levels.end()?;
    }
    let agreement = |value: Value| fields::as_id(&value);
    let agreements = fields.list("agreements", "the number of an agreement", agreement)?;
    let agreements: BTreeSet<_> = agreements.unwrap_or_default().into_iter().collect();
    let new = NewUser {
        id: fields.id("id")?.map(UserId),
        organization: fields.id("organization")?.map(OrganizationId),
        user_name,
        password: None,
        first_name: fields.line("firstName")?,
        last_name: fields.line("lastName")?,
        email_address,
        department: fields.line("department")?,
        phone,
        roles: roles(fields)?,
        access,
        agreements: agreements.into_iter().map(AgreementId).collect(),
        active: fields.flag("active")?,
        service_account: fields.flag("serviceAccount")?.unwrap_or_default(),
    };
    Ok(WithSecret { new, secret: secret(fields, "password")? })
}

/// An e-mail address as far as its form tells: it can be one, and breaks no header of a mail.
fn email(value: Value) -> Option<String> {
    let text = fields::into_string(value)?;
    let (local, domain) = text.rsplit_once('@')?;
    let fits = |c: char| !c.is_control() && !c.is_whitespace() && !"<>,;".contains(c);
    let good = !local.is_empty() && !domain.is_empty() && text.len() <= USER_NAME_BYTES_MAX;
    (good && text.chars().all(fits)).then_some(text)
}

fn roles(fields: &mut Fields) -> Result<Vec<String>, AccountsError> {
    let listed = fields.list("roles", "a role, which is a word", word)?.unwrap_or_default();
    if listed.len() > ROLES_MAX {
        return Err(fields.refuse("roles", &format!("a user has at most {ROLES_MAX} roles")));
    }
    let mut roles = Vec::with_capacity(listed.len());
    for role in listed {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

/// A password or a client's secret.
fn secret(fields: &mut Fields, name: &str) -> Result<Option<Clear>, AccountsError> {
    let Some(text) = fields.string(name)? else { return Ok(None) };
    if text.is_empty() || text.len() > PASSWORD_BYTES_MAX {
        return Err(fields.refuse(name, &format!("has 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    Ok(Some(Clear(text)))
}

fn client(fields: &mut Fields) -> Result<WithSecret<NewClient>, AccountsError> {
    let client_id = fields.read("client_id", "a word", word)?;
    let client_id = fields.need("client_id", client_id)?;
    fields.name(&format!("{client_id:?}"));
    let uris = fields.list("redirect_uris", "a string", fields::into_string)?;
    let redirect_uris = uris.unwrap_or_default();
    if redirect_uris.len() > REDIRECT_URIS_MAX {
        let why = format!("a client has at most {REDIRECT_URIS_MAX} redirect URIs");
        return Err(fields.refuse("redirect_uris", &why));
    }
    for (index, uri) in redirect_uris.iter().enumerate() {
        if let Some(why) = redirect::problem(uri) {
            return Err(fields.refuse(&format!("redirect_uris[{index}]"), why));
        }
    }
    let expected = "authorization_code, password, refresh_token or implicit";
    let mut grants = fields.list("grants", expected, grant)?.unwrap_or_default();
    let mut seen = Vec::new();
    grants.retain(|grant| {
        let new = !seen.contains(grant);
        seen.push(*grant);
        new
    });
    let public = fields.flag("public")?.unwrap_or_default();
    let secret = secret(fields, "client_secret")?;
    if public && secret.is_some() {
        return Err(fields.refuse("client_secret", "a public client has none"));
    }
    let name = fields.line("name")?.unwrap_or_else(|| client_id.clone());
    let (scopes_enforced, access_token_s) = enforcement(fields)?;
    let new = NewClient {
        client_id,
        name,
        public,
        secret: None,
        redirect_uris,
        grants,
        scopes_enforced,
        access_token_s,
    };
    Ok(WithSecret { new, secret })
}

/// Whether the scopes of a client are enforced, and how many seconds its access tokens last.
fn enforcement(fields: &mut Fields) -> Result<(bool, Option<u32>), AccountsError> {
    let word = |value| match fields::into_string(value)?.as_str() {
        "contract" => Some(false),
        "enforced" => Some(true),
        _ => None,
    };
    let enforced = fields.read("scopes", "contract or enforced", word)?.unwrap_or_default();
    let seconds = fields.count("accessTokenSeconds")?;
    if seconds.is_some() && !enforced {
        let why = "is only for clients with \"scopes\": \"enforced\"";
        return Err(fields.refuse("accessTokenSeconds", why));
    }
    if seconds.is_some_and(|seconds| seconds < CLIENT_ACCESS_TOKEN_S_MIN) {
        let why = format!("is at least {CLIENT_ACCESS_TOKEN_S_MIN}");
        return Err(fields.refuse("accessTokenSeconds", &why));
    }
    Ok((enforced, seconds))
}

fn grant(value: Value) -> Option<Grant> {
    serde_json::from_value(value).ok()
}

fn api_key(fields: &mut Fields) -> Result<NewApiKey, AccountsError> {
    let user_name = fields.string("user")?;
    let user_name = fields.need("user", user_name)?;
    if user_name.is_empty() || user_name.len() > USER_NAME_BYTES_MAX {
        return Err(fields.refuse("user", "is no user name"));
    }
    fields.name(&format!("of {user_name:?}"));
    let key = fields.string("key")?;
    let key = fields.need("key", key)?;
    if key.chars().count() < KEY_CHARS_MIN || key.len() > API_KEY_BYTES_MAX {
        let why = format!("a key has {KEY_CHARS_MIN} to {API_KEY_BYTES_MAX} characters");
        return Err(fields.refuse("key", &why));
    }
    if !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(fields.refuse("key", "a key has printable ASCII characters and no spaces"));
    }
    let name = fields.line("name")?.unwrap_or_default();
    Ok(NewApiKey { key_hash: Hash::of(key.as_bytes()), user_name, name })
}
