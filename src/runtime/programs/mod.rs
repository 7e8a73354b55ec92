//! Runs external programs under limits: our own PDF reader, and ffmpeg.
//!
//! Large libraries read PDFs and videos from outside, and may loop, overflow the stack or exhaust memory. A
//! separate process contains such failures: its memory and CPU time are limited, its output is capped, and it
//! is killed at its timeout. `wirephoto` starts itself for this (the hidden commands `pdf` and `limited`).

mod ffmpeg;
mod run;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use run::run;

/// The reason for which a program produced no result.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The program is not installed.
    #[error("{0} is not installed")]
    Missing(String),
    /// The program could not be started or waited for.
    #[error("{program} cannot be run: {cause}")]
    Start {
        program: String,
        #[source]
        cause: std::io::Error,
    },
    /// The program reported a failure or was ended by a signal; the text is its last message.
    #[error("{0}")]
    Failed(String),
    /// The program exceeded its time limit.
    #[error("it took more than {} s", .0.as_secs())]
    TimedOut(Duration),
    /// The program's output exceeded its limit.
    #[error("the result has more than {0} bytes")]
    TooLarge(u64),
    /// The program's output could not be parsed.
    #[error("the program's output cannot be parsed: {0}")]
    Answer(String),
}

impl ProgramError {
    /// Returns whether the machine is at fault and not the file.
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Start { .. } | Self::Answer(_) => true,
            Self::Missing(_) | Self::Failed(_) | Self::TimedOut(_) | Self::TooLarge(_) => false,
        }
    }
}

/// A task for the PDF reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum PdfTask {
    /// Prints facts about the PDF, as the JSON of [`PdfSummary`].
    Facts,
    /// Converts the PDF to greyscale.
    Grey,
    /// Renders page 1 on white as a JPEG.
    Page,
}

impl PdfTask {
    /// Returns the word on the command line.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the seconds of CPU time that the task may use of `all`, the time for a PDF. Every task runs once at the
    /// ingest of a PDF, so a bomb costs no more than `all` together, each share rounded up to a second (contract
    /// ingest-19).
    fn processor_s(self, all: Duration) -> u64 {
        let tenths = match self {
            Self::Facts => 2,
            Self::Grey | Self::Page => 4,
        };
        (all.as_secs() * tenths).div_ceil(10)
    }
}

/// Facts about a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PdfSummary {
    pub pages: u64,
    /// Width of page 1 as displayed, in points (1/72 inch).
    pub width_pt: f32,
    /// Height of page 1 as displayed, in points.
    pub height_pt: f32,
    /// True if the PDF contains JavaScript.
    pub scripts: bool,
    /// True if the PDF contains an action that starts a program or opens a file.
    pub launches: bool,
}

/// The resource limits of each program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLimits {
    pub memory_bytes: u64,
    pub time: Duration,
    /// CPU time limit for all tasks on a PDF together.
    pub pdf_processor: Duration,
}

/// Starts the external programs under their limits.
#[derive(Clone, Debug)]
pub struct ProgramRunner {
    /// The path of the `wirephoto` binary.
    own: PathBuf,
    ffmpeg: Option<PathBuf>,
    limits: ProgramLimits,
}

impl ProgramRunner {
    /// Creates a runner. `own` is the path of `wirephoto`; `ffmpeg` is the path of ffmpeg, if it is
    /// installed.
    pub fn new(own: PathBuf, ffmpeg: Option<PathBuf>, limits: ProgramLimits) -> Self {
        Self { own, ffmpeg, limits }
    }

    /// Runs `task` on the PDF at `file`; a rendered page has `long_px` pixels on its long side. Blocks.
    pub fn pdf(&self, task: PdfTask, file: &Path, long_px: u32) -> Result<Vec<u8>, ProgramError> {
        let seconds = task.processor_s(self.limits.pdf_processor);
        let task = task.as_str();
        let memory = self.limits.memory_bytes;
        // The separator, because the path of a file may begin with a dash.
        let options = format!(
            "pdf {task} --memory-bytes {memory} --seconds {seconds} --long-px {long_px} --"
        );
        run(&self.own, words(&options).chain([file.into()]), self.limits.time)
    }

    /// Reads the facts of the PDF at `file`. Blocks.
    pub fn pdf_facts(&self, file: &Path) -> Result<PdfSummary, ProgramError> {
        // Nothing is rendered for the facts, so the length of the long side has no effect.
        let text = self.pdf(PdfTask::Facts, file, 1)?;
        serde_json::from_slice(&text).map_err(|cause| ProgramError::Answer(cause.to_string()))
    }
}

/// Splits options that contain no spaces.
fn words(options: &str) -> impl Iterator<Item = OsString> {
    options.split_whitespace().map(OsString::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tasks_on_a_pdf_share_its_processor_time() {
        for seconds in [10, 30, 3600] {
            let all = Duration::from_secs(seconds);
            let tasks = [PdfTask::Facts, PdfTask::Grey, PdfTask::Page];
            assert_eq!(tasks.map(|task| task.processor_s(all)).iter().sum::<u64>(), seconds);
        }
        let uneven = Duration::from_secs(11);
        assert_eq!(PdfTask::Facts.processor_s(uneven), 3, "2.2 s, rounded up");
        assert_eq!(PdfTask::Grey.processor_s(uneven), 5, "4.4 s, rounded up");
        assert_eq!(PdfTask::Facts.processor_s(Duration::from_secs(1)), 1, "the least limit");
    }
}
