#![doc = include_str!("../README.md")]
//!
//! # The file format in short
//!
//! A JPEG file (ITU-T T.81, Annex B) is a list of *markers*. A marker is the byte `FF` and a code;
//! most markers open a *segment*, which is a big-endian length and a payload:
//!
//! ```text
//! FF D8                      SOI   start of image
//! FF E0  00 10  4A 46 …      APP0  JFIF: density; implies YCbCr
//! FF E1  xx xx  45 78 …      APP1  Exif or XMP       ┐
//! FF E2  xx xx  49 43 …      APP2  ICC profile       │ metadata: describes the picture
//! FF ED  xx xx  50 68 …      APP13 Photoshop, IIM    │
//! FF FE  xx xx  …            COM   comment           ┘
//! FF DB  xx xx  …            DQT   quantisation tables  ┐
//! FF C0  xx xx  …            SOFn  frame: size, process │ picture: needed by decoders
//! FF C4  xx xx  …            DHT   Huffman tables       │
//! FF DA  xx xx  …            SOS   opens a scan         │
//! 8F 3A FF 00 91 …           entropy-coded data         │
//! FF D9                      EOI   end of image         ┘
//! …                          a trailer: second pictures, vendor data, junk
//! ```
//!
//! The length includes its own two bytes, so a payload has at most 65,533 bytes. Inside entropy-coded
//! data an `FF` is followed by `00` (a *stuffed* byte) or by the code of a restart marker, `D0`–`D7`; any
//! other marker ends the scan. A baseline file has one scan or one per component; a progressive file has
//! many, each of which refines the picture.
//!
//! # Modules
//!
//! - [`IndexedJpeg`]: a file in memory with random access. Start here.
//! - [`header`]: the marker parser. [`frame`]: size, coding process and colour model.
//! - [`embedded`]: extracts EXIF, XMP, ICC and IIM. [`rewrite`]: replaces them without changing the
//!   picture data. Neither decodes pixels.
//! - [`scan`]: random access into a baseline scan: regions, crops, patches, bands, and the index.
//! - [`coefficients`]: the quantised coefficients of whole pictures, sequential or progressive.
//! - [`dct`]: the transforms between samples and coefficients.
//! - [`codec`]: libjpeg-turbo for whole pictures. [`repair`]: cleans headers that libjpeg-turbo refuses.
//! - [`encoder`]: the encoder for small renditions, whose files are smaller than libjpeg-turbo's.
//! - [`samples`]: generated files for tests and benches.

pub mod codec;
mod coefficient_grid;
pub mod coefficients;
pub mod dct;
mod dct_weights;
mod divisors;
pub mod embedded;
pub mod encoder;
pub mod frame;
pub mod header;
mod header_error;
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
