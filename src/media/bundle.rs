//! Archives of several items, with the files of each item's own archive side by side.
//!
//! The contents are decided before anything is rendered or bought. An item that the caller cannot have is left
//! out, and a text in the archive says why. No order is placed for it. Prepaid downloads are assigned to the items
//! in their order, until they are used up.

use std::{collections::HashSet, sync::Arc};

use super::answer::{ArchiveMember, FileContent, Sale};
use super::cache_keys::CacheKeys;
use super::collect::{FileSelection, defaults, source_items};
use super::{CatalogEntry, FileAnswer, Media, MediaCaller, facts};
use crate::access::orders::CoverageDecision;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::BUNDLE_ITEMS_MAX;
use model::media_url::DocumentExtension;
use model::{ContentHash, ItemKey};

/// Files of one archive; an article with its pictures has about ten.
const BUNDLE_FILES_MAX: usize = 5000;
/// The text file that lists the items that were left out. No file of an item has this name.
const LEFT_OUT: &str = "left-out.txt";

/// The reason for an item that is not visible to the caller. It is the same for embargo, withdrawal and a
/// missing agreement, so that it does not reveal which of them applies.
const NOT_AVAILABLE: &str = "It is not available to you";

/// The naming of the files in an archive of several items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleNaming {
    /// The names that each item's own archive uses.
    ById,
    /// The same names with the position of the item as a prefix, so that folders show the order: `01_`, `02_`.
    ByPosition,
}

/// The names of an archive of several items and of the files in it.
#[derive(Clone, Copy, Debug)]
pub struct BundleNames<'a> {
    /// The name of the archive, without its extension.
    pub archive: &'a str,
    pub files: BundleNaming,
}

impl BundleNaming {
    /// Returns the prefix for the file names of the item at `position`, counted from 0, of `count` items.
    fn prefix(self, position: usize, count: usize) -> String {
        match self {
            Self::ById => String::new(),
            Self::ByPosition => {
                let digits = count.to_string().len().max(2);
                format!("{:0digits$}_", position + 1)
            }
        }
    }
}

/// An item with its files and the purchase that they require.
pub(super) struct BundleItem {
    entry: Arc<CatalogEntry>,
    members: Vec<ArchiveMember>,
    sale: Sale,
}

/// The kind of reason for leaving an item out of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExclusionCause {
    /// The item is not visible to the caller.
    Unavailable,
    /// There is nothing to download.
    NoFiles,
    /// No agreement of the caller delivers it now.
    Agreement,
    /// The archive is full.
    Limit,
}

/// The reason why an item is not part of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    pub(super) cause: ExclusionCause,
    /// A sentence for the list of excluded items.
    pub(super) reason: String,
}

/// The decision whether an item is part of the archive, with its files or the reason against it.
pub(super) enum BundleOutcome {
    Included(BundleItem),
    Excluded(Exclusion),
}

impl BundleOutcome {
    fn excluded(cause: ExclusionCause, reason: impl Into<String>) -> Self {
        Self::Excluded(Exclusion { cause, reason: reason.into() })
    }

    /// Lists the other items that are bought with this one: pictures of a text.
    pub(super) fn bundled(&self) -> Vec<&Arc<CatalogEntry>> {
        match self {
            Self::Included(BundleItem { entry, sale, .. }) => {
                let sold = sale.entries.iter().map(|(sold, _)| sold);
                sold.filter(|sold| sold.key != entry.key).collect()
            }
            Self::Excluded(_) => Vec::new(),
        }
    }

    /// Turns an error into the reason for leaving an item out, if the caller may know it.
    ///
    /// Any other error is a fault, not a refusal, and is returned.
    fn exclude(cause: Error) -> Result<Self> {
        if cause.kind() == ErrorKind::Forbidden {
            return Ok(Self::excluded(ExclusionCause::Agreement, cause.message()));
        }
        // The item is visible, so the missing files may be named.
        if cause.kind() == ErrorKind::NotFound {
            return Ok(Self::excluded(ExclusionCause::NoFiles, "There is nothing to download"));
        }
        Err(cause)
    }
}

