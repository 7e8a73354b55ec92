//! Validates the references of an accounts file's entries, to each other and to the database.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;

use super::AccountsError;
use super::file::{PlacedEntry, ValidAccounts};
use crate::storage::database::ReadTx;
use model::account::accounts_file::{AgreementEntry, ClientEntry, ProductEntry, UserEntry};
use model::account::{AgreementId, OrganizationId, ProductId};

/// Checks `file` for duplicates and dangling references.
///
/// With `only_new`, objects that exist already are refused.
pub(super) fn check(
    file: &ValidAccounts,
    tx: &ReadTx<'_>,
    only_new: bool,
) -> Result<(), AccountsError> {
    check_duplicates(file)?;
    let references = EntryReferences::new(file, tx);
    if only_new {
        refuse_stored(file, tx)?;
    }
    for entry in &file.products {
        references.product(entry)?;
    }
    for entry in &file.agreements {
        references.agreement(entry)?;
    }
    for entry in &file.licenses {
        references.code(&entry.place, &entry.value.product)?;
    }
    for entry in &file.users {
        references.user(&entry.place, &entry.value, only_new)?;
    }
    for entry in &file.clients {
        references.client(&entry.place, &entry.value, only_new)?;
    }
    for entry in &file.api_keys {
        references.user_name(&entry.place, &entry.value.user_name)?;
        // Revoked keys count, too: the import would not make a revoked key valid again.
        if only_new && tx.find_key_number(&entry.value.key_hash)?.is_some() {
            return Err(refuse(&entry.place, "the key exists already"));
        }
    }
    for entry in &file.channels {
        let id = &entry.value.id;
        references.user_name(&entry.place, id.owner())?;
        refuse_known(&entry.place, only_new && tx.find_channel(id)?.is_some())?;
    }
    Ok(())
}

fn refuse(place: &str, why: impl Into<String>) -> AccountsError {
    AccountsError::Entry { entry: place.to_owned(), why: why.into() }
}

/// Refuses organizations, products, agreements and licences that exist already.
fn refuse_stored(file: &ValidAccounts, tx: &ReadTx<'_>) -> Result<(), AccountsError> {
    for entry in &file.organizations {
        refuse_known(&entry.place, tx.find_organization(entry.value.id)?.is_some())?;
    }
    for entry in &file.products {
        let ProductEntry { id, code, .. } = &entry.value;
        let has_code = tx.find_product_id(code)?.is_some();
        // An entry with the number of a stored product would rename that product.
        let named = id.map(|id| tx.find_product_code(id)).transpose()?.flatten();
        refuse_known(&entry.place, has_code || named.is_some())?;
    }
    for entry in &file.agreements {
        refuse_known(&entry.place, tx.find_agreement_owner(entry.value.id)?.is_some())?;
    }
    for entry in &file.licenses {
        refuse_known(&entry.place, tx.has_license(entry.value.uuid)?)?;
    }
    Ok(())
}

fn refuse_known(place: &str, is_known: bool) -> Result<(), AccountsError> {
    if is_known { Err(refuse(place, "exists already")) } else { Ok(()) }
}

/// Refuses entries that name the same object twice.
fn check_duplicates(file: &ValidAccounts) -> Result<(), AccountsError> {
    check_unique(&file.organizations, "id", |organization| Some(organization.id))?;
    check_unique(&file.products, "code", |product| Some(&product.code))?;
    check_unique(&file.products, "id", |product| product.id)?;
    check_unique(&file.agreements, "id", |agreement| Some(agreement.id))?;
    check_unique(&file.licenses, "uuid", |license| Some(license.uuid))?;
    check_unique(&file.users, "userName", |user| Some(&user.user_name))?;
    check_unique(&file.users, "id", |user| user.id)?;
    check_unique(&file.clients, "client_id", |client| Some(&client.client_id))?;
    check_unique(&file.api_keys, "key", |key| Some(key.key_hash))?;
    check_unique(&file.channels, "name", |channel| Some(&channel.id))
}

fn check_unique<'a, T, K: Hash + Eq>(
    entries: &'a [PlacedEntry<T>],
    property: &str,
    key: impl Fn(&'a T) -> Option<K>,
) -> Result<(), AccountsError> {
    let mut seen = HashMap::new();
    for entry in entries {
        let Some(key) = key(&entry.value) else { continue };
        if let Some(first) = seen.insert(key, &entry.place) {
            return Err(refuse(&entry.place, format!("{property}: is also that of {first}")));
        }
    }
    Ok(())
}

/// The objects of the file and the database to which entries may refer.
struct EntryReferences<'a> {
    tx: &'a ReadTx<'a>,
    organizations: HashSet<OrganizationId>,
    codes: HashSet<&'a str>,
    products: HashSet<ProductId>,
    agreements: HashMap<AgreementId, OrganizationId>,
    users: HashSet<&'a str>,
}

