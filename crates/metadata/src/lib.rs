#![doc = include_str!("../README.md")]
//!
//! The fields of a [`Caption`] are named after the properties of the IPTC standard, which [`rights::table`] maps
//! to XMP; `iim_read.rs` and `exif_read.rs` map them to datasets and tags.

pub mod country;
mod cut_order;
mod date_time;
mod differences;
mod exif_read;
mod exif_write;
mod iim_read;
mod iim_write;
mod properties;
mod rdf_json;
mod rdf_read;
pub mod rights;
mod text;
mod xmp_read;
mod xmp_write;

use std::borrow::Cow;
use std::mem::take;

use serde::Serialize;
use serde_json::{Value, json};

pub use properties::properties;
pub use rights::{Licensor, RightsError, RightsMetadata, RightsView};

use crate::date_time::PartialDateTime;
use geometry::Size;
use jpeg::header::JpegHeader;

/// Maximum number of entries that are read from a list (keywords, persons, subject codes).
const LIST_ENTRIES_MAX: usize = 1_000;
/// Maximum number of bytes that are read from a text; the longest captions have a few thousand.
const TEXT_BYTES_MAX: usize = 65_536;

/// The caption of a photograph: texts, persons, place, rights and identifiers.
///
/// An empty string, an empty list and `None` mean that the field is absent. Texts from [`read`] have no
/// control characters except line feed and tab, and no leading or trailing white space.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Caption {
    /// Headline, a single line.
    pub headline: String,
    /// Slugline: the short title under which a desk files the picture.
    pub title: String,
    /// The caption text itself, which may have several lines.
    pub description: String,
    /// Name of the photographer; several are separated by a comma and a space.
    pub byline: String,
    /// The photographer's role or title.
    pub byline_role: String,
    /// Credit line to publish with the picture.
    pub credit: String,
    /// Source: the original owner or supplier of the picture.
    pub source: String,
    /// Copyright notice to publish.
    pub copyright_notice: String,
    /// Owner of the copyright.
    pub copyright_holder: String,
    /// Terms under which the picture may be used.
    pub usage_terms: String,
    /// Instructions to editors who use the picture.
    pub instructions: String,
    /// Place within the city, such as a square or a building.
    pub sublocation: String,
    /// City in which the picture was taken.
    pub city: String,
    /// State, province or region in which the picture was taken.
    pub province: String,
    /// Name of the country in which the picture was taken.
    pub country: String,
    /// Code of the country, as of ISO 3166: two or three letters or digits.
    pub country_code: String,
    /// Latitude and longitude in degrees, WGS 84, positive to the north and east.
    pub position: Option<(f64, f64)>,
    /// Names of the persons in the picture.
    pub persons: Vec<String>,
    /// IPTC subject codes, such as `13000000`.
    pub subject_codes: Vec<String>,
    /// Keywords, in the order of the file.
    pub keywords: Vec<String>,
    /// Date and time of creation in ISO 8601, such as `2017-02-11T10:15:00+01:00`, without the offset if it is
    /// unknown.
    pub created: Option<String>,
    /// Original transmission reference, which identifies the job.
    pub transmission_reference: String,
    /// Urgency, 1 (most urgent) to 9.
    pub urgency: Option<u8>,
    /// Globally unique identifier of the picture.
    pub uri: String,
    /// Language of the texts as a BCP 47 tag.
    pub language: String,
}

/// The metadata read from a file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileMetadata {
    /// The caption, merged from the three standards.
    pub caption: Caption,
    /// The rights and provenance that renditions carry.
    pub rights: RightsMetadata,
    /// EXIF orientation, 1 to 8; 1 if it is absent or out of range.
    pub orientation: u8,
    /// Descriptions of broken or contradictory metadata, for logs. They contain no text from the file.
    pub warnings: Vec<String>,
}

impl Caption {
    /// Clears the fields that `rights` also has, so that the values of `rights` are written instead.
    pub fn yield_to(&mut self, rights: &RightsMetadata) {
        for (name, text) in texts(self) {
            if rights.get(name).is_some() {
                text.clear();
            }
        }
        for (name, list) in lists(self) {
            if rights.get(name).is_some() {
                list.clear();
            }
        }
    }

