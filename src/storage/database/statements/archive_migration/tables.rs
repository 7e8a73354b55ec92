//! Lists the tables that are migrated. Their columns are read from the databases.

/// A table that is migrated.
#[derive(Debug)]
pub(crate) struct MigratedTable {
    pub(crate) name: &'static str,
    /// The columns that order its rows.
    pub(super) order: &'static str,
    /// The column with numbers that the engine assigns. They must not be assigned again.
    pub(super) numbered: Option<&'static str>,
}

const fn table(name: &'static str, order: &'static str) -> MigratedTable {
    MigratedTable { name, order, numbered: None }
}

const fn numbered(name: &'static str, number: &'static str) -> MigratedTable {
    MigratedTable { name, order: number, numbered: Some(number) }
}

/// All tables except the items and their log. Tables that others refer to come first.
pub(crate) const TABLES: &[MigratedTable] = &[
    table("organizations", "organization_id"),
    numbered("products", "product_id"),
    table("agreements", "agreement_id"),
    table("agreement_products", "agreement_id, product_id"),
    // Licences keep their order, which is the order of their hidden row numbers.
    table("licenses", "rowid"),
    numbered("users", "user_id"),
    table("user_agreements", "user_id, agreement_id"),
    table("profiles", "user_id"),
    table("devices", "token"),
    numbered("api_keys", "key_id"),
    table("password_links", "link_id"),
    table("user_requests", "user_id"),
    table("clients", "client_id"),
    table("consents", "user_id, client_id, response_type"),
    numbered("families", "family_id"),
    table("codes", "code_hash"),
    table("access_tokens", "token_hash"),
    table("refresh_tokens", "token_hash"),
    table("signing_keys", "kid"),
    table("sessions", "session_hash"),
    table("browsers", "user_id, browser_hash"),
    table("failed_logins", "key_hash"),
    numbered("account_log", "seq"),
    numbered("item_rights", "change_id"),
    numbered("item_edits", "edit_id"),
    numbered("metadata_templates", "template_id"),
    numbered("orders", "order_id"),
    numbered("collections", "number"),
    table("collection_items", "number, media_type, id"),
    numbered("removed_items", "position"),
    numbered("channels", "channel_id"),
    table("deliveries", "delivery_id"),
    numbered("notifications", "number"),
    numbered("notification_log", "seq"),
    numbered("queued_items", "position"),
    table("embargoed_items", "media_type, id"),
    table("outbox", "message_id"),
    table("mail_counts", "subject, hour"),
    table("mail_recipients", "user_id, address"),
    numbered("purges", "purge_id"),
    numbered("audit_log", "seq"),
    table("cursors", "name"),
    table("state", "name"),
];

/// The item log, which is copied in batches.
pub(crate) const ITEM_LOG: MigratedTable = numbered("item_log", "seq");

/// The items, which are copied in batches.
pub(crate) const ITEMS: MigratedTable = table("items", "item_id");

/// The tables that are not migrated. The first three describe processes of the old database. The bytes of
/// unpublished uploads stay in the old store, and clients send them again.
#[cfg(test)]
pub(crate) const LEFT_OUT: [&str; 5] =
    ["diagnostics", "leases", "nodes", "upload_parts", "uploads"];

/// The columns that are not migrated. The new database releases work claimed by incarnations of the old one,
/// and assigns row numbers in the order of insertion.
pub(super) const COLUMNS_LEFT_OUT: [&str; 2] = ["incarnation", "rowid"];
