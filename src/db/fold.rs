//! Makes the index of words quicker in the background, where an engine needs that.

use super::DbError;
use super::connection::{Connection, Place, Purpose};
use crate::limits::{DB_FOLD_BLOCK, DB_FOLD_LEAST, DB_FOLD_PAIR_SHARE, DB_FOLD_SHARE};

/// What lists of frequent words are like.
#[derive(Clone, Copy, Debug)]
pub struct FoldSizes {
    /// Numbers of items in a block, 32,768 at most.
    pub block: i64,
    /// The number of the newest item from which on there are lists.
    pub least: i64,
    /// A word is frequent that more than one of so many items has.
    pub share: i64,
    /// There are lists of two words side by side that more than one of so many items has.
    pub pair_share: i64,
}

impl Default for FoldSizes {
    fn default() -> Self {
        Self {
            block: DB_FOLD_BLOCK,
            least: DB_FOLD_LEAST,
            share: DB_FOLD_SHARE,
            pair_share: DB_FOLD_PAIR_SHARE,
        }
    }
}

/// Makes lists of frequent words, on a connection of its own.
pub struct Folder {
    connection: Connection,
    sizes: FoldSizes,
}

impl Folder {
    pub(super) fn open(place: &Place, sizes: FoldSizes) -> Option<Self> {
        match place {
            // FTS5 keeps such lists of all words.
            Place::File(_) | Place::FileToRead(_) => None,
            Place::Server(_) => {
                let connection = Connection::open(place, Purpose::Write).ok()?;
                Some(Self { connection, sizes })
            }
        }
    }

    /// Makes the lists of one block, or tidies up; `false` when there is nothing to do. It takes
    /// about a second and keeps nobody from writing. Blocks.
    ///
    /// Fails when another process does the same, or the index is made anew.
    pub fn step(&mut self) -> Result<bool, DbError> {
        self.connection.fold_words(self.sizes)
    }
}
