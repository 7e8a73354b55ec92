//! Maps the schemes of documents to the aliases of vocabularies in the catalogs.

/// The catalog of the IPTC with the aliases `ninat`, `stat`, `cpnat`, `rnd`, `irel`, `medtop`, ….
pub(super) const CATALOG_STANDARD: &str =
    "http://www.iptc.org/std/catalog/catalog.IPTC-G2-Standards_38.xml";

/// Our catalog with the aliases `tt`, `ttninjs`, `ttstat` and the aliases in [`SCHEMES`]. Its text is in
/// `catalog.xml` next to this file.
pub(super) const CATALOG_OURS: &str = "http://tt.se/spec/catalog/1.0/catalog.xml";

/// The schemes used in documents, without their trailing slash, and their aliases. Documents write them with
/// or without the slash; both mean the same.
pub(crate) const SCHEMES: [(&str, &str); 9] = [
    ("http://cv.iptc.org/newscodes/genre", "genre"),
    ("http://cv.iptc.org/newscodes/mediatopic", "medtop"),
    ("http://cv.iptc.org/newscodes/subjectcode", "subj"),
    ("http://tt.se/spec/keyword/1.0", "ttkeyword"),
    ("http://tt.se/spec/person/1.0", "ttperson"),
    ("http://tt.se/spec/place/1.0", "ttplace"),
    ("http://tt.se/spec/product/1.0", "ttproduct"),
    ("http://tt.se/spec/story/1.0", "ttstory"),
    ("http://tt.se/spec/subref/1.0", "ttsubref"),
];

/// Finds the alias of a scheme.
pub(super) fn alias(scheme: &str) -> Option<&'static str> {
    let scheme = scheme.strip_suffix('/').unwrap_or(scheme);
    SCHEMES.iter().find(|(candidate, _)| *candidate == scheme).map(|(_, alias)| *alias)
}