    /// Returns the creator, the credit line and the copyright notice, or else the holder, without everything else.
    pub fn credits(&self) -> Caption {
        let holder = self.copyright_notice.is_empty().then(|| self.copyright_holder.clone());
        Caption {
            byline: self.byline.clone(),
            credit: self.credit.clone(),
            copyright_notice: self.copyright_notice.clone(),
            copyright_holder: holder.unwrap_or_default(),
            ..Caption::default()
        }
    }

    /// Returns the copyright notice, or else the holder, for standards with one place for both.
    fn copyright(&self) -> &str {
        let notice = &self.copyright_notice;
        if notice.is_empty() { &self.copyright_holder } else { notice }
    }

    /// Returns whether any field is set apart from the position, which is written to EXIF only.
    fn has_text(&self) -> bool {
        Caption { position: None, ..self.clone() } != Caption::default()
    }
}

/// Options of [`write()`] for metadata outside the IPTC properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// The EXIF orientation to write, 1 to 8; any other value is written as 1.
    pub orientation: u8,
    /// True if the position at which the picture was taken is written.
    pub gps: bool,
    /// The picture of the file; `None` if it is unknown, which leaves out three tags that EXIF requires of a JPEG.
    pub picture: Option<EmbeddingPicture>,
}

/// The picture of the file in which metadata is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingPicture {
    /// The size in the orientation in which the pixels are stored.
    pub size: Size,
    /// The colours of its pixels.
    pub colours: PictureColours,
}

/// The colours of a picture, as EXIF distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureColours {
    /// The colours were converted to sRGB.
    Srgb,
    /// The colours are those of the original file.
    Original {
        /// True if the file has the ICC profile of the original.
        has_profile: bool,
    },
}

/// The metadata blocks of a file, each in the format of its standard; empty blocks are omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddedMetadata {
    /// The EXIF block, a TIFF file.
    pub exif: Vec<u8>,
    /// The XMP packet, RDF in XML, UTF-8.
    pub xmp: Vec<u8>,
    /// The same properties for a JPEG file, if `xmp` does not fit into a segment.
    pub split_xmp: Option<SplitXmp>,
    /// The IIM datasets in a Photoshop image resource.
    pub iim: Vec<u8>,
}

/// An XMP packet in two parts, of which only the first part has to fit into a JPEG segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitXmp {
    /// The main packet, which refers to the extended XMP.
    pub main: Vec<u8>,
    /// The extended XMP, without the header and trailer of a packet.
    pub extended: Vec<u8>,
}

impl EmbeddedMetadata {
    /// Returns the blocks as JPEG segments, to be placed after the JFIF segment of a file.
    pub fn jpeg_segments(&self) -> Vec<u8> {
        let xmp = match &self.split_xmp {
            Some(split) => xmp_write::split_segments(split),
            None => xmp_write::segment(&self.xmp),
        };
        [exif_write::segment(&self.exif), xmp, iim_write::segment(&self.iim)].concat()
    }
}

/// The fields read from one of the three standards.
#[derive(Debug, Default)]
struct StandardFields {
    /// All fields except `created`, which has its own field below.
    caption: Caption,
    created: Option<PartialDateTime>,
    rights: RightsMetadata,
}

