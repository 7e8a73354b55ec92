//! The facets of a search: the values among its matches, their names and their links.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{SiteRequest, search::SearchForm};
use crate::http::protocol::request::QueryParameters;
use crate::runtime::error::Result;
use query::Facet;

/// Most values of a facet that are shown.
const FACET_VALUES_MAX: usize = 8;
/// The facets of the page in order, as the API's parameter `facets`.
pub(super) const FACET_NAMES: &str =
    "subject.code,place.name,person.name,product.code,copyrightholder,digitalsourcetype";
/// The facets of [`FACET_NAMES`].
const FACET_ORDER: [Facet; 6] = [
    Facet::SubjectCode,
    Facet::PlaceName,
    Facet::PersonName,
    Facet::ProductCode,
    Facet::CopyrightHolder,
    Facet::DigitalSourceType,
];

/// A facet value that narrows a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FacetValue {
    pub(super) facet: Facet,
    pub(super) value: String,
}

impl FacetValue {
    /// Reads the values of `facet=<name>:<value>` in the query. Unknown facets are skipped.
    pub(super) fn list(query: &QueryParameters) -> Result<Vec<Self>> {
        let mut values: Vec<Self> = Vec::new();
        for text in query.all("facet")? {
            let Some((name, value)) = text.split_once(':') else { continue };
            let found = Facet::ALL.into_iter().find(|facet| facet.as_str() == name);
            // The address may be typed by hand; an unknown facet is no reason for an error page.
            if let Some(facet) = found.filter(|_| !value.trim().is_empty()) {
                let value = Self { facet, value: value.to_owned() };
                if !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        Ok(values)
    }

    /// The query term that matches items with the value.
    pub(super) fn term(&self) -> String {
        let mut term = format!("{}:\"", self.facet.as_str());
        for c in self.value.chars() {
            // The query language reads these as the end of a phrase, an escape or a wildcard.
            if matches!(c, '"' | '\\' | '*' | '“' | '”' | '„' | '«' | '»') {
                term.push('\\');
            }
            term.push(c);
        }
        term.push('"');
        term
    }
}

impl fmt::Display for FacetValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.facet.as_str(), self.value)
    }
}

impl Serialize for FacetValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A facet value with its link.
#[derive(Debug, Serialize)]
pub(super) struct FacetChoice {
    label: String,
    /// Number of matches with the value.
    count: u64,
    url: String,
    active: bool,
}

/// The values of one facet.
#[derive(Debug, Serialize)]
pub(super) struct FacetList {
    name: &'static str,
    choices: Vec<FacetChoice>,
}

impl FacetList {
    /// The names of the active values, which narrow the search.
    pub(super) fn active(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().filter(|choice| choice.active).map(|choice| choice.label.as_str())
    }
}

/// Lists the facets of the result `found`. Active values come first, even without any matches, so that each
/// can be removed again.
pub(super) async fn lists(site: &SiteRequest, form: &SearchForm, found: &Value) -> Vec<FacetList> {
    let mut lists = Vec::new();
    for facet in FACET_ORDER {
        let name = facet.as_str();
        let mut choices = Vec::new();
        for FacetCount { value, count } in values(form, facet, &found["facets"][name]) {
            let (url, active) = toggle_link(form, facet, &value);
            let label = site.app.shared.site.concepts.name(site, facet, &value).await;
            choices.push(FacetChoice { label: label.unwrap_or(value), count, url, active });
        }
        if !choices.is_empty() {
            lists.push(FacetList { name, choices });
        }
    }
    lists
}

/// A value with its number of matches.
#[derive(Debug, PartialEq, Eq)]
struct FacetCount {
    value: String,
    count: u64,
}

/// Lists the active values, then the most frequent others.
fn values(form: &SearchForm, facet: Facet, counted: &Value) -> Vec<FacetCount> {
    let counts = counted.as_array().into_iter().flatten();
    let counts: Vec<(&str, u64)> =
        counts.filter_map(|one| Some((one["key"].as_str()?, one["count"].as_u64()?))).collect();
    let mut active: Vec<&str> = form
        .facets
        .iter()
        .filter(|own| own.facet == facet)
        .map(|own| own.value.as_str())
        .collect();
    // Products of the API's parameter `p` narrow the search as well, so the list shows them.
    if facet == Facet::ProductCode {
        active.extend(form.p.iter().map(String::as_str));
    }
    // Active values without matches have no count in the response.
    let count = |value: &str| counts.iter().find(|(key, _)| *key == value).map_or(0, |one| one.1);
    let others = counts.iter().map(|(key, _)| *key).filter(|key| !active.contains(key));
    let all =
        // Active values count towards the limit, so that the list does not grow with each click.
        active.iter().copied().chain(others.take(FACET_VALUES_MAX.saturating_sub(active.len())));
    all.map(|value| FacetCount { value: value.to_owned(), count: count(value) }).collect()
}

/// Returns the link that toggles a value, and whether the value is active. Products use the parameter `p`, as
/// in the API.
fn toggle_link(form: &SearchForm, facet: Facet, value: &str) -> (String, bool) {
    let facet_value = FacetValue { facet, value: value.to_owned() };
    // A product that was given as a facet is also removed as one.
    let is_product = facet == Facet::ProductCode && !form.facets.contains(&facet_value);
    match is_product {
        true => (form.with_product(value).url(1), form.p.iter().any(|own| own == value)),
        false => (form.with_facet(&facet_value).url(1), form.facets.contains(&facet_value)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(facet: Facet, value: &str) -> FacetValue {
        FacetValue { facet, value: value.to_owned() }
    }

    #[test]
    fn what_narrows_a_search_is_read_from_its_address_and_written_into_its_query() {
        let query = QueryParameters::parse(
            "facet=place.name%3AA%2C+%22B%22&facet=nonsense%3Ax&facet=subject.code%3A",
        )
        .unwrap();
        let values = FacetValue::list(&query).unwrap();
        assert_eq!(values, [named(Facet::PlaceName, "A, \"B\"")]);
        assert_eq!(values[0].term(), "place.name:\"A, \\\"B\\\"\"");
        let zone = jiff::tz::TimeZone::UTC;
        for text in ["a\"b", "a\\", "a*", "„a“"] {
            let term = named(Facet::PlaceName, text).term();
            query::parse(&term, &zone).unwrap_or_else(|error| panic!("{term}: {error}"));
        }
    }

    #[test]
    fn what_narrows_stays_where_nothing_is_found() {
        let facets = vec![named(Facet::PlaceName, "Bergen")];
        let wanted = SearchForm { facets, p: vec!["FOTO".to_owned()], ..SearchForm::default() };
        let none = |facet| values(&wanted, facet, &Value::Null);
        let one = |value: &str| vec![FacetCount { value: value.to_owned(), count: 0 }];
        assert_eq!(none(Facet::PlaceName), one("Bergen"));
        assert_eq!(none(Facet::ProductCode), one("FOTO"));
        let counted = json!([{ "key": "Oslo", "count": 3 }, { "key": "Bergen", "count": 2 }]);
        let found = values(&wanted, Facet::PlaceName, &counted);
        let found: Vec<_> = found.iter().map(|one| (one.value.as_str(), one.count)).collect();
        assert_eq!(found, [("Bergen", 2), ("Oslo", 3)]);
        assert_eq!(
            toggle_link(&wanted, Facet::PlaceName, "Bergen"),
            ("/?p=FOTO".to_owned(), true)
        );
    }
}
