//! Ingests files of documents, one document per line, for archives of millions of items.
//!
//! One thread reads lines into chunks, several threads check them, and the caller's thread writes batches, each in
//! one transaction. Tickets bound the chunks in flight, so that memory does not depend on the length of the file.
//! The chunks are sorted into their original order before they are written: if two lines identify the same item,
//! the later one wins.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;

use super::write::{LocalMoment, PreparedItem};
use super::{
    Ingest, IngestError, IngestFailure, IngestResult, IngestedItem, bundle, catch_panics,
};
use crate::runtime::limits::{
    DOCUMENT_BYTES_MAX, INGEST_BATCH_CHUNKS, INGEST_BATCH_ITEMS, INGEST_CHUNK_LINES,
};
use crate::storage::database::{DbError, DbResult, ItemWriteOutcome};
use model::ItemKey;
use model::item::Document;

/// Bytes of documents after which ingest commits the transaction.
const INGEST_BATCH_BYTES: usize = 16 * 1024 * 1024;
/// Bytes after which a chunk of lines ends early.
const INGEST_CHUNK_BYTES: usize = 256 * 1024;
/// Chunks in flight: one batch being written and one being validated.
const INGEST_CHUNKS_MAX: usize = 2 * INGEST_BATCH_CHUNKS;

/// The progress of a file of documents.
#[derive(Debug)]
pub enum LinesEvent<'a> {
    /// A line, or the rest of the file, was not ingested.
    Failed(&'a IngestFailure),
    /// The number of bytes of the file that have been processed.
    Bytes(u64),
}

/// The result of a file of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinesTally {
    /// The number of new items.
    pub created: u64,
    /// The number of items that existed already.
    pub replaced: u64,
    /// The number of lines that were not ingested.
    pub failed: u64,
    /// True if `report` stopped it before the end of the file.
    pub interrupted: bool,
}

/// Ingests the file of documents at `path`; `workers` threads check the documents.
///
/// A bad line is reported, and the others continue; `report` can stop the run. When a number of bytes is reported,
/// their items are durable on disk. A killed process has written only whole batches.
pub fn ingest_lines(
    ingest: &Ingest,
    path: &Path,
    workers: usize,
    now: &(dyn Fn() -> Timestamp + Sync),
    report: &mut dyn FnMut(LinesEvent<'_>) -> ControlFlow<()>,
) -> LinesTally {
    let tally = LinesTally::default();
    let mut writer = BatchWriter { ingest, path, report, tally, batch: DocumentBatch::default() };
    let opened = ingest
        .pin(path)
        .and_then(|source| File::open(source.path()).map_err(IngestError::Unreadable));
    let file = match opened {
        Ok(file) => file,
        Err(error) => {
            writer.fail(None, error);
            return writer.tally;
        }
    };
    std::thread::scope(|scope| {
        let (chunks, to_check) = sync_channel(INGEST_CHUNKS_MAX);
        let (checked, to_write) = sync_channel(INGEST_CHUNKS_MAX);
        let (tickets, free_tickets) = channel();
        for _ in 0..INGEST_CHUNKS_MAX {
            // The receiver is in this function, so sending cannot fail.
            tickets.send(()).ok();
        }
        scope.spawn(move || LineReader::new(file).run(&free_tickets, &chunks));
        let to_check = Arc::new(Mutex::new(to_check));
        for _ in 0..workers.max(1) {
            let to_check = Arc::clone(&to_check);
            let checked = checked.clone();
            scope.spawn(move || check_all(ingest, now, &to_check, &checked));
        }
        // Only the threads hold these now, so the channels close when the threads end.
        drop((to_check, checked));
        writer.run(&to_write, &tickets);
    });
    writer.tally
}

/// Lines that are checked together by one thread, as read or as checked.
struct LineChunk<T> {
    number: u64,
    lines: Vec<T>,
    /// The offset in the file after these lines, in bytes.
    end: u64,
    /// The read error after these lines, if there was one.
    read_error: Option<io::Error>,
}

struct NumberedLine {
    number: u64,
    /// The bytes, or the length of a line that is too long.
    text: Result<Vec<u8>, u64>,
}

/// The number of a line, and the item that it became.
type CheckedLine = (u64, IngestResult<PreparedItem>);

struct LineReader {
    input: BufReader<File>,
    line: u64,
    bytes: u64,
}

impl LineReader {
    fn new(file: File) -> Self {
        Self { input: BufReader::with_capacity(INGEST_CHUNK_BYTES, file), line: 0, bytes: 0 }
    }

    /// Reads until the end of the file, or until the receivers are gone.
    fn run(mut self, free_tickets: &Receiver<()>, chunks: &SyncSender<LineChunk<NumberedLine>>) {
        for number in 0.. {
            if free_tickets.recv().is_err() {
                return;
            }
            let (lines, read_error) = match self.check_encoding(number) {
                Ok(()) => self.read_chunk(),
                Err(cause) => (Vec::new(), Some(cause)),
            };
            let is_last = lines.is_empty() || read_error.is_some();
            let chunk = LineChunk { number, lines, end: self.bytes, read_error };
            // The last chunk is sent even without lines, because it carries the error and the final offset.
            if chunks.send(chunk).is_err() || is_last {
                return;
            }
        }
    }

    /// Refuses a file in UTF-16 as a whole. Otherwise each line would be reported separately.
    fn check_encoding(&mut self, number: u64) -> io::Result<()> {
        if number != 0 {
            return Ok(());
        }
        let start = self.input.fill_buf()?;
        if start.starts_with(b"\xFF\xFE") || start.starts_with(b"\xFE\xFF") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "is UTF-16, expected UTF-8"));
        }
        Ok(())
    }

    /// Reads the next lines; the list is empty at the end of the file.
    fn read_chunk(&mut self) -> (Vec<NumberedLine>, Option<io::Error>) {
        let mut lines = Vec::new();
        let mut bytes = 0;
        while lines.len() < INGEST_CHUNK_LINES && bytes < INGEST_CHUNK_BYTES {
            match self.read_line() {
                Ok(Some(text)) => {
                    self.line += 1;
                    bytes += text.as_ref().map_or(0, Vec::len);
                    lines.push(NumberedLine { number: self.line, text });
                }
                Ok(None) => break,
                Err(cause) => return (lines, Some(cause)),
            }
        }
        (lines, None)
    }

    /// Reads the next line without its line break. A line that is too long is skipped, and its length is returned.
    fn read_line(&mut self) -> io::Result<Option<Result<Vec<u8>, u64>>> {
        let mut text = Vec::new();
        let mut length = 0_u64;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                if length == 0 {
                    return Ok(None);
                }
                break;
            }
            let end = memchr::memchr(b'\n', buffer);
            let available = end.unwrap_or(buffer.len());
            length += available as u64;
            if length <= DOCUMENT_BYTES_MAX {
                text.extend_from_slice(&buffer[..available]);
            } else {
                // The rest of the line is only counted, so its memory is freed.
                text = Vec::new();
            }
            let consumed = available + usize::from(end.is_some());
            self.input.consume(consumed);
            self.bytes += consumed as u64;
            if end.is_some() {
                break;
            }
        }
        Ok(Some(if length <= DOCUMENT_BYTES_MAX { Ok(text) } else { Err(length) }))
    }
}