/// Reads the caption and the rights of `jpeg`; `header` must have been parsed from it.
///
/// Never fails: broken metadata causes warnings, and the result holds all readable parts. The time is proportional
/// to the size of the metadata, which is bounded by the limits with which the header was parsed, and by this
/// crate's limits on lists, texts and nesting.
///
/// ```
/// use jpeg::header::JpegHeader;
/// use jpeg::samples::{LIMITS, file};
/// use metadata::{Caption, RightsMetadata, WriteOptions, read, write};
///
/// let caption = Caption { city: "Luleå".to_owned(), ..Caption::default() };
/// let options = WriteOptions { orientation: 6, gps: false, picture: None };
/// let jpeg = file(&write(&caption, &RightsMetadata::default(), &[], options));
/// let reading = read(&JpegHeader::parse(&jpeg, &LIMITS)?, &jpeg);
/// assert_eq!((reading.caption.city.as_str(), reading.orientation), ("Luleå", 6));
/// # Ok::<(), jpeg::header::HeaderError>(())
/// ```
pub fn read(header: &JpegHeader, jpeg: &[u8]) -> FileMetadata {
    let mut warnings = Vec::new();
    let mut xmp = xmp_read::read(header, jpeg, &mut warnings);
    let iim = header.iptc(jpeg);
    warnings.extend(iim.damage.map(|damage| damage.to_string()));
    let mut iim = iim_read::read(&iim.value.unwrap_or_default(), &mut warnings);
    let blocks = exif_read::ExifBlocks::parse(&header.exif(jpeg), &mut warnings);
    let exif = blocks.read(&mut warnings);
    let orientation = blocks.orientation(&mut warnings);
    warnings.extend(differences::warnings(&xmp, &iim, &exif));
    let rights = take(&mut xmp.rights).completed(take(&mut iim.rights));
    let caption = merge(xmp, iim, exif);
    let mut rights = properties::with_caption(rights, &caption);
    if rights.shorten() {
        warnings.push("the properties of rights are too large".to_owned());
    }
    FileMetadata { caption, rights, orientation, warnings }
}

/// Writes a caption and rights as complete JPEG segments: Exif, XMP, and Photoshop with IIM.
///
/// The segments must be placed before the picture data of a file, for instance with
/// [`rewrite_metadata`](jpeg::rewrite::rewrite_metadata). A caption with any field apart from a position gives
/// exactly one Exif segment and an XMP packet, and one IIM segment unless IIM has no dataset for its fields.
/// Rights alone give only XMP. The same input gives the same bytes. An empty caption without rights, with
/// orientation 1 and without a position gives no segment.
///
/// [`properties()`] describes which value is written if both the caption and the rights have one. The rights
/// should be adapted to the rendition with [`RightsMetadata::shown`].
///
/// `originals` are the Exif blocks of the original file ([`JpegHeader::exif`]), or empty. With
/// [`WriteOptions::gps`] the position of the caption is written or, if it has no position, the GPS data of
/// `originals`. Nothing else is copied from them.
///
/// Every segment is within the limit of 65,533 bytes. EXIF texts are truncated at several thousand bytes, IIM
/// texts at the lengths of the standard. XMP holds all properties completely; properties that do not fit into its
/// segment are written to extended XMP. A packet of more than 256 KiB is shortened in this order:
///
/// - The prompts of AI systems, the descriptions for accessibility, image regions and other details of the
///   picture's content, contact details and numbers are dropped.
/// - Keywords, persons and subject codes are dropped from the end of their lists.
/// - Texts are truncated to 1,000 bytes, and the description to the remaining room.
/// - The properties of rights are dropped.
///
/// The digital source type and the constraint on data mining are always complete.
pub fn write(
    caption: &Caption,
    rights: &RightsMetadata,
    originals: &[&[u8]],
    options: WriteOptions,
) -> Vec<u8> {
    build_embedded(caption, rights, originals, options).jpeg_segments()
}

/// Builds the metadata blocks of a file in any format, under the rules of [`write()`].
pub fn build_embedded(
    caption: &Caption,
    rights: &RightsMetadata,
    originals: &[&[u8]],
    options: WriteOptions,
) -> EmbeddedMetadata {
    let caption = properties::completed(&clean_caption(caption), rights);
    let mut all = properties::merged(&caption, rights);
    for member in &xmp_read::OTHERS {
        let value = match member.name {
            "urgency" => caption.urgency.map(Value::from),
            "language" if !caption.language.is_empty() => Some(json!([caption.language])),
            _ => None,
        };
        all.extend(value.map(|value| (member, Cow::Owned(value))));
    }
    let (xmp, split_xmp) = xmp_write::blocks(all);
    EmbeddedMetadata {
        exif: exif_write::block(&caption, originals, options),
        xmp,
        split_xmp,
        iim: iim_write::block(&caption, rights),
    }
}

