//! Writes `rightsInfo`: the rights holder and the usage terms; and, since 2.35, the rights and provenance of the
//! picture.

use super::item::{self, ItemSource};
use super::xml::XmlWriter;
use super::{lexical, text};
use crate::rights::SourceTypeIndicator;
use metadata::{Licensor, RightsMetadata};
use std::borrow::Cow;

/// The XMP properties, by their URIs, that have the same meaning as extension properties.
mod property {
    pub(super) const LICENSOR: &str = "http://ns.useplus.org/ldf/xmp/1.0/Licensor";
    pub(super) const OTHER_CONSTRAINTS: &str =
        "http://ns.useplus.org/ldf/xmp/1.0/OtherConstraints";
    pub(super) const WEB_STATEMENT: &str = "http://ns.adobe.com/xap/1.0/rights/WebStatement";
}

/// The descriptions of a picture for people who do not see it, with their roles.
const DESCRIPTIONS: [(&str, &str); 2] =
    [("altTextAccessibility", "tt:alttext"), ("extDescrAccessibility", "tt:extendeddescription")];

/// Texts about the provenance of a picture, with the properties of XMP that have the same meaning.
const PROVENANCE: [(&str, &str); 4] = [
    ("aISystemUsed", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/AISystemUsed"),
    ("aISystemVersionUsed", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/AISystemVersionUsed"),
    ("aIPromptInformation", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/AIPromptInformation"),
    ("aIPromptWriterNam", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/AIPromptWriterName"),
];

/// Writes the rights of a document and of its picture, or nothing if both have no rights.
pub(super) fn write(xml: &mut XmlWriter, item: &mut ItemSource<'_>) {
    let holder = item.line("copyrightholder");
    let notice = item.text("copyrightnotice");
    let (link, expression) = rights_expression(item);
    let mut stated = item.rights.map(RightsInfo::new).unwrap_or_default();
    // Rights in the document have precedence over rights in the file.
    let stated_terms = item.rights.and_then(|rights| rights.text("usageTerms"));
    let terms = item.text("usageterms").or(stated_terms);
    stated.web_statement = stated.web_statement.map(|of_file| link.unwrap_or(of_file));
    if holder.is_none()
        && notice.is_none()
        && terms.is_none()
        && link.or(expression.map(|e| e.0)).is_none()
        && stated == RightsInfo::default()
    {
        return;
    }
    xml.open("rightsInfo", []);
    item::write_named(xml, ("copyrightHolder", None), holder.as_deref());
    xml.leaf_if_any("copyrightNotice", [], notice);
    xml.leaf_if_any("usageTerms", [], terms);
    if let Some(link) = link {
        xml.empty("link", [("rel", Some("tt:linkedrights")), ("href", Some(link))]);
    }
    if let Some((language, expression)) = expression {
        let attributes = [("langid", Some(language)), ("enctype", Some("text/plain"))];
        xml.leaf("rightsExpressionData", attributes, expression);
    }
    stated.write(xml);
    xml.close("rightsInfo");
}

/// The part of the rights in the picture, besides the usage terms, that has a place in `rightsInfo`.
#[derive(Default, PartialEq, Eq)]
struct RightsInfo<'a> {
    web_statement: Option<&'a str>,
    licensors: Vec<Licensor<'a>>,
    constraints: Option<&'a str>,
    data_mining: Option<&'a str>,
}

impl<'a> RightsInfo<'a> {
    fn new(rights: &'a RightsMetadata) -> Self {
        Self {
            web_statement: rights.text("webstatementRights"),
            licensors: rights.licensors(),
            constraints: rights.text("otherConstraints"),
            data_mining: rights.data_mining(),
        }
    }

    /// Writes the rights after the document's own rights, `dataMining` last as in the schema.
    fn write(&self, xml: &mut XmlWriter) {
        if let Some(page) = self.web_statement {
            let rel = ("reluri", Some(property::WEB_STATEMENT));
            if lexical::is_uri(page) {
                xml.empty("link", [rel, ("href", Some(page))]);
            } else {
                xml.empty("rightsInfoExtProperty", [rel, ("value", Some(page))]);
            }
        }
        for licensor in &self.licensors {
            write_licensor(xml, licensor);
        }
        if let Some(constraints) = self.constraints {
            let rel = ("reluri", Some(property::OTHER_CONSTRAINTS));
            xml.empty("rightsInfoExtProperty", [rel, ("value", Some(constraints))]);
        }
        if let Some(term) = self.data_mining {
            write_term(xml, "dataMining", term);
        }
    }
}

/// Writes a licensor with its identifier, its web address and its name.
fn write_licensor(xml: &mut XmlWriter, licensor: &Licensor<'_>) {
    let element = "rightsInfoExtProperty";
    let id = licensor.id.map(lexical::one_line);
    let attributes = [
        ("literal", id.as_deref()),
        ("reluri", Some(property::LICENSOR)),
        ("value", licensor.url),
    ];
    if let Some(name) = licensor.name {
        xml.open(element, attributes);
        xml.leaf("name", [], &lexical::one_line(name));
        xml.close(element);
    } else {
        xml.empty(element, attributes);
    }
}

/// Returns the digital source type of the picture, overridden by the type of the document; `None` if the picture
/// has no type.
pub(super) fn digital_source_type<'a>(item: &ItemSource<'a>) -> Option<Cow<'a, str>> {
    let of_picture = item.rights?.digital_source_type()?;
    let of_document = SourceTypeIndicator::find(item.members);
    Some(of_document.map_or(Cow::Borrowed(of_picture), |own| Cow::Owned(own.uri())))
}

/// Writes a term of a vocabulary. It is a URI except in files that violate the standard.
pub(super) fn write_term(xml: &mut XmlWriter, element: &'static str, term: &str) {
    if lexical::is_uri(term) {
        xml.empty(element, [("uri", Some(term))]);
    } else {
        xml.empty(element, [("literal", Some(&*lexical::one_line(term)))]);
    }
}

/// Writes the descriptions of a picture for people who do not see it.
pub(super) fn write_descriptions(xml: &mut XmlWriter, rights: &RightsMetadata) {
    for (name, role) in DESCRIPTIONS {
        xml.leaf_if_any("description", [("role", Some(role))], rights.text(name));
    }
}

/// Writes the provenance of a picture as extension properties of the content.
pub(super) fn write_provenance(xml: &mut XmlWriter, rights: &RightsMetadata) {
    for (name, rel) in PROVENANCE {
        if let Some(text) = rights.text(name) {
            let attributes = [("reluri", Some(rel)), ("value", Some(text))];
            xml.empty("contentMetaExtProperty", attributes);
        }
    }
}

/// Returns the URL of the rights, and the language and text of a rights expression.
fn rights_expression<'a>(
    item: &mut ItemSource<'a>,
) -> (Option<&'a str>, Option<(&'a str, &'a str)>) {
    let Some(value) = item.members.get("rightsinfo") else { return (None, None) };
    let Some(members) = value.as_object() else {
        item.about_content.add("rightsinfo", value);
        return (None, None);
    };
    let link = text(members, "linkedrights").filter(|link| lexical::is_uri(link));
    let language = text(members, "langid").filter(|language| lexical::is_uri(language));
    // The schema requires the language, so an expression without one cannot be written.
    let expression = language.zip(text(members, "encodedrights"));
    item.about_content.add_unplaced("rightsinfo/", members, |name, _| match name {
        "linkedrights" => link.is_some(),
        "langid" | "encodedrights" => expression.is_some(),
        _ => false,
    });
    (link, expression)
}
