//! JPEG as a file format: what is in the file, told from its bytes alone.
//!
//! A JPEG file (ITU-T T.81, Annex B) is a list of *markers*. A marker is the byte `FF` and a code;
//! most markers open a *segment*, which is a big-endian length and a payload:
//!
//! ```text
//! FF D8                      SOI   start of image
//! FF E0  00 10  4A 46 …      APP0  JFIF: density; "the colours are YCbCr"
//! FF E1  xx xx  45 78 …      APP1  Exif or XMP       ┐
//! FF E2  xx xx  49 43 …      APP2  ICC profile       │ metadata: says something about the picture
//! FF ED  xx xx  50 68 …      APP13 Photoshop, IIM    │
//! FF FE  xx xx  …            COM   comment           ┘
//! FF DB  xx xx  …            DQT   quantisation tables  ┐
//! FF C0  xx xx  …            SOFn  frame: size, process │ picture: without it nobody can
//! FF C4  xx xx  …            DHT   Huffman tables       │ decode a pixel
//! FF DA  xx xx  …            SOS   opens a scan         │
//! 8F 3A FF 00 91 …           entropy-coded data         │
//! FF D9                      EOI   end of image         ┘
//! …                          a trailer: second pictures, maker's data, junk
//! ```
//!
//! The length counts its own two bytes, so a payload has at most 65,533. Inside entropy-coded
//! data an `FF` is followed by `00` (a *stuffed* byte) or by a restart marker `D0`–`D7`; any other
//! marker ends the scan. A baseline file has one scan or one per component, a progressive one has
//! many, each adding bits to the picture.
//!
//! [`header`] walks the markers, [`frame`] reads what the picture is, [`embedded`] takes metadata
//! out, [`rewrite`] puts metadata in and leaves every byte of the picture as it was. None of them
//! decodes a pixel. [`repair`] cleans headers that libjpeg-turbo does not like. [`codec`] is
//! libjpeg-turbo behind a safe face, the only file that names its crate.
//!
//! [`scan`] enters a baseline scan anywhere: it decodes a rectangle, takes one out with its
//! coefficients, or changes a few blocks and nothing else. [`dct`] has the transforms between
//! samples and coefficients; `simd` is the only file with `unsafe` code.

pub mod codec;
pub mod dct;
pub mod embedded;
pub mod frame;
pub mod header;
mod indexed;
pub mod repair;
pub mod rewrite;
pub mod samples;
pub mod scan;
#[cfg(target_arch = "x86_64")]
mod simd;

pub use indexed::IndexedJpeg;

#[cfg(test)]
mod dct_tests;
#[cfg(test)]
mod header_tests;
