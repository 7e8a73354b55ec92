//! The form of an accounts file: every list and property with its type, length and syntax. The module `check`
//! validates references.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    AccountsError, channels,
    json::{self, COUNT_EXPECTED, ID_EXPECTED, as_count, as_id, line, text, why},
    redirect,
};
use crate::runtime::json_object::{FieldProblem, FieldValue, ObjectReader};
use crate::runtime::limits::{
    API_KEY_BYTES_MAX, CLIENT_ACCESS_TOKEN_S_MIN, MAIL_DOMAINS_MAX, PASSWORD_BYTES_MAX,
    REDIRECT_URIS_MAX, ROLES_MAX,
};
use crate::storage::database::{
    NewAgreement, NewApiKey, NewChannel, NewClient, NewLicense, NewProduct, NewUserRow,
};
use model::ContentHash;
use model::account::{
    AccessLevels, AgreementId, AgreementType, Approver, GrantType, LicensePeriod, Organization,
    OrganizationAddresses, OrganizationId, PhoneNumbers, PostalAddress, PrepaidDownloads,
    ProductId, UserId,
};
use model::limits::USER_NAME_BYTES_MAX;

/// Least characters of an API key, so that it cannot be guessed.
const KEY_CHARS_MIN: usize = 16;
/// Most bytes of a product's code, a role's name and a client's id.
const WORD_BYTES_MAX: usize = 128;

/// A password or secret in plain text. Has no `Debug`, so that it reaches no log.
pub(super) struct PlaintextSecret(pub(super) String);

/// An entry with its place in the file.
pub(super) struct AccountsEntry<T> {
    /// List, position and name of the entry: `users[3] "editor"`.
    pub(super) place: String,
    pub(super) value: T,
}

/// A user or client whose password or secret is not hashed yet.
pub(super) struct UnhashedLogin<T> {
    pub(super) entry: T,
    pub(super) secret: Option<PlaintextSecret>,
}

/// An accounts file whose entries have a valid form.
#[derive(Default)]
pub(super) struct AccountsFile {
    pub(super) organizations: Vec<AccountsEntry<Organization>>,
    pub(super) products: Vec<AccountsEntry<NewProduct>>,
    pub(super) agreements: Vec<AccountsEntry<NewAgreement>>,
    pub(super) licenses: Vec<AccountsEntry<NewLicense>>,
    pub(super) users: Vec<AccountsEntry<UnhashedLogin<NewUserRow>>>,
    pub(super) clients: Vec<AccountsEntry<UnhashedLogin<NewClient>>>,
    pub(super) api_keys: Vec<AccountsEntry<NewApiKey>>,
    pub(super) channels: Vec<AccountsEntry<NewChannel>>,
}

impl AccountsFile {
    /// Parses the text of a file.
    pub(super) fn parse(text: &str) -> Result<Self, AccountsError> {
        Self::read(&json::parse(text)?)
    }

    /// Reads a file from parsed JSON.
    pub(super) fn read(value: &Value) -> Result<Self, AccountsError> {
        let Some(lists) = value.as_object() else {
            return Err(AccountsError::Form("expected an object of lists".to_owned()));
        };
        let mut lists = ObjectReader::new("", lists);
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
        lists.finish().map_err(file_error)?;
        Ok(file)
    }
}

fn file_error(problem: FieldProblem) -> AccountsError {
    AccountsError::Entry { entry: "the file".to_owned(), why: why(problem) }
}

