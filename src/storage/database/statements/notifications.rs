//! Stores notifications: the saved queries of users, in the order of numbers.

use jiff::Timestamp;
use uuid::Uuid;

use super::{ReadTx, WriteTx, parse, parse_json, print_json, read_agreements};
use crate::storage::database::engine::{ResultRow, params};
use crate::storage::database::error::DbResult;
use model::MediaType;
use model::account::{
    AgreementId, Notification, NotificationKind, NotificationMethod, SavedQuery, UserId,
};

/// A notification to be stored. Its query has been validated.
#[derive(Clone, Debug)]
pub struct NewNotification {
    /// Its id in the API.
    pub id: Uuid,
    pub user: UserId,
    /// Only items of this media type; `None`: all.
    pub media_type: Option<MediaType>,
    pub title: String,
    pub question: SavedQuery,
    /// The method by which matches are reported.
    pub method: NotificationMethod,
    /// The first run, if it is scheduled.
    pub next: Option<Timestamp>,
}

/// A notification with the properties of its user that determine the visible items.
#[derive(Clone, Debug)]
pub struct NotificationWatcher {
    pub notification: Notification,
    /// True if the user is active.
    pub active: bool,
    pub roles: Vec<String>,
    /// The user's agreements, including expired ones.
    pub agreements: Vec<AgreementId>,
}

/// The columns that [`read_notification`] reads.
const COLUMNS: &str = "number, notification_id, notifications.user_id, media_type, title, q, p, \
     agr, tr, type, email, schedule, timezone, after_seq";

/// The word for all media types.
const ALL: &str = "_all";

fn read_notification(row: &dyn ResultRow) -> DbResult<Notification> {
    let number: i64 = row.get("number")?;
    let what = format!("notification {number}");
    let media_type = match row.text("media_type")? {
        ALL => None,
        text => Some(parse::<MediaType>(&what, text)?),
    };
    let email: Option<String> = row.get("email")?;
    let email = email.unwrap_or_default();
    let method = match parse::<NotificationKind>(&what, row.text("type")?)? {
        NotificationKind::Mobile => NotificationMethod::Mobile,
        NotificationKind::Stream => NotificationMethod::Stream,
        NotificationKind::Email => NotificationMethod::Email { email },
        NotificationKind::ScheduledEmail => NotificationMethod::ScheduledEmail {
            email,
            schedule: row.get::<Option<String>>("schedule")?.unwrap_or_default(),
            timezone: row.get::<Option<String>>("timezone")?.unwrap_or_default(),
        },
    };
    Ok(Notification {
        number,
        id: parse(&what, row.text("notification_id")?)?,
        user: row.get("user_id")?,
        media_type,
        title: row.get("title")?,
        query: SavedQuery {
            q: row.get("q")?,
            p: parse_json(&what, row.text("p")?)?,
            agr: parse_json(&what, row.text("agr")?)?,
            tr: row.get("tr")?,
        },
        method,
        after_seq: row.get("after_seq")?,
    })
}

/// Reads the user of a notification from the columns `active`, `roles` and `agreements`.
fn read_watcher(row: &dyn ResultRow, notification: Notification) -> DbResult<NotificationWatcher> {
    let what = format!("user {}", notification.user.0);
    Ok(NotificationWatcher {
        notification,
        active: row.get("active")?,
        roles: parse_json(&what, row.text("roles")?)?,
        agreements: read_agreements(&what, row)?,
    })
}

/// Returns the columns that may be changed: media type, title, q, p, agr, tr, email, schedule, timezone.
fn columns(new: &NewNotification) -> DbResult<[Option<String>; 9]> {
    let (schedule, timezone) = match &new.method {
        NotificationMethod::ScheduledEmail { schedule, timezone, .. } => {
            (Some(schedule.clone()), Some(timezone.clone()))
        }
        NotificationMethod::Mobile
        | NotificationMethod::Email { .. }
        | NotificationMethod::Stream => (None, None),
    };
    Ok([
        Some(new.media_type.map_or(ALL, MediaType::as_str).to_owned()),
        Some(new.title.clone()),
        new.question.q.clone(),
        Some(print_json("notification", &new.question.p)?),
        Some(print_json("notification", &new.question.agr)?),
        new.question.tr.clone(),
        new.method.email().map(str::to_owned),
        schedule,
        timezone,
    ])
}

