//! Log lines: their form, which are written, and where to.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, IsTerminal, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    fmt::{self, writer::BoxMakeWriter},
    layer::SubscriberExt,
    reload,
    util::SubscriberInitExt,
};

use super::{LOG_LINES_LOST, LogFormat};
use crate::runtime::clock::Stopwatch;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::modes;

/// Rights of a log file that is made: its owner writes, its group reads. Lines hold addresses of
/// clients and names of users.
const LOG_FILE_MODE: u32 = 0o640;
/// Time between two looks whether the file still lies under its name.
const LOG_FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How logging starts.
#[derive(Clone, Copy, Debug)]
pub struct LogSetup<'a> {
    /// How lines look.
    pub format: LogFormat,
    /// A level (`info`) or a filter (`info,wirephoto::media=debug`).
    pub level: &'a str,
    /// The file that lines are appended to; empty: standard error.
    pub file: &'a Path,
}

/// What of the logs changes while the service runs; cheap to clone.
#[derive(Clone)]
pub struct Logs {
    filter: reload::Handle<EnvFilter, Registry>,
    file: Option<Arc<LogFile>>,
}

/// A filter of log lines that was read and is not in force yet.
pub struct LogFilter(EnvFilter);

impl LogFilter {
    /// Reads a level or filter.
    ///
    /// Fails with the setting's name when it does not parse.
    pub fn parse(level: &str) -> Result<Self> {
        let invalid = |cause: String| {
            let message = format!("telemetry.log_level: {cause}");
            Error::invalid("body", "telemetry.log_level", "format", message)
        };
        let filter = EnvFilter::try_new(level).map_err(|cause| invalid(cause.to_string()))?;
        // Says only that the schema is current, with paths of the build.
        let quiet = "rusqlite_migration=warn".parse().map_err(Error::internal)?;
        Ok(Self(filter.add_directive(quiet)))
    }
}

impl Logs {
    /// Starts logging.
    ///
    /// Fails with the setting's name when the filter does not parse or the file cannot be opened,
    /// and when logging was started before.
    pub fn start(setup: LogSetup<'_>) -> Result<Self> {
        let LogFilter(filter) = LogFilter::parse(setup.level)?;
        let to_file = !setup.file.as_os_str().is_empty();
        let file = if to_file { Some(Arc::new(LogFile::open(setup.file)?)) } else { None };
        let terminal = !to_file && io::stderr().is_terminal();
        let text = match setup.format {
            LogFormat::Auto => terminal,
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
        let lines = if text {
            lines.with_ansi(terminal).boxed()
        } else {
            let json = lines.json().flatten_event(true);
            json.with_current_span(false).with_span_list(false).boxed()
        };
        let started = tracing_subscriber::registry().with(filter).with(lines).try_init();
        started.map_err(Error::internal)?;
        Ok(Self { filter: handle, file })
    }

    /// Puts `filter` in force.
    pub fn set_filter(&self, filter: LogFilter) -> Result<()> {
        self.filter.reload(filter.0).map_err(Error::internal)
    }

    /// Opens the file anew, under the name it has in the settings: whoever rotates logs has renamed
    /// the one that is open. When that fails, the one that is open goes on.
    pub fn reopen(&self) -> Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.reopen())
    }
}

/// A file of log lines. A line that cannot be written, because the disk is full, is counted and
/// forgotten: nobody waits for a disk to get room.
///
/// Lines are written by those who log them, each with one call of the system, so that the file has
/// every line up to the moment in which a process is killed.
struct LogFile {
    path: PathBuf,
    open: Mutex<OpenLog>,
}

struct OpenLog {
    file: File,
    /// Device and inode, which tell whether the file still lies under its name.
    id: (u64, u64),
    last_check: Stopwatch,
    /// Whether the file ends within a line.
    is_mid_line: bool,
    /// Lines that were lost since one was written.
    lines_lost: u64,
}

impl OpenLog {
    fn new(path: &Path) -> io::Result<Self> {
        let file = Self::open_or_create(path)?;
        let facts = file.metadata()?;
        let id = (facts.dev(), facts.ino());
        Ok(Self { file, id, last_check: Stopwatch::start(), is_mid_line: false, lines_lost: 0 })
    }

    /// Opens the file to append to it. One that is created has the mode of log files, as far as the
    /// umask that the process was started with allows it.
    fn open_or_create(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.append(true).mode(LOG_FILE_MODE);
        match options.clone().create_new(true).open(path) {
            Ok(file) => {
                modes::set_shared_file_mode(&file, LOG_FILE_MODE)?;
                Ok(file)
            }
            // Created by another process or a rotation meanwhile, or a device.
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                options.create(true).open(path)
            }
            Err(cause) => Err(cause),
        }
    }

    /// Follows the name when the file was renamed or removed and nobody told us.
    fn reopen_if_rotated(&mut self, path: &Path) {
        if self.last_check.elapsed() < LOG_FILE_CHECK_INTERVAL {
            return;
        }
        self.last_check = Stopwatch::start();
        let found = fs::metadata(path).map(|facts| (facts.dev(), facts.ino()));
        if found.ok() != Some(self.id)
            && let Ok(new) = Self::new(path)
        {
            *self = Self { lines_lost: self.lines_lost, ..new };
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
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
            // Whoever follows standard error learns when lines began to be lost, and how many were.
            Ok(()) => {
                let lost = std::mem::take(&mut open.lines_lost);
                complain(&format!("{path} takes log lines again, {lost} were lost"));
            }
            Err(cause) => {
                metrics::counter!(LOG_LINES_LOST).increment(1);
                if open.lines_lost == 0 {
                    complain(&format!("log lines are lost: {path}: {cause}"));
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

/// Says on standard error what the file cannot take; a closed one leaves nobody to tell.
fn complain(message: &str) {
    drop(writeln!(io::stderr(), "wirephoto: {message}"));
}

/// The writer of one line.
struct LogLineWriter(Arc<LogFile>);

impl Write for LogLineWriter {
    /// Takes all of `line`, which is a whole one.
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
    fn a_file_that_is_renamed_or_removed_is_followed_when_it_is_opened_anew() {
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
    fn a_line_behind_half_a_line_begins_anew() {
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
        // /dev/full takes nothing, as a full disk does.
        let log = LogFile::open(Path::new("/dev/full")).unwrap();
        log.append(b"one\n");
        log.append(b"two\n");
        assert_eq!(log.open.lock().lines_lost, 2);
    }
}
