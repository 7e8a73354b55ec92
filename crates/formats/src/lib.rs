#![doc = include_str!("../README.md")]
//!
//! Output is linear in the input: markup nests at most 64 levels deep, and no text of the document is
//! repeated more than a fixed number of times.

mod blocks;
pub mod caption;
pub mod csv;
mod cutpaste;
mod html;
mod indesign;
pub mod mp4;
mod newsml;
mod ninjs;
mod rights;
mod story;
pub mod zip;

pub use cutpaste::cutpaste;
pub use indesign::indesign;
pub use newsml::{MessageHeader, NewsmlVersion, PROPERTIES, PropertyPlacement, newsml};
pub use ninjs::ninjs;
pub use rights::DocumentRights;

#[cfg(test)]
mod ninjs_tests;
#[cfg(test)]
mod read_back;
#[cfg(test)]
mod rights_tests;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod strategy;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
