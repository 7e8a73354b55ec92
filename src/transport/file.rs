//! Outgoing files, each with a portable name, a known length and streamed content.

use std::{future::Future, io, pin::Pin, time::Duration};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use thiserror::Error;

use crate::runtime::limits;
use crate::transport::error::{SendFault, SendRefusal};

/// Characters of the id of a delivery or a mail.
const TRANSPORT_ID_CHARS_MAX: usize = 128;

/// The bytes of a file as a stream of chunks.
pub type Content = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

type Opening = Pin<Box<dyn Future<Output = io::Result<Content>> + Send>>;

/// The error for a file name that is not safe on every remote system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is not a file name: expected 1 to 200 of A-Z a-z 0-9 _ . - that begin with a letter or \
     digit"
)]
pub struct NameError(String);

/// One file to send.
///
/// The content is opened for sending, and once before that if a method needs the file's hash first. Both must
/// yield the same bytes.
pub struct OutgoingFile {
    pub(super) name: String,
    /// The media type, such as `image/jpeg`.
    pub(super) mime: String,
    pub(super) size_bytes: u64,
    /// The URL at which the receiver can download the file.
    pub(super) url: Option<String>,
    open: Box<dyn Fn() -> Opening + Send + Sync>,
}

impl OutgoingFile {
    /// Describes a file of `size_bytes` bytes, whose content `open` opens.
    ///
    /// Fails unless `name` has 1 to 200 characters of `A-Z a-z 0-9 _ . -` and begins with a letter or a digit.
    pub fn new<F, O>(name: &str, mime: &str, size_bytes: u64, open: F) -> Result<Self, NameError>
    where
        F: Fn() -> O + Send + Sync + 'static,
        O: Future<Output = io::Result<Content>> + Send + 'static,
    {
        if !is_name(name, limits::TRANSPORT_NAME_CHARS_MAX) {
            // The error truncates a hostile name to the maximum length of a valid one.
            return Err(NameError(name.chars().take(limits::TRANSPORT_NAME_CHARS_MAX).collect()));
        }
        let open = Box::new(move || -> Opening { Box::pin(open()) });
        Ok(Self { name: name.to_owned(), mime: mime.to_owned(), size_bytes, url: None, open })
    }

    /// Describes a file whose content is in memory.
    ///
    /// Fails like [`OutgoingFile::new`].
    pub fn from_bytes(name: &str, mime: &str, bytes: Bytes) -> Result<Self, NameError> {
        let size_bytes = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Self::new(name, mime, size_bytes, move || {
            let bytes = bytes.clone();
            async move { Ok(Box::pin(stream::iter([Ok(bytes)])) as Content) }
        })
    }

    /// Adds the URL at which the receiver can download the file.
    #[must_use]
    pub fn with_url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }
}

/// Returns whether `text` is a safe name on every system: ASCII letters, digits, `_`, `.` and `-`, beginning with
/// a letter or digit, so that it cannot be an option, a hidden file, `.` or `..`.
pub(super) fn is_name(text: &str, chars_max: usize) -> bool {
    // Only ASCII is allowed, so bytes are characters.
    text.len() <= chars_max
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Checks the id of a delivery or a mail, which becomes part of file names.
pub(super) fn check_id(id: &str) -> Result<(), SendRefusal> {
    if is_name(id, TRANSPORT_ID_CHARS_MAX) { Ok(()) } else { Err(SendRefusal::Id) }
}

/// Reads a file's content and checks its length.
pub(super) struct OutgoingReader {
    name: String,
    expected: u64,
    found: u64,
    content: Content,
    wait: Duration,
}

impl OutgoingReader {
    /// Opens `file`; each chunk must arrive within `wait`.
    pub(super) async fn open(file: &OutgoingFile, wait: Duration) -> Result<Self, SendFault> {
        let name = file.name.clone();
        // Our own file may be in a bucket that does not respond.
        let opened = tokio::time::timeout(wait, (file.open)()).await;
        let content = match opened.map_err(|_| SendFault::TimedOut(wait))? {
            Ok(content) => content,
            Err(cause) => return Err(SendFault::Content { name, cause }),
        };
        Ok(Self { name, expected: file.size_bytes, found: 0, content, wait })
    }

    /// Reads the next chunk, which is never empty; `None` after the last byte.
    ///
    /// Fails before it returns more bytes than announced, and at the end if there were fewer.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, SendFault> {
        let wait = self.wait;
        loop {
            let chunk = tokio::time::timeout(wait, self.content.next()).await;
            let chunk = match chunk.map_err(|_| SendFault::TimedOut(wait))? {
                Some(Ok(chunk)) if chunk.is_empty() => continue,
                Some(Ok(chunk)) => Some(chunk),
                Some(Err(cause)) => {
                    return Err(SendFault::Content { name: self.name.clone(), cause });
                }
                None => None,
            };
            let bytes = chunk.as_ref().map_or(0, Bytes::len);
            self.found = self.found.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
            let is_mismatch = match chunk {
                Some(_) => self.found > self.expected,
                // The source ended early, and an incomplete file must not count as sent.
                None => self.found != self.expected,
            };
            if is_mismatch {
                let Self { ref name, expected, found, .. } = *self;
                return Err(SendFault::Length { name: name.clone(), expected, found });
            }
            return Ok(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size_bytes: u64, pieces: &'static [&'static str]) -> OutgoingFile {
        let open = move || async move {
            let pieces = pieces.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
            Ok(Box::pin(stream::iter(pieces)) as Content)
        };
        OutgoingFile::new("a.jpg", "image/jpeg", size_bytes, open).unwrap()
    }

    async fn read(file: &OutgoingFile) -> Result<Vec<u8>, SendFault> {
        let mut reader = OutgoingReader::open(file, Duration::from_secs(5)).await?;
        let mut all = Vec::new();
        while let Some(chunk) = reader.next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[test]
    fn hostile_names_are_refused() {
        let long = "a".repeat(201);
        let hostile = [
            "", ".", "..", "../a", "a/b", "a\\b", "/a", ".a", "-rf", "a b", "a\nb", "a\0",
            "å.jpg", "a\"b", "a;b", "%2e", "a:b", &long,
        ];
        for name in hostile {
            assert!(OutgoingFile::from_bytes(name, "x/y", Bytes::new()).is_err(), "{name:?}");
        }
        for name in ["a", "sdltd8f4d87_NormalHires.jpg", "0..1", &"a".repeat(200)] {
            assert!(OutgoingFile::from_bytes(name, "x/y", Bytes::new()).is_ok(), "{name:?}");
        }
    }

    #[tokio::test]
    async fn content_of_another_length_is_an_error() {
        assert_eq!(read(&file(5, &["ab", "", "cde"])).await.unwrap(), b"abcde");
        assert!(matches!(
            read(&file(4, &["ab", "cde"])).await,
            Err(SendFault::Length { expected: 4, found: 5, .. })
        ));
        assert!(matches!(
            read(&file(6, &["ab", "cde"])).await,
            Err(SendFault::Length { expected: 6, found: 5, .. })
        ));
    }

    #[tokio::test]
    async fn content_that_does_not_come_is_an_error() {
        let open = || async { Ok(Box::pin(stream::pending()) as Content) };
        let file = OutgoingFile::new("a", "x/y", 1, open).unwrap();
        let mut reader = OutgoingReader::open(&file, Duration::from_millis(20)).await.unwrap();
        assert!(matches!(reader.next().await, Err(SendFault::TimedOut(_))));
    }
}
