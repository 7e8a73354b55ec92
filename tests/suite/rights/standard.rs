//! The properties of IPTC Photo Metadata 2025.1 by the standard's technical reference, and the rule of each.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::common::checkout;

/// The rule by which a property reaches renditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// Written from the item's document, not into thumbnails.
    Document,
    /// From the original into every rendition, thumbnails included.
    Short,
    /// From the original, not into thumbnails.
    Carried,
    /// Likewise, changed to describe what the rendition shows.
    Transformed,
    /// Likewise, and only with `media.keep_person_details`.
    PersonDetails,
    /// Into no rendition.
    Never,
}

const RULES: [(Rule, &[&str]); 6] = [
    (
        Rule::Document,
        &[
            "headline",
            "description",
            "creatorNames",
            "creditLine",
            "copyrightNotice",
            "source",
            "dateCreated",
            "keywords",
            "cityName",
            "provinceState",
            "countryName",
            "countryCode",
            "sublocationName",
            "personInImageNames",
        ],
    ),
    (Rule::Short, &["digitalSourceType", "dataMining", "otherConstraints"]),
    (
        Rule::Carried,
        &[
            "altTextAccessibility",
            "extDescrAccessibility",
            "title",
            "jobtitle",
            "jobid",
            "captionWriter",
            "instructions",
            "intellectualGenre",
            "genres",
            "sceneCodes",
            "subjectCodes",
            "aboutCvTerms",
            "usageTerms",
            "webstatementRights",
            "licensors",
            "copyrightOwners",
            "imageCreators",
            "suppliers",
            "imageSupplierImageId",
            "contributors",
            "creatorContactInfo",
            "registryEntries",
            "digitalImageGuid",
            "embdEncRightsExprs",
            "linkedEncRightsExprs",
            "modelReleaseStatus",
            "modelReleaseDocuments",
            "minorModelAgeDisclosure",
            "propertyReleaseStatus",
            "propertyReleaseDocuments",
            "aISystemUsed",
            "aISystemVersionUsed",
            "aIPromptInformation",
            "aIPromptWriterNam",
            "artworkOrObjects",
            "eventId",
            "eventName",
            "organisationInImageNames",
            "organisationInImageCodes",
            "productsShown",
        ],
    ),
    (
        Rule::Transformed,
        &["imageRegion", "locationCreated", "locationsShown", "maxAvailWidth", "maxAvailHeight"],
    ),
    (Rule::PersonDetails, &["personsShown", "additionalModelInfo", "modelAges"]),
    (Rule::Never, &["imageRating"]),
];

/// A property of the standard.
pub(super) struct Property {
    /// The name in the technical reference.
    pub(super) name: String,
    pub(super) rule: Rule,
    /// The tag that exiftool reads from XMP.
    pub(super) xmp: String,
    /// The tags that exiftool reads from IIM.
    pub(super) iim: Vec<String>,
    /// The tags that exiftool reads from Exif.
    pub(super) exif: Vec<String>,
}

impl Property {
    /// Returns whether a tag is this property in XMP: a text in another language has that behind the name.
    pub(super) fn is_xmp(&self, tag: &str) -> bool {
        tag.strip_prefix(&self.xmp).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }

    /// Returns whether a tag is this property in any of the three standards.
    pub(super) fn is_tag(&self, tag: &str) -> bool {
        self.is_xmp(tag) || self.iim.iter().chain(&self.exif).any(|known| known == tag)
    }
}

fn reference() -> Value {
    let text = fs::read_to_string(checkout("tests/schemas/iptc-pmd-techreference_2025.1.json"));
    serde_json::from_str(&text.expect("the technical reference")).expect("JSON")
}

/// All properties of the standard.
pub(super) fn properties() -> Vec<Property> {
    let reference = reference();
    let top = &reference["ipmd_top"];
    let rules = RULES.iter().flat_map(|(rule, names)| names.iter().map(move |name| (*rule, name)));
    let property = |(rule, name): (Rule, &&str)| {
        // A date is in two or three tags.
        let tags = |key: &str| -> Vec<String> {
            let tags = top[*name][key].as_str().unwrap_or_default().split('+');
            tags.filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
        };
        let [xmp]: [String; 1] = tags("etXMP")
            .try_into()
            .unwrap_or_else(|tags: Vec<String>| panic!("{name}: {tags:?}"));
        let (iim, exif) = (tags("etIIM"), tags("etEXIF"));
        Property { name: (*name).to_owned(), rule, xmp, iim, exif }
    };
    rules.map(property).collect()
}

/// The property with that name.
pub(super) fn property(name: &str) -> Property {
    let mut all = properties().into_iter();
    all.find(|property| property.name == name).unwrap_or_else(|| panic!("no property {name}"))
}

#[test]
fn every_property_of_the_standard_has_one_rule() {
    let reference = reference();
    let top = reference["ipmd_top"].as_object().expect("properties");
    let expected: BTreeSet<&str> = top.keys().map(String::as_str).collect();
    let named: Vec<&str> = RULES.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    assert_eq!(named.len(), 66);
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), expected);
}
