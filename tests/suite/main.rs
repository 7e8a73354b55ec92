//! What users of the product would notice, through the real thing: the binary on a port, its
//! command line, its files. `tests/COVERAGE.md` says which sentence of the contract each test
//! proves.

mod common;
mod http;
mod ingest;
mod json;
mod media;
mod operator;
mod pages;
mod pixels;
mod rights;
