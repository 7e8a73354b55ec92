//! Writes events of the audit log, lists them newest first, and removes them by age.

use std::{net::IpAddr, ops::ControlFlow};

use jiff::Timestamp;
use serde::Serialize;

use super::{ReadTx, WriteTx, time};
use crate::runtime::config::NetworkList;
use crate::storage::audit::{self, Actor, AuditAction, AuditEvent, AuditOutcome};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::account::UserId;

/// Rows of the table, about 1.5 GB; beyond that the oldest are removed regardless of their age.
const AUDIT_ROWS_MAX: i64 = 5_000_000;

/// The filter of a list of events. A field that is `None` does not restrict it.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// The earliest time, inclusive.
    pub since: Option<Timestamp>,
    /// The latest time, exclusive.
    pub until: Option<Timestamp>,
    /// Name or number of the acting user.
    pub user: Option<String>,
    pub action: Option<AuditAction>,
    pub outcome: Option<AuditOutcome>,
    /// The object `kind/id`. With a slash at the end, all objects of a kind.
    pub object: Option<String>,
    /// Client addresses and networks, one of which must match.
    pub addresses: Option<NetworkList>,
}

/// A listed event. Its words are stored unchanged, because a different version of the product may know more
/// words than this one, and its events are listed too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedEvent {
    pub seq: i64,
    pub at: Timestamp,
    pub action: String,
    pub outcome: String,
    /// The acting user; `None` if unknown.
    pub user: Option<UserId>,
    /// The user's name at the time of the event.
    pub user_name: Option<String>,
    /// The kind of credentials presented.
    pub credential: String,
    /// The public id of the credentials.
    pub credential_id: Option<String>,
    /// The client address of the request.
    pub address: Option<String>,
    pub object: Option<String>,
    /// Further details in a few words.
    pub detail: Option<String>,
    /// Number of occurrences; more than one for events recorded together.
    pub count: u32,
}

impl AuditFilter {
    /// Returns whether an event matches the object and the addresses. The SQL statement applies the other
    /// conditions.
    fn accepts(&self, event: &ListedEvent) -> bool {
        let is_object = self.object.as_deref().is_none_or(|wanted| {
            event.object.as_deref().is_some_and(|object| {
                if wanted.ends_with('/') { object.starts_with(wanted) } else { object == wanted }
            })
        });
        let is_address = self.addresses.as_ref().is_none_or(|addresses| {
            let address = event.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok());
            address.is_some_and(|address| addresses.contain(address))
        });
        is_object && is_address
    }
}

fn read_event(row: &dyn ResultRow) -> DbResult<ListedEvent> {
    let seq: i64 = row.get("seq")?;
    Ok(ListedEvent {
        seq,
        at: time(&format!("row {seq} of audit_log"), row.get("at_ms")?)?,
        action: row.get("action")?,
        outcome: row.get("outcome")?,
        user: row.get("user_id")?,
        user_name: row.get("user_name")?,
        credential: row.get("credential")?,
        credential_id: row.get("credential_id")?,
        address: row.get("address")?,
        object: row.get("object")?,
        detail: row.get("detail")?,
        count: row.get("count")?,
    })
}

