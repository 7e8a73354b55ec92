//! Wirephoto, the rendition server and content API for news agencies and picture desks.
//!
//! `docs/internals/architecture.md` maps the source tree; `docs/internals/style.md` has the rules for code.
//! The library exists so that benchmarks, fuzz targets and tests can use the units; its interface may change
//! with every release. Users of the product run the binary.

pub mod access;
pub mod app;
pub mod archive;
pub mod cli;
pub mod cluster;
pub mod distribution;
pub mod http;
pub mod media;
pub mod runtime;
pub mod storage;
pub mod transport;
