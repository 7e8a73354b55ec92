//! The parts that tests share: per-test servers, their client, generated pictures, and other programs that read our
//! output.

pub mod api;
pub mod browser;
pub mod h2;
pub mod news;
pub mod oracle;
pub mod pictures;
pub mod ports;
pub mod postgres;
pub mod server;
pub mod tokens;

pub use server::Server;

/// The API key of `media-store/accounts.json`.
pub const DEMO_KEY: &str = "demo-key-0000-0000-000000000001";

/// A demo photograph of 4272 x 2848 pixels, progressive 4:2:2.
pub const LARGE: &str = "image/demo-solnedgang-over-bergen";

/// Returns whether the tests run before a release, as `./test all` does: with more repetitions, examples and window sizes
/// than every change needs.
pub fn is_before_release() -> bool {
    std::env::var_os("TEST_BEFORE_RELEASE").is_some()
}

/// A path in the checkout.
pub fn checkout(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The time that a test waits for a condition before it fails: long enough for a slow and busy machine.
pub const WAIT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(180);

/// Sleeps between two polls. Each is a request or a script in a browser, and takes CPU time from the server under test.
pub fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}
