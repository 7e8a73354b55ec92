//! What the tests share: a server of their own, its client, pictures made on the spot, and other
//! programs that read our output.

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

/// A path in the checkout.
pub fn checkout(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// How long a test waits for what must happen before it fails: a machine that is slow, and busy with
/// other things, must not look like a fault.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Rests between two looks. Who looks without a rest takes the time from what is looked at.
pub fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(5));
}