/// Checks chunks until the channel is closed, or until the receiver is gone.
fn check_all(
    ingest: &Ingest,
    now: &(dyn Fn() -> Timestamp + Sync),
    chunks: &Mutex<Receiver<LineChunk<NumberedLine>>>,
    checked: &SyncSender<LineChunk<CheckedLine>>,
) {
    loop {
        // A separate statement, so that the lock is released before the lines are checked.
        let next = chunks.lock().recv();
        let Ok(LineChunk { number, lines, end, read_error }) = next else { return };
        let lines =
            lines.into_iter().filter_map(|line| Some((line.number, check(ingest, &line, now())?)));
        let chunk = LineChunk { number, lines: lines.collect(), end, read_error };
        if checked.send(chunk).is_err() {
            return;
        }
    }
}

/// Checks one line; `None` for a blank line.
fn check(
    ingest: &Ingest,
    line: &NumberedLine,
    now: Timestamp,
) -> Option<IngestResult<PreparedItem>> {
    let text = match &line.text {
        Ok(text) => text,
        Err(found) => {
            let refused = IngestError::check_limit(*found, DOCUMENT_BYTES_MAX, "bytes", "4 MiB");
            return refused.err().map(Err);
        }
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    Some(catch_panics(|| prepare(ingest, text, now)))
}

fn prepare(ingest: &Ingest, text: &[u8], now: Timestamp) -> IngestResult<PreparedItem> {
    let fields = bundle::read_fields(text)?;
    let uri = fields.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| IngestError::Uri("there is none".to_owned()))?;
    let key = ItemKey::from_uri(uri).map_err(|cause| IngestError::Uri(cause.to_string()))?;
    let document = Document::from_fields(&key, fields)?;
    Ok(PreparedItem::new(&key, document, None, LocalMoment { now, zone: &ingest.zone }))
}

/// Documents that are written in one transaction.
#[derive(Default)]
struct DocumentBatch {
    lines: Vec<(u64, PreparedItem)>,
    bytes: usize,
}

