//! The tables that move, with their columns as every engine has them.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Int,
    Bool,
    Text,
    Blob,
}
use Type::{Blob, Bool, Int, Text};

/// A table that is moved as a whole.
#[derive(Debug)]
pub(in crate::db) struct Table {
    pub(super) name: &'static str,
    /// What its rows are ordered by.
    pub(super) order: &'static str,
    /// The column whose numbers the engine gives, which must not come again.
    pub(super) numbered: Option<&'static str>,
    pub(super) columns: &'static [(&'static str, Type)],
}

const fn table(
    name: &'static str,
    order: &'static str,
    columns: &'static [(&'static str, Type)],
) -> Table {
    Table { name, order, numbered: None, columns }
}

const fn numbered(
    name: &'static str,
    number: &'static str,
    columns: &'static [(&'static str, Type)],
) -> Table {
    Table { name, order: number, numbered: Some(number), columns }
}

/// All tables but the items' own, those that others refer to first.
pub(in crate::db) const TABLES: &[Table] = &[
    table(
        "organizations",
        "organization_id",
        &[
            ("organization_id", Int),
            ("name", Text),
            ("currency", Text),
            ("country", Text),
            ("address", Text),
            ("phone_direct", Text),
        ],
    ),
    numbered(
        "products",
        "product_id",
        &[("product_id", Int), ("code", Text), ("name", Text), ("description", Text)],
    ),
    table(
        "agreements",
        "agreement_id",
        &[
            ("agreement_id", Int),
            ("organization_id", Int),
            ("type", Text),
            ("super", Bool),
            ("name", Text),
            ("description", Text),
            ("expires_ms", Int),
            ("prepaid_total", Int),
            ("prepaid_remaining", Int),
        ],
    ),
    table(
        "agreement_products",
        "agreement_id, product_id",
        &[("agreement_id", Int), ("product_id", Int)],
    ),
    // They keep their order, which their hidden numbers hold.
    table(
        "licenses",
        "rowid",
        &[
            ("uuid", Text),
            ("product_id", Int),
            ("period", Text),
            ("volume", Text),
            ("price", Text),
            ("description", Text),
        ],
    ),
    numbered(
        "users",
        "user_id",
        &[
            ("user_id", Int),
            ("organization_id", Int),
            ("user_name", Text),
            ("password", Text),
            ("first_name", Text),
            ("last_name", Text),
            ("email_address", Text),
            ("department", Text),
            ("phone_direct", Text),
            ("phone_mobile", Text),
            ("roles", Text),
            ("admin", Bool),
            ("mediebank", Bool),
            ("active", Bool),
            ("service_account", Bool),
            ("created_ms", Int),
        ],
    ),
    table("user_agreements", "user_id, agreement_id", &[("user_id", Int), ("agreement_id", Int)]),
    numbered(
        "api_keys",
        "key_id",
        &[
            ("key_id", Int),
            ("key_hash", Text),
            ("user_id", Int),
            ("name", Text),
            ("created_ms", Int),
            ("revoked_ms", Int),
            ("made_by_user", Bool),
        ],
    ),
    table("profiles", "user_id", &[("user_id", Int), ("profile", Text)]),
    table(
        "devices",
        "token",
        &[
            ("token", Text),
            ("user_id", Int),
            ("type", Text),
            ("name", Text),
            ("model", Text),
            ("registered_ms", Int),
        ],
    ),
    table(
        "clients",
        "client_id",
        &[
            ("client_id", Text),
            ("name", Text),
            ("secret", Text),
            ("redirect_uris", Text),
            ("grants", Text),
            ("active", Bool),
            ("created_ms", Int),
        ],
    ),
    numbered(
        "families",
        "family_id",
        &[
            ("family_id", Int),
            ("user_id", Int),
            ("client_id", Text),
            ("scopes", Text),
            ("auth_ms", Int),
            ("created_ms", Int),
            ("expires_ms", Int),
        ],
    ),
    table(
        "codes",
        "code_hash",
        &[
            ("code_hash", Text),
            ("family_id", Int),
            ("redirect_uri", Text),
            ("challenge", Text),
            ("nonce", Text),
            ("expires_ms", Int),
            ("used_ms", Int),
        ],
    ),
    table(
        "access_tokens",
        "token_hash",
        &[("token_hash", Text), ("family_id", Int), ("scopes", Text), ("expires_ms", Int)],
    ),
    table(
        "refresh_tokens",
        "token_hash",
        &[("token_hash", Text), ("family_id", Int), ("expires_ms", Int), ("used_ms", Int)],
    ),
    table(
        "consents",
        "user_id, client_id",
        &[("user_id", Int), ("client_id", Text), ("scopes", Text), ("given_ms", Int)],
    ),
    table(
        "sessions",
        "session_hash",
        &[("session_hash", Text), ("user_id", Int), ("auth_ms", Int), ("expires_ms", Int)],
    ),
    table("calls", "session_hash", &[("session_hash", Text), ("calls", Text)]),
    table(
        "signing_keys",
        "kid",
        &[("kid", Text), ("pkcs8", Blob), ("created_ms", Int), ("retired_ms", Int)],
    ),
    numbered(
        "orders",
        "order_id",
        &[
            ("order_id", Int),
            ("organization_id", Int),
            ("user_id", Int),
            ("agreement_id", Int),
            ("media_type", Text),
            ("item_id", Text),
            ("headline", Text),
            ("byline", Text),
            ("source", Text),
            ("agreement", Text),
            ("product", Text),
            ("license", Text),
            ("created_ms", Int),
            ("downloadable_until_ms", Int),
            ("reporting_deadline_ms", Int),
            ("reported_ms", Int),
            ("approved", Bool),
            ("manual", Bool),
            ("invoice_text", Text),
        ],
    ),
    numbered("account_log", "seq", &[("seq", Int), ("what", Text), ("id", Text), ("at_ms", Int)]),
    numbered(
        "channels",
        "channel_id",
        &[
            ("channel_id", Int),
            ("user_id", Int),
            ("name", Text),
            ("method", Text),
            ("formats", Text),
            ("settings", Text),
            ("active", Bool),
            ("created_ms", Int),
            ("made_by_user", Bool),
        ],
    ),
    table(
        "deliveries",
        "delivery_id",
        &[
            ("delivery_id", Text),
            ("user_id", Int),
            ("organization_id", Int),
            ("channel", Text),
            ("media_type", Text),
            ("item_id", Text),
            ("version", Text),
            ("agreement_id", Int),
            ("state", Text),
            ("attempts", Int),
            ("claim", Text),
            ("next_ms", Int),
            ("error", Text),
            ("created_ms", Int),
            ("queued_ms", Int),
            ("updated_ms", Int),
            ("delivered_ms", Int),
        ],
    ),
    numbered(
        "notifications",
        "number",
        &[
            ("number", Int),
            ("notification_id", Text),
            ("user_id", Int),
            ("type", Text),
            ("media_type", Text),
            ("title", Text),
            ("q", Text),
            ("p", Text),
            ("agr", Text),
            ("tr", Text),
            ("email", Text),
            ("schedule", Text),
            ("timezone", Text),
            ("created_ms", Int),
            ("after_seq", Int),
            ("active_ms", Int),
            ("next_ms", Int),
        ],
    ),
    numbered("notification_log", "seq", &[("seq", Int), ("number", Int)]),
    numbered(
        "queued_items",
        "place",
        &[
            ("place", Int),
            ("number", Int),
            ("media_type", Text),
            ("id", Text),
            ("seq", Int),
            ("freed", Int),
        ],
    ),
    table(
        "embargoed_items",
        "media_type, id",
        &[("media_type", Text), ("id", Text), ("until_ms", Int)],
    ),
    table(
        "outbox",
        "message_id",
        &[
            ("message_id", Text),
            ("lane", Text),
            ("number", Int),
            ("user_id", Int),
            ("content", Text),
            ("state", Text),
            ("attempts", Int),
            ("next_ms", Int),
            ("error", Text),
            ("created_ms", Int),
            ("queued_ms", Int),
            ("updated_ms", Int),
        ],
    ),
    table("cursors", "name", &[("name", Text), ("seq", Int)]),
    numbered(
        "collections",
        "number",
        &[
            ("number", Int),
            ("collection_id", Text),
            ("user_id", Int),
            ("name", Text),
            ("public", Bool),
            ("created_ms", Int),
            ("accessed_ms", Int),
            ("modified_ms", Int),
        ],
    ),
    table(
        "collection_items",
        "number, media_type, id",
        &[
            ("number", Int),
            ("media_type", Text),
            ("id", Text),
            ("position", Int),
            ("expires_ms", Int),
        ],
    ),
    numbered(
        "removed_items",
        "place",
        &[
            ("place", Int),
            ("number", Int),
            ("media_type", Text),
            ("id", Text),
            ("headline", Text),
            ("description", Text),
            ("removed_ms", Int),
        ],
    ),
    numbered(
        "purges",
        "purge_id",
        &[
            ("purge_id", Int),
            ("lane", Text),
            ("key", Text),
            ("due_ms", Int),
            ("since_ms", Int),
            ("again", Bool),
            ("refused", Int),
        ],
    ),
    table("state", "name", &[("name", Text), ("value", Text)]),
];

/// The item log, which goes in portions.
pub(in crate::db) const ITEM_LOG: Table = numbered(
    "item_log",
    "seq",
    &[
        ("seq", Int),
        ("media_type", Text),
        ("id", Text),
        ("change", Text),
        ("at_ms", Int),
        ("previous", Int),
        ("fresh", Bool),
    ],
);

/// The items, which go in portions.
pub(in crate::db) const ITEMS: Table = table(
    "items",
    "item_id",
    &[
        ("item_id", Int),
        ("media_type", Text),
        ("id", Text),
        ("document", Text),
        ("assets", Text),
        ("pubstatus", Text),
        ("order_ms", Int),
        ("embargoed_ms", Int),
        ("stored_ms", Int),
    ],
);
