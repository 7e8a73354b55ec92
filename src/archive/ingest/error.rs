//! Why something is not taken in.

use std::{
    any::Any,
    fmt,
    io::ErrorKind,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::runtime::limits::PANIC_CHARS_MAX;
use crate::runtime::programs::ProgramError;
use crate::storage::blobs::StoreError;
use crate::storage::database::DbError;
use model::item::DocumentError;

/// Why something was not taken in. The text does not name the file; [`IngestFailure`] does.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A file or folder cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// A file has no bytes.
    #[error("is empty")]
    Empty,
    /// A file beyond a limit.
    #[error("has {found} {unit}, more than the limit of {limit} ({setting})")]
    TooLarge {
        /// What it has.
        found: u64,
        /// What it may have.
        limit: u64,
        /// Of what.
        unit: &'static str,
        /// The setting that allows more.
        setting: &'static str,
    },
    /// Reading it takes too long.
    #[error("takes more than {0:?} of work (ingest.file_time_s)")]
    TooSlow(Duration),
    /// Whoever reads it panicked: a mistake of ours or of a library, met by this file.
    #[error("made the reader panic: {0}")]
    Panicked(String),
    /// Not a picture that can be rendered.
    #[error("{0}")]
    Picture(String),
    /// Not a kind of file that is taken in.
    #[error(
        "is not a photograph (.jpg, .jpeg), a graphic (.pdf, .eps), a video (.mp4), a .jsonl file or a \
         folder with such files or item.json"
    )]
    Kind,
    /// A folder's place or a file's name says nothing that we know.
    #[error("{0}")]
    Name(String),
    /// It is not a document of the schema.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// A document that comes alone does not say which item it is.
    #[error("has no uri of the form http://…/media/<mediaType>/<id>: {0}")]
    Uri(String),
    /// The picture is missing.
    #[error("has no NormalHires.jpg")]
    NoPicture,
    /// Another file of the same run has the same id.
    #[error("has the id of {0}, which is another file of this kind; rename one of them")]
    SameId(String),
    /// Several things are wrong, or something with one file of several.
    #[error("{}", list(.0))]
    Refused(Vec<FileRefusal>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A program that reads files could not be run.
    #[error(transparent)]
    Program(ProgramError),
    /// The database failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// Runs `work`, which reads something from outside. A library that panics on it must end neither the
/// process nor the work on others: that becomes a refusal.
pub(super) fn catch_panics<T>(
    work: impl FnOnce() -> Result<T, IngestError>,
) -> Result<T, IngestError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic_message(panic.as_ref());
        tracing::error!("a file made its reader panic: {text}");
        Err(IngestError::Panicked(text))
    })
}

/// What a panic said, cut to what a message can bear.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(PANIC_CHARS_MAX).collect()
}

fn list(refusals: &[FileRefusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl IngestError {
    /// Whether the machine failed and not what came: a later try may go well.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        match self {
            Self::Store(_) | Self::Program(_) | Self::Db(_) => true,
            // What somebody put there, or else the disk.
            Self::Unreadable(cause) => !matches!(
                cause.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::IsADirectory
                    | ErrorKind::NotADirectory
                    | ErrorKind::InvalidData
                    | ErrorKind::InvalidInput
                    | ErrorKind::UnexpectedEof
                    | ErrorKind::FileTooLarge
            ),
            Self::Refused(refusals) => refusals.iter().any(|refusal| refusal.error.is_internal()),
            Self::Empty
            | Self::TooLarge { .. }
            | Self::TooSlow(_)
            | Self::Panicked(_)
            | Self::Picture(_)
            | Self::Kind
            | Self::Name(_)
            | Self::Document(_)
            | Self::Uri(_)
            | Self::NoPicture
            | Self::SameId(_) => false,
        }
    }

    /// What is wrong with each of several files, or with the item as a whole.
    #[must_use]
    pub fn into_refusals(self) -> Vec<FileRefusal> {
        if let Self::Refused(refusals) = self {
            return refusals;
        }
        vec![FileRefusal { file: String::new(), error: self }]
    }

    /// Every single thing that is wrong: where, and what. Where is a file, or the JSON pointer of a
    /// property, or nothing.
    #[must_use]
    pub fn problems(&self) -> Vec<(String, String)> {
        match self {
            Self::Refused(refusals) => {
                let each = |refusal: &FileRefusal| {
                    if let Self::Document(DocumentError::Schema(_)) = &refusal.error {
                        return refusal.error.problems();
                    }
                    vec![(refusal.file.clone(), refusal.error.to_string())]
                };
                refusals.iter().flat_map(each).collect()
            }
            Self::Document(DocumentError::Schema(problems)) => {
                problems.iter().map(|one| (one.path.clone(), one.message.clone())).collect()
            }
            Self::Document(DocumentError::Mismatch { property, .. }) => {
                vec![(format!("/{property}"), self.to_string())]
            }
            Self::Unreadable(_)
            | Self::Empty
            | Self::TooLarge { .. }
            | Self::TooSlow(_)
            | Self::Panicked(_)
            | Self::Picture(_)
            | Self::Kind
            | Self::Name(_)
            | Self::Document(DocumentError::NotJson(_))
            | Self::Uri(_)
            | Self::NoPicture
            | Self::SameId(_)
            | Self::Store(_)
            | Self::Program(_)
            | Self::Db(_) => vec![(String::new(), self.to_string())],
        }
    }
}

/// What is wrong with one of the files that an item came with.
#[derive(Debug)]
pub struct FileRefusal {
    /// The file's name; empty for the item as a whole.
    pub file: String,
    /// What is wrong with it.
    pub error: IngestError,
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            return write!(f, "{}", self.error);
        }
        write!(f, "{} {}", self.file, self.error)
    }
}

/// Something that was not taken in, with its name.
#[derive(Debug)]
pub struct IngestFailure {
    /// The file or folder as it was named or found.
    pub path: PathBuf,
    /// The line in a file of documents; the first is 1.
    pub line: Option<u64>,
    /// Why.
    pub error: IngestError,
}

impl IngestFailure {
    /// A file or folder that was not taken in.
    #[must_use]
    pub fn of(path: &Path, error: IngestError) -> Self {
        Self { path: path.to_owned(), line: None, error }
    }
}

impl fmt::Display for IngestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path.display(), self.error),
            None => write!(f, "{}: {}", self.path.display(), self.error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_refusal_that_names_the_file_and_what_was_said() {
        let offset = 7;
        let outcome: Result<(), _> = catch_panics(|| panic!("offset {offset} is out of range"));
        let failure =
            IngestFailure::of(Path::new("in/harbour.jpg"), outcome.expect_err("it panicked"));
        let expected = "in/harbour.jpg: made the reader panic: offset 7 is out of range";
        assert_eq!(failure.to_string(), expected);
        assert!(!failure.error.is_internal(), "trying again would end the same way");
        assert_eq!(catch_panics(|| Ok(7)).expect("goes well"), 7);
    }
}
