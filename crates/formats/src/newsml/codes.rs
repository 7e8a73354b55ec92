//! Vocabularies: which alias of the catalogs stands for which scheme of the document.

/// The aliases of the standards body: `ninat`, `stat`, `cpnat`, `rnd`, `irel`, `medtop`, ….
pub(super) const CATALOG_STANDARD: &str =
    "http://www.iptc.org/std/catalog/catalog.IPTC-G2-Standards_38.xml";

/// Our aliases: `tt`, `ttninjs`, `ttstat` and those of [`SCHEMES`]. `catalog.xml` beside this file
/// is its text.
pub(super) const CATALOG_OURS: &str = "http://tt.se/spec/catalog/1.0/catalog.xml";

/// The schemes that documents name, without the slash at the end, and their aliases. Documents
/// write them with the slash and without; both mean the same.
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

/// The alias of a scheme.
pub(super) fn alias(scheme: &str) -> Option<&'static str> {
    let scheme = scheme.strip_suffix('/').unwrap_or(scheme);
    SCHEMES.iter().find(|(known, _)| *known == scheme).map(|(_, alias)| *alias)
}

/// The news item nature, publishing status, and so on: an alias and a code.
pub(super) fn qcode(alias: &str, code: &str) -> String {
    let mut qcode = String::with_capacity(alias.len() + code.len() + 1);
    qcode.push_str(alias);
    qcode.push(':');
    qcode.push_str(code);
    qcode
}
