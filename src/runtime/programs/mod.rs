//! Programs that run beside the service, under limits: our own reader of PDFs, and ffmpeg.
//!
//! PDFs and videos from outside are read by large libraries that may loop, run out of stack or take
//! all memory. A process of its own contains that: it has a limit of memory and of processor time,
//! what it writes is capped, and it is killed when its time is over. `wirephoto` starts itself for
//! it (the hidden commands `pdf` and `limited`).

mod ffmpeg;
mod run;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::runtime::limits::PROGRAM_OUTPUT_BYTES_MAX;
use run::{ProgramRun, run};

/// Why a program gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not there.
    #[error("{0} is not installed")]
    Missing(String),
    /// It could not be started or watched.
    #[error("{program} cannot be run: {cause}")]
    Start {
        /// Which.
        program: String,
        /// What the system says.
        #[source]
        cause: std::io::Error,
    },
    /// It said that it failed, or was ended by the system: its own words.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("it took more than {} s", .0.as_secs())]
    TimedOut(Duration),
    /// It wrote too much.
    #[error("the result has more than {0} bytes")]
    TooLarge(u64),
    /// What it wrote makes no sense.
    #[error("the program's answer is not understood: {0}")]
    Answer(String),
}

impl ProgramError {
    /// Whether the machine failed and not the file.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        match self {
            Self::Start { .. } | Self::Answer(_) => true,
            Self::Missing(_) | Self::Failed(_) | Self::TimedOut(_) | Self::TooLarge(_) => false,
        }
    }
}

/// What is done with a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PdfTask {
    /// Its facts, as the JSON of [`PdfSummary`].
    Facts,
    /// The same without colour: a PDF.
    Grey,
    /// Page 1 on white as a JPEG.
    Page,
}

impl PdfTask {
    /// Every task.
    pub const ALL: [Self; 3] = [Self::Facts, Self::Grey, Self::Page];

    /// The word on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Grey => "grey",
            Self::Page => "page",
        }
    }
}

/// What is told of a PDF.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PdfSummary {
    /// Pages.
    pub pages: u64,
    /// Width of page 1 as it is looked at, in points, 1/72 inch.
    pub width_pt: f32,
    /// Its height.
    pub height_pt: f32,
    /// Whether it holds JavaScript.
    pub scripts: bool,
    /// Whether it holds an action that starts a program or opens a file.
    pub launches: bool,
}

/// Limits on each program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLimits {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Time on the clock.
    pub time: Duration,
    /// Time of the processor for a PDF.
    pub pdf_processor: Duration,
}

/// Starts the programs.
#[derive(Clone, Debug)]
pub struct ProgramRunner {
    /// This program itself.
    own: PathBuf,
    ffmpeg: Option<PathBuf>,
    limits: ProgramLimits,
}

impl ProgramRunner {
    /// `own` is the program `wirephoto`; `ffmpeg` is where ffmpeg lies, if it is there.
    #[must_use]
    pub fn new(own: PathBuf, ffmpeg: Option<PathBuf>, limits: ProgramLimits) -> Self {
        Self { own, ffmpeg, limits }
    }

    /// Does `task` with the PDF at `file`; a page gets `long_px` pixels on its long side. Blocks.
    pub fn pdf(&self, task: PdfTask, file: &Path, long_px: u32) -> Result<Vec<u8>, ProgramError> {
        let memory = self.limits.memory_bytes.to_string();
        let seconds = self.limits.pdf_processor.as_secs().to_string();
        let long = long_px.to_string();
        let words = [
            "pdf",
            task.as_str(),
            "--memory-bytes",
            &memory,
            "--seconds",
            &seconds,
            "--long-px",
            &long,
        ];
        run(&ProgramRun {
            program: &self.own,
            arguments: words
                .map(Into::into)
                .into_iter()
                .chain(["--".into(), file.into()])
                .collect(),
            time: self.limits.time,
            output_bytes_max: PROGRAM_OUTPUT_BYTES_MAX,
        })
    }

    /// The facts of the PDF at `file`. Blocks.
    pub fn pdf_facts(&self, file: &Path) -> Result<PdfSummary, ProgramError> {
        let text = self.pdf(PdfTask::Facts, file, 1)?;
        serde_json::from_slice(&text).map_err(|cause| ProgramError::Answer(cause.to_string()))
    }
}
