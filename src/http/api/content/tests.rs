//! Tests of the parameters of searches that their schema cannot check.

use api::{DecodedParameter, RequestReader};
use jiff::tz::TimeZone;

use super::*;
use crate::http::api::binding::check_parameters;
use crate::http::protocol::request::tests::problems;
use crate::storage::search::{Coverage, FacetCondition};
use model::item::PubStatus;
use query::limits::FILTERS_MAX;

fn zone() -> TimeZone {
    TimeZone::get("Europe/Stockholm").unwrap()
}

/// Reads the parameters of a search for photographs by an anonymous caller.
fn searched(text: &str) -> Result<SearchParameters> {
    let query = QueryParameters::parse(text)?;
    let zone = zone();
    let context = SearchContext { zone: &zone, caller: None, now: Timestamp::UNIX_EPOCH };
    let path: [DecodedParameter; 1] = [("mediaType".to_owned(), Some("image".to_owned()))];
    let reader = RequestReader::<SearchItems>::default();
    check_parameters(&reader, &path, &query, |read, problems| {
        check_search(&context, read, problems)
    })
}

fn refused(text: &str) -> Vec<String> {
    let problems = problems(&searched(text).err().unwrap());
    problems.into_iter().map(|(rule, path)| format!("{rule} {path}")).collect()
}

#[test]
fn ok_defaults_are_those_of_the_contract() {
    for text in ["", "q=&p=&agr=&x=1", "s=&fr=&sort=&layout=", "tr=&trs=&tre=&facets=&forms="] {
        let SearchParameters { criteria, layout, duplicates } = searched(text).unwrap();
        assert_eq!((criteria.size, criteria.skip), (20, 0), "{text}");
        assert_eq!((criteria.sort, layout), (SORT_DEFAULT, DocumentLayout::Full), "{text}");
        assert_eq!(criteria.statuses, [PubStatus::Usable], "{text}");
        assert_eq!((criteria.from, criteria.until), (None, None), "{text}");
        assert_eq!(criteria.coverage, Coverage::Everything, "{text}");
        assert!(criteria.facets.is_empty() && !criteria.sees_embargoed, "{text}");
        assert_eq!((criteria.media_type, duplicates), (Some(MediaType::Image), None), "{text}");
    }
    let found = searched("facets=place.name,byline&facets[]=place.name").unwrap();
    assert_eq!(found.criteria.facets, [Facet::PlaceName, Facet::Byline]);
}

#[test]
fn ok_other_forms_of_words_match_if_asked_for() {
    let of = |text| searched(text).unwrap().criteria.query;
    let written = of("q=hund");
    for text in ["q=hund&forms=false", "q=Hund&forms=true"] {
        assert_eq!(of(text), written, "{text}");
    }
    assert_ne!(of("q=hund&forms=true"), written);
}

#[test]
fn ok_filters_narrow_the_query_and_the_values_of_facets() {
    let check = |text: &str, query: &str, facets: &[(Facet, &[&str], bool)]| {
        let condition = |(facet, values, is_excluded): &(Facet, &[&str], bool)| FacetCondition {
            facet: *facet,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            is_excluded: *is_excluded,
        };
        let found = searched(text).unwrap().criteria;
        assert_eq!(found.query, query::parse(query, &zone()).unwrap(), "{text}");
        let facets: Vec<_> = facets.iter().map(condition).collect();
        assert_eq!(found.facet_values, facets, "{text}");
    };
    check("", "", &[]);
    check("orientation=&person.name=", "", &[]);
    check("orientation=landscape", "", &[(Facet::Orientation, &["landscape"], false)]);
    check(
        "person.name=Erik+Berg&person.name=Eva&person.name=-Anna&person.name=Eva&minpx=3000",
        "(width:>=3000 OR height:>=3000)",
        &[(Facet::PersonName, &["Erik Berg", "Eva"], false), (Facet::PersonName, &["Anna"], true)],
    );
    check(
        "terms=none&mediatype=image&mediatype=-text",
        "-usageterms:*",
        &[(Facet::MediaType, &["image"], false), (Facet::MediaType, &["text"], true)],
    );
}

#[test]
fn err_a_filter_that_is_none_is_named() {
    for (text, expected) in [
        ("orientation=round", "enum orientation"),
        ("colour=-none", "enum colour"),
        ("minpx=many", "type minpx"),
        ("byline=-", "pattern byline"),
        ("terms=-none", "enum terms"),
    ] {
        assert_eq!(refused(text), [expected], "{text}");
    }
    let many: Vec<String> = (0..=FILTERS_MAX).map(|at| format!("byline=a{at}")).collect();
    assert_eq!(refused(&many.join("&")), ["maximum byline"]);
    let long = "byline=".to_owned() + &"a".repeat(201);
    assert_eq!(refused(&long), ["maximum byline"]);
}

#[test]
fn err_each_bad_parameter_is_named_with_its_rule() {
    let all = "forms=yes&q=(a&p=-&trs=2026-02-30&last=x&layout=BARE";
    let expected =
        ["format q", "pattern p", "type forms", "format trs", "enum layout", "format last"];
    assert_eq!(refused(all), expected);
    assert_eq!(refused("q=%ED%A0%80&agr=x"), ["format q", "type agr"]);
    // An anonymous caller has no agreements.
    assert_eq!(refused("layout=x&agr=1"), ["enum agr", "enum layout"]);
    for text in ["2026-2-3", "20260203", "today", "2026-02-03T00:00:00Z"] {
        assert_eq!(refused(&format!("tre={text}")), ["format tre"], "{text}");
    }
}

#[test]
fn duplicates_are_those_of_an_item() {
    let of = |text: &str| searched(text).unwrap().duplicates.map(|key| key.to_string());
    assert_eq!(of("duplicates=image/a_b").as_deref(), Some("image/a_b"));
    for text in ["duplicates=a_b", "duplicates=image/", "duplicates=picture/a"] {
        assert_eq!(refused(text), ["format duplicates"], "{text}");
    }
}

#[test]
fn the_last_item_is_named_by_its_uri_on_any_host() {
    let of = |text: &str| searched(text).unwrap().criteria.after.map(|key| key.to_string());
    for text in
        ["last=https://other.example/media/image/a_b", "last=http%3A%2F%2Fx%2Fmedia%2Fimage%2Fa_b"]
    {
        assert_eq!(of(text).as_deref(), Some("image/a_b"), "{text}");
    }
    for text in ["last=image/a_b", "last=http://x/media/image/", "last=http://x/a", "last=%FF"] {
        assert_eq!(refused(text), ["format last"], "{text}");
    }
}
