//! The in-memory matcher of notifications, which follows the changes in the database.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::{Timestamp, tz::TimeZone};
use uuid::Uuid;

use crate::archive::content::{ItemSelection, RecentSpan};
use crate::runtime::limits::STREAM_EXPIRY;
use crate::storage::database::{
    AccountChange, DbResult, NotificationWatcher, ReadTx, StoredItem, WatchersOf, WriteTx,
};
use crate::storage::search::DocumentAnalysis;
use model::ItemKey;
use model::account::{Agreement, AgreementId, NotificationKind, ROLE_PROVIDER, UserId};
use model::item::Document;
use query::matching::{Interest, InterestCoverage, InterestMatcher, MatchSubject};
use query::{Facet, IndexedDocument};

/// Items of the archive from which the matcher estimates word frequencies.
const MATCHING_LEARNED: usize = 1000;
/// The key of the state row with the time of the service's last heartbeat.
const LAST_ALIVE_NOTE: &str = "notifications-alive";
/// The time without a heartbeat after which the service counts as down for its clients.
pub(super) const DOWNTIME_MIN: std::time::Duration = std::time::Duration::from_secs(30);

/// The properties of a notification that matching needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedNotification {
    pub(super) id: Uuid,
    pub(super) user: UserId,
    pub(super) kind: NotificationKind,
    /// The maximum age of a matching item.
    pub(super) recent: Option<RecentSpan>,
    /// The row of the item log after which items match.
    pub(super) after_seq: i64,
}

/// All notifications, compiled for matching, in one state of the database.
pub(super) struct NotificationMatcher {
    analysis: DocumentAnalysis,
    matcher: InterestMatcher,
    notifications: HashMap<i64, MatchedNotification>,
    by_user: HashMap<UserId, HashSet<i64>>,
    agreements: HashMap<AgreementId, Agreement>,
    /// The agreements by product code.
    by_code: HashMap<String, Vec<AgreementId>>,
    everything: Vec<AgreementId>,
    /// The positions in the notification log and the account log; `None` until everything has been read.
    state: Option<(i64, i64)>,
}

impl NotificationMatcher {
    pub(super) fn new(analysis: DocumentAnalysis) -> Self {
        Self {
            analysis,
            matcher: InterestMatcher::new(),
            notifications: HashMap::new(),
            by_user: HashMap::new(),
            agreements: HashMap::new(),
            by_code: HashMap::new(),
            everything: Vec::new(),
            state: None,
        }
    }

    /// Returns whether there are no notifications.
    pub(super) fn is_empty(&self) -> bool {
        self.notifications.is_empty()
    }

    /// Applies the changes up to the state of `tx`.
    pub(super) fn refresh(&mut self, tx: &ReadTx<'_>) -> DbResult<()> {
        let Some((log_seq, account_seq)) = self.state else { return self.read_all(tx) };
        let (first, last) = tx.notification_log_ends()?;
        // A log that ends before our position belongs to a database that was restored from an older state. A log
        // that begins after our position was trimmed. Both need a full read.
        if first > log_seq + 1 || last < log_seq || tx.account_seq()? < account_seq {
            return self.read_all(tx);
        }
        let (account_seq, changes) = tx.account_changes(account_seq)?;
        let (log_seq, numbers) = tx.notification_changes(log_seq)?;
        let mut users = HashSet::new();
        for change in changes {
            match change {
                AccountChange::Everything => return self.read_all(tx),
                AccountChange::User(user) => drop(users.insert(user)),
                // Credentials decide who may call the API, not which items a notification matches.
                AccountChange::Token(_)
                | AccountChange::Key(_)
                | AccountChange::Session(_)
                | AccountChange::SigningKeys => {}
            }
        }
        // Invalid until the end, so that a failure in between forces a full read.
        self.state = None;
        for number in numbers {
            // Removed first, because a deleted notification is not read again.
            self.remove(number);
            self.read(tx, WatchersOf::Number(number))?;
        }
        for user in users {
            for number in self.by_user.get(&user).cloned().unwrap_or_default() {
                self.remove(number);
            }
            self.read(tx, WatchersOf::User(user))?;
        }
        self.state = Some((log_seq, account_seq));
        Ok(())
    }

    fn read_all(&mut self, tx: &ReadTx<'_>) -> DbResult<()> {
        *self = Self::new(self.analysis.clone());
        let state = (tx.notification_log_ends()?.1, tx.account_seq()?);
        // Word statistics affect only the speed of matching, so one damaged item must not stop it.
        let newest = tx.newest_documents(MATCHING_LEARNED).unwrap_or_else(|cause| {
            tracing::error!("matcher: word statistics cannot be read: {cause}");
            Vec::new()
        });
        for (key, document) in newest {
            if let Ok(document) = Document::from_stored(&document) {
                self.matcher.learn(&IndexedDocument::new(&key, &document, &self.analysis.zone));
            }
        }
        self.read(tx, WatchersOf::Everybody)?;
        self.state = Some(state);
        Ok(())
    }

    fn read(&mut self, tx: &ReadTx<'_>, of: WatchersOf) -> DbResult<()> {
        let mut unknown = BTreeSet::new();
        tx.each_watcher(of, |watcher| {
            let named = &watcher.agreements;
            // Known agreements are current, because a change of an agreement is logged as `Everything`.
            unknown.extend(named.iter().filter(|id| !self.agreements.contains_key(id)));
            self.insert(watcher);
        })?;
        for id in unknown {
            if let Some(agreement) = tx.find_agreement(id)? {
                self.insert_agreement(agreement);
            }
        }
        Ok(())
    }

