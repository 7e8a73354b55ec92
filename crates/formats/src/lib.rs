#![doc = include_str!("../README.md")]
//!
//! Output is linear in the input: markup nests at most 64 deep, and no text of the document is
//! repeated more than a fixed number of times.

mod blocks;
pub mod caption;
mod cutpaste;
mod html;
mod indesign;
mod limits;
pub mod mp4;
mod newsml;
mod story;
pub mod zip;

pub use cutpaste::cutpaste;
pub use indesign::indesign;
pub use newsml::PROPERTIES;
pub use newsml::PropertyPlacement;
pub use newsml::newsml;

/// What a NewsML-G2 message says beside the document.
#[derive(Debug, Clone, Copy)]
pub struct MessageHeader<'a> {
    /// When the message is sent, RFC 3339. A time that belongs to the stored document keeps the
    /// bytes, and so the entity tag, the same from one request to the next.
    pub sent: &'a str,
    /// Who sends: the agency's name. It is the `provider` of every item too.
    pub sender: &'a str,
}

#[cfg(test)]
mod read_back;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod strategy;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod text_tests;
