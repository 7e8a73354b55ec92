//! The progress of the background job that makes the standard renditions of every picture.

use serde::{Deserialize, Serialize};

use crate::media::MediaSettings;
use crate::runtime::config::Config;
use crate::runtime::error::Result;
use crate::storage::database::{Db, DbError, ReadTx, WriteTx};

/// Key of the progress in the table `state`.
const STATE_KEY: &str = "standard-sets";

/// The progress of the job, in the order of the items' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct StandardProgress {
    /// The recipe of the standard renditions; the job starts over after a change of the recipe.
    recipe: String,
    /// The number of the last item that was visited.
    pub(super) at: i64,
    /// Items whose standard renditions could not be made.
    pub(super) failed: u64,
}

/// The progress of the job, in numbers of items with pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StandardReport {
    /// Items whose standard renditions are stored.
    pub made: u64,
    /// Items whose standard renditions could not be made.
    pub failed: u64,
    /// Items that the job has not visited yet.
    pub to_go: u64,
}

impl StandardProgress {
    /// Loads the progress; starts over if the renditions were made with a different recipe.
    pub(super) fn load(tx: &ReadTx<'_>, recipe: String) -> std::result::Result<Self, DbError> {
        Ok(Self::parse(tx.find_state(STATE_KEY)?.as_deref(), recipe))
    }

    fn parse(text: Option<&str>, recipe: String) -> Self {
        let found = text.and_then(|text| serde_json::from_str::<Self>(text).ok());
        let found = found.filter(|found| found.recipe == recipe);
        found.unwrap_or(Self { recipe, ..Self::default() })
    }

    /// Stores the progress in the database.
    pub(super) fn save(&self, tx: &WriteTx<'_>) -> std::result::Result<(), DbError> {
        // A struct of numbers and a text cannot fail to serialize.
        tx.write_state(STATE_KEY, &serde_json::to_string(self).unwrap_or_default())
    }
}

impl StandardReport {
    /// Counts the items that the job has visited; `None` if `media.warm` disables the job.
    pub(super) fn load(db: &Db, config: &Config) -> Result<Option<Self>> {
        if !config.media.warm {
            return Ok(None);
        }
        let recipe = MediaSettings::from_config(config)?.standard_recipe();
        let report = db.read_blocking(move |tx| {
            let StandardProgress { at, failed, .. } = StandardProgress::load(tx, recipe)?;
            let visited = tx.count_items_with_pictures(0, at)?;
            let to_go = tx.count_items_with_pictures(at, i64::MAX)?;
            // A failed item may have been replaced since, and only its new version is counted in `visited`.
            let failed = failed.min(visited);
            Ok(Self { made: visited - failed, failed, to_go })
        })?;
        Ok(Some(report))
    }
}

/// Forgets the progress, so that the job visits every item again: a restored archive has no derived files.
pub fn forget_standard_progress(db: &Db) -> Result<()> {
    Ok(db.write_blocking(|tx| tx.remove_state(STATE_KEY))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_settings_begin_again() {
        let stored = r#"{"recipe":"a","at":7,"failed":2}"#;
        let found = StandardProgress::parse(Some(stored), "a".to_owned());
        assert_eq!(found, StandardProgress { recipe: "a".to_owned(), at: 7, failed: 2 });
        assert_eq!(serde_json::to_string(&found).unwrap(), stored);
        for text in [None, Some("damaged"), Some(stored)] {
            let new = StandardProgress::parse(text, "b".to_owned());
            assert_eq!(new, StandardProgress { recipe: "b".to_owned(), at: 0, failed: 0 });
        }
    }
}