/// Reads a list of the file, each entry with `read`.
fn list<T>(
    lists: &mut ObjectReader<'_>,
    name: &'static str,
    read: fn(&mut ObjectReader<'_>) -> Result<T, FieldProblem>,
) -> Result<Vec<AccountsEntry<T>>, AccountsError> {
    let values = lists.read(name, "a list", Value::as_array).map_err(file_error)?;
    let mut entries = Vec::new();
    for (index, value) in values.into_iter().flatten().enumerate() {
        let mut place = format!("{name}[{index}]");
        let Some(members) = value.as_object() else {
            return Err(AccountsError::Entry {
                entry: place,
                why: "expected an object".to_owned(),
            });
        };
        let mut fields = ObjectReader::new("", members);
        let outcome = read(&mut fields).and_then(|value| fields.finish().map(|()| value));
        // The label is known only now: an entry without a valid name is identified by its position.
        if !fields.label.is_empty() {
            place = format!("{place} {}", fields.label);
        }
        match outcome {
            Ok(value) => entries.push(AccountsEntry { place, value }),
            Err(problem) => return Err(AccountsError::Entry { entry: place, why: why(problem) }),
        }
    }
    Ok(entries)
}

fn organization(fields: &mut ObjectReader<'_>) -> Result<Organization, FieldProblem> {
    let id = id(fields)?;
    let address = fields.object("address", |addresses| {
        Ok(OrganizationAddresses {
            visit: addresses.object("visit", postal)?,
            postal: addresses.object("postal", postal)?,
            billing: addresses.object("billing", postal)?,
        })
    })?;
    let phone_direct = fields.object("phoneNumber", |phone| line(phone, "direct"))?;
    Ok(Organization {
        id: OrganizationId(id),
        name: line(fields, "name")?,
        currency: line(fields, "currency")?,
        country: line(fields, "country")?,
        address: address.unwrap_or_default(),
        phone_direct: phone_direct.flatten(),
        mail_domains: mail_domains(fields)?,
    })
}

/// Reads the mail domains to which administrators are limited for users' addresses, in lower case.
fn mail_domains(fields: &mut ObjectReader<'_>) -> Result<Vec<String>, FieldProblem> {
    let listed = fields.list("mailDomains", "a domain such as desk.example", mail_domain)?;
    let listed = listed.unwrap_or_default();
    if listed.len() > MAIL_DOMAINS_MAX {
        let why = format!("an organization has at most {MAIL_DOMAINS_MAX} mail domains");
        return Err(fields.violation("mailDomains", &why));
    }
    // Sorted, so that the order in the file does not make a second import a change.
    Ok(listed.into_iter().collect::<BTreeSet<_>>().into_iter().collect())
}

fn mail_domain(value: &Value) -> Option<String> {
    // Case does not matter in domains, and one spelling makes duplicates equal.
    let domain = value.as_str()?.to_lowercase();
    let is_allowed = |c: char| c.is_alphanumeric() || c == '-' || c == '.';
    let is_valid = !domain.is_empty()
        && domain.len() <= USER_NAME_BYTES_MAX
        && domain.chars().all(is_allowed)
        && !domain.starts_with('.')
        && !domain.ends_with('.');
    is_valid.then_some(domain)
}

/// Reads the required `id`, which also names the entry in errors.
fn id(fields: &mut ObjectReader<'_>) -> Result<i64, FieldProblem> {
    let id = fields.required("id", ID_EXPECTED, as_id)?;
    fields.label = id.to_string();
    Ok(id)
}

fn postal(fields: &mut ObjectReader<'_>) -> Result<PostalAddress, FieldProblem> {
    Ok(PostalAddress {
        street: line(fields, "street")?,
        r#box: line(fields, "box")?,
        zip_code: line(fields, "zipCode")?,
        city: line(fields, "city")?,
        country: line(fields, "country")?,
    })
}

fn product(fields: &mut ObjectReader<'_>) -> Result<NewProduct, FieldProblem> {
    let code = fields.required("code", "a word", word)?;
    fields.label = format!("{code:?}");
    Ok(NewProduct {
        id: fields.read("id", ID_EXPECTED, as_id)?.map(ProductId),
        code,
        name: line(fields, "name")?,
        description: text(fields, "description")?,
    })
}

/// Parses a word: ASCII letters, digits and `_-.:/`.
pub(super) fn word(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte);
    let is_valid =
        !text.is_empty() && text.len() <= WORD_BYTES_MAX && text.bytes().all(is_allowed);
    is_valid.then(|| text.to_owned())
}

fn agreement(fields: &mut ObjectReader<'_>) -> Result<NewAgreement, FieldProblem> {
    let id = id(fields)?;
    let organization = fields.required("organization", ID_EXPECTED, as_id)?;
    let kind = |value: &Value| AgreementType::find(value.as_str()?);
    let kind = fields.required("type", "Subscription, Direct, Normal or Prepaid", kind)?;
    let products = fields.list("products", "the code of a product", word)?.unwrap_or_default();
    let prepaids = fields.object("prepaids", prepaids)?;
    match (kind, prepaids) {
        // Only a Prepaid agreement counts downloads, and it could not be used without a number.
        (AgreementType::Prepaid, None) => {
            return Err(
                fields.violation("prepaids", "is missing: an agreement of type Prepaid needs it")
            );
        }
        (AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal, Some(_)) => {
            return Err(fields.violation("prepaids", "is only for agreements of type Prepaid"));
        }
        (AgreementType::Prepaid, Some(_))
        | (AgreementType::Subscription | AgreementType::Direct | AgreementType::Normal, None) => {}
    }
    Ok(NewAgreement {
        id: AgreementId(id),
        organization: OrganizationId(organization),
        kind,
        super_agreement: fields.flag("superAgreement")?.unwrap_or_default(),
        products: products.into_iter().collect::<BTreeSet<_>>().into_iter().collect(),
        name: line(fields, "name")?,
        description: text(fields, "description")?,
        expires: fields.read("expires", "a time such as 2030-01-01T00:00:00Z", time)?,
        prepaids,
        approver: approver(fields)?.unwrap_or_default(),
    })
}

