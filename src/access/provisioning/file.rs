//! Reads an accounts file, and checks the rules that concern one entry. The module `check` validates references.

use std::collections::BTreeSet;

use serde::Deserializer;
use serde_path_to_error::{Path, Segment, Track};

use super::{AccountsError, channels};
use crate::access::auth::Argon2Hasher;
use crate::runtime::limits::{
    API_KEY_BYTES_MAX, HASH_ITERATIONS_MAX, HASH_MEMORY_KIB_MAX, ROLES_MAX,
};
use crate::storage::database::{NewApiKey, NewChannel};
use model::ContentHash;
use model::account::accounts_file::{
    AccountsFile, AgreementEntry, ApiKeyEntry, ClientEntry, ClientScopes, LicenseEntry,
    OrganizationEntry, PlaintextSecret, ProductEntry, SecretHash, UserEntry,
};
use model::account::{AgreementType, Organization};

/// Redirect URIs that one client can register.
const REDIRECT_URIS_MAX: usize = 50;
/// Mail domains that one organization can have.
const MAIL_DOMAINS_MAX: usize = 100;
/// Minimum lifetime in seconds of a client's access tokens: with less, a client does nothing but
/// refresh.
const CLIENT_ACCESS_TOKEN_S_MIN: u32 = 60;
/// Minimum number of characters of an API key, so that it cannot be guessed.
const KEY_CHARS_MIN: usize = 16;
/// Maximum number of characters of a property's name that an error repeats; an API key may be longer.
const ECHO_CHARS_MAX: usize = 30;

/// An entry with its place in the file.
pub(super) struct PlacedEntry<T> {
    /// List, position and name of the entry: `users[3] "editor"`.
    pub(super) place: String,
    pub(super) value: T,
}

/// An accounts file whose entries are valid, each by itself.
pub(super) struct ValidAccounts {
    pub(super) organizations: Vec<PlacedEntry<Organization>>,
    pub(super) products: Vec<PlacedEntry<ProductEntry>>,
    pub(super) agreements: Vec<PlacedEntry<AgreementEntry>>,
    pub(super) licenses: Vec<PlacedEntry<LicenseEntry>>,
    pub(super) users: Vec<PlacedEntry<UserEntry>>,
    pub(super) clients: Vec<PlacedEntry<ClientEntry>>,
    pub(super) api_keys: Vec<PlacedEntry<NewApiKey>>,
    pub(super) channels: Vec<PlacedEntry<NewChannel>>,
}

impl ValidAccounts {
    /// Parses the text of a file.
    pub(super) fn parse(text: &str) -> Result<Self, AccountsError> {
        let mut json = serde_json::Deserializer::from_str(text);
        let accounts = Self::read(&mut json)?;
        json.end().map_err(|cause| AccountsError::Form(cause.to_string()))?;
        Ok(accounts)
    }

    /// Reads a file from JSON.
    pub(super) fn read<'de, D>(json: D) -> Result<Self, AccountsError>
    where
        D: Deserializer<'de, Error = serde_json::Error>,
    {
        let mut track = Track::new();
        let json = serde_path_to_error::Deserializer::new(json, &mut track);
        let file = AccountsFile::read(json).map_err(|cause| form_error(&track.path(), &cause))?;
        Ok(Self {
            organizations: placed("organizations", file.organizations, |entry| {
                (entry.id.to_string(), organization(entry))
            })?,
            products: placed("products", file.products, |entry| {
                (format!("{:?}", &*entry.code), Ok(entry))
            })?,
            agreements: placed("agreements", file.agreements, |entry| {
                (entry.id.to_string(), agreement(entry))
            })?,
            licenses: placed("licenses", file.licenses, |entry| {
                (entry.uuid.to_string(), Ok(entry))
            })?,
            users: placed("users", file.users, |entry| {
                (format!("{:?}", &*entry.user_name), user(entry))
            })?,
            clients: placed("clients", file.clients, |entry| {
                (format!("{:?}", &*entry.client_id), client(entry))
            })?,
            api_keys: placed("apiKeys", file.api_keys, |entry| {
                (format!("of {:?}", &*entry.user), api_key(entry))
            })?,
            channels: placed("channels", file.channels, |entry| {
                let name = format!("user:{}:{}", entry.owner, entry.name);
                (format!("{name:?}"), channels::row(entry))
            })?,
        })
    }
}

