//! Caption metadata: what a photograph says about itself, in and out of a JPEG file.
//!
//! Three standards live side by side in one file, and every desk reads another one:
//!
//! - **IIM** (IPTC, 1991): numbered datasets of limited length, no fixed character set.
//! - **XMP** (Adobe, 2001): RDF in XML, UTF-8, no limits worth naming.
//! - **EXIF** (1995): what the camera knows, in a TIFF file inside the JPEG file.
//!
//! [`read`] merges them into one [`Caption`], field by field: **XMP, then IIM, then EXIF**. XMP
//! comes first because it holds the whole text in a known character set where IIM is cut to a few
//! bytes in a character set that has to be guessed; EXIF comes last because cameras fill its text
//! with placeholders. A file whose IIM is newer than its XMP loses by this; writers that touch
//! only one of the two have become rare.
//!
//! [`write()`] makes all three from a caption, so that every reader finds its own. Which field
//! lives where is told by the tables in `xmp_read.rs` and `iim_read.rs`. Some share a place:
//!
//! - IIM 2:40 holds usage terms and instructions, IIM 2:116 and EXIF Copyright hold the notice or,
//!   without one, the holder. When read, a shared place counts only if XMP has neither field.
//! - A position is only in EXIF, and is written only when the operator keeps GPS.
//!
//! Broken metadata never fails: it gives a warning, and what could be read is kept. This unit
//! knows news items only in `document.rs`, which maps captions to documents and back.
//!
//! Spec §4 Media interface, formats "JPEG caption metadata".

pub mod country;
mod exif_read;
mod exif_write;
mod iim_read;
mod iim_write;
mod stamp;
mod text;
mod xmp_read;
mod xmp_write;

use serde::Serialize;

use crate::stamp::Stamp;
use jpeg::header::Header;

/// Entries of one list (keywords, persons, subject codes) that are read.
const LIST_ENTRIES_MAX: usize = 1_000;
/// Bytes of one text that are read; the longest captions have some thousands.
const TEXT_BYTES_MAX: usize = 65_536;

/// What a photograph says about itself.
///
/// An empty string, an empty list and `None` mean that it does not say. Texts that [`read`] gives
/// hold no control characters but line feed and tab and no blanks around them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Caption {
    /// Headline.
    pub headline: String,
    /// Slugline, the short title that a desk files it under.
    pub title: String,
    /// The caption itself.
    pub description: String,
    /// Photographer; several are separated by a comma and a blank.
    pub byline: String,
    /// The photographer's role or title.
    pub byline_role: String,
    /// Credit line.
    pub credit: String,
    /// Source.
    pub source: String,
    /// Copyright notice.
    pub copyright_notice: String,
    /// Owner of the copyright.
    pub copyright_holder: String,
    /// Terms of use.
    pub usage_terms: String,
    /// Instructions to editors.
    pub instructions: String,
    /// City.
    pub city: String,
    /// Name of the country.
    pub country: String,
    /// Code of the country, ISO 3166, two or three letters.
    pub country_code: String,
    /// Latitude and longitude in degrees, WGS 84, positive to the north and east.
    pub position: Option<(f64, f64)>,
    /// Persons in the picture.
    pub persons: Vec<String>,
    /// IPTC subject codes.
    pub subject_codes: Vec<String>,
    /// Keywords.
    pub keywords: Vec<String>,
    /// When it was taken: `2017-02-11T10:15:00+01:00`, without the offset if that is not known.
    pub created: Option<String>,
    /// Original transmission reference, the job's identifier.
    pub transmission_reference: String,
    /// Urgency, 1 (most) to 9.
    pub urgency: Option<u8>,
    /// Globally unique identifier of the picture.
    pub uri: String,
    /// Language of the texts, BCP 47.
    pub language: String,
}

/// What was read from a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reading {
    /// The merged caption.
    pub caption: Caption,
    /// EXIF orientation, 1 to 8; 1 if it is absent or not in that range.
    pub orientation: u8,
    /// What was broken, in words for the operator's log. They hold no text from the file.
    pub warnings: Vec<String>,
}

impl Caption {
    /// Tells whether there is anything but a position, which only EXIF has.
    fn speaks(&self) -> bool {
        Caption { position: None, ..self.clone() } != Caption::default()
    }
}

/// What of the original stays in a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// The orientation to write, 1 to 8; anything else is written as 1.
    pub orientation: u8,
    /// Whether the position may be told.
    pub gps: bool,
}

/// What one of the three standards says.
#[derive(Debug, Default)]
struct StandardFields {
    /// Its fields; `created` is not set.
    caption: Caption,
    created: Option<Stamp>,
}

/// Reads the caption metadata of `jpeg`, whose markers `header` has.
///
/// Costs time in proportion to the metadata. Hostile metadata is bounded by the limits that the
/// header was parsed with and by caps of this unit.
pub fn read(header: &Header, jpeg: &[u8]) -> Reading {
    let mut warnings = Vec::new();
    let xmp = xmp_read::read(header, jpeg, &mut warnings);
    let iim = header.iptc(jpeg);
    warnings.extend(iim.damage.map(|damage| damage.to_string()));
    let iim = iim_read::read(&iim.value.unwrap_or_default(), &mut warnings);
    let blocks = exif_read::Blocks::parse(&header.exif(jpeg), &mut warnings);
    let exif = blocks.read(&mut warnings);
    let orientation = blocks.orientation(&mut warnings);
    Reading { caption: merge(xmp, iim, exif), orientation, warnings }
}

