//! Metadata templates: named changes of fields, which editors apply to items and uploads. A template belongs to
//! one organization, or is shared by all providers of the archive.

use jiff::Timestamp;

use super::{ExpectedVersion, Uploads};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::storage::audit::{self, AuditAction, ObjectKind};
use crate::storage::database::{DbResult, MetadataTemplate, NewTemplate, ReadTx};
use model::ContentHash;
use model::account::OrganizationId;
use model::item::MetadataEdits;

/// Metadata templates of the archive, and separately of each organization.
const TEMPLATES_MAX: usize = 200;

/// The owner of a template after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerChange {
    /// The owner does not change.
    Keep,
    /// This organization owns it; `None` if all providers share it.
    To(Option<OrganizationId>),
}

/// The next version of a stored template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateChange {
    pub expected: ExpectedVersion,
    pub owner: OwnerChange,
    pub name: String,
    /// The changes that it makes.
    pub fields: MetadataEdits,
}

/// The outcome of changing or removing a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateOutcome {
    /// The caller has no such template.
    Missing,
    /// The caller uses the template, which a different organization shares.
    Foreign,
    /// The version of the template is not the expected one.
    Stale,
    /// The template as it is now, or as it was before it was removed.
    Done(MetadataTemplate),
}

/// Returns a tag that identifies a version of a template by its content.
pub fn template_tag(template: &MetadataTemplate) -> String {
    let MetadataTemplate { organization, name, fields, .. } = template;
    let fields = serde_json::Value::Object(fields.to_json()).to_string();
    // With the length, no text can move from the name into the fields under the same hash.
    let text = format!("{organization:?} {} {name} {fields}", name.len());
    ContentHash::new(text.as_bytes()).short()
}

/// Finds the template `id`, if `organization` may use it.
fn find_used(
    tx: &ReadTx<'_>,
    organization: Option<OrganizationId>,
    id: i64,
) -> DbResult<Option<MetadataTemplate>> {
    let found = tx.find_template(id)?;
    // A template without an organization is shared.
    Ok(found.filter(|found| found.organization.is_none() || found.organization == organization))
}

/// Returns whether a user of `organization` may change a template that it uses: all providers use a shared template, and
/// its author's organization changes it. Without an author's organization, every provider may (contract ingest-33).
fn is_changeable(template: &MetadataTemplate, organization: Option<OrganizationId>) -> bool {
    template.author_organization.is_none() || template.author_organization == organization
}

/// Returns the error for one more template than an owner may have.
fn too_many() -> Error {
    let message = format!("there are {TEMPLATES_MAX} templates already; remove some");
    Error::new(ErrorKind::Conflict, message)
}

impl Uploads {
    /// Lists the templates of the archive and of `organization`, by name.
    pub async fn templates(
        &self,
        organization: Option<OrganizationId>,
    ) -> Result<Vec<MetadataTemplate>> {
        Ok(self.ingest_here().db.read(move |tx| tx.list_templates(organization)).await?)
    }

    /// Finds the template `id`, if `organization` may use it.
    pub async fn template(
        &self,
        organization: Option<OrganizationId>,
        id: i64,
    ) -> Result<Option<MetadataTemplate>> {
        Ok(self.ingest_here().db.read(move |tx| find_used(tx, organization, id)).await?)
    }

    /// Stores a new template of a user of `organization`.
    ///
    /// Fails with [`ErrorKind::Conflict`] if its owner already has [`TEMPLATES_MAX`] templates.
    pub async fn create_template(
        &self,
        organization: Option<OrganizationId>,
        new: NewTemplate,
        now: Timestamp,
    ) -> Result<MetadataTemplate> {
        let event = audit::event(AuditAction::TemplateCreated).with_detail(&new.name);
        let created = self.ingest_here().db.write(move |tx| {
            if tx.count_templates(new.organization)? >= TEMPLATES_MAX {
                return Ok(None);
            }
            let user_name = event.actor.user_name.as_deref();
            let id = tx.create_template(&new, organization, user_name, now)?;
            tx.write_audit(&event.with_object(ObjectKind::Template, id))?;
            tx.find_template(id)
        });
        created.await?.ok_or_else(too_many)
    }

    /// Replaces the template `id`, if `organization` may use and change it.
    ///
    /// Fails with [`ErrorKind::Conflict`] if a new owner already has [`TEMPLATES_MAX`] templates.
    pub async fn update_template(
        &self,
        organization: Option<OrganizationId>,
        id: i64,
        change: TemplateChange,
        now: Timestamp,
    ) -> Result<TemplateOutcome> {
        let TemplateChange { expected, owner, name, fields } = change;
        let event = audit::event(AuditAction::TemplateChanged);
        let event = event.with_object(ObjectKind::Template, id).with_detail(&name);
        let updated = self.ingest_here().db.write(move |tx| {
            let Some(old) = find_used(tx, organization, id)? else {
                return Ok(Some(TemplateOutcome::Missing));
            };
            if !is_changeable(&old, organization) {
                return Ok(Some(TemplateOutcome::Foreign));
            }
            if !expected.includes(&template_tag(&old)) {
                return Ok(Some(TemplateOutcome::Stale));
            }
            let organization = match owner {
                OwnerChange::Keep => old.organization,
                OwnerChange::To(owner) => owner,
            };
            let is_moved = organization != old.organization;
            if is_moved && tx.count_templates(organization)? >= TEMPLATES_MAX {
                return Ok(None);
            }
            let new = NewTemplate { organization, name, fields };
            tx.update_template(id, &new, event.actor.user_name.as_deref(), now)?;
            tx.write_audit(&event)?;
            let updated = tx.find_template(id)?;
            Ok(Some(updated.map_or(TemplateOutcome::Missing, TemplateOutcome::Done)))
        });
        updated.await?.ok_or_else(too_many)
    }

    /// Removes the template `id`, if `organization` may use and change it.
    pub async fn remove_template(
        &self,
        organization: Option<OrganizationId>,
        id: i64,
        expected: ExpectedVersion,
    ) -> Result<TemplateOutcome> {
        let event = audit::event(AuditAction::TemplateRemoved);
        let event = event.with_object(ObjectKind::Template, id);
        let removed = self.ingest_here().db.write(move |tx| {
            let Some(old) = find_used(tx, organization, id)? else {
                return Ok(TemplateOutcome::Missing);
            };
            if !is_changeable(&old, organization) {
                return Ok(TemplateOutcome::Foreign);
            }
            if !expected.includes(&template_tag(&old)) {
                return Ok(TemplateOutcome::Stale);
            }
            tx.delete_template(id)?;
            tx.write_audit(&event.with_detail(&old.name))?;
            Ok(TemplateOutcome::Done(old))
        });
        Ok(removed.await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::clock;

    #[test]
    fn a_template_has_another_tag_when_it_says_something_else() {
        let template = |name: &str, organization: Option<i64>, source: &str| {
            let fields = serde_json::json!({ "source": source });
            MetadataTemplate {
                id: 1,
                organization: organization.map(OrganizationId),
                author_organization: None,
                name: name.to_owned(),
                fields: MetadataEdits::parse(fields.as_object().expect("an object"))
                    .expect("valid"),
                changed: clock::now(),
                user_name: None,
            }
        };
        let tag = template_tag(&template("a", None, "x"));
        assert_eq!(template_tag(&template("a", None, "x")), tag);
        for other in
            [template("b", None, "x"), template("a", Some(1), "x"), template("a", None, "y")]
        {
            assert_ne!(template_tag(&other), tag);
        }
    }
}
