//! Content that a caller may not read, at every URL of it.

mod active;
mod bundles;
mod places;
mod scene;
mod table;
