//! The reasons why an item is not ingested.

use std::any::Any;
use std::fmt;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::runtime::programs::ProgramError;
use crate::storage::blobs::StoreError;
use crate::storage::database::DbError;
use model::item::DocumentError;

/// Characters of a panic message that an error repeats.
const PANIC_CHARS_MAX: usize = 200;

/// The reason why a file or item was not ingested. The text does not name the file; [`IngestFailure`] does.
#[derive(Debug, thiserror::Error)]
pub enum IngestError {
    /// A file or folder cannot be read.
    #[error("cannot be read: {0}")]
    Unreadable(#[source] std::io::Error),
    /// A file has no bytes.
    #[error("is empty")]
    Empty,
    /// A file exceeds a limit.
    #[error("has {found} {unit}, more than the limit of {limit} ({setting})")]
    TooLarge {
        found: u64,
        limit: u64,
        /// The unit of both numbers.
        unit: &'static str,
        /// The setting that defines the limit.
        setting: &'static str,
    },
    /// Reading the file exceeds the time limit.
    #[error("needs more than {0:?} of processing time (ingest.file_time_s)")]
    TooSlow(Duration),
    /// The reader panicked, because of a bug here or in a library that this file triggers.
    #[error("caused a panic of the reader: {0}")]
    Panicked(String),
    /// The file is not a picture that can be rendered.
    #[error("{0}")]
    Picture(String),
    /// Files of this kind are not ingested.
    #[error(
        "is not a photograph (.jpg, .jpeg), a graphic (.pdf, .eps), a video (.mp4), a .jsonl file or a \
         folder with such files or item.json"
    )]
    Kind,
    /// The path of a folder or the name of a file is not recognized.
    #[error("{0}")]
    Name(String),
    /// The text is not a valid document of the schema.
    #[error("{0}")]
    Document(#[from] DocumentError),
    /// A document without a folder does not identify its item.
    #[error("has no uri of the form http://…/media/<mediaType>/<id>: {0}")]
    Uri(String),
    /// A source's rights statement cannot be parsed.
    #[error("{place}: {why}")]
    Rights {
        /// The file of the statement, or the part of the upload.
        place: String,
        why: String,
    },
    /// The picture is missing.
    #[error("has no NormalHires.jpg")]
    NoPicture,
    /// A different file of the same run has the same id.
    #[error("has the id of {0}, which is another file of this kind; rename one of them")]
    SameId(String),
    /// There are several problems, or a problem in one of several files.
    #[error("{}", list(.0))]
    Refused(Vec<FileRefusal>),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A program that reads files could not be run.
    #[error(transparent)]
    Program(ProgramError),
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The result of a step of ingest.
pub type IngestResult<T> = Result<T, IngestError>;

/// Runs `work`, which reads untrusted input. A panic in a library becomes a refusal, because it must not end the
/// process or the work on other files.
pub(super) fn catch_panics<T>(work: impl FnOnce() -> IngestResult<T>) -> IngestResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic_message(panic.as_ref());
        tracing::error!("panic while an input file was read: {text}");
        Err(IngestError::Panicked(text))
    })
}

/// Returns the message of a panic, truncated to a length that fits into an error message.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    // The message may quote bytes of the file, which must not forge a line in the log.
    text.chars().filter(|c| !c.is_control()).take(PANIC_CHARS_MAX).collect()
}

fn list(refusals: &[FileRefusal]) -> String {
    refusals.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl IngestError {
    /// Fails if `found`, a number of `unit`, exceeds the limit that `setting` defines.
    pub(super) fn check_limit(
        found: u64,
        limit: u64,
        unit: &'static str,
        setting: &'static str,
    ) -> Result<(), Self> {
        if found > limit { Err(Self::TooLarge { found, limit, unit, setting }) } else { Ok(()) }
    }

    /// Returns whether the machine failed and not the input, so that a retry may succeed.
    pub fn is_internal(&self) -> bool {
        if let Self::Refused(refusals) = self {
            return refusals.iter().any(|refusal| refusal.error.is_internal());
        }
        if let Self::Unreadable(cause) = self {
            // These kinds are caused by the input. The other kinds are failures of the disk.
            return !matches!(
                cause.kind(),
                ErrorKind::NotFound
                    | ErrorKind::PermissionDenied
                    | ErrorKind::IsADirectory
                    | ErrorKind::NotADirectory
                    | ErrorKind::InvalidData
                    | ErrorKind::InvalidInput
                    | ErrorKind::UnexpectedEof
                    | ErrorKind::FileTooLarge
            );
        }
        matches!(self, Self::Store(_) | Self::Program(_) | Self::Db(_))
    }

    /// Splits the error into refusals of single files or of the item as a whole.
    pub fn into_refusals(self) -> Vec<FileRefusal> {
        if let Self::Refused(refusals) = self {
            return refusals;
        }
        vec![FileRefusal { file: String::new(), error: self }]
    }

    /// Lists every problem with its place and its text. The place is a file, the JSON pointer of a property,
    /// or empty.
    pub fn problems(&self) -> Vec<(String, String)> {
        if let Self::Refused(refusals) = self {
            return refusals.iter().flat_map(FileRefusal::problems).collect();
        }
        if let Self::Document(DocumentError::Schema(violations)) = self {
            let problems = violations.iter();
            return problems.map(|found| (found.path.clone(), found.message.clone())).collect();
        }
        let mut place = String::new();
        if let Self::Document(DocumentError::Mismatch { property, .. }) = self {
            place = format!("/{property}");
        }
        vec![(place, self.to_string())]
    }
}

/// The refusal of one of an item's files.
#[derive(Debug)]
pub struct FileRefusal {
    /// The name of the file; empty for the item as a whole.
    pub file: String,
    pub error: IngestError,
}

impl FileRefusal {
    fn problems(&self) -> Vec<(String, String)> {
        // Problems of the schema have their own places, which say more than the name of the file.
        if let IngestError::Document(DocumentError::Schema(_)) = &self.error {
            return self.error.problems();
        }
        vec![(self.file.clone(), self.error.to_string())]
    }
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            return write!(f, "{}", self.error);
        }
        write!(f, "{} {}", self.file, self.error)
    }
}

/// Attributes an error to one file.
pub(super) fn refused(file: &str, error: IngestError) -> IngestError {
    IngestError::Refused(vec![refusal(file, error)])
}

/// Returns the refusal of one file.
pub(super) fn refusal(file: &str, error: IngestError) -> FileRefusal {
    FileRefusal { file: file.to_owned(), error }
}

/// A path that was not ingested, with the reason.
#[derive(Debug)]
pub struct IngestFailure {
    /// The file or folder as it was named or found.
    pub path: PathBuf,
    /// The line in a file of documents; the first is 1.
    pub line: Option<u64>,
    pub error: IngestError,
}

impl IngestFailure {
    /// Creates the failure to ingest a whole file or folder.
    pub fn new(path: &Path, error: IngestError) -> Self {
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
    fn a_panic_becomes_an_error_with_the_file_and_the_message() {
        let offset = 7;
        let outcome: Result<(), _> = catch_panics(|| panic!("offset {offset} is out of range"));
        let failure =
            IngestFailure::new(Path::new("in/harbour.jpg"), outcome.expect_err("it panicked"));
        let expected = "in/harbour.jpg: caused a panic of the reader: offset 7 is out of range";
        assert_eq!(failure.to_string(), expected);
        assert!(!failure.error.is_internal(), "trying again would end the same way");
        assert_eq!(catch_panics(|| Ok(7)).expect("goes well"), 7);
    }
}
