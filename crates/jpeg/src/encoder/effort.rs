//! Defines how much time an encoder may take.

use serde::Serialize;

/// The time that [`encode`](super::encode) may take to make a file smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodeEffort {
    /// For a file that is encoded once and sent often.
    Small,
    /// For a file that a request waits for: half of the time, and about 5 % more bytes at the same SSIMULACRA2 score
    /// (seven photographs at 640 and 800 pixels). Levels and chroma are refined once, and the file is baseline.
    Fast,
}
