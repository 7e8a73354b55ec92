//! `wirephoto bench`: measures the renditions per second of this machine.

use std::path::PathBuf;

use clap::Args;

use super::progress::progress_bar;
use super::{CommandFailure, SettingArgs, print_error, print_json, print_line};
use crate::app::bench::{self, BenchEffort, BenchError, BenchSetup};
use crate::runtime::config::{self, SettingSources};
use crate::runtime::limits::BENCH_SECONDS;

/// Maximum seconds per operation of a benchmark.
const BENCH_SECONDS_MAX: u64 = 60;

/// The arguments of `wirephoto bench`.
#[derive(Args, Debug)]
pub(super) struct BenchArgs {
    #[command(flatten)]
    given: SettingArgs,
    /// Folder for the temporary data directory, to measure another disk than the one of the system's
    /// temporary files.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Seconds per operation; at least five renditions are rendered.
    #[arg(long, value_name = "N", default_value_t = BENCH_SECONDS,
        value_parser = clap::value_parser!(u64).range(1..=BENCH_SECONDS_MAX))]
    seconds: u64,
    /// Prints a JSON object.
    #[arg(long)]
    json: bool,
    /// Photographs, or folders of photographs.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: BenchArgs) -> Result<(), CommandFailure> {
    let BenchArgs { given, data, seconds, json, files } = args;
    let sources = SettingSources { file: given.config, flags: given.settings };
    let (config, _) = config::load(&sources)?;
    let within = data.unwrap_or_else(config::temporary_dir);
    let effort = BenchEffort::seconds(seconds);
    let setup = BenchSetup { config: &config, files: &files, within: &within, effort };
    let bar = progress_bar(None, "{spinner} {msg}", json);
    let measured = bench::run(&setup, &|what| {
        bar.set_message(what.to_owned());
        bar.tick();
    });
    bar.finish_and_clear();
    match measured {
        Ok(report) if json => print_json(&report.json()),
        // The table ends with a line break, and `print_line` adds one.
        Ok(report) => print_line(report.table().trim_end()),
        Err(BenchError::Files(failures)) => {
            failures.iter().for_each(|failure| print_error(&failure.to_string()));
            return Err(CommandFailure::Reported);
        }
        Err(BenchError::Interrupted) => {
            print_error("interrupted");
            return Err(CommandFailure::Reported);
        }
        Err(BenchError::Failed(error)) => return Err(error.into()),
    }
    Ok(())
}
