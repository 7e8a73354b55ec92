//! Tests of the parameters of searches and streams.

use jiff::tz::TimeZone;

use super::*;
use crate::archive::content::RecentSpan;
use crate::http::protocol::request::tests::problems;
use crate::storage::search::{Coverage, FacetCondition};
use model::item::{DocumentLayout, PubStatus};
use query::Facet;
use query::limits::FILTERS_MAX;

fn zone() -> TimeZone {
    TimeZone::get("Europe/Stockholm").unwrap()
}

/// Reads a query of an anonymous caller with `read`.
fn read<T>(text: &str, read: impl FnOnce(&mut ContentParameters<'_>) -> Option<T>) -> Result<T> {
    let (query, zone) = (QueryParameters::parse(text)?, zone());
    let mut parameters = ContentParameters::new(&query, &zone, None);
    let read = read(&mut parameters);
    parameters.finish(read)
}

fn refused<T: std::fmt::Debug>(
    text: &str,
    by: impl FnOnce(&mut ContentParameters<'_>) -> Option<T>,
) -> Vec<String> {
    let problems = problems(&read(text, by).unwrap_err());
    problems.into_iter().map(|(rule, path)| format!("{rule} {path}")).collect()
}

#[test]
fn ok_defaults_are_those_of_the_contract() {
    assert_eq!(read("", |it| Some(it.page_range())).unwrap(), (Some(20), Some(0)));
    assert_eq!(read("", |it| it.sort()).unwrap(), SORT_DEFAULT);
    assert_eq!(read("", |it| it.layout()).unwrap(), DocumentLayout::Full);
    assert_eq!(read("", |it| it.statuses()).unwrap(), [PubStatus::Usable]);
    assert!(read("", |it| it.facets()).unwrap().is_empty());
    let selection = read("q=&p=&agr=&x=1", |it| it.selection()).unwrap();
    assert_eq!(selection, read("", |it| it.selection()).unwrap());
    // The empty fields of a form that was sent without input.
    assert_eq!(read("s=&fr=", |it| Some(it.page_range())).unwrap(), (Some(20), Some(0)));
    assert_eq!(read("sort=", |it| it.sort()).unwrap(), SORT_DEFAULT);
    assert_eq!(read("layout=", |it| it.layout()).unwrap(), DocumentLayout::Full);
    assert_eq!(
        read("tr=&trs=&tre=", |it| it.period()).unwrap(),
        read("", |it| it.period()).unwrap()
    );
    let wanted = parameters::search_request(selection, None, Timestamp::UNIX_EPOCH);
    assert_eq!((wanted.coverage, wanted.sees_embargoed), (Coverage::Everything, false));
    assert_eq!(wanted.statuses, [PubStatus::Usable]);
}

#[test]
fn ok_every_choice_is_read() {
    let by = |date, descending| SortOrder::By { date, descending };
    for (text, expected) in [
        ("default:desc", by(SortDate::Order, true)),
        ("default:asc", by(SortDate::Order, false)),
        ("date:desc", by(SortDate::Date, true)),
        ("date:asc", by(SortDate::Date, false)),
        ("versioncreated:desc", by(SortDate::VersionCreated, true)),
        ("versioncreated:asc", by(SortDate::VersionCreated, false)),
        ("versionstored:desc", by(SortDate::VersionStored, true)),
        ("versionstored:asc", by(SortDate::VersionStored, false)),
        ("relevance", SortOrder::Relevance),
    ] {
        assert_eq!(read(&format!("sort={text}"), |it| it.sort()).unwrap(), expected);
    }
    let all = "facets=place.name,subject.code&facets[]=product.code&facets=person.name,\
               copyrightholder,place.name,digitalsourcetype";
    let expected = [
        Facet::PlaceName,
        Facet::SubjectCode,
        Facet::PersonName,
        Facet::CopyrightHolder,
        Facet::ProductCode,
        Facet::DigitalSourceType,
    ];
    let found = read(all, |it| it.facets()).unwrap();
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().all(|facet| found.contains(facet)), "{found:?}");
    let statuses = read("pubstatus=replaced,usable,commissioned", |it| it.statuses()).unwrap();
    assert_eq!(statuses, [PubStatus::Replaced, PubStatus::Usable, PubStatus::Commissioned]);
    assert_eq!(read("layout=bare", |it| it.layout()).unwrap(), DocumentLayout::Bare);
    let page = |text: &str| read(text, |it| Some(it.page_range())).unwrap();
    assert_eq!(page("s=0&fr=10000"), (Some(0), Some(10_000)));
    assert_eq!(page("s=10000&fr=7"), (Some(10_000), Some(7)));
    for (text, expected) in [
        ("h", RecentSpan::Hour),
        ("d", RecentSpan::Day),
        ("w", RecentSpan::Week),
        ("m", RecentSpan::Month),
        ("y", RecentSpan::Year),
    ] {
        let period = read(&format!("tr={text}"), |it| it.period()).unwrap();
        assert_eq!(period.recent, Some(expected));
    }
}

#[test]
fn ok_a_search_alone_asks_for_other_forms_of_words() {
    let searched = |text| read(text, |it| it.selection_with_forms()).unwrap();
    let written = read("q=hund", |it| it.selection()).unwrap();
    for text in ["q=hund", "q=hund&forms=false", "q=Hund&forms=true"] {
        assert_eq!(searched(text), written, "{text}");
    }
    assert_ne!(searched("q=hund&forms=true"), written);
    for ignored in ["q=hund&forms=true", "q=hund&forms=x"] {
        assert_eq!(read(ignored, |it| it.selection()).unwrap(), written, "{ignored}");
    }
}

#[test]
fn ok_filters_narrow_the_query_and_the_values_of_facets() {
    let check = |text: &str, query: &str, facets: &[(Facet, &[&str], bool)]| {
        let condition = |(facet, values, is_excluded): &(Facet, &[&str], bool)| FacetCondition {
            facet: *facet,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            is_excluded: *is_excluded,
        };
        let expected = query::parse(query, &zone()).unwrap();
        let expected = (expected, facets.iter().map(condition).collect::<Vec<_>>());
        assert_eq!(read(text, |it| it.filters()).unwrap(), expected, "{text}");
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
        assert_eq!(refused(text, |it| it.filters()), [expected], "{text}");
    }
    let many: Vec<String> = (0..=FILTERS_MAX).map(|at| format!("byline=a{at}")).collect();
    assert_eq!(refused(&many.join("&"), |it| it.filters()), ["maximum byline"]);
    let long = "byline=".to_owned() + &"a".repeat(201);
    assert_eq!(refused(&long, |it| it.filters()), ["maximum byline"]);
}

#[test]
fn ok_the_media_type_of_the_path_is_read() {
    let of = |text: &str| read("", |it| it.media_type(text, MediaType::iter()));
    assert_eq!(of("_all").unwrap(), None);
    for media_type in MediaType::iter() {
        let text = media_type.as_str();
        assert_eq!(of(text).unwrap(), Some(media_type));
        let streamed = read("", |it| it.media_type(text, parameters::STREAM_MEDIA_TYPES));
        assert_eq!(streamed.is_ok(), media_type != MediaType::Stockfoto);
    }
    for text in ["", "images", "Image", "all", "*"] {
        let error = of(text).unwrap_err();
        assert_eq!(error.details()[0].location, "path");
        assert_eq!(problems(&error), [("enum".to_owned(), "mediaType".to_owned())]);
    }
}

#[test]
fn err_each_bad_parameter_is_named_with_its_rule() {
    for text in ["sort=asc", "sort=Relevance", "sort=date"] {
        assert_eq!(refused(text, |it| it.sort()), ["enum sort"], "{text}");
    }
    for text in ["layout=BARE", "layout=bare,full"] {
        assert_eq!(refused(text, |it| it.layout()), ["enum layout"], "{text}");
    }
    assert_eq!(refused("facets=subject", |it| it.facets()), ["enum facets"]);
    assert_eq!(refused("pubstatus=withheld", |it| it.statuses()), ["enum pubstatus"]);
    let period = |it: &mut ContentParameters<'_>| it.period();
    for text in ["tr=x", "tr=hour", "tr=H", "tr=1d"] {
        assert_eq!(refused(text, period), ["enum tr"], "{text}");
    }
    for text in ["2026-02-30", "2026-2-3", "20260203", "today", "2026-02-03T00:00:00Z"] {
        assert_eq!(refused(&format!("trs={text}"), period), ["format trs"], "{text}");
        assert_eq!(refused(&format!("tre={text}"), period), ["format tre"], "{text}");
    }
    let page = |it: &mut ContentParameters<'_>| {
        let (size, skip) = it.page_range();
        Some((size?, skip?))
    };
    assert_eq!(refused("s=-1&fr=10001", page), ["minimum s", "maximum fr"]);
    assert_eq!(refused("s=10001&fr=x", page), ["maximum s", "type fr"]);
    assert_eq!(refused("s=1&s=2&fr=1.5", page), ["type s", "type fr"]);
    let selection = |it: &mut ContentParameters<'_>| it.selection();
    let searched = |it: &mut ContentParameters<'_>| it.selection_with_forms();
    for text in ["forms=1", "forms=True", "forms=true&forms=true"] {
        assert_eq!(refused(text, searched), ["type forms"], "{text}");
    }
    assert_eq!(refused("forms=yes&q=(a&p=-", searched), ["type forms", "format q"]);
    assert_eq!(refused("p=A,-", selection), ["pattern p"]);
    assert_eq!(refused("p=%FF", selection), ["format p"]);
    assert_eq!(refused("q=%ED%A0%80&agr=x", selection), ["format q", "type agr"]);
    // An anonymous caller has no agreements.
    assert_eq!(refused("agr=1", selection), ["enum agr"]);
}