/// Reads who approves the orders of an agreement.
fn approver(fields: &mut ObjectReader<'_>) -> FieldValue<Approver> {
    let read = |value: &Value| Approver::find(value.as_str()?);
    fields.read("approver", "owner or admin", read)
}

/// Parses an RFC 3339 time; jiff alone would also accept a time without seconds, or the name of a time zone.
fn time(value: &Value) -> Option<Timestamp> {
    let text = value.as_str()?;
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let has_shape = marks.iter().all(|(at, mark)| bytes.get(*at) == Some(mark));
    let is_time_character = |c: char| c.is_ascii_digit() || "-T:.Z+".contains(c);
    if has_shape && text.chars().all(is_time_character) { text.parse().ok() } else { None }
}

fn prepaids(counts: &mut ObjectReader<'_>) -> Result<PrepaidDownloads, FieldProblem> {
    let total = counts.required("total", COUNT_EXPECTED, as_count)?;
    // A new agreement has all of its downloads left.
    let remaining = counts.read("remaining", COUNT_EXPECTED, as_count)?.unwrap_or(total);
    if remaining > total {
        return Err(counts.violation("remaining", "is above the total"));
    }
    Ok(PrepaidDownloads { total, remaining })
}

fn license(fields: &mut ObjectReader<'_>) -> Result<NewLicense, FieldProblem> {
    let uuid = |value: &Value| value.as_str()?.parse::<uuid::Uuid>().ok();
    let uuid = fields.required("uuid", "a UUID", uuid)?;
    fields.label = uuid.to_string();
    let product = fields.required("product", "the code of a product", word)?;
    let period = |value: &Value| LicensePeriod::find(value.as_str()?);
    // Amounts are strings in all interfaces (contract purchases-11).
    let price = |value: &Value| value.as_str()?.parse().ok();
    Ok(NewLicense {
        uuid,
        product,
        period: fields.read("period", "Year, Month or Single", period)?,
        volume: line(fields, "volume")?,
        price: fields.read("price", "an amount with two decimals, such as \"1200.00\"", price)?,
        description: text(fields, "description")?,
    })
}

fn user(fields: &mut ObjectReader<'_>) -> Result<UnhashedLogin<NewUserRow>, FieldProblem> {
    let user_name = fields.required_string("userName")?;
    if user_name.is_empty() || user_name.len() > USER_NAME_BYTES_MAX {
        let why = format!("a user name has 1 to {USER_NAME_BYTES_MAX} bytes");
        return Err(fields.violation("userName", &why));
    }
    // It would break the lines of lists and logs.
    if user_name.chars().any(char::is_control) {
        return Err(fields.violation("userName", "has control characters"));
    }
    fields.label = format!("{user_name:?}");
    let email_address = fields.read("emailAddress", "an e-mail address", email)?;
    let phone = fields.object("phoneNumber", |numbers| {
        Ok(PhoneNumbers { direct: line(numbers, "direct")?, mobile: line(numbers, "mobile")? })
    })?;
    let access = fields.object("access", |levels| {
        Ok(AccessLevels {
            admin: levels.flag("admin")?.unwrap_or_default(),
            mediebank: levels.flag("mediebank")?.unwrap_or_default(),
        })
    })?;
    let agreements = fields.list("agreements", "the number of an agreement", as_id)?;
    let agreements: BTreeSet<_> = agreements.unwrap_or_default().into_iter().collect();
    let new = NewUserRow {
        id: fields.read("id", ID_EXPECTED, as_id)?.map(UserId),
        organization: fields.read("organization", ID_EXPECTED, as_id)?.map(OrganizationId),
        user_name: user_name.to_owned(),
        password: None,
        first_name: line(fields, "firstName")?,
        last_name: line(fields, "lastName")?,
        email_address,
        department: line(fields, "department")?,
        phone: phone.unwrap_or_default(),
        roles: roles(fields)?,
        access: access.unwrap_or_default(),
        agreements: agreements.into_iter().map(AgreementId).collect(),
        active: fields.flag("active")?,
        service_account: fields.flag("serviceAccount")?.unwrap_or_default(),
    };
    Ok(UnhashedLogin { entry: new, secret: secret(fields, "password")? })
}