impl Media {
    /// Builds the archive of the items in `keys` that `caller` may have.
    ///
    /// The sale is all-or-nothing: the purchase fails with `agreement_required` or `order_required` if something
    /// has changed since this call. A new call then builds the archive of the remaining items.
    ///
    /// Fails with `agreement_required` if nothing can be delivered.
    pub async fn bundle(
        &self,
        keys: &[ItemKey],
        names: BundleNames<'_>,
        caller: MediaCaller<'_>,
    ) -> Result<FileAnswer> {
        caller.require_principal()?;
        let naming = names.files;
        let found = self.find_readable(keys, caller).await?;
        let mut outcomes = Vec::new();
        for entry in found {
            // One after the other, because the limits count the items already selected.
            outcomes.push(self.select_item(entry, &outcomes, caller).await?);
        }
        // The items that compete for the prepaid downloads are known only now.
        self.enforce_prepaid_limits(&mut outcomes, caller).await?;
        let mut members = Vec::new();
        // No file of an item may replace the list of excluded items.
        let mut used_names = HashSet::from([LEFT_OUT.to_owned()]);
        let mut sources = Vec::new();
        let mut sale = Sale { all_or_nothing: true, ..Sale::default() };
        let mut left_out = String::new();
        for (position, (key, outcome)) in keys.iter().zip(outcomes).enumerate() {
            match outcome {
                BundleOutcome::Excluded(Exclusion { reason, .. }) => {
                    left_out.push_str(&format!("{}: {reason}\n", self.links().item(key)));
                }
                BundleOutcome::Included(item) => {
                    sources.extend(source_items(&item.entry, &item.members));
                    let prefix = naming.prefix(position, keys.len());
                    let files = renamed(key, item.members, &mut used_names).into_iter();
                    members.extend(files.map(|file| file.prefixed(&prefix)));
                    sale.extend(item.sale);
                }
            }
        }
        // Nothing to sell means nothing to deliver, and the reasons become the error.
        let Some(latest) = sale.entries.iter().map(|(entry, _)| entry.stored).max() else {
            let message = if keys.is_empty() {
                "There are no items to download".to_owned()
            } else {
                format!("None of the items can be downloaded. {left_out}")
            };
            return Err(Error::forbidden("agreement_required", message.trim_end()));
        };
        // The archive contains several items, so a purge of any of them has to reach it.
        let sold = sale.entries.iter().map(|(entry, _)| &entry.key);
        let first = sold.clone().next().unwrap_or(&keys[0]);
        let keys = CacheKeys::new(first, sold);
        if !left_out.is_empty() {
            // Not the current time: the same request returns the same bytes (contract collections-12).
            members.push(ArchiveMember::text(LEFT_OUT, left_out, latest));
        }
        // The manifest names each file by its content, so the tag is known before the archive is built.
        let lines: String = members.iter().map(ArchiveMember::manifest_line).collect();
        Ok(FileAnswer {
            mime: DocumentExtension::Zip.mime_type(),
            etag: ContentHash::new(lines.as_bytes()).short(),
            // The contents also depend on agreements, whose changes have no date.
            modified: None,
            sale,
            file_name: Some(format!("{}.zip", names.archive)),
            keys,
            content: FileContent::Archive(members),
            source_items: sources,
        })
    }

    /// Decides on the item after the items in `decided`; `None` is an item that is not visible to the caller.
    pub(super) async fn select_item(
        &self,
        entry: Option<Arc<CatalogEntry>>,
        decided: &[BundleOutcome],
        caller: MediaCaller<'_>,
    ) -> Result<BundleOutcome> {
        let mut items = 0;
        let mut count = 0;
        for outcome in decided {
            if let BundleOutcome::Included(item) = outcome {
                items += 1;
                count += item.members.len();
            }
        }
        // Checked before anything is listed, so that a long collection costs no more than a full archive.
        if items >= BUNDLE_ITEMS_MAX {
            let reason = format!("An archive has {BUNDLE_ITEMS_MAX} items at most");
            return Ok(BundleOutcome::excluded(ExclusionCause::Limit, reason));
        }
        let Some(entry) = entry else {
            return Ok(BundleOutcome::excluded(ExclusionCause::Unavailable, NOT_AVAILABLE));
        };
        let media_type = entry.key.media_type;
        if defaults(media_type).is_none() {
            let reason = format!("Items of the type {media_type} have no files");
            return Ok(BundleOutcome::excluded(ExclusionCause::NoFiles, reason));
        }
        let (members, sale) = match self.list(&entry, FileSelection::Default, caller).await {
            Ok(listed) => listed,
            Err(cause) => return BundleOutcome::exclude(cause),
        };
        // No order is placed for an item that needs one (contract collections-12).
        if let Some(refusal) = sale.refusal() {
            return BundleOutcome::exclude(refusal);
        }
        if count + members.len() > BUNDLE_FILES_MAX {
            let reason = format!("An archive has {BUNDLE_FILES_MAX} files at most");
            return Ok(BundleOutcome::excluded(ExclusionCause::Limit, reason));
        }
        Ok(BundleOutcome::Included(BundleItem { entry, members, sale }))
    }

