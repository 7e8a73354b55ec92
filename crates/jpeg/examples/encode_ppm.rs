//! Encodes a binary PPM or PGM file with the encoder for renditions, to compare it with other
//! encoders.
//!
//! ```sh
//! cargo run --release -p wirephoto-jpeg --example encode_ppm -- in.ppm out.jpg 85 420 small
//! ```

use std::error::Error;

use geometry::Size;
use jpeg::codec::{ChromaSubsampling, Pixels};
use jpeg::encoder::{EncodeEffort, EncodeOptions, encode};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, output, quality, sampling, effort] = arguments.as_slice() else {
        return Err("usage: encode_ppm in.ppm out.jpg QUALITY 420|444 small|fast".into());
    };
    let effort = match effort.as_str() {
        "small" => EncodeEffort::Small,
        "fast" => EncodeEffort::Fast,
        other => return Err(format!("effort {other}, expected small or fast").into()),
    };
    let sampling = match sampling.as_str() {
        "420" => ChromaSubsampling::Quarter,
        "444" => ChromaSubsampling::Full,
        other => return Err(format!("sampling {other}, expected 420 or 444").into()),
    };
    let pixels = read_netpbm(&std::fs::read(input)?)?;
    let file = encode(&pixels, &EncodeOptions { quality: quality.parse()?, sampling, effort })?;
    std::fs::write(output, file)?;
    Ok(())
}

/// Reads a binary PPM (P6) or PGM (P5) file of 8-bit samples without comments.
fn read_netpbm(file: &[u8]) -> Result<Pixels, Box<dyn Error>> {
    // Four fields, each followed by one byte of white space; the samples may contain any byte.
    let mut fields = file.splitn(5, u8::is_ascii_whitespace);
    let mut text = || std::str::from_utf8(fields.next().unwrap_or_default());
    let channels = if text()? == "P6" { 3 } else { 1 };
    let size = Size::new(text()?.parse()?, text()?.parse()?);
    text()?;
    Ok(Pixels { size, channels, data: fields.next().unwrap_or_default().to_vec() })
}
