//! What the matcher knows of notifications and their users, kept in step with the database.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::{Timestamp, tz::TimeZone};
use uuid::Uuid;

use crate::archive::content::{ItemSelection, RecentSpan};
use crate::runtime::limits::{MATCHING_LEARNED, STREAM_EXPIRY};
use crate::storage::database::{
    AccountChange, DbError, NotificationWatcher, ReadTx, WatchersOf, WriteTx,
};
use model::ItemKey;
use model::account::{Agreement, AgreementId, NotificationKind, ROLE_PROVIDER, UserId};
use model::item::Document;
use query::matching::{Interest, InterestCoverage, InterestMatcher, MatchSubject};
use query::{Facet, IndexedDocument};

/// Name of the note of the service's last sign of life.
const LAST_ALIVE_NOTE: &str = "notifications-alive";
/// Time without a sign of life after which the service was not there for its clients.
pub(super) const DOWNTIME_MIN: std::time::Duration = std::time::Duration::from_secs(30);

/// What is known of a notification that items are matched with.
#[derive(Clone, Copy, Debug)]
pub(super) struct MatchedNotification {
    pub(super) id: Uuid,
    pub(super) user: UserId,
    pub(super) kind: NotificationKind,
    /// How old an item may be.
    pub(super) recent: Option<RecentSpan>,
    /// The row of the item log behind which items count.
    pub(super) after_seq: i64,
}

/// What of an agreement decides which items it covers.
struct CoverageTerms {
    everything: bool,
    codes: Vec<String>,
    expires: Option<Timestamp>,
}

impl From<Agreement> for CoverageTerms {
    fn from(agreement: Agreement) -> Self {
        Self {
            everything: agreement.super_agreement,
            codes: agreement.products.into_iter().map(|product| product.code).collect(),
            expires: agreement.expires,
        }
    }
}

/// The notifications in memory, as of a state of the database.
pub(super) struct NotificationMatcher {
    zone: TimeZone,
    matcher: InterestMatcher,
    known: HashMap<i64, MatchedNotification>,
    by_user: HashMap<UserId, HashSet<i64>>,
    agreements: HashMap<AgreementId, CoverageTerms>,
    /// The agreements that cover a product, and those that cover everything.
    by_code: HashMap<String, Vec<AgreementId>>,
    everything: Vec<AgreementId>,
    /// Rows of the two logs that were taken in last; nothing before all was read.
    state: Option<(i64, i64)>,
}

impl NotificationMatcher {
    pub(super) fn new(zone: TimeZone) -> Self {
        Self {
            zone,
            matcher: InterestMatcher::new(),
            known: HashMap::new(),
            by_user: HashMap::new(),
            agreements: HashMap::new(),
            by_code: HashMap::new(),
            everything: Vec::new(),
            state: None,
        }
    }