impl DocumentBatch {
    fn is_full(&self) -> bool {
        self.lines.len() >= INGEST_BATCH_ITEMS || self.bytes >= INGEST_BATCH_BYTES
    }
}

struct BatchWriter<'a> {
    ingest: &'a Ingest,
    path: &'a Path,
    report: &'a mut dyn FnMut(LinesEvent<'_>) -> ControlFlow<()>,
    tally: LinesTally,
    batch: DocumentBatch,
}

impl BatchWriter<'_> {
    /// Writes the checked chunks in the order of the file. Returns at the end of the file, or if `report` stops it
    /// or the database fails. The other threads then end because their channels close.
    fn run(&mut self, to_write: &Receiver<LineChunk<CheckedLine>>, tickets: &Sender<()>) {
        let mut pending = BTreeMap::new();
        let mut next = 0;
        let mut end = 0;
        let mut unflushed_chunks = 0;
        for checked in to_write {
            pending.insert(checked.number, checked);
            // Chunks arrive out of order. Each waits here for the chunks before it.
            while let Some(checked) = pending.remove(&next) {
                next += 1;
                end = checked.end;
                for (line, outcome) in checked.lines {
                    self.add(line, outcome);
                }
                unflushed_chunks += 1;
                // Invalid lines fill no batch, so chunks are counted too. Without that, progress and a stop would
                // wait for the end of the file.
                let is_due = self.batch.is_full() || unflushed_chunks == INGEST_BATCH_CHUNKS;
                if is_due || self.tally.interrupted {
                    unflushed_chunks = 0;
                    if !self.flush(end) {
                        return;
                    }
                }
                if let Some(cause) = checked.read_error {
                    self.fail(None, IngestError::Unreadable(cause));
                }
                // The reader may have ended already.
                tickets.send(()).ok();
            }
        }
        self.flush(end);
    }

    fn add(&mut self, line: u64, outcome: IngestResult<PreparedItem>) {
        match outcome {
            Ok(prepared) => {
                self.batch.bytes += prepared.bytes();
                self.batch.lines.push((line, prepared));
            }
            Err(error) => self.fail(Some(line), error),
        }
    }

    fn fail(&mut self, line: Option<u64>, error: IngestError) {
        self.tally.failed += 1;
        let path = self.path.to_owned();
        self.report(LinesEvent::Failed(&IngestFailure { path, line, error }));
    }

    fn report(&mut self, event: LinesEvent<'_>) {
        self.tally.interrupted |= (self.report)(event).is_break();
    }

    /// Writes the batch, and returns whether to continue.
    fn flush(&mut self, end: u64) -> bool {
        let batch = Arc::new(std::mem::take(&mut self.batch).lines);
        let should_continue = match self.write(&batch, 0..batch.len()) {
            Ok(items) => {
                self.count(&items);
                true
            }
            // A damaged row must not prevent the other rows from being written, so each row gets its own
            // transaction.
            Err(DbError::Damaged { .. }) => self.write_singly(&batch),
            Err(cause) => {
                let lines = batch.len();
                let first = batch.first().map(|(line, _)| *line);
                // The cause is the same for the whole batch, so it is reported once, and the other lines are only
                // counted.
                self.tally.failed += lines.saturating_sub(1) as u64;
                self.fail(first, cause.into());
                false
            }
        };
        self.report(LinesEvent::Bytes(end));
        should_continue && !self.tally.interrupted
    }

    /// Writes a range of the batch in one transaction.
    fn write(
        &self,
        batch: &Arc<Vec<(u64, PreparedItem)>>,
        range: Range<usize>,
    ) -> DbResult<Vec<IngestedItem>> {
        // An empty transaction would still wait for the cluster write lock.
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let batch = Arc::clone(batch);
        let zone = self.ingest.zone.clone();
        self.ingest.db.write_blocking(move |tx| {
            batch[range].iter().map(|(_, prepared)| prepared.write(tx, &zone)).collect()
        })
    }

    fn write_singly(&mut self, batch: &Arc<Vec<(u64, PreparedItem)>>) -> bool {
        for (index, (line, _)) in batch.iter().enumerate() {
            match self.write(batch, index..index + 1) {
                Ok(items) => self.count(&items),
                Err(cause) => {
                    // Any other failure would also affect the remaining lines.
                    let should_continue = matches!(cause, DbError::Damaged { .. });
                    self.fail(Some(*line), cause.into());
                    if !should_continue {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn count(&mut self, items: &[IngestedItem]) {
        for item in items {
            match item.written {
                ItemWriteOutcome::Created => self.tally.created += 1,
                ItemWriteOutcome::Replaced => self.tally.replaced += 1,
            }
        }
    }
}
