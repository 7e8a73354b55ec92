//! The order in which properties yield when they take too much room.
//!
//! Prompts go first, then descriptions, then details of what the picture shows, then the caption, and rights
//! last. The same order decides what a JPEG file has in extended XMP, which not every program reads.

use CutMethod::{Entries, Rest, Text, Whole};

/// How a property is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutMethod {
    /// The property is dropped: a part of a structure would say something else.
    Whole,
    /// Entries are dropped from the end of the list.
    Entries,
    /// The text is that of the default language alone, and cut to a number of bytes.
    Text,
    /// The text is cut to the room that is left.
    Rest,
}

/// All properties that can be cut, the most expendable first.
///
/// Those that are not in it are never cut: the digital source type, the constraint on data mining, and dates
/// and numbers, which are short.
pub(crate) const CUT_ORDER: [(&str, CutMethod); 61] = [
    ("aIPromptInformation", Whole),
    ("aIPromptWriterNam", Whole),
    ("extDescrAccessibility", Whole),
    ("altTextAccessibility", Whole),
    ("imageRegion", Whole),
    ("artworkOrObjects", Whole),
    ("productsShown", Whole),
    ("personsShown", Whole),
    ("additionalModelInfo", Whole),
    ("modelAges", Whole),
    ("aboutCvTerms", Whole),
    ("genres", Whole),
    ("sceneCodes", Whole),
    ("intellectualGenre", Whole),
    ("organisationInImageCodes", Whole),
    ("organisationInImageNames", Whole),
    ("eventId", Whole),
    ("eventName", Whole),
    ("locationsShown", Whole),
    ("locationCreated", Whole),
    ("creatorContactInfo", Whole),
    ("contributors", Whole),
    ("captionWriter", Whole),
    ("registryEntries", Whole),
    ("imageSupplierImageId", Whole),
    ("suppliers", Whole),
    ("keywords", Entries),
    ("personInImageNames", Entries),
    ("subjectCodes", Entries),
    ("headline", Text),
    ("title", Text),
    ("sublocationName", Text),
    ("cityName", Text),
    ("provinceState", Text),
    ("countryName", Text),
    ("countryCode", Text),
    ("jobid", Text),
    ("instructions", Text),
    ("jobtitle", Text),
    ("source", Text),
    ("digitalImageGuid", Text),
    ("language", Text),
    ("creditLine", Text),
    ("creatorNames", Text),
    ("description", Rest),
    ("embdEncRightsExprs", Whole),
    ("linkedEncRightsExprs", Whole),
    ("propertyReleaseDocuments", Whole),
    ("modelReleaseDocuments", Whole),
    ("propertyReleaseStatus", Whole),
    ("modelReleaseStatus", Whole),
    ("minorModelAgeDisclosure", Whole),
    ("aISystemVersionUsed", Whole),
    ("aISystemUsed", Whole),
    ("imageCreators", Whole),
    ("licensors", Whole),
    ("webstatementRights", Whole),
    ("copyrightOwners", Whole),
    ("otherConstraints", Text),
    ("usageTerms", Text),
    ("copyrightNotice", Text),
];