    /// Whether there is nothing to match items with.
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Takes in what changed up to the state of `tx`.
    pub(super) fn refresh(&mut self, tx: &ReadTx<'_>) -> Result<(), DbError> {
        let Some((log_seq, account_seq)) = self.state else { return self.read_all(tx) };
        let (first, last) = tx.notification_log_ends()?;
        // Neither log loses its newest row but with a database that lost what was read.
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
                AccountChange::Token(_)
                | AccountChange::Key(_)
                | AccountChange::Session(_)
                | AccountChange::SigningKeys => {}
            }
        }
        // Until the end, so that a failure in between leaves nothing that is believed.
        self.state = None;
        for number in numbers {
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

    fn read_all(&mut self, tx: &ReadTx<'_>) -> Result<(), DbError> {
        *self = Self::new(self.zone.clone());
        let state = (tx.notification_log_ends()?.1, tx.account_seq()?);
        // What is learned makes matching fast and not right: one damaged item must not end it.
        let newest = tx.newest_documents(MATCHING_LEARNED).unwrap_or_else(|cause| {
            tracing::error!("which words are rare is not known: {cause}");
            Vec::new()
        });
        for (key, document) in newest {
            if let Ok(document) = Document::from_stored(&document) {
                self.matcher.learn(&IndexedDocument::of(&key, &document, &self.zone));
            }
        }
        self.read(tx, WatchersOf::Everybody)?;
        self.state = Some(state);
        Ok(())
    }

    fn read(&mut self, tx: &ReadTx<'_>, of: WatchersOf) -> Result<(), DbError> {
        let mut unknown = BTreeSet::new();
        tx.each_watcher(of, |watcher| {
            let named = &watcher.agreements;
            unknown.extend(named.iter().filter(|id| !self.agreements.contains_key(id)));
            self.insert(watcher);
        })?;
        for id in unknown {
            if let Some(agreement) = tx.find_agreement(id)? {
                self.insert_agreement(id, agreement.into());
            }
        }
        Ok(())
    }

    fn insert_agreement(&mut self, id: AgreementId, terms: CoverageTerms) {
        if terms.everything {
            self.everything.push(id);
        }
        for code in &terms.codes {
            self.by_code.entry(code.clone()).or_default().push(id);
        }
        self.agreements.insert(id, terms);
    }

    fn insert(&mut self, watcher: NotificationWatcher) {
        let NotificationWatcher { notification, active, roles, agreements } = watcher;
        if !active {
            return;
        }
        let question = &notification.query;
        let text = question.q.as_deref().unwrap_or_default();
        let codes: Vec<&str> = question.p.iter().map(String::as_str).collect();
        let parsed = query::parse(text, &self.zone).ok();
        let selection =
            parsed.and_then(|query| ItemSelection::new(query, &codes, question.agr.clone()));
        let Some(selection) = selection else {
            // It parsed when it was written, by an earlier version perhaps.
            tracing::error!(notification = %notification.id, "a notification cannot be read");
            return;
        };
        let provider = roles.iter().any(|role| role == ROLE_PROVIDER);
        let cover = match selection.agreements.is_empty() {
            true if provider => InterestCoverage::Everything,
            true => InterestCoverage::Agreements(agreements),
            false => {
                let own = agreements.into_iter();
                InterestCoverage::Agreements(
                    own.filter(|id| selection.agreements.contains(id)).collect(),
                )
            }
        };
        let ItemSelection { query, products, products_excluded, agreements: _ } = selection;
        let media_type = notification.media_type;
        let interest = Interest { media_type, query, products, products_excluded, cover };
        self.matcher.insert(notification.number, interest);
        self.by_user.entry(notification.user).or_default().insert(notification.number);
        let known = MatchedNotification {
            id: notification.id,
            user: notification.user,
            kind: notification.method.kind(),
            recent: question.tr.as_deref().and_then(RecentSpan::find),
            after_seq: notification.after_seq,
        };
        self.known.insert(notification.number, known);
    }

    fn remove(&mut self, number: i64) {
        let Some(known) = self.known.remove(&number) else { return };
        self.matcher.remove(number);
        if let Some(numbers) = self.by_user.get_mut(&known.user) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.by_user.remove(&known.user);
            }
        }
    }

    /// The notifications that want the item, in the order of their numbers.
    pub(super) fn matching(
        &mut self,
        key: &ItemKey,
        document: &Document,
        now: Timestamp,
    ) -> Vec<(i64, MatchedNotification)> {
        let indexed = IndexedDocument::of(key, document, &self.zone);
        let agreements = self.covering(&indexed, now);
        let media_type = key.media_type;
        self.matcher.learn(&indexed);
        let item = MatchSubject { media_type, indexed: &indexed, agreements: &agreements };
        let found = self.matcher.matching(&item).into_iter();
        found.filter_map(|number| Some((number, *self.known.get(&number)?))).collect()
    }

    /// The agreements in force that cover an item.
    fn covering(&self, indexed: &IndexedDocument, now: Timestamp) -> BTreeSet<AgreementId> {
        let codes = indexed.facets[Facet::ProductCode.index()].iter();
        let by_code = codes.filter_map(|code| self.by_code.get(code)).flatten();
        let all = by_code.chain(&self.everything).copied();
        all.filter(|id| self.is_in_force(*id, now)).collect()
    }

    fn is_in_force(&self, id: AgreementId, now: Timestamp) -> bool {
        let terms = self.agreements.get(&id);
        terms.is_some_and(|terms| terms.expires.is_none_or(|expires| now < expires))
    }

    /// Where days begin.
    pub(super) fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// How many notifications items are matched with.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The row of the notifications' log that was taken in last.
    pub(super) fn log_seq(&self) -> i64 {
        self.state.map_or(0, |(log_seq, _)| log_seq)
    }
}

/// Notes that the service lives. Where it did not for a while, because it was down or could not write,
/// clients could not use their streams, so that time counts for none of them.
///
/// A clock that jumps ahead looks the same and is the same to them; where it is set back, streams
/// that were used in what is now the future count as used now.
///
/// Contract notifications-10.
pub(super) fn record_heartbeat(tx: &WriteTx<'_>, now: Timestamp) -> Result<(), DbError> {
    let alive = tx.as_read().find_state(LAST_ALIVE_NOTE)?;
    let alive = alive.and_then(|text| text.parse::<Timestamp>().ok());
    let Some(alive) = alive else { return tx.write_state(LAST_ALIVE_NOTE, &now.to_string()) };
    if now > alive.saturating_add(DOWNTIME_MIN).unwrap_or(Timestamp::MAX) {
        let expiry_ms = i64::try_from(STREAM_EXPIRY.as_millis()).unwrap_or(i64::MAX);
        tx.extend_streams(alive, expiry_ms, now)?;
    } else if now < alive {
        tx.clamp_stream_use(now)?;
    }
    tx.write_state(LAST_ALIVE_NOTE, &now.to_string())
}