/// Parses an e-mail address: checks only that it can be one and cannot break the header of a mail.
fn email(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let (local, domain) = text.rsplit_once('@')?;
    let is_allowed = |c: char| !c.is_control() && !c.is_whitespace() && !"<>,;".contains(c);
    let is_valid = !local.is_empty() && !domain.is_empty() && text.len() <= USER_NAME_BYTES_MAX;
    (is_valid && text.chars().all(is_allowed)).then(|| text.to_owned())
}

fn roles(fields: &mut ObjectReader<'_>) -> Result<Vec<String>, FieldProblem> {
    let listed = fields.list("roles", "a role, which is a word", word)?.unwrap_or_default();
    if listed.len() > ROLES_MAX {
        return Err(fields.violation("roles", &format!("a user has at most {ROLES_MAX} roles")));
    }
    let mut roles = Vec::with_capacity(listed.len());
    for role in listed {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    Ok(roles)
}

/// Reads a password or a client's secret.
fn secret(fields: &mut ObjectReader<'_>, name: &'static str) -> FieldValue<PlaintextSecret> {
    let Some(text) = fields.string(name)? else { return Ok(None) };
    if text.is_empty() || text.len() > PASSWORD_BYTES_MAX {
        return Err(fields.violation(name, &format!("has 1 to {PASSWORD_BYTES_MAX} bytes")));
    }
    Ok(Some(PlaintextSecret(text.to_owned())))
}

fn client(fields: &mut ObjectReader<'_>) -> Result<UnhashedLogin<NewClient>, FieldProblem> {
    let client_id = fields.required("client_id", "a word", word)?;
    fields.label = format!("{client_id:?}");
    let uris = fields.list("redirect_uris", "a string", |uri| uri.as_str().map(str::to_owned))?;
    let redirect_uris = uris.unwrap_or_default();
    if redirect_uris.len() > REDIRECT_URIS_MAX {
        let why = format!("a client has at most {REDIRECT_URIS_MAX} redirect URIs");
        return Err(fields.violation("redirect_uris", &why));
    }
    for (index, uri) in redirect_uris.iter().enumerate() {
        if let Some(why) = redirect::redirect_uri_problem(uri) {
            return Err(fields.violation(&format!("redirect_uris[{index}]"), why));
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
        return Err(fields.violation("client_secret", "a public client has none"));
    }
    let name = line(fields, "name")?.unwrap_or_else(|| client_id.clone());
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
    Ok(UnhashedLogin { entry: new, secret })
}

/// Reads whether the scopes of a client are enforced, and the lifetime of its access tokens in seconds.
fn enforcement(fields: &mut ObjectReader<'_>) -> Result<(bool, Option<u32>), FieldProblem> {
    let is_enforced = |value: &Value| match value.as_str()? {
        "contract" => Some(false),
        "enforced" => Some(true),
        _ => None,
    };
    let enforced = fields.read("scopes", "contract or enforced", is_enforced)?.unwrap_or_default();
    let seconds = fields.read("accessTokenSeconds", COUNT_EXPECTED, as_count)?;
    if seconds.is_some() && !enforced {
        let why = "is only for clients with \"scopes\": \"enforced\"";
        return Err(fields.violation("accessTokenSeconds", why));
    }
    if seconds.is_some_and(|seconds| seconds < CLIENT_ACCESS_TOKEN_S_MIN) {
        let why = format!("is at least {CLIENT_ACCESS_TOKEN_S_MIN}");
        return Err(fields.violation("accessTokenSeconds", &why));
    }
    Ok((enforced, seconds))
}

fn grant(value: &Value) -> Option<GrantType> {
    GrantType::deserialize(value).ok()
}

fn api_key(fields: &mut ObjectReader<'_>) -> Result<NewApiKey, FieldProblem> {
    let user_name = fields.required_string("user")?;
    if user_name.is_empty() || user_name.len() > USER_NAME_BYTES_MAX {
        return Err(fields.violation("user", "is not a user name"));
    }
    fields.label = format!("of {user_name:?}");
    let key = fields.required_string("key")?;
    if key.chars().count() < KEY_CHARS_MIN || key.len() > API_KEY_BYTES_MAX {
        let why = format!("a key has {KEY_CHARS_MIN} to {API_KEY_BYTES_MAX} characters");
        return Err(fields.violation("key", &why));
    }
    // A key is sent in a header and in a URL.
    if !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err(fields.violation("key", "a key has printable ASCII characters and no spaces"));
    }
    let name = line(fields, "name")?.unwrap_or_default();
    Ok(NewApiKey {
        key_hash: ContentHash::of(key.as_bytes()),
        user_name: user_name.to_owned(),
        name,
    })
}