#[test]
fn duplicates_are_those_of_an_item() {
    let of = |text: &str| read(text, |it| it.duplicates()).unwrap().map(|key| key.to_string());
    assert_eq!(of("duplicates=image/a_b").as_deref(), Some("image/a_b"));
    assert_eq!(of("duplicates="), None);
    assert_eq!(of(""), None);
    for text in ["duplicates=a_b", "duplicates=image/", "duplicates=picture/a"] {
        assert_eq!(refused(text, |it| it.duplicates()), ["format duplicates"], "{text}");
    }
}

#[test]
fn the_last_item_is_named_by_its_uri_on_any_host() {
    let of = |text: &str| stream::last_item(&QueryParameters::parse(text).unwrap());
    for text in
        ["last=https://other.example/media/image/a_b", "last=http%3A%2F%2Fx%2Fmedia%2Fimage%2Fa_b"]
    {
        let key = of(text).unwrap().map(|key| key.to_string());
        assert_eq!(key.as_deref(), Some("image/a_b"), "{text}");
    }
    assert_eq!(of("last=").unwrap(), None);
    assert_eq!(of("").unwrap(), None);
    for text in ["last=image/a_b", "last=http://x/media/image/", "last=http://x/a", "last=%FF"] {
        assert_eq!(problems(&of(text).unwrap_err()), [("format".to_owned(), "last".to_owned())]);
    }
}
