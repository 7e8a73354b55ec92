//! Writes log lines: their format, filter and destination.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

use super::{LOG_LINES_LOST, LogFormat};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::modes;

/// Mode of a new log file: the owner writes and the group reads, since lines contain client addresses and
/// user names.
const LOG_FILE_MODE: u32 = 0o640;
/// Interval at which the log file is checked for a rename or removal.
const LOG_FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The settings of logging at the start.
#[derive(Clone, Copy, Debug)]
pub struct LogSetup<'a> {
    pub format: LogFormat,
    /// A level (`info`) or a filter (`info,wirephoto::media=debug`).
    pub level: &'a str,
    /// The file that lines are appended to; empty: standard error.
    pub file: &'a Path,
}

/// The parts of logging that a reload changes; cheap to clone.
#[derive(Clone)]
pub struct Logs {
    filter: reload::Handle<EnvFilter, Registry>,
    file: Option<Arc<LogFile>>,
}

/// A parsed filter of log lines that is not applied yet.
pub struct LogFilter(EnvFilter);

impl LogFilter {
    /// Parses a level or filter.
    ///
    /// Fails with the setting's name if it does not parse.
    pub fn parse(level: &str) -> Result<Self> {
        let filter = EnvFilter::try_new(level).map_err(|cause| {
            let message = format!("telemetry.log_level: {cause}");
            Error::invalid("body", "telemetry.log_level", "format", message)
        })?;
        Ok(Self(filter))
    }
}

impl Logs {
    /// Starts logging.
    ///
    /// Fails with the setting's name if the filter does not parse or the file cannot be opened. Fails if
    /// logging is already started.
    pub fn start(setup: LogSetup<'_>) -> Result<Self> {
        let LogFilter(filter) = LogFilter::parse(setup.level)?;
        let to_file = !setup.file.as_os_str().is_empty();
        let file = if to_file { Some(Arc::new(LogFile::open(setup.file)?)) } else { None };
        let is_terminal = !to_file && io::stderr().is_terminal();
        let is_text = match setup.format {
            LogFormat::Auto => is_terminal,
            LogFormat::Text => true,
            LogFormat::Json => false,
        };
        let (filter, handle) = reload::Layer::new(filter);
        let writer = match &file {
            Some(file) => {
                let file = Arc::clone(file);
                BoxMakeWriter::new(move || LogLineWriter(Arc::clone(&file)))
            }
            None => BoxMakeWriter::new(io::stderr),
        };
        let lines = fmt::layer().with_writer(writer).with_target(false);
        let lines = if is_text {
            lines.with_ansi(is_terminal).boxed()
        } else {
            let json = lines.json().flatten_event(true);
            json.with_current_span(false).with_span_list(false).boxed()
        };
        let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
        started.map_err(Error::internal)?;
        Ok(Self { filter: handle, file })
    }

    /// Applies `filter` from now on.
    pub fn set_filter(&self, filter: LogFilter) -> Result<()> {
        self.filter.reload(filter.0).map_err(Error::internal)
    }

    /// Opens the log file again under its name, after a rotation renamed the open one.
    ///
    /// If that fails, lines are still written to the open file.
    pub fn reopen(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.reopen())
    }
}

/// A log file. A line that cannot be written, because the disk is full, is counted and dropped: no request
/// waits for disk space.
///
/// The thread that logs a line writes it with one system call, so the file has every line up to the moment in
/// which the process is killed.
struct LogFile {
    path: PathBuf,
    open: Mutex<OpenLog>,
}

struct OpenLog {
    file: File,
    /// Device and inode, to detect that the file was renamed or removed.
    id: (u64, u64),
    last_check: Stopwatch,
    /// True if the last line in the file is incomplete.
    is_mid_line: bool,
    /// Lines lost since the last successful write.
    lines_lost: u64,
}

impl OpenLog {
    fn new(path: &Path) -> io::Result<Self> {
        let file = Self::open_or_create(path)?;
        let metadata = file.metadata()?;
        let id = (metadata.dev(), metadata.ino());
        Ok(Self { file, id, last_check: Stopwatch::start(), is_mid_line: false, lines_lost: 0 })
    }