impl<'a> EntryReferences<'a> {
    fn new(file: &'a ValidAccounts, tx: &'a ReadTx<'a>) -> Self {
        let agreements = file.agreements.iter().map(|entry| &entry.value);
        Self {
            tx,
            organizations: file.organizations.iter().map(|entry| entry.value.id).collect(),
            codes: file.products.iter().map(|entry| &*entry.value.code).collect(),
            products: file.products.iter().filter_map(|entry| entry.value.id).collect(),
            agreements: agreements.map(|entry| (entry.id, entry.organization)).collect(),
            users: file.users.iter().map(|entry| &*entry.value.user_name).collect(),
        }
    }

    fn organization(&self, place: &str, id: OrganizationId) -> Result<(), AccountsError> {
        if self.organizations.contains(&id) || self.tx.find_organization(id)?.is_some() {
            return Ok(());
        }
        Err(missing(place, "organization", id))
    }

    /// Checks that a product has that code after the import: an entry of this file may change the code of a
    /// stored product.
    fn code(&self, place: &str, code: &str) -> Result<(), AccountsError> {
        if self.codes.contains(code) {
            return Ok(());
        }
        let stored = self.tx.find_product_id(code)?;
        match stored.filter(|id| !self.products.contains(id)) {
            Some(_) => Ok(()),
            None => Err(missing(place, "product", code)),
        }
    }

    fn user_name(&self, place: &str, name: &str) -> Result<(), AccountsError> {
        if self.users.contains(name) || self.tx.find_user_by_name(name)?.is_some() {
            return Ok(());
        }
        Err(refuse(place, format!("user {name:?} does not exist")))
    }

    fn product(&self, entry: &PlacedEntry<ProductEntry>) -> Result<(), AccountsError> {
        let ProductEntry { id, code, .. } = &entry.value;
        let owner = self.tx.find_product_id(code)?;
        let Some((id, owner)) = id.zip(owner) else { return Ok(()) };
        if id == owner {
            return Ok(());
        }
        Err(refuse(&entry.place, format!("id: {id} is given, but product {owner} has the code")))
    }

    fn agreement(&self, entry: &PlacedEntry<AgreementEntry>) -> Result<(), AccountsError> {
        let AgreementEntry { id, organization, products, .. } = &entry.value;
        self.organization(&entry.place, *organization)?;
        for code in products {
            self.code(&entry.place, code)?;
        }
        if self.tx.find_agreement_owner(*id)?.is_none_or(|owner| owner == *organization) {
            return Ok(());
        }
        // The agreement moves to a different organization: no user of the old organization may keep it.
        let users = self.tx.list_agreement_users(*id)?;
        match users.iter().find(|user| !self.users.contains(user.as_str())) {
            Some(user) => {
                let why = format!("user {user:?} of another organization still has it");
                Err(refuse(&entry.place, why))
            }
            None => Ok(()),
        }
    }

    fn user(&self, place: &str, new: &UserEntry, only_new: bool) -> Result<(), AccountsError> {
        self.user_id(place, new, only_new)?;
        if let Some(organization) = new.organization {
            self.organization(place, organization)?;
        }
        for id in &new.agreements {
            // The file comes first: it may move the agreement to a different organization.
            let owner = match self.agreements.get(id) {
                Some(owner) => Some(*owner),
                None => self.tx.find_agreement_owner(*id)?,
            };
            let Some(owner) = owner else { return Err(missing(place, "agreement", id)) };
            let own = match new.organization {
                Some(own) if own == owner => continue,
                Some(own) => format!("not to {own}"),
                None => "and the user to none".to_owned(),
            };
            let why = format!("agreement {id} belongs to organization {owner}, {own}");
            return Err(refuse(place, why));
        }
        Ok(())
    }

    fn user_id(&self, place: &str, new: &UserEntry, only_new: bool) -> Result<(), AccountsError> {
        let stored = self.tx.find_user_by_name(&new.user_name)?;
        refuse_known(place, only_new && stored.is_some())?;
        let Some(id) = new.id else { return Ok(()) };
        if let Some((stored, _)) = stored.filter(|(stored, _)| stored.id != id) {
            let name = &*new.user_name;
            let why = format!("id: {id} is given, but user {name:?} has {}", stored.id);
            return Err(refuse(place, why));
        }
        match self.tx.find_user(id)?.filter(|holder| holder.user_name != *new.user_name) {
            Some(holder) => {
                let why = format!("id: {id} belongs to user {:?}", holder.user_name);
                Err(refuse(place, why))
            }
            None => Ok(()),
        }
    }

    fn client(&self, place: &str, new: &ClientEntry, only_new: bool) -> Result<(), AccountsError> {
        let stored = self.tx.find_client(&new.client_id)?;
        refuse_known(place, only_new && stored.is_some())?;
        // An entry without a secret keeps the stored secret.
        let has_stored_secret = stored.is_some_and(|stored| stored.secret.is_some());
        let has_secret = new.client_secret.is_some() || new.client_secret_hash.is_some();
        if new.public || has_secret || has_stored_secret {
            return Ok(());
        }
        let why = "client_secret: is missing: a client that is not public needs one";
        Err(refuse(place, why))
    }
}

fn missing(place: &str, what: &str, name: impl Display) -> AccountsError {
    refuse(place, format!("{what} {name} does not exist"))
}
