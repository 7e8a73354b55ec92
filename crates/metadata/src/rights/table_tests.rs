//! Tests of the table: it is that of the standard, and every property has its place in the order of cutting.

use std::collections::BTreeSet;

use serde_json::Value;

use super::member::{Member, NumberKind, RdfContainer, Structure, ValueKind};
use super::table::{PROPERTIES, Property, PropertyClass};
use crate::cut_order::CUT_ORDER;

/// The datatype and data format of a member in the words of the TechReference.
fn described(member: &Member) -> (&'static str, Option<&'static str>) {
    match member.kind {
        ValueKind::Text => ("string", None),
        ValueKind::Uri | ValueKind::Url | ValueKind::Vocabulary(_) => ("string", Some("uri")),
        ValueKind::DateTime => ("string", Some("date-time")),
        ValueKind::AltLang => ("struct", Some("AltLang")),
        ValueKind::Structure(structure) => ("struct", Some(structure.name)),
        ValueKind::Number(NumberKind::Integer) if member.name != "gpsAltitudeRef" => {
            ("number", Some("integer"))
        }
        ValueKind::Number(_) => ("number", None),
    }
}

/// Compares a member with its entry in the TechReference.
fn check_member(member: &Member, entry: &Value) {
    let name = member.name;
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let xmp = format!("{}:{}", member.namespace.prefix(), member.local);
    assert_eq!(text("XMPid"), Some(xmp.as_str()), "{name}");
    let format = text("dataformat").map(|format| if format == "url" { "uri" } else { format });
    assert_eq!((text("datatype"), format), {
        let (datatype, format) = described(member);
        (Some(datatype), format)
    });
    let occurrence = if member.many.is_some() { "multi" } else { "single" };
    assert_eq!(text("propoccurrence"), Some(occurrence), "{name}");
}

fn tech_reference() -> Value {
    let text = include_str!("../../tests/data/iptc-pmd-techreference_2025.1.json");
    serde_json::from_str(text).expect("JSON")
}

/// All structures that properties have, directly or in other structures.
fn structures() -> Vec<&'static Structure> {
    let mut found: Vec<&Structure> = Vec::new();
    let mut open: Vec<&Member> = PROPERTIES.iter().map(|property| &property.member).collect();
    while let Some(member) = open.pop() {
        if let ValueKind::Structure(structure) = member.kind
            && !found.iter().any(|known| known.name == structure.name)
        {
            found.push(structure);
            open.extend(structure.members);
        }
    }
    found
}

#[test]
fn the_table_is_that_of_the_standard() {
    let reference = tech_reference();
    let top = reference["ipmd_top"].as_object().expect("properties");
    assert_eq!(top.len(), PROPERTIES.len());
    for (name, entry) in top {
        let property = Property::named(name).unwrap_or_else(|| panic!("no row for {name}"));
        check_member(&property.member, entry);
    }
}

#[test]
fn the_structures_are_those_of_the_standard() {
    let reference = tech_reference();
    let structs = reference["ipmd_struct"].as_object().expect("structures");
    let known = structures();
    for (name, members) in structs.iter().filter(|(name, _)| *name != "AltLang") {
        let structure = known.iter().find(|structure| structure.name == name);
        let structure = structure.unwrap_or_else(|| panic!("no structure {name}"));
        let members = members.as_object().expect("members");
        for (name, entry) in members.iter().filter(|(name, _)| *name != "$anypmdproperty") {
            let member = structure.members.iter().find(|member| member.name == name);
            check_member(member.unwrap_or_else(|| panic!("no member {name}")), entry);
        }
        let any = members.contains_key("$anypmdproperty");
        assert_eq!(structure.any_property(), any, "{name}");
        assert_eq!(structure.members.len() + usize::from(any), members.len(), "{name}");
    }
    assert_eq!(known.len() + 1, structs.len());
}

#[test]
fn every_property_but_the_shortest_can_be_cut() {
    let order: BTreeSet<&str> = CUT_ORDER.iter().map(|(name, _)| *name).collect();
    assert_eq!(order.len(), CUT_ORDER.len(), "a name twice");
    let properties: BTreeSet<&str> = PROPERTIES.iter().map(|p| p.member.name).collect();
    let never: Vec<&str> = properties.difference(&order).copied().collect();
    let expected = [
        "dataMining",
        "dateCreated",
        "digitalSourceType",
        "imageRating",
        "maxAvailHeight",
        "maxAvailWidth",
    ];
    assert_eq!(never, expected);
    assert_eq!(order.difference(&properties).copied().collect::<Vec<_>>(), ["language"]);
}

#[test]
fn lists_with_an_order_are_sequences() {
    let ordered = |member: &&Member| member.many == Some(RdfContainer::Seq);
    let top = PROPERTIES.iter().map(|property| &property.member).filter(ordered);
    let names: Vec<&str> = top.map(|member| member.name).collect();
    let expected = ["creatorNames", "licensors", "copyrightOwners", "imageCreators", "suppliers"];
    assert_eq!(names, expected);
    let never = PROPERTIES.iter().filter(|property| property.class == PropertyClass::Never);
    assert_eq!(never.map(|property| property.member.name).collect::<Vec<_>>(), ["imageRating"]);
}