    /// Opens the file for appending. A new file gets the mode of log files, restricted by the umask at the
    /// start of the process.
    fn open_or_create(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).mode(LOG_FILE_MODE);
        // Only a new file gets a mode. A file that the operator created keeps its own.
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                modes::set_shared_file_mode(&file, LOG_FILE_MODE)?;
                Ok(file)
            }
            // A different process or a rotation created it in the meantime, or it is a device.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                options.create(true).open(path)
            }
            Err(cause) => Err(cause),
        }
    }

    /// Reopens the path if the file was renamed or removed without a SIGHUP.
    fn reopen_if_rotated(&mut self, path: &Path) {
        // A system call per line would cost as much as writing it.
        if self.last_check.elapsed() < LOG_FILE_CHECK_INTERVAL {
            return;
        }
        self.last_check = Stopwatch::start();
        let found = fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()));
        if found.ok() != Some(self.id)
            && let Ok(new) = Self::new(path)
        {
            // The count survives, so that the number of lost lines is reported once writing works again.
            *self = Self { lines_lost: self.lines_lost, ..new };
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        // A full disk cut the last line off. This line must not continue it.
        if self.is_mid_line {
            self.file.write_all(b"\n")?;
            self.is_mid_line = false;
        }
        let mut rest = line;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    rest = &rest[count..];
                    self.is_mid_line = !rest.is_empty();
                }
                Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(())
    }
}

impl LogFile {
    fn open(path: &Path) -> Result<Self> {
        let open = Mutex::new(OpenLog::new(path).map_err(|cause| unusable(path, &cause))?);
        Ok(Self { path: path.to_owned(), open })
    }

    fn reopen(&self) -> Result<()> {
        // Opened before the lock is acquired, so that threads that log do not wait for it.
        let new = OpenLog::new(&self.path).map_err(|cause| unusable(&self.path, &cause))?;
        let mut open = self.open.lock();
        *open = OpenLog { lines_lost: open.lines_lost, ..new };
        Ok(())
    }

    fn append(&self, line: &[u8]) {
        let mut open = self.open.lock();
        open.reopen_if_rotated(&self.path);
        let path = self.path.display();
        match open.append(line) {
            Ok(()) if open.lines_lost == 0 => {}
            // A reader of standard error learns that lines were lost, and their number.
            Ok(()) => {
                let lost = std::mem::take(&mut open.lines_lost);
                report_write_failure(&format!(
                    "log file {path} is writable again, {lost} lines were lost"
                ));
            }
            Err(cause) => {
                metrics::counter!(LOG_LINES_LOST).increment(1);
                // Once per outage: standard error must not repeat every line that the full disk rejects.
                if open.lines_lost == 0 {
                    report_write_failure(&format!("log lines are lost: {path}: {cause}"));
                }
                open.lines_lost += 1;
            }
        }
    }
}

fn unusable(path: &Path, cause: &io::Error) -> Error {
    let message = format!("telemetry.log_file: {}: {cause}", path.display());
    Error::new(ErrorKind::Unavailable, message)
}

/// Reports on standard error that the file lost lines. Ignores a closed standard error.
fn report_write_failure(message: &str) {
    drop(writeln!(io::stderr(), "wirephoto: {message}"));
}

/// The writer of one line to a [`LogFile`].
struct LogLineWriter(Arc<LogFile>);

impl Write for LogLineWriter {
    /// Writes all of `line`, which is a complete line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_or_removed_file_is_reopened() {
        let dir = tempfile::tempdir().unwrap();
        let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
        let log = LogFile::open(&path).unwrap();
        log.append(b"one\n");
        fs::rename(&path, &old).unwrap();
        log.append(b"two\n");
        log.reopen().unwrap();
        log.append(b"three\n");
        assert_eq!(fs::read_to_string(&old).unwrap(), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "three\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777 & !0o640, 0);
    }

    #[test]
    fn a_line_after_a_partial_line_begins_a_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut open = OpenLog::new(&path).unwrap();
        open.append(b"half").unwrap();
        open.is_mid_line = true;
        open.append(b"whole\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "half\nwhole\n");
    }

    #[test]
    fn a_full_disk_loses_lines_and_nothing_else() {
        // Every write to /dev/full fails as on a full disk.
        let log = LogFile::open(Path::new("/dev/full")).unwrap();
        log.append(b"one\n");
        log.append(b"two\n");
        assert_eq!(log.open.lock().lines_lost, 2);
    }
}
