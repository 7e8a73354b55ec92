//! Runs one program with capped output, and kills it at its timeout.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::ProgramError;
use crate::runtime::limits::PROGRAM_OUTPUT_BYTES_MAX;

/// Bytes of the program's messages (standard error) that are read.
const PROGRAM_MESSAGE_BYTES_MAX: u64 = 64 * 1024;

/// Runs the program for at most `time`, and returns its standard output.
pub(super) fn run(
    program: &Path,
    arguments: impl IntoIterator<Item = OsString>,
    time: Duration,
) -> Result<Vec<u8>, ProgramError> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The program must not see secrets in the environment, nor variables that redirect its libraries.
        .env_clear()
        .spawn()
        .map_err(|cause| start_error(program, cause))?;
    let outcome = collect_output(&mut child, time);
    if outcome.is_err() {
        // The program may have ended by itself in the meantime.
        drop(child.kill());
    }
    // Also after a kill: a child that is not waited for remains as a zombie.
    let status = child.wait().map_err(|cause| start_error(program, cause))?;
    let (output, message) = outcome?;
    if output.len() as u64 > PROGRAM_OUTPUT_BYTES_MAX {
        return Err(ProgramError::TooLarge(PROGRAM_OUTPUT_BYTES_MAX));
    }
    if status.success() {
        Ok(output)
    } else {
        Err(ProgramError::Failed(failure_message(status, &message)))
    }
}

fn start_error(program: &Path, cause: io::Error) -> ProgramError {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    ProgramError::Start { program: name.into_owned(), cause }
}

/// Reads standard output and standard error of the program until both are closed.
fn collect_output(child: &mut Child, time: Duration) -> Result<(Vec<u8>, Vec<u8>), ProgramError> {
    let (done, finished) = mpsc::channel();
    let output = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let message = child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let caps = [PROGRAM_OUTPUT_BYTES_MAX, PROGRAM_MESSAGE_BYTES_MAX];
    for (index, (pipe, cap)) in [output, message].into_iter().zip(caps).enumerate() {
        let done = done.clone();
        // Both pipes are read at once: a program blocks while a pipe is full that no thread reads. The thread
        // ends with the pipe, at the latest when the program is killed.
        thread::spawn(move || {
            drop(done.send((index, pipe.map_or_else(|| Ok(Vec::new()), |p| read_capped(p, cap)))));
        });
    }
    let stopwatch = crate::runtime::clock::Stopwatch::start();
    let mut parts = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        // The time limit holds for both pipes together.
        let remaining = time.saturating_sub(stopwatch.elapsed());
        let (index, bytes) =
            finished.recv_timeout(remaining).map_err(|_| ProgramError::TimedOut(time))?;
        parts[index] = bytes.map_err(|cause| ProgramError::Answer(cause.to_string()))?;
        // The program is still running then, and may never close standard error.
        if index == 0 && parts[0].len() as u64 > PROGRAM_OUTPUT_BYTES_MAX {
            return Err(ProgramError::TooLarge(PROGRAM_OUTPUT_BYTES_MAX));
        }
    }
    let [output, message] = parts;
    Ok((output, message))
}

/// Reads at most one byte more than `cap`. The caller kills a program that writes more.
fn read_capped(pipe: impl Read, cap: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(cap + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Describes the failure of a program: its last line, or the signal that ended it.
fn failure_message(status: ExitStatus, message: &[u8]) -> String {
    // A program that was killed, for example at its CPU or memory limit, wrote no reason.
    if let Some(signal) = status.signal() {
        return format!("the program that reads it was killed by signal {signal}");
    }
    // The last line names the failure; ffmpeg and panics write context before it.
    let text = String::from_utf8_lossy(message);
    let line =
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no reason given");
    line.trim().chars().filter(|c| !c.is_control()).take(300).collect()
}
