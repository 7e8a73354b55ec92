//! Defines the structured values of IPTC Photo Metadata 2025.1 and their members.

use super::member::NumberKind::*;
use super::member::ValueKind::*;
use super::member::XmpNamespace::*;
use super::member::{Structure, bag, one, seq};

pub(super) static CREATOR_CONTACT_INFO: Structure = Structure {
    name: "CreatorContactInfo",
    members: &[
        one("address", IptcCore, "CiAdrExtadr", Text),
        one("city", IptcCore, "CiAdrCity", Text),
        one("country", IptcCore, "CiAdrCtry", Text),
        one("emailwork", IptcCore, "CiEmailWork", Text),
        one("phonework", IptcCore, "CiTelWork", Text),
        one("postalCode", IptcCore, "CiAdrPcode", Text),
        one("region", IptcCore, "CiAdrRegion", Text),
        one("weburlwork", IptcCore, "CiUrlWork", Url),
    ],
};

pub(super) static ARTWORK_OR_OBJECT: Structure = Structure {
    name: "ArtworkOrObject",
    members: &[
        one("circaDateCreated", IptcExt, "AOCircaDateCreated", Text),
        one("contentDescription", IptcExt, "AOContentDescription", AltLang),
        one("contributionDescription", IptcExt, "AOContributionDescription", AltLang),
        one("copyrightNotice", IptcExt, "AOCopyrightNotice", Text),
        seq("creatorNames", IptcExt, "AOCreator", Text),
        seq("creatorIdentifiers", IptcExt, "AOCreatorId", Uri),
        one("currentCopyrightOwnerIdentifier", IptcExt, "AOCurrentCopyrightOwnerId", Uri),
        one("currentCopyrightOwnerName", IptcExt, "AOCurrentCopyrightOwnerName", Text),
        one("currentLicensorIdentifier", IptcExt, "AOCurrentLicensorId", Uri),
        one("currentLicensorName", IptcExt, "AOCurrentLicensorName", Text),
        one("dateCreated", IptcExt, "AODateCreated", DateTime),
        one("physicalDescription", IptcExt, "AOPhysicalDescription", AltLang),
        one("source", IptcExt, "AOSource", Text),
        one("sourceInventoryNr", IptcExt, "AOSourceInvNo", Text),
        one("sourceInventoryUrl", IptcExt, "AOSourceInvURL", Url),
        bag("stylePeriod", IptcExt, "AOStylePeriod", Text),
        one("title", IptcExt, "AOTitle", AltLang),
    ],
};

pub(super) static CV_TERM: Structure = Structure {
    name: "CvTerm",
    members: &[
        one("cvId", IptcExt, "CvId", Uri),
        one("cvTermId", IptcExt, "CvTermId", Uri),
        one("cvTermName", IptcExt, "CvTermName", AltLang),
        one("cvTermRefinedAbout", IptcExt, "CvTermRefinedAbout", Uri),
    ],
};

pub(super) static EMBD_ENC_RIGHTS_EXPR: Structure = Structure {
    name: "EmbdEncRightsExpr",
    members: &[
        one("encRightsExpr", IptcExt, "EncRightsExpr", Text),
        one("rightsExprEncType", IptcExt, "RightsExprEncType", Text),
        one("rightsExprLangId", IptcExt, "RightsExprLangId", Uri),
    ],
};

pub(super) static ENTITY: Structure = Structure {
    name: "Entity",
    members: &[bag("identifiers", Xmp, "Identifier", Uri), one("name", IptcExt, "Name", AltLang)],
};

pub(super) static ENTITY_W_ROLE: Structure = Structure {
    name: "EntityWRole",
    members: &[
        bag("identifiers", Xmp, "Identifier", Uri),
        one("name", IptcExt, "Name", AltLang),
        bag("role", IptcExt, "Role", Text),
    ],
};

pub(super) static IMAGE_REGION: Structure = Structure {
    name: "ImageRegion",
    members: &[
        one("regionBoundary", IptcExt, "RegionBoundary", Structure(&REGION_BOUNDARY)),
        one("rId", IptcExt, "rId", Text),
        one("name", IptcExt, "Name", AltLang),
        bag("rCtype", IptcExt, "rCtype", Structure(&ENTITY)),
        bag("rRole", IptcExt, "rRole", Structure(&ENTITY)),
    ],
};

pub(super) static REGION_BOUNDARY: Structure = Structure {
    name: "RegionBoundary",
    members: &[
        one("rbShape", IptcExt, "rbShape", Text),
        one("rbUnit", IptcExt, "rbUnit", Text),
        one("rbX", IptcExt, "rbX", Number(Decimal)),
        one("rbY", IptcExt, "rbY", Number(Decimal)),
        one("rbW", IptcExt, "rbW", Number(Decimal)),
        one("rbH", IptcExt, "rbH", Number(Decimal)),
        one("rbRx", IptcExt, "rbRx", Number(Decimal)),
        seq("rbVertices", IptcExt, "rbVertices", Structure(&REGION_BOUNDARY_POINT)),
    ],
};

