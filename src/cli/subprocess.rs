//! Subprocess commands: the program starts itself to read untrusted files under resource limits.
//!
//! Each subprocess sets its own limits before it reads a byte. The parent learns of a crash or a kill from
//! the exit status (`programs`).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use rlimit::Resource;

use crate::runtime::limits::PROGRAM_OUTPUT_BYTES_MAX;
use crate::runtime::programs::{PdfSummary, PdfTask};
use jpeg::codec::{self, ChromaSubsampling, ColourSpace, EncodeOptions, Pixels};
use model::Size;
use pdf::PdfLimits;

/// Bytes of a PDF that is processed; a larger one is stored and served without derived renditions.
const PDF_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Objects of a PDF; a detailed map has some 10,000.
const PDF_OBJECTS_MAX: usize = 1_000_000;
/// Nesting depth of pages, forms, patterns and functions of a PDF.
const PDF_DEPTH_MAX: usize = 64;
/// Decompressed bytes of all streams of a PDF.
const PDF_DECODED_BYTES_MAX: usize = 512 * 1024 * 1024;
/// Drawing operators of a PDF; a detailed map has some 100,000.
const PDF_OPERATORS_MAX: u64 = 50_000_000;
/// Pixels of a rendered PDF page.
const PDF_PAGE_PIXELS_MAX: u64 = 32_000_000;
/// Pixels of one image in a PDF.
const PDF_IMAGE_PIXELS_MAX: u64 = 150_000_000;
/// JPEG quality of the page image that Previews are scaled from.
const PDF_PAGE_QUALITY: u8 = 93;

/// Resource limits of a subprocess.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct ProcessLimits {
    /// Memory limit in bytes, in addition to the memory in use at the start.
    #[arg(long)]
    memory_bytes: u64,
    /// Limit of processor time in seconds.
    #[arg(long)]
    seconds: u64,
}

impl ProcessLimits {
    fn set(self) -> io::Result<()> {
        // The allocator's reserve and the program itself count as well, so they are added to the limit.
        let memory = address_space()?.saturating_add(self.memory_bytes);
        Resource::AS.set(memory, memory)?;
        Resource::CPU.set(self.seconds, self.seconds)?;
        Resource::FSIZE.set(PROGRAM_OUTPUT_BYTES_MAX, PROGRAM_OUTPUT_BYTES_MAX)?;
        // Untrusted input is expected to crash the subprocess at times, and core dumps would fill the disk.
        Resource::CORE.set(0, 0)
    }
}

/// Returns the size of this process's address space in bytes.
fn address_space() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kibibytes.map(|count: u64| count.saturating_mul(1024)).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has no VmSize")
    })
}

/// Arguments of the subcommand `pdf`.
#[derive(Args, Debug)]
pub(super) struct PdfArgs {
    /// Task: `facts`, `grey` or `page`.
    task: String,
    #[command(flatten)]
    limits: ProcessLimits,
    /// Long side of a page's picture in pixels.
    #[arg(long)]
    long_px: u32,
    /// Path of the PDF.
    file: PathBuf,
}

/// Runs a task on a PDF and writes the result to standard output.
///
/// Fails with the reason as text.
pub(super) fn pdf(arguments: &PdfArgs) -> Result<(), String> {
    let PdfArgs { task, limits, long_px, file } = arguments;
    let task_kind = task.parse().map_err(|_| format!("unknown task {task}"))?;
    limits.set().map_err(|cause| format!("limits cannot be set: {cause}"))?;
    let bytes = read(file).map_err(|cause| format!("cannot be read: {cause}"))?;
    let result = run(task_kind, &bytes, *long_px)?;
    let mut out = io::stdout().lock();
    out.write_all(&result).and_then(|()| out.flush()).map_err(|cause| cause.to_string())
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte more than the limit: a longer file is then refused instead of read in part.
    File::open(file)?.take(PDF_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn pdf_limits() -> PdfLimits {
    PdfLimits {
        bytes: usize::try_from(PDF_BYTES_MAX).unwrap_or(usize::MAX),
        objects: PDF_OBJECTS_MAX,
        depth: PDF_DEPTH_MAX,
        decoded_bytes: PDF_DECODED_BYTES_MAX,
        operators: PDF_OPERATORS_MAX,
        pixels: PDF_PAGE_PIXELS_MAX,
        image_pixels: PDF_IMAGE_PIXELS_MAX,
    }
}

fn run(task: PdfTask, bytes: &[u8], long_px: u32) -> Result<Vec<u8>, String> {
    let limits = pdf_limits();
    match task {
        PdfTask::Facts => {
            let facts = pdf::facts(bytes, &limits).map_err(|cause| cause.to_string())?;
            let facts = PdfSummary {
                pages: facts.pages as u64,
                width_pt: facts.width_pt,
                height_pt: facts.height_pt,
                scripts: facts.active.scripts,
                launches: facts.active.launches,
            };
            serde_json::to_vec(&facts).map_err(|cause| cause.to_string())
        }
        PdfTask::Grey => pdf::grey(bytes, &limits).map_err(|cause| cause.to_string()),
        PdfTask::Page => {
            let page = pdf::raster(bytes, long_px, &limits).map_err(|cause| cause.to_string())?;
            let size = Size { width: page.width, height: page.height };
            let pixels = Pixels { size, channels: 3, data: page.rgb };
            // Lines and letters lose their edges with chroma subsampling.
            let encoding = EncodeOptions {
                quality: PDF_PAGE_QUALITY,
                space: ColourSpace::YCbCr,
                chroma: ChromaSubsampling::Full,
            };
            codec::encode(&pixels, encoding).map_err(|cause| cause.to_string())
        }
    }
}

/// Arguments of the subcommand `limited`.
#[derive(Args, Debug)]
pub(super) struct LimitedArgs {
    #[command(flatten)]
    limits: ProcessLimits,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    words: Vec<OsString>,
}

/// Replaces this process with the program under the limits; returns only if that fails.
pub(super) fn limited(arguments: &LimitedArgs) -> Result<(), String> {
    arguments.limits.set().map_err(|cause| format!("limits cannot be set: {cause}"))?;
    let (program, args) = arguments.words.split_first().ok_or("no program is named")?;
    Err(Command::new(program).args(args).exec().to_string())
}