    fn insert_agreement(&mut self, agreement: Agreement) {
        if agreement.super_agreement {
            self.everything.push(agreement.id);
        }
        for product in &agreement.products {
            self.by_code.entry(product.code.clone()).or_default().push(agreement.id);
        }
        self.agreements.insert(agreement.id, agreement);
    }

    fn insert(&mut self, watcher: NotificationWatcher) {
        let NotificationWatcher { notification, active, roles, agreements } = watcher;
        // The activation of a user is a change of the account, after which its notifications are read again.
        if !active {
            return;
        }
        let saved = &notification.query;
        let text = saved.q.as_deref().unwrap_or_default();
        let codes: Vec<&str> = saved.p.iter().map(String::as_str).collect();
        let parsed = query::parse(text, self.zone()).ok();
        let selection =
            parsed.and_then(|query| ItemSelection::new(query, &codes, saved.agr.clone()));
        let Some(selection) = selection else {
            // The query parsed when it was written, perhaps by an earlier version of the software.
            tracing::error!(notification = %notification.id, "matcher: saved query does not parse");
            return;
        };
        let is_provider = roles.iter().any(|role| role == ROLE_PROVIDER);
        // Agreements that the notification names restrict a provider too. They count only if the user has them.
        let cover = if !selection.agreements.is_empty() {
            let own = agreements.into_iter().filter(|id| selection.agreements.contains(id));
            InterestCoverage::Agreements(own.collect())
        } else if is_provider {
            InterestCoverage::Everything
        } else {
            InterestCoverage::Agreements(agreements)
        };
        let ItemSelection { query, products, products_excluded, agreements: _ } = selection;
        let media_type = notification.media_type;
        let interest = Interest { media_type, query, products, products_excluded, cover };
        self.matcher.insert(notification.number, interest);
        self.by_user.entry(notification.user).or_default().insert(notification.number);
        let matched = MatchedNotification {
            id: notification.id,
            user: notification.user,
            kind: notification.method.kind(),
            recent: saved.tr.as_deref().and_then(|word| word.parse().ok()),
            after_seq: notification.after_seq,
        };
        self.notifications.insert(notification.number, matched);
    }

    fn remove(&mut self, number: i64) {
        let Some(matched) = self.notifications.remove(&number) else { return };
        self.matcher.remove(number);
        if let Some(numbers) = self.by_user.get_mut(&matched.user) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_user.remove(&matched.user);
            }
        }
    }

    /// Returns the notifications that match the item, in the order of their numbers. `document` is the item's
    /// parsed document.
    pub(super) fn matching(
        &mut self,
        key: &ItemKey,
        document: &Document,
        item: &StoredItem,
        now: Timestamp,
    ) -> Vec<(i64, MatchedNotification)> {
        let indexed = self.analysis.index(key, document, &item.assets, &item.rights);
        let agreements = self.covering(&indexed, now);
        let media_type = key.media_type;
        self.matcher.learn(&indexed);
        let item = MatchSubject { media_type, indexed: &indexed, agreements: &agreements };
        let found = self.matcher.matching(&item).into_iter();
        found.filter_map(|number| Some((number, *self.notifications.get(&number)?))).collect()
    }

    /// Returns the agreements that are in force and cover an item.
    fn covering(&self, indexed: &IndexedDocument, now: Timestamp) -> BTreeSet<AgreementId> {
        let codes = indexed.facets[Facet::ProductCode.index()].iter();
        let by_code = codes.filter_map(|code| self.by_code.get(code)).flatten();
        let all = by_code.chain(&self.everything).copied();
        all.filter(|id| self.agreements.get(id).is_some_and(|found| found.is_in_force(now)))
            .collect()
    }

    /// Returns the time zone in which days begin.
    pub(super) fn zone(&self) -> &TimeZone {
        &self.analysis.zone
    }

    /// Returns the number of notifications.
    pub(super) fn len(&self) -> usize {
        self.notifications.len()
    }

    /// Returns the last applied row of the notification log.
    pub(super) fn log_seq(&self) -> i64 {
        self.state.map_or(0, |(log_seq, _)| log_seq)
    }
}

/// Records a heartbeat of the service. After a gap, in which the service was down or could not write, the expiry
/// of all streams is extended by the gap, because clients could not use them.
///
/// A clock that jumps ahead looks like a gap and is treated as one. If the clock was set back, streams whose last
/// use is now in the future count as used now.
///
/// Contract notifications-10.
pub(super) fn record_heartbeat(tx: &WriteTx<'_>, now: Timestamp) -> DbResult<()> {
    let last_heartbeat = tx.find_state(LAST_ALIVE_NOTE)?;
    let last_heartbeat = last_heartbeat.and_then(|text| text.parse::<Timestamp>().ok());
    let Some(last_heartbeat) = last_heartbeat else {
        return tx.write_state(LAST_ALIVE_NOTE, &now.to_string());
    };
    // Streams expire by the clock, so the time in which no client could read does not count.
    if now > last_heartbeat.saturating_add(DOWNTIME_MIN).unwrap_or(Timestamp::MAX) {
        let expiry_ms = i64::try_from(STREAM_EXPIRY.as_millis()).unwrap_or(i64::MAX);
        tx.extend_streams(last_heartbeat, expiry_ms, now)?;
    } else if now < last_heartbeat {
        tx.clamp_stream_use(now)?;
    }
    tx.write_state(LAST_ALIVE_NOTE, &now.to_string())
}
