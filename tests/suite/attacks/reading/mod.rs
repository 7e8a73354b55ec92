//! Content that a caller may not read, by any address of it.

mod active;
mod bundles;
mod places;
mod scene;
mod table;
