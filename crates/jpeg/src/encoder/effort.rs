//! Defines how much time an encoder may take.

use serde::Serialize;

/// The time that [`encode`](super::encode) may take to make a file smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EncodeEffort {
    /// For a file that is encoded once and sent often.
    Small,
    /// For a file that a request waits for: a third of the time or less, and on average 0.9 points of SSIMULACRA2 less
    /// at the same number of bytes (six photographs at 640 pixels). Levels and chroma are refined once, and the file is
    /// baseline.
    Fast,
}
