//! The `wirephoto` binary: selects the allocator and runs the command line.

use std::process::ExitCode;

// The system allocator takes more memory for each connection that waits.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    wirephoto::cli::main()
}
