//! Lists the properties of IPTC Photo Metadata 2025.1: a row for each, with its XMP name, its type and the rule by
//! which it reaches renditions.
//!
//! The rows follow the standard's TechReference. A test compares their names and types with it, and fails for a
//! new version of the standard. `member.rs` defines the types of values, and `structures.rs` has the members of
//! structured values.

use super::member::NumberKind::*;
use super::member::ValueKind::*;
use super::member::XmpNamespace::*;
use super::member::{Member, Structure, XmpNamespace, bag, one, seq};
use super::structures::*;
use super::vocabulary::{DATA_MINING, DIGITAL_SOURCE_TYPES};

/// The rule by which a property reaches renditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PropertyClass {
    /// Written from the item's document; the original's value is not carried.
    Document,
    /// Carried from the original into every rendition, thumbnails included.
    Short,
    /// Carried from the original into every rendition except thumbnails.
    Carried,
    /// Carried like [`PropertyClass::Carried`], and adapted to the part of the picture that the rendition shows.
    Transformed,
    /// Carried only if the operator allows details of persons.
    PersonDetails,
    /// Neither read nor written.
    Never,
}

/// A property of a picture, and its rule.
#[derive(Debug, Clone, Copy)]
pub struct Property {
    /// Names and type of the property.
    pub member: Member,
    /// The rule by which it reaches renditions.
    pub class: PropertyClass,
}

impl Property {
    /// Finds a property by the TechReference's name.
    pub fn named(name: &str) -> Option<&'static Property> {
        PROPERTIES.iter().find(|property| property.member.name == name)
    }

    /// Finds a property by its XMP name.
    pub fn called(namespace: XmpNamespace, local: &str) -> Option<&'static Property> {
        PROPERTIES.iter().find(|property| property.member.is_called(namespace, local))
    }

    /// Returns whether renditions carry the original's value, which is then part of
    /// [`RightsMetadata`](super::RightsMetadata).
    pub fn is_carried(&self) -> bool {
        !matches!(self.class, PropertyClass::Document | PropertyClass::Never)
    }

    /// Returns whether the property may be a member of an image region.
    ///
    /// Properties of the document describe the whole picture, except for the names of persons: only a region
    /// locates a person in the picture.
    fn is_carried_in_regions(&self) -> bool {
        match self.member.name {
            // A region has no regions, and sizes apply to the whole picture.
            "imageRegion" | "maxAvailWidth" | "maxAvailHeight" => false,
            name => self.is_carried() || name == "personInImageNames",
        }
    }
}

// An image region has the properties of the table as members, so this file lists the members of any structure.
impl Structure {
    /// Returns whether properties of pictures may be members too, as in an image region.
    pub(super) fn any_property(&self) -> bool {
        self.name == IMAGE_REGION.name
    }

    /// Lists the members, in the order in which they are written.
    pub fn members(&self) -> impl Iterator<Item = &'static Member> {
        let properties = if self.any_property() { &PROPERTIES[..] } else { &[] };
        let properties = properties.iter().filter(|property| property.is_carried_in_regions());
        self.members.iter().chain(properties.map(|property| &property.member))
    }

    /// Finds a member by its XMP name.
    pub fn member(&self, namespace: XmpNamespace, local: &str) -> Option<&'static Member> {
        // ExifTool writes this member of a location in the namespace of the structure.
        let namespace = if local == "GPSAltitudeRef" { Exif } else { namespace };
        self.members().find(|member| member.is_called(namespace, local))
    }
}

const fn document(member: Member) -> Property {
    Property { member, class: PropertyClass::Document }
}

const fn short(member: Member) -> Property {
    Property { member, class: PropertyClass::Short }
}

const fn carried(member: Member) -> Property {
    Property { member, class: PropertyClass::Carried }
}

const fn transformed(member: Member) -> Property {
    Property { member, class: PropertyClass::Transformed }
}

const fn person(member: Member) -> Property {
    Property { member, class: PropertyClass::PersonDetails }
}

const fn never(member: Member) -> Property {
    Property { member, class: PropertyClass::Never }
}