pub(super) static REGION_BOUNDARY_POINT: Structure = Structure {
    name: "RegionBoundaryPoint",
    members: &[
        one("rbX", IptcExt, "rbX", Number(Decimal)),
        one("rbY", IptcExt, "rbY", Number(Decimal)),
    ],
};

pub(super) static LINKED_ENC_RIGHTS_EXPR: Structure = Structure {
    name: "LinkedEncRightsExpr",
    members: &[
        one("linkedRightsExpr", IptcExt, "LinkedRightsExpr", Url),
        one("rightsExprEncType", IptcExt, "RightsExprEncType", Uri),
        one("rightsExprLangId", IptcExt, "RightsExprLangId", Uri),
    ],
};

pub(super) static LOCATION: Structure = Structure {
    name: "Location",
    members: &[
        one("city", IptcExt, "City", Text),
        one("countryCode", IptcExt, "CountryCode", Text),
        one("countryName", IptcExt, "CountryName", Text),
        one("gpsAltitude", Exif, "GPSAltitude", Number(Altitude)),
        one("gpsAltitudeRef", Exif, "GPSAltitudeRef", Number(Integer)),
        one("gpsLatitude", Exif, "GPSLatitude", Number(Latitude)),
        one("gpsLongitude", Exif, "GPSLongitude", Number(Longitude)),
        bag("identifiers", IptcExt, "LocationId", Uri),
        one("name", IptcExt, "LocationName", AltLang),
        one("provinceState", IptcExt, "ProvinceState", Text),
        one("sublocation", IptcExt, "Sublocation", Text),
        one("worldRegion", IptcExt, "WorldRegion", Text),
    ],
};

pub(super) static PERSON_W_DETAILS: Structure = Structure {
    name: "PersonWDetails",
    members: &[
        bag("characteristics", IptcExt, "PersonCharacteristic", Structure(&CV_TERM)),
        one("description", IptcExt, "PersonDescription", AltLang),
        bag("identifiers", IptcExt, "PersonId", Uri),
        one("name", IptcExt, "PersonName", AltLang),
    ],
};

pub(super) static PRODUCT_W_GTIN: Structure = Structure {
    name: "ProductWGtin",
    members: &[
        one("description", IptcExt, "ProductDescription", AltLang),
        one("gtin", IptcExt, "ProductGTIN", Text),
        bag("identifiers", IptcExt, "ProductId", Uri),
        one("name", IptcExt, "ProductName", AltLang),
    ],
};

pub(super) static REGISTRY_ENTRY: Structure = Structure {
    name: "RegistryEntry",
    members: &[
        one("assetIdentifier", IptcExt, "RegItemId", Text),
        one("registryIdentifier", IptcExt, "RegOrgId", Text),
        one("role", IptcExt, "RegEntryRole", Uri),
    ],
};

pub(super) static LICENSOR: Structure = Structure {
    name: "Licensor",
    members: &[
        one("licensorId", Plus, "LicensorID", Text),
        one("licensorName", Plus, "LicensorName", Text),
        one("licensorAddress", Plus, "LicensorStreetAddress", Text),
        one("licensorAddressDetail", Plus, "LicensorExtendedAddress", Text),
        one("licensorCity", Plus, "LicensorCity", Text),
        one("licensorStateProvince", Plus, "LicensorRegion", Text),
        one("licensorPostalCode", Plus, "LicensorPostalCode", Text),
        one("licensorCountryName", Plus, "LicensorCountry", Text),
        one("licensorTelephoneType1", Plus, "LicensorTelephoneType1", Uri),
        one("licensorTelephone1", Plus, "LicensorTelephone1", Text),
        one("licensorTelephoneType2", Plus, "LicensorTelephoneType2", Uri),
        one("licensorTelephone2", Plus, "LicensorTelephone2", Text),
        one("licensorEmail", Plus, "LicensorEmail", Text),
        one("licensorUrl", Plus, "LicensorURL", Url),
    ],
};

pub(super) static COPYRIGHT_OWNER: Structure = Structure {
    name: "CopyrightOwner",
    members: &[
        one("copyrightOwnerId", Plus, "CopyrightOwnerID", Text),
        one("copyrightOwnerName", Plus, "CopyrightOwnerName", Text),
    ],
};

pub(super) static IMAGE_CREATOR: Structure = Structure {
    name: "ImageCreator",
    members: &[
        one("imageCreatorId", Plus, "ImageCreatorID", Text),
        one("imageCreatorName", Plus, "ImageCreatorName", Text),
    ],
};

pub(super) static IMAGE_SUPPLIER: Structure = Structure {
    name: "ImageSupplier",
    members: &[
        one("imageSupplierId", Plus, "ImageSupplierID", Text),
        one("imageSupplierName", Plus, "ImageSupplierName", Text),
    ],
};
