//! The pure units: no I/O, no clock, no async, nothing but data in and data out.
//!
//! They are a package of their own so that the compiler guards their border, so that a change above
//! them does not compile them again, and so that pixel code is optimised in development builds
//! while the rest compiles fast. `crate::…` paths are the same on both sides: `lib.rs` hands these
//! units on under their own names.

pub mod account;
pub mod error;
pub mod item;
pub mod limits;
pub mod matching;
pub mod query;
pub mod schedule;
pub mod types;

/// The pure units of the media section.
pub mod media {
    pub mod archive;
    pub mod caption;
    pub mod format;
    pub mod jpeg;
    pub mod path;
    pub mod pdf;
    pub mod raster;
    pub mod video;
}