/// Writes the metadata segments of a rendition: Exif, XMP and Photoshop with IIM, ready to stand
/// in a JPEG file.
///
/// A caption that says anything but a position gives exactly one segment of Exif and one of XMP,
/// and one of IIM unless it says only what IIM has no dataset for. `originals` are the original's
/// Exif blocks ([`Header::exif`]): with `keep.gps` the caption's position is written or, if it has
/// none of its own, the original's GPS data. Nothing else of them is copied. The same input gives
/// the same bytes, and an empty caption on an upright picture without a kept position gives none.
///
/// Every segment fits its 65,533 bytes. EXIF texts are cut at some thousand bytes. IIM is cut as
/// its standard says. The XMP packet holds all texts whole; only if it would not fit, it loses in
/// this order: keywords, persons and subject codes from the end of their lists; then all
/// texts but the description are cut to 1,000 bytes; then the description is cut to what is left.
pub fn write(caption: &Caption, originals: &[&[u8]], keep: WriteOptions) -> Vec<u8> {
    let caption = cleaned(caption);
    let mut segments = exif_write::segment(&caption, originals, keep);
    segments.extend(xmp_write::segment(&caption));
    segments.extend(iim_write::segment(&caption));
    segments
}

/// Merges what the three standards say, field by field, in their order of precedence.
fn merge(xmp: StandardFields, iim: StandardFields, exif: StandardFields) -> Caption {
    let created = [&xmp.created, &iim.created, &exif.created]
        .into_iter()
        .flatten()
        .cloned()
        .reduce(|known, other| known.refined_by(&other));
    let mut merged = xmp.caption;
    let terms = merged.usage_terms.is_empty() && merged.instructions.is_empty();
    let rights = merged.copyright_notice.is_empty() && merged.copyright_holder.is_empty();
    for mut lower in [iim.caption, exif.caption] {
        if !terms {
            lower.instructions.clear();
        }
        if !rights {
            lower.copyright_notice.clear();
        }
        fill(&mut merged, lower);
    }
    merged.created = created.map(|stamp| stamp.to_string());
    merged
}

/// Fills the fields that are absent in `caption` from `lower`.
fn fill(caption: &mut Caption, lower: Caption) {
    let mut from = lower;
    for (text, other) in texts(caption).into_iter().zip(texts(&mut from)) {
        if text.is_empty() {
            *text = std::mem::take(other);
        }
    }
    for (list, other) in lists(caption).into_iter().zip(lists(&mut from)) {
        if list.is_empty() {
            *list = std::mem::take(other);
        }
    }
    caption.position = caption.position.or(from.position);
    caption.urgency = caption.urgency.or(from.urgency);
}

/// All single texts of a caption but `created`, the description last.
fn texts(caption: &mut Caption) -> [&mut String; 17] {
    [
        &mut caption.headline,
        &mut caption.title,
        &mut caption.byline,
        &mut caption.byline_role,
        &mut caption.credit,
        &mut caption.source,
        &mut caption.copyright_notice,
        &mut caption.copyright_holder,
        &mut caption.usage_terms,
        &mut caption.instructions,
        &mut caption.city,
        &mut caption.country,
        &mut caption.country_code,
        &mut caption.transmission_reference,
        &mut caption.uri,
        &mut caption.language,
        &mut caption.description,
    ]
}

/// All lists of a caption, the most expendable first.
fn lists(caption: &mut Caption) -> [&mut Vec<String>; 3] {
    [&mut caption.keywords, &mut caption.persons, &mut caption.subject_codes]
}

/// Makes a caption fit to be written: clean texts, no empty entries, a stamp that is one, an
/// urgency and a position that exist.
fn cleaned(caption: &Caption) -> Caption {
    let mut clean = caption.clone();
    for text in texts(&mut clean) {
        *text = text::clean(text);
    }
    for list in lists(&mut clean) {
        *list = list.iter().map(|entry| text::line(entry)).filter(|e| !e.is_empty()).collect();
    }
    clean.created =
        clean.created.and_then(|text| Stamp::parse(&text)).map(|stamp| stamp.to_string());
    clean.urgency = clean.urgency.filter(|urgency| (1..=9).contains(urgency));
    clean.position =
        clean.position.filter(|(latitude, longitude)| is_position(*latitude, *longitude));
    clean
}

/// Tells whether latitude and longitude are on the globe.
fn is_position(latitude: f64, longitude: f64) -> bool {
    (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude)
}

/// Adds a text to a list unless it is empty or the list is full.
fn push(list: &mut Vec<String>, text: &str) {
    let text = text::line(text::cut(text, TEXT_BYTES_MAX));
    if !text.is_empty() && list.len() < LIST_ENTRIES_MAX {
        list.push(text);
    }
}

/// Sets a text unless it is already set.
fn set(place: &mut String, text: &str) {
    if place.is_empty() {
        *place = text::clean(text::cut(text, TEXT_BYTES_MAX));
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod xmp_tests;
