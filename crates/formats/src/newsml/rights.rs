//! Writes `rightsInfo`: the rights holder and the usage terms.

use super::item;
use super::item::ItemSource;
use super::lexical;
use super::xml::XmlWriter;
use serde_json::Value;
use std::io;

/// Writes the rights of a document, or nothing if it states none.
pub(super) fn write(xml: &mut XmlWriter<'_>, item: &mut ItemSource<'_>) -> io::Result<()> {
    let holder = item.line("copyrightholder");
    let notice = item.text("copyrightnotice");
    let terms = item.text("usageterms");
    let (link, expression) = rights_expression(item);
    if holder.is_none()
        && notice.is_none()
        && terms.is_none()
        && link.or(expression.map(|e| e.0)).is_none()
    {
        return Ok(());
    }
    xml.open("rightsInfo", [])?;
    if let Some(holder) = holder {
        item::write_named(xml, ("copyrightHolder", None), &holder)?;
    }
    if let Some(notice) = notice {
        xml.leaf("copyrightNotice", [], notice)?;
    }
    if let Some(terms) = terms {
        xml.leaf("usageTerms", [], terms)?;
    }
    if let Some(link) = link {
        xml.empty("link", [("rel", Some("tt:linkedrights")), ("href", Some(link))])?;
    }
    if let Some((language, expression)) = expression {
        let attributes = [("langid", Some(language)), ("enctype", Some("text/plain"))];
        xml.leaf("rightsExpressionData", attributes, expression)?;
    }
    xml.close("rightsInfo")
}

/// Takes the URL of the rights, and the language and text of a rights expression.
fn rights_expression<'a>(
    item: &mut ItemSource<'a>,
) -> (Option<&'a str>, Option<(&'a str, &'a str)>) {
    let Some(value) = item.members.get("rightsinfo") else { return (None, None) };
    let Some(members) = value.as_object() else {
        item.about_content.add("rightsinfo", value);
        return (None, None);
    };
    let text = |name| members.get(name).and_then(Value::as_str);
    let link = text("linkedrights").filter(|link| lexical::is_uri(link));
    let language = text("langid").filter(|language| lexical::is_uri(language));
    // The schema requires the language, so an expression without one cannot be written.
    let expression = language.zip(text("encodedrights"));
    for (name, value) in members {
        let placed = match name.as_str() {
            "linkedrights" => link.is_some(),
            "langid" | "encodedrights" => expression.is_some(),
            _ => false,
        };
        if !placed {
            item.about_content.add_below("rightsinfo", name, value);
        }
    }
    (link, expression)
}