impl ReadTx<'_> {
    /// Lists the events that match `filter`, newest first, at most `limit`.
    ///
    /// Reads rows until it has found enough. A rare object or address requires a scan of the whole period.
    pub fn list_audit(&self, filter: &AuditFilter, limit: usize) -> DbResult<Vec<ListedEvent>> {
        let since = filter.since.map_or(i64::MIN, Timestamp::as_millisecond);
        let until = filter.until.map_or(i64::MAX, Timestamp::as_millisecond);
        let action = filter.action.map(AuditAction::as_str).unwrap_or_default();
        let outcome = filter.outcome.map(AuditOutcome::as_str).unwrap_or_default();
        let user = filter.user.as_deref().unwrap_or_default();
        let mut found = Vec::new();
        // The callback below compares the length only after it has added an event.
        if limit == 0 {
            return Ok(found);
        }
        // Empty texts represent absent filters, so that one prepared statement serves every combination.
        let sql =
            "SELECT seq, at_ms, action, outcome, user_id, user_name, credential, credential_id,
                 address, object, detail, count
             FROM audit_log
             WHERE at_ms >= ?1 AND at_ms < ?2 AND (?3 = '' OR action = ?3)
                 AND (?4 = '' OR outcome = ?4)
                 AND (?5 = '' OR user_name = ?5 OR CAST(user_id AS TEXT) = ?5)
             ORDER BY seq DESC";
        self.tx.each_until(sql, params![since, until, action, outcome, user], |row| {
            let event = read_event(row)?;
            if filter.accepts(&event) {
                found.push(event);
            }
            let is_full = found.len() >= limit;
            Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(found)
    }
}

impl WriteTx<'_> {
    /// Records an event in the transaction of its change. Its log line follows the commit.
    pub fn write_audit(&self, event: &AuditEvent) -> DbResult<()> {
        self.insert_audit(event)?;
        // Logged after the commit, so that a rolled-back transaction leaves no line either.
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }

    /// Stores an event that has been logged already. Does nothing if rows are not stored.
    pub fn insert_audit(&self, event: &AuditEvent) -> DbResult<()> {
        if !audit::stores_rows() {
            return Ok(());
        }
        let Actor { user, user_name, credential, credential_id, address } = &event.actor;
        let sql = "INSERT INTO audit_log (at_ms, action, outcome, user_id, user_name, credential,
                 credential_id, address, object, detail, count)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
        let values = params![
            event.at,
            event.action,
            event.outcome,
            user,
            user_name,
            credential,
            credential_id,
            address,
            event.object,
            event.detail,
            event.count,
        ];
        self.tx.run(sql, values)
    }

    /// Removes events older than `before` and events beyond the [`AUDIT_ROWS_MAX`] newest, at most `limit`.
    /// Returns their number.
    pub fn sweep_audit(&self, before: Timestamp, limit: usize) -> DbResult<usize> {
        self.sweep_audit_to(before, AUDIT_ROWS_MAX, limit)
    }

    fn sweep_audit_to(&self, before: Timestamp, rows_max: i64, limit: usize) -> DbResult<usize> {
        let sql = "DELETE FROM audit_log WHERE seq IN
                 (SELECT seq FROM audit_log WHERE at_ms < ?1 ORDER BY at_ms, seq LIMIT ?2)";
        let removed = self.tx.execute(sql, params![before, limit])?;
        // Numbers rise with every event, so they bound the rows without counting them.
        let sql = "DELETE FROM audit_log WHERE seq IN
                 (SELECT seq FROM audit_log
                  WHERE seq <= (SELECT max(seq) FROM audit_log) - ?1 ORDER BY seq LIMIT ?2)";
        // Both deletions share the limit, which bounds the time for which other writers wait.
        let remaining = limit.saturating_sub(removed);
        Ok(removed + self.tx.execute(sql, params![rows_max, remaining])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::audit::{CredentialKind, ObjectKind};
    use crate::storage::database::{Db, DbError};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn event(action: AuditAction, second: i64) -> AuditEvent {
        AuditEvent { at: at(second), ..AuditEvent::new(action, Actor::UNKNOWN) }
    }

    fn scene(db: &Db) -> Vec<AuditEvent> {
        let actor = Actor {
            user: Some(UserId(7)),
            user_name: Some("editor".to_owned()),
            credential: CredentialKind::ApiKey,
            credential_id: Some("3".to_owned()),
            address: "192.0.2.7".parse().ok(),
        };
        let created = AuditEvent { actor, ..event(AuditAction::KeyCreated, 1) }
            .with_object(ObjectKind::Key, 12);
        let refused = event(AuditAction::Login, 2)
            .with_outcome(AuditOutcome::Refused)
            .with_detail("no such user");
        let flood = AuditEvent { count: 4_999, ..event(AuditAction::LoginThrottled, 3) };
        let events = vec![created, refused, flood];
        let written = events.clone();
        db.write_blocking(move |tx| written.iter().try_for_each(|one| tx.write_audit(one)))
            .unwrap();
        events
    }

    fn listed(db: &Db, filter: &AuditFilter, limit: usize) -> Vec<ListedEvent> {
        let filter = filter.clone();
        let rows = db.read_blocking(move |tx| tx.list_audit(&filter, limit)).unwrap();
        rows.into_iter().map(|event| ListedEvent { seq: 0, ..event }).collect()
    }

    /// Returns the event as a list shows it, except for its number.
    fn shown(event: &AuditEvent) -> ListedEvent {
        let AuditEvent { at, action, outcome, actor, object, detail, count } = event.clone();
        ListedEvent {
            seq: 0,
            at,
            action: action.as_str().to_owned(),
            outcome: outcome.as_str().to_owned(),
            user: actor.user,
            user_name: actor.user_name,
            credential: actor.credential.as_str().to_owned(),
            credential_id: actor.credential_id,
            address: actor.address.map(|address| address.to_string()),
            object,
            detail,
            count,
        }
    }

    #[test]
    fn events_are_listed_as_they_were_written_the_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let events: Vec<ListedEvent> = scene(&db).iter().map(shown).collect();
        let [created, refused, flood] = events.try_into().unwrap();
        let all = AuditFilter::default();
        assert_eq!(listed(&db, &all, 9), [flood.clone(), refused.clone(), created.clone()]);
        assert_eq!(listed(&db, &all, 1), std::slice::from_ref(&flood));
        let check = |filter: AuditFilter, expected: &[&ListedEvent]| {
            assert_eq!(listed(&db, &filter, 9).iter().collect::<Vec<_>>(), expected, "{filter:?}");
        };
        let all = AuditFilter::default;
        check(AuditFilter { since: Some(at(2)), until: Some(at(3)), ..all() }, &[&refused]);
        for user in ["editor", "7"] {
            check(AuditFilter { user: Some(user.to_owned()), ..all() }, &[&created]);
        }
        check(AuditFilter { action: Some(AuditAction::Login), ..all() }, &[&refused]);
        check(AuditFilter { outcome: Some(AuditOutcome::Done), ..all() }, &[&flood, &created]);
        for (object, found) in [("key/12", &[&created][..]), ("key/", &[&created]), ("key/1", &[])]
        {
            check(AuditFilter { object: Some(object.to_owned()), ..all() }, found);
        }
        for (networks, found) in [("192.0.2.0/24", &[&created][..]), ("198.51.100.1", &[])] {
            check(AuditFilter { addresses: Some(networks.parse().unwrap()), ..all() }, found);
        }
    }

    #[test]
    fn words_of_another_version_are_listed_as_they_stand() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let known = event(AuditAction::KeyCreated, 1);
        let later = ListedEvent {
            action: "key_lent".to_owned(),
            outcome: "delayed".to_owned(),
            credential: "passkey".to_owned(),
            ..shown(&event(AuditAction::KeyCreated, 2))
        };
        let written = known.clone();
        db.write_blocking(move |tx| {
            tx.write_audit(&written)?;
            tx.run_sql(
                "INSERT INTO audit_log (at_ms, action, outcome, credential, count)
                 VALUES (1700000002000, 'key_lent', 'delayed', 'passkey', 1)",
            )
        })
        .unwrap();
        assert_eq!(listed(&db, &AuditFilter::default(), 9), [later, shown(&known)]);
    }

    #[test]
    fn a_transaction_that_fails_leaves_no_event() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        let outcome: DbResult<()> = db.write_blocking(|tx| {
            tx.write_audit(&event(AuditAction::KeyCreated, 1))?;
            Err(DbError::Closed)
        });
        assert!(outcome.is_err());
        assert_eq!(listed(&db, &AuditFilter::default(), 9), []);
    }

    #[test]
    fn old_events_and_those_beyond_the_cap_are_removed_in_portions() {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path()).unwrap();
        db.write_blocking(|tx| {
            (0..10).try_for_each(|second| tx.write_audit(&event(AuditAction::Login, second)))
        })
        .unwrap();
        let sweep = |before: i64, rows_max: i64| {
            db.write_blocking(move |tx| tx.sweep_audit_to(at(before), rows_max, 3)).unwrap()
        };
        assert_eq!((sweep(4, 100), sweep(4, 100), sweep(4, 100)), (3, 1, 0));
        assert_eq!((sweep(0, 2), sweep(0, 2), sweep(0, 2)), (3, 1, 0));
        let left = listed(&db, &AuditFilter::default(), 9);
        assert_eq!(left.iter().map(|event| event.at).collect::<Vec<_>>(), [at(9), at(8)]);
    }
}