impl ReadTx<'_> {
    /// Lists the notifications of `user`, of one media type or of all, oldest first. Omits streams that were
    /// last used before `expired`.
    pub fn list_notifications(
        &self,
        user: UserId,
        media_type: Option<&str>,
        expired: Timestamp,
    ) -> DbResult<Vec<Notification>> {
        // Only streams have a last use. Other notifications never expire.
        let sql = format!(
            "SELECT {COLUMNS} FROM notifications WHERE user_id = ?1
                 AND media_type = coalesce(?2, media_type) AND coalesce(active_ms, ?3) >= ?3
                 ORDER BY number"
        );
        self.tx.list(&sql, params![user, media_type, expired], read_notification)
    }

    /// Finds the notification with this id.
    pub fn find_notification(&self, id: Uuid) -> DbResult<Option<Notification>> {
        let sql = format!("SELECT {COLUMNS} FROM notifications WHERE notification_id = ?1");
        self.tx.find(&sql, params![id], read_notification)
    }

    /// Finds the notification with this number.
    pub fn notification_of_number(&self, number: i64) -> DbResult<Option<Notification>> {
        let sql = format!("SELECT {COLUMNS} FROM notifications WHERE number = ?1");
        self.tx.find(&sql, params![number], read_notification)
    }

    /// Counts the notifications of `user`.
    pub fn count_notifications(&self, user: UserId) -> DbResult<usize> {
        let sql = "SELECT count(*) FROM notifications WHERE user_id = ?1";
        self.tx.count(sql, params![user])
    }

    /// Calls `each` with the notifications of `of`, with their users.
    pub fn each_watcher(
        &self,
        of: WatchersOf,
        mut each: impl FnMut(NotificationWatcher),
    ) -> DbResult<()> {
        // Each form uses `?1`, so that all of them have the same parameter.
        let (of, value) = match of {
            WatchersOf::Everybody => ("?1 = 0", 0),
            WatchersOf::User(user) => ("notifications.user_id = ?1", user.0),
            WatchersOf::Number(number) => ("number = ?1", number),
        };
        let sql = format!(
            "SELECT {COLUMNS}, users.active, users.roles,
                 (SELECT string_agg(CAST(agreement_id AS TEXT), ',') FROM user_agreements
                  WHERE user_agreements.user_id = notifications.user_id) AS agreements
             FROM notifications JOIN users USING (user_id) WHERE {of} ORDER BY number"
        );
        self.tx.each(&sql, params![value], |row| {
            match read_notification(row) {
                Ok(notification) => each(read_watcher(row, notification)?),
                // One damaged row must not prevent the others from receiving items.
                Err(cause) => tracing::error!("damaged notification skipped: {cause}"),
            }
            Ok(())
        })
    }

    /// Lists the numbers of notifications that were written after the row `after` of their log, with the
    /// number of the last row. Some of these notifications may have been removed.
    pub fn notification_changes(&self, after: i64) -> DbResult<(i64, Vec<i64>)> {
        let sql = "SELECT seq, number FROM notification_log WHERE seq > ?1 ORDER BY seq";
        let mut last = after;
        let mut numbers = Vec::new();
        self.tx.each(sql, params![after], |row| {
            last = row.get("seq")?;
            numbers.push(row.get("number")?);
            Ok(())
        })?;
        Ok((last, numbers))
    }

    /// Returns the oldest and the newest row of the log of notifications. Both are 0 if it is empty.
    pub fn notification_log_ends(&self) -> DbResult<(i64, i64)> {
        let sql = "SELECT coalesce(min(seq), 0) AS oldest, coalesce(max(seq), 0) AS newest
             FROM notification_log";
        self.tx.load(sql, params![], |row| Ok((row.get("oldest")?, row.get("newest")?)))
    }
}

/// The notifications to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchersOf {
    Everybody,
    /// The notifications of a user.
    User(UserId),
    /// The notification with that number.
    Number(i64),
}