/// Checks each entry of a list with `check`, which returns the name of the entry and the outcome.
fn placed<T, U>(
    list: &str,
    entries: Vec<T>,
    check: impl Fn(T) -> (String, Result<U, String>),
) -> Result<Vec<PlacedEntry<U>>, AccountsError> {
    let mut placed = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let (name, checked) = check(entry);
        let place = format!("{list}[{index}] {name}");
        match checked {
            Ok(value) => placed.push(PlacedEntry { place, value }),
            Err(why) => return Err(AccountsError::Entry { entry: place, why }),
        }
    }
    Ok(placed)
}

/// Creates the error for a property that cannot be read, with its path in the file.
fn form_error(path: &Path, cause: &serde_json::Error) -> AccountsError {
    let position = match cause.line() {
        0 => String::new(),
        line => format!(" at line {line} column {}", cause.column()),
    };
    let message = cause.to_string();
    let why = without_value(message.strip_suffix(position.as_str()).unwrap_or(&message));
    let mut entry = String::new();
    let mut property = String::new();
    for (depth, segment) in path.iter().enumerate() {
        // The first two are the list and the position of the entry.
        let part = if depth < 2 { &mut entry } else { &mut property };
        match segment {
            Segment::Seq { index } => part.push_str(&format!("[{index}]")),
            Segment::Map { key } => {
                if !part.is_empty() {
                    part.push('.');
                }
                part.push_str(property_name(key));
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    if entry.is_empty() {
        return AccountsError::Form(format!("{why}{position}"));
    }
    if !property.is_empty() {
        property.push_str(": ");
    }
    AccountsError::Entry { entry, why: format!("{property}{why}{position}") }
}

/// Returns serde's message without the value that it found, which may be a password.
fn without_value(message: &str) -> String {
    // The expectation stands last, and a value before it may contain any text.
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    if found.starts_with("unknown field ") {
        return format!("is unknown, expected {expected}");
    }
    let expected = match expected {
        "i64" | "u32" => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other => other,
    };
    format!("expected {expected}")
}

/// Returns the name of a property for an error; a name that is not a word could be a key.
fn property_name(key: &str) -> &str {
    let is_word = (1..=ECHO_CHARS_MAX).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_word { key } else { "a property whose name is not a word" }
}

fn organization(entry: OrganizationEntry) -> Result<Organization, String> {
    if entry.mail_domains.len() > MAIL_DOMAINS_MAX {
        let why = format!("an organization has at most {MAIL_DOMAINS_MAX} mail domains");
        return Err(format!("mailDomains: {why}"));
    }
    // Sorted and in lower case, so that a different spelling or order does not make a second import a change.
    let domains = entry.mail_domains.iter().map(|domain| domain.to_lowercase());
    let domains: BTreeSet<String> = domains.collect();
    Ok(Organization {
        id: entry.id,
        name: entry.name.map(|name| name.to_string()),
        currency: entry.currency.map(|currency| currency.to_string()),
        country: entry.country.map(|country| country.to_string()),
        address: entry.address,
        phone_direct: entry.phone_number.direct.map(|number| number.to_string()),
        mail_domains: domains.into_iter().collect(),
    })
}

fn agreement(entry: AgreementEntry) -> Result<AgreementEntry, String> {
    let is_prepaid = entry.kind == AgreementType::Prepaid;
    match entry.prepaids {
        // An agreement without a number of downloads could not be used.
        None if is_prepaid => {
            Err("prepaids: is missing: an agreement of type Prepaid needs it".to_owned())
        }
        Some(_) if !is_prepaid => {
            Err("prepaids: is only for agreements of type Prepaid".to_owned())
        }
        Some(prepaids) if prepaids.remaining() > prepaids.total => {
            Err("prepaids.remaining: is above the total".to_owned())
        }
        Some(_) | None => Ok(entry),
    }
}

fn user(entry: UserEntry) -> Result<UserEntry, String> {
    if entry.roles.len() > ROLES_MAX {
        return Err(format!("roles: a user has at most {ROLES_MAX} roles"));
    }
    check_hash("passwordHash", entry.password_hash.as_ref(), entry.password.as_ref())?;
    Ok(entry)
}

/// Checks the hash of a secret in the property `name`: it replaces the secret in plain text.
fn check_hash(
    name: &str,
    hash: Option<&SecretHash>,
    plaintext: Option<&PlaintextSecret>,
) -> Result<(), String> {
    let Some(hash) = hash else { return Ok(()) };
    if plaintext.is_some() {
        return Err(format!("{name}: is only for entries without the secret itself"));
    }
    if Argon2Hasher::is_hash(hash.reveal()) {
        Ok(())
    } else {
        let costs = format!("{HASH_MEMORY_KIB_MAX} KiB and {HASH_ITERATIONS_MAX} passes");
        Err(format!("{name}: expected an argon2id hash that costs at most {costs}"))
    }
}

fn client(entry: ClientEntry) -> Result<ClientEntry, String> {
    if entry.redirect_uris.len() > REDIRECT_URIS_MAX {
        let why = format!("a client has at most {REDIRECT_URIS_MAX} redirect URIs");
        return Err(format!("redirect_uris: {why}"));
    }
    if entry.public && entry.client_secret.is_some() {
        return Err("client_secret: a public client has none".to_owned());
    }
    if entry.public && entry.client_secret_hash.is_some() {
        return Err("client_secret_hash: a public client has no secret".to_owned());
    }
    let hash = entry.client_secret_hash.as_ref();
    check_hash("client_secret_hash", hash, entry.client_secret.as_ref())?;
    let Some(seconds) = entry.access_token_s else { return Ok(entry) };
    match entry.scopes {
        ClientScopes::Contract => {
            Err("accessTokenSeconds: is only for clients with \"scopes\": \"enforced\"".to_owned())
        }
        ClientScopes::Enforced if seconds < CLIENT_ACCESS_TOKEN_S_MIN => {
            Err(format!("accessTokenSeconds: is at least {CLIENT_ACCESS_TOKEN_S_MIN}"))
        }
        ClientScopes::Enforced => Ok(entry),
    }
}

fn api_key(entry: ApiKeyEntry) -> Result<NewApiKey, String> {
    let key_hash = match (&entry.key, entry.key_hash) {
        (Some(key), None) => hash_key(key)?,
        (None, Some(hash)) => hash,
        (Some(_), Some(_)) => return Err("keyHash: is only for entries without key".to_owned()),
        (None, None) => return Err("key: is missing".to_owned()),
    };
    Ok(NewApiKey {
        key_hash,
        user_name: entry.user.to_string(),
        name: entry.name.map(|name| name.to_string()).unwrap_or_default(),
        read_only: entry.read_only,
    })
}

/// Returns the hash of a key, if it has the form of a key.
fn hash_key(key: &PlaintextSecret) -> Result<ContentHash, String> {
    let key = key.reveal();
    if key.chars().count() < KEY_CHARS_MIN || key.len() > API_KEY_BYTES_MAX {
        let why = format!("a key has {KEY_CHARS_MIN} to {API_KEY_BYTES_MAX} characters");
        return Err(format!("key: {why}"));
    }
    // A key is sent in a header and in a URL.
    if !key.chars().all(|c| c.is_ascii_graphic()) {
        return Err("key: a key has printable ASCII characters and no spaces".to_owned());
    }
    Ok(ContentHash::new(key.as_bytes()))
}