/// All properties of the standard, in the order in which they are written.
pub static PROPERTIES: [Property; 66] = [
    document(one("headline", Photoshop, "Headline", Text)),
    document(one("description", Dc, "description", AltLang)),
    document(seq("creatorNames", Dc, "creator", Text)),
    document(one("creditLine", Photoshop, "Credit", Text)),
    document(one("copyrightNotice", Dc, "rights", AltLang)),
    document(one("source", Photoshop, "Source", Text)),
    document(one("dateCreated", Photoshop, "DateCreated", DateTime)),
    document(bag("keywords", Dc, "subject", Text)),
    document(one("cityName", Photoshop, "City", Text)),
    document(one("provinceState", Photoshop, "State", Text)),
    document(one("countryName", Photoshop, "Country", Text)),
    document(one("countryCode", IptcCore, "CountryCode", Text)),
    document(one("sublocationName", IptcCore, "Location", Text)),
    document(bag("personInImageNames", IptcExt, "PersonInImage", Text)),
    short(one(
        "digitalSourceType",
        IptcExt,
        "DigitalSourceType",
        Vocabulary(&DIGITAL_SOURCE_TYPES),
    )),
    short(one("dataMining", Plus, "DataMining", Vocabulary(&DATA_MINING))),
    short(one("otherConstraints", Plus, "OtherConstraints", AltLang)),
    carried(one("altTextAccessibility", IptcCore, "AltTextAccessibility", AltLang)),
    carried(one("extDescrAccessibility", IptcCore, "ExtDescrAccessibility", AltLang)),
    carried(one("title", Dc, "title", AltLang)),
    carried(one("jobtitle", Photoshop, "AuthorsPosition", Text)),
    carried(one("jobid", Photoshop, "TransmissionReference", Text)),
    carried(one("captionWriter", Photoshop, "CaptionWriter", Text)),
    carried(one("instructions", Photoshop, "Instructions", Text)),
    carried(one("intellectualGenre", IptcCore, "IntellectualGenre", Text)),
    carried(bag("genres", IptcExt, "Genre", Structure(&CV_TERM))),
    carried(bag("sceneCodes", IptcCore, "Scene", Text)),
    carried(bag("subjectCodes", IptcCore, "SubjectCode", Text)),
    carried(bag("aboutCvTerms", IptcExt, "AboutCvTerm", Structure(&CV_TERM))),
    carried(one("usageTerms", XmpRights, "UsageTerms", AltLang)),
    carried(one("webstatementRights", XmpRights, "WebStatement", Url)),
    carried(seq("licensors", Plus, "Licensor", Structure(&LICENSOR))),
    carried(seq("copyrightOwners", Plus, "CopyrightOwner", Structure(&COPYRIGHT_OWNER))),
    carried(seq("imageCreators", Plus, "ImageCreator", Structure(&IMAGE_CREATOR))),
    carried(seq("suppliers", Plus, "ImageSupplier", Structure(&IMAGE_SUPPLIER))),
    carried(one("imageSupplierImageId", Plus, "ImageSupplierImageID", Text)),
    carried(bag("contributors", IptcExt, "Contributor", Structure(&ENTITY_W_ROLE))),
    carried(one(
        "creatorContactInfo",
        IptcCore,
        "CreatorContactInfo",
        Structure(&CREATOR_CONTACT_INFO),
    )),
    carried(bag("registryEntries", IptcExt, "RegistryId", Structure(&REGISTRY_ENTRY))),
    carried(one("digitalImageGuid", IptcExt, "DigImageGUID", Text)),
    carried(bag(
        "embdEncRightsExprs",
        IptcExt,
        "EmbdEncRightsExpr",
        Structure(&EMBD_ENC_RIGHTS_EXPR),
    )),
    carried(bag(
        "linkedEncRightsExprs",
        IptcExt,
        "LinkedEncRightsExpr",
        Structure(&LINKED_ENC_RIGHTS_EXPR),
    )),
    carried(one("modelReleaseStatus", Plus, "ModelReleaseStatus", Uri)),
    carried(bag("modelReleaseDocuments", Plus, "ModelReleaseID", Text)),
    carried(one("minorModelAgeDisclosure", Plus, "MinorModelAgeDisclosure", Uri)),
    carried(one("propertyReleaseStatus", Plus, "PropertyReleaseStatus", Uri)),
    carried(bag("propertyReleaseDocuments", Plus, "PropertyReleaseID", Text)),
    carried(one("aISystemUsed", IptcExt, "AISystemUsed", Text)),
    carried(one("aISystemVersionUsed", IptcExt, "AISystemVersionUsed", Text)),
    carried(one("aIPromptInformation", IptcExt, "AIPromptInformation", Text)),
    carried(one("aIPromptWriterNam", IptcExt, "AIPromptWriterName", Text)),
    carried(bag("artworkOrObjects", IptcExt, "ArtworkOrObject", Structure(&ARTWORK_OR_OBJECT))),
    carried(bag("eventId", IptcExt, "EventId", Uri)),
    carried(one("eventName", IptcExt, "Event", AltLang)),
    carried(bag("organisationInImageNames", IptcExt, "OrganisationInImageName", Text)),
    carried(bag("organisationInImageCodes", IptcExt, "OrganisationInImageCode", Text)),
    carried(bag("productsShown", IptcExt, "ProductInImage", Structure(&PRODUCT_W_GTIN))),
    transformed(bag("imageRegion", IptcExt, "ImageRegion", Structure(&IMAGE_REGION))),
    transformed(bag("locationCreated", IptcExt, "LocationCreated", Structure(&LOCATION))),
    transformed(bag("locationsShown", IptcExt, "LocationShown", Structure(&LOCATION))),
    transformed(one("maxAvailWidth", IptcExt, "MaxAvailWidth", Number(Integer))),
    transformed(one("maxAvailHeight", IptcExt, "MaxAvailHeight", Number(Integer))),
    person(bag("personsShown", IptcExt, "PersonInImageWDetails", Structure(&PERSON_W_DETAILS))),
    person(one("additionalModelInfo", IptcExt, "AddlModelInfo", Text)),
    person(bag("modelAges", IptcExt, "ModelAge", Number(Integer))),
    never(one("imageRating", Xmp, "Rating", Number(Decimal))),
];
