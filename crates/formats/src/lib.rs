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
pub use newsml::{NewsmlVersion, PROPERTIES, PropertyPlacement, newsml};
pub use ninjs::ninjs;
pub use rights::DocumentRights;

/// The parts of a NewsML-G2 message that are not in the document.
#[derive(Debug, Clone, Copy)]
pub struct MessageHeader<'a> {
    /// The time at which the message is sent, RFC 3339. Use a time stored with the document, so that the bytes and
    /// the entity tag are the same for every request.
    pub sent: &'a str,
    /// The sender: the agency's name. It is also the `provider` of every item.
    pub sender: &'a str,
    /// The version of the standard that the message follows.
    pub version: NewsmlVersion,
}

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