    /// Loads the items `keys` in their order. An item is `None` unless a search of `caller` finds it or one of the
    /// caller's orders still delivers it. Reads the database once for all items that no agreement covers.
    ///
    /// The document of a photograph is public, but that makes no difference here: the reason for leaving an item
    /// out must not reveal an embargo.
    pub(super) async fn find_readable(
        &self,
        keys: &[ItemKey],
        caller: MediaCaller<'_>,
    ) -> Result<Vec<Option<Arc<CatalogEntry>>>> {
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            match self.item(key, caller.principal, caller.now).await {
                Ok(entry) => found.push(Some(entry)),
                Err(cause) if cause.kind() == ErrorKind::NotFound => found.push(None),
                Err(cause) => return Err(cause),
            }
        }
        // The answers come in the order of the found items, and are matched to them below.
        let items: Vec<_> = found.iter().flatten().map(|entry| facts(entry)).collect();
        let mut may_read = self
            .inner
            .orders
            .may_read(caller.require_principal()?, &items, caller.now)
            .await?
            .into_iter();
        Ok(found
            .into_iter()
            .map(|entry| entry.filter(|_| may_read.next() == Some(true)))
            .collect())
    }

    /// Leaves out the items that exceed the prepaid downloads. Items are counted in their order.
    async fn enforce_prepaid_limits(
        &self,
        outcomes: &mut [BundleOutcome],
        caller: MediaCaller<'_>,
    ) -> Result<()> {
        let entries: Vec<Arc<CatalogEntry>> = outcomes
            .iter()
            .filter_map(|outcome| match outcome {
                BundleOutcome::Included(item) => Some(Arc::clone(&item.entry)),
                BundleOutcome::Excluded(_) => None,
            })
            .collect();
        let items: Vec<_> = entries.iter().map(|entry| facts(entry)).collect();
        let decisions = self.inner.orders.check_all(caller.buyer()?, &items).await?;
        let mut decisions = decisions.into_iter();
        for outcome in outcomes {
            // Excluded items were not checked, so the list has no decision for them.
            if matches!(outcome, BundleOutcome::Excluded(_)) {
                continue;
            }
            let decision = decisions.next().unwrap_or_else(|| Err(Error::internal("no decision")));
            if let Err(refusal) = decision.and_then(CoverageDecision::require_delivery) {
                *outcome = BundleOutcome::exclude(refusal)?;
            }
        }
        Ok(())
    }
}

impl Sale {
    /// Adds the purchases of `other`, each item once.
    fn extend(&mut self, other: Self) {
        for (entry, decision) in other.entries {
            // An item of the collection may also be associated with a different item.
            if !self.entries.iter().any(|(existing, _)| existing.key == entry.key) {
                self.entries.push((entry, decision));
            }
        }
    }
}

/// Renames the files of an item so that their names differ from all earlier names, ignoring case. Ids are unique
/// only within their media type.
fn renamed(
    key: &ItemKey,
    members: Vec<ArchiveMember>,
    names: &mut HashSet<String>,
) -> Vec<ArchiveMember> {
    let mut prefix = String::new();
    let mut attempt = 1_usize;
    // All files of an item get the same prefix, so that a folder shows them next to each other.
    while members.iter().any(|member| names.contains(&folded_name(member, &prefix))) {
        prefix = match attempt {
            1 => format!("{}_", key.media_type),
            attempt => format!("{}_{attempt}_", key.media_type),
        };
        attempt += 1;
    }
    names.extend(members.iter().map(|member| folded_name(member, &prefix)));
    members.into_iter().map(|member| member.prefixed(&prefix)).collect()
}

/// Returns the name of the file with `prefix`, in lower case for comparison.
fn folded_name(member: &ArchiveMember, prefix: &str) -> String {
    format!("{prefix}{}", member.name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn the_place_of_an_item_has_as_many_digits_as_the_last_one() {
        assert_eq!(BundleNaming::ByPosition.prefix(0, 3), "01_");
        assert_eq!(BundleNaming::ByPosition.prefix(8, 200), "009_");
        assert_eq!(BundleNaming::ById.prefix(8, 200), "");
    }

    #[test]
    fn files_of_items_with_one_id_have_names_of_their_own() {
        let mut names = HashSet::new();
        let mut add = |key: &str, files: &[&str]| {
            let key: ItemKey = key.parse().unwrap();
            let member =
                |name: &&str| ArchiveMember::text(name, String::new(), Timestamp::UNIX_EPOCH);
            let members = files.iter().map(member).collect();
            let renamed = renamed(&key, members, &mut names);
            renamed.iter().map(|member| member.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(add("image/a", &["a.jpg", "a.json"]), ["a.jpg", "a.json"]);
        assert_eq!(add("image/b", &["b.jpg"]), ["b.jpg"]);
        assert_eq!(add("text/a", &["a.json", "a-x.txt"]), ["text_a.json", "text_a-x.txt"]);
        assert_eq!(add("image/A", &["A.jpg", "A.json"]), ["image_A.jpg", "image_A.json"]);
        assert_eq!(add("image/a", &["a.json"]), ["image_2_a.json"]);
    }
}
