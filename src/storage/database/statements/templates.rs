//! Stores metadata templates, named changes that editors apply to the fields of items and uploads. A template belongs to
//! one organization, or to the archive: then all providers use it.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{ReadTx, WriteTx, damaged, parse_json, time};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::account::OrganizationId;
use model::item::MetadataEdits;

/// A stored metadata template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataTemplate {
    pub id: i64,
    /// The organization that the template belongs to; `None` if it belongs to the archive.
    pub organization: Option<OrganizationId>,
    /// The organization of the user who created it; `None` if the user had none, or the organization was removed.
    pub author_organization: Option<OrganizationId>,
    pub name: String,
    /// The changes, by field.
    pub fields: MetadataEdits,
    pub changed: Timestamp,
    /// The name of the user who changed it last, at that time.
    pub user_name: Option<String>,
}

/// The parts of a [`MetadataTemplate`] that an editor decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTemplate {
    pub organization: Option<OrganizationId>,
    pub name: String,
    pub fields: MetadataEdits,
}

const COLUMNS: &str =
    "template_id, organization_id, author_organization_id, name, fields, changed_ms, user_name";

fn read_template(row: &dyn ResultRow) -> DbResult<MetadataTemplate> {
    let id: i64 = row.get("template_id")?;
    let what = format!("template {id}");
    let mut fields: Map<String, Value> = parse_json(&what, row.text("fields")?)?;
    // A later version may have stored fields that this one does not know. The template stays usable with the others.
    fields.retain(|name, change| {
        MetadataEdits::parse(&Map::from_iter([(name.clone(), change.clone())])).is_ok()
    });
    Ok(MetadataTemplate {
        id,
        organization: row.get("organization_id")?,
        author_organization: row.get("author_organization_id")?,
        name: row.get("name")?,
        fields: MetadataEdits::parse(&fields).map_err(|why| damaged(&what, &why))?,
        changed: time(&what, row.get("changed_ms")?)?,
        user_name: row.get("user_name")?,
    })
}

impl ReadTx<'_> {
    /// Lists the templates of the archive and of `organization`, by name.
    pub fn list_templates(
        &self,
        organization: Option<OrganizationId>,
    ) -> DbResult<Vec<MetadataTemplate>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM metadata_templates
                 WHERE organization_id IS NULL OR organization_id = ?1
                 ORDER BY name, template_id"
        );
        self.tx.list(&sql, params![organization], read_template)
    }

    /// Finds the template with this id.
    pub fn find_template(&self, id: i64) -> DbResult<Option<MetadataTemplate>> {
        let sql = format!("SELECT {COLUMNS} FROM metadata_templates WHERE template_id = ?1");
        self.tx.find(&sql, params![id], read_template)
    }

    /// Counts the templates of `organization`; with `None`, those of the archive.
    pub fn count_templates(&self, organization: Option<OrganizationId>) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM metadata_templates
             WHERE organization_id IS NOT DISTINCT FROM ?1";
        self.tx.count(sql, params![organization])
    }
}

impl WriteTx<'_> {
    /// Stores a new template of the user `user_name`, who belongs to `author_organization`. Returns its id.
    pub fn create_template(
        &self,
        new: &NewTemplate,
        author_organization: Option<OrganizationId>,
        user_name: Option<&str>,
        now: Timestamp,
    ) -> DbResult<i64> {
        let sql = "INSERT INTO metadata_templates
                 (organization_id, name, fields, changed_ms, user_name, author_organization_id)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING template_id";
        let NewTemplate { organization, name, fields } = new;
        let fields = Value::Object(fields.to_json()).to_string();
        let values = params![organization, name, fields, now, user_name, author_organization];
        self.tx.load_value(sql, values)
    }

    /// Replaces the content of the template with this id, for the user `user_name`.
    pub fn update_template(
        &self,
        id: i64,
        new: &NewTemplate,
        user_name: Option<&str>,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql = "UPDATE metadata_templates SET organization_id = ?2, name = ?3, fields = ?4,
                 changed_ms = ?5, user_name = ?6
             WHERE template_id = ?1";
        let NewTemplate { organization, name, fields } = new;
        let fields = Value::Object(fields.to_json()).to_string();
        self.tx.run(sql, params![id, organization, name, fields, now, user_name])
    }

    /// Removes the template with this id.
    pub fn delete_template(&self, id: i64) -> DbResult<()> {
        let sql = "DELETE FROM metadata_templates WHERE template_id = ?1";
        self.tx.run(sql, params![id])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::runtime::clock;
    use crate::storage::database::Db;

    fn fields(value: &Value) -> MetadataEdits {
        MetadataEdits::parse(value.as_object().unwrap()).unwrap()
    }

    #[test]
    fn an_organization_sees_its_own_templates_and_those_of_the_archive() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let organizations =
            "INSERT INTO organizations (organization_id, address) VALUES (1, '{}'), (2, '{}')";
        db.write_blocking(move |tx| tx.run_sql(organizations)).unwrap();
        let new = |name: &str, organization: Option<i64>| NewTemplate {
            organization: organization.map(OrganizationId),
            name: name.to_owned(),
            fields: fields(&json!({ "source": "Agency" })),
        };
        let editor = Some("editor");
        let all = [new("b", None), new("a", Some(1)), new("c", Some(2))];
        let ids = db.write_blocking(move |tx| {
            let author = Some(OrganizationId(2));
            let created =
                all.iter().map(|new| tx.create_template(new, author, editor, clock::now()));
            created.collect::<Result<Vec<_>, _>>()
        });
        let ids = ids.unwrap();
        let names = |organization: Option<i64>| {
            let listed =
                db.read_blocking(move |tx| tx.list_templates(organization.map(OrganizationId)));
            listed.unwrap().into_iter().map(|one| one.name).collect::<String>()
        };
        assert_eq!([names(None), names(Some(1)), names(Some(2))], ["b", "ab", "bc"]);
        let (first, changed) = (
            ids[0],
            NewTemplate { fields: fields(&json!({ "city": "Umeå" })), ..new("d", Some(1)) },
        );
        let expected = changed.fields.clone();
        db.write_blocking(move |tx| tx.update_template(first, &changed, editor, clock::now()))
            .unwrap();
        let found = db.read_blocking(move |tx| tx.find_template(first)).unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.fields), ("d", expected));
        let author = found.author_organization;
        assert_eq!(author, Some(OrganizationId(2)), "a change leaves the author");
        let count = |organization: Option<i64>| {
            db.read_blocking(move |tx| tx.count_templates(organization.map(OrganizationId)))
                .unwrap()
        };
        assert_eq!((count(None), count(Some(1))), (0, 2));
        db.write_blocking(move |tx| tx.delete_template(first)).unwrap();
        assert_eq!(names(Some(1)), "a");
    }

    #[test]
    fn a_field_of_a_later_version_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::scratch(dir.path()).unwrap();
        let insert = r#"INSERT INTO metadata_templates (name, fields, changed_ms)
             VALUES ('x', '{"source":"Agency","mood":"calm"}', 0)"#;
        db.write_blocking(move |tx| tx.run_sql(insert)).unwrap();
        let listed = db.read_blocking(|tx| tx.list_templates(None)).unwrap();
        assert_eq!(listed[0].fields, fields(&json!({ "source": "Agency" })));
    }
}