impl WriteTx<'_> {
    /// Stores a new notification. Returns its number. It matches items that are stored from now on.
    pub fn insert_notification(&self, new: &NewNotification, now: Timestamp) -> DbResult<i64> {
        let kind = new.method.kind();
        // Only streams expire if no client uses them (contract notifications-10).
        let active = (kind == NotificationKind::Stream).then_some(now);
        let [media_type, title, q, p, agr, tr, email, schedule, timezone] = columns(new)?;
        // This statement reads the end of the log, so that only later rows count as later items.
        let sql =
            "INSERT INTO notifications (notification_id, user_id, type, media_type, title, q,
                 p, agr, tr, email, schedule, timezone, created_ms, after_seq, active_ms,
                 next_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13,
                 (SELECT coalesce(max(seq), 0) FROM item_log), ?14, ?15)
             RETURNING number";
        let values = params![
            new.id, new.user, kind, media_type, title, q, p, agr, tr, email, schedule, timezone,
            now, active, new.next,
        ];
        self.tx.load_value(sql, values)
    }

    /// Replaces the content of the notification `new.id` of that user and kind, and restarts the inactivity
    /// period of a stream. Returns whether it exists. Its media type and a due run are preserved.
    pub fn replace_notification(&self, new: &NewNotification, now: Timestamp) -> DbResult<bool> {
        let kind = new.method.kind();
        let [_, title, q, p, agr, tr, email, schedule, timezone] = columns(new)?;
        // A due run stays, because the windows of mails must adjoin without gaps (contract notifications-17).
        let sql = "UPDATE notifications SET title = ?1, q = ?2, p = ?3, agr = ?4, tr = ?5,
                 email = ?6, schedule = ?7, timezone = ?8,
                 next_ms = CASE WHEN next_ms <= ?10 THEN next_ms ELSE ?9 END,
                 active_ms = CASE WHEN active_ms IS NULL THEN NULL ELSE ?10 END
             WHERE notification_id = ?11 AND user_id = ?12 AND type = ?13";
        let values = params![
            title, q, p, agr, tr, email, schedule, timezone, new.next, now, new.id, new.user,
            kind,
        ];
        self.tx.changes(sql, values)
    }

    /// Removes the notification with its queue. Returns whether there was one. With `user`, removes it only
    /// if it belongs to that user.
    pub fn delete_notification(&self, id: Uuid, user: Option<UserId>) -> DbResult<bool> {
        let sql = "DELETE FROM notifications WHERE notification_id = ?1
             AND user_id = coalesce(?2, user_id)";
        self.tx.changes(sql, params![id, user])
    }

    /// Removes streams that were last used before `expired`, at most `limit`. Returns their number.
    pub fn sweep_streams(&self, expired: Timestamp, limit: usize) -> DbResult<usize> {
        let sql = "DELETE FROM notifications WHERE number IN
                 (SELECT number FROM notifications WHERE active_ms < ?1 LIMIT ?2)";
        self.tx.execute(sql, params![expired, limit])
    }

    /// Sets the last use of every stream that had not expired at `last_alive`, the end of the last run of the
    /// service, to `now`. Clients could not call while the service was down.
    pub fn extend_streams(
        &self,
        last_alive: Timestamp,
        expiry_ms: i64,
        now: Timestamp,
    ) -> DbResult<()> {
        let sql = "UPDATE notifications SET active_ms = ?1 WHERE active_ms + ?2 >= ?3";
        self.tx.run(sql, params![now, expiry_ms, last_alive])
    }

    /// Sets the last use of streams to `now` if it is in the future.
    pub fn clamp_stream_use(&self, now: Timestamp) -> DbResult<()> {
        // A clock that ran ahead has dated them, and they would outlive their expiry.
        let sql = "UPDATE notifications SET active_ms = ?1 WHERE active_ms > ?1";
        self.tx.run(sql, params![now])
    }

    /// Removes rows of the notifications' log before `seq`, which every running process has read.
    pub fn sweep_notification_log(&self, seq: i64) -> DbResult<()> {
        let sql = "DELETE FROM notification_log WHERE seq < ?1";
        self.tx.run(sql, params![seq])
    }
}