/// Merges the three standards field by field, in order of precedence.
fn merge(xmp: StandardFields, iim: StandardFields, exif: StandardFields) -> Caption {
    // One standard may lack the time or the offset that a different standard has.
    let created = [&xmp.created, &iim.created, &exif.created]
        .into_iter()
        .flatten()
        .cloned()
        .reduce(|first, second| first.refined_by(&second));
    let mut merged = xmp.caption;
    // IIM and EXIF store these pairs of fields together, so they are read only if XMP has neither field.
    let terms = merged.usage_terms.is_empty() && merged.instructions.is_empty();
    let rights = merged.copyright_notice.is_empty() && merged.copyright_holder.is_empty();
    for mut lower in [iim.caption, exif.caption] {
        if !terms {
            lower.instructions.clear();
        }
        if !rights {
            lower.copyright_notice.clear();
        }
        fill_absent(&mut merged, lower);
    }
    merged.created = created.map(|stamp| stamp.to_string());
    merged
}

/// Fills the fields that are absent in `caption` from `lower`.
fn fill_absent(caption: &mut Caption, lower: Caption) {
    let mut from = lower;
    for ((_, text), (_, other)) in texts(caption).into_iter().zip(texts(&mut from)) {
        if text.is_empty() {
            *text = take(other);
        }
    }
    for ((_, list), (_, other)) in lists(caption).into_iter().zip(lists(&mut from)) {
        if list.is_empty() {
            *list = take(other);
        }
    }
    caption.position = caption.position.or(from.position);
    caption.urgency = caption.urgency.or(from.urgency);
}

/// Returns all text fields of a caption except `created`, each with the TechReference's name of the property.
fn texts(caption: &mut Caption) -> [(&'static str, &mut String); 19] {
    [
        ("headline", &mut caption.headline),
        ("title", &mut caption.title),
        ("creatorNames", &mut caption.byline),
        ("jobtitle", &mut caption.byline_role),
        ("creditLine", &mut caption.credit),
        ("source", &mut caption.source),
        ("copyrightNotice", &mut caption.copyright_notice),
        ("copyrightOwners", &mut caption.copyright_holder),
        ("usageTerms", &mut caption.usage_terms),
        ("instructions", &mut caption.instructions),
        ("sublocationName", &mut caption.sublocation),
        ("cityName", &mut caption.city),
        ("provinceState", &mut caption.province),
        ("countryName", &mut caption.country),
        ("countryCode", &mut caption.country_code),
        ("jobid", &mut caption.transmission_reference),
        ("digitalImageGuid", &mut caption.uri),
        // The language of the texts is not a property of the standard.
        ("language", &mut caption.language),
        ("description", &mut caption.description),
    ]
}

/// Returns all list fields of a caption, each with the TechReference's name of the property.
fn lists(caption: &mut Caption) -> [(&'static str, &mut Vec<String>); 3] {
    [
        ("keywords", &mut caption.keywords),
        ("personInImageNames", &mut caption.persons),
        ("subjectCodes", &mut caption.subject_codes),
    ]
}

/// Prepares a caption for writing: cleans texts, and drops empty entries and invalid dates, urgencies and
/// positions.
fn clean_caption(caption: &Caption) -> Caption {
    let mut clean = caption.clone();
    for (_, text) in texts(&mut clean) {
        *text = text::clean(text);
    }
    for (_, list) in lists(&mut clean) {
        *list = list.iter().map(|entry| text::line(entry)).filter(|e| !e.is_empty()).collect();
    }
    clean.created = clean
        .created
        .and_then(|text| PartialDateTime::parse(&text))
        .map(|stamp| stamp.to_string());
    clean.urgency = clean.urgency.filter(|urgency| (1..=9).contains(urgency));
    clean.position =
        clean.position.filter(|(latitude, longitude)| is_position(*latitude, *longitude));
    clean
}

/// Returns whether latitude and longitude are in their valid ranges, in degrees.
fn is_position(latitude: f64, longitude: f64) -> bool {
    (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude)
}

/// Adds a text to a list unless it is empty or the list is full.
fn push(list: &mut Vec<String>, text: &str) {
    // Cut first, so that the cost of cleaning a hostile text is bounded.
    let text = text::line(text::cut(text, TEXT_BYTES_MAX));
    if !text.is_empty() && list.len() < LIST_ENTRIES_MAX {
        list.push(text);
    }
}

/// Sets a text unless it is already set.
fn set_if_absent(field: &mut String, text: &str) {
    if field.is_empty() {
        *field = text::clean(text::cut(text, TEXT_BYTES_MAX));
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod xmp_tests;
