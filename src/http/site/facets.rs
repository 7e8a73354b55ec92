//! The filters of the search page: the values of each facet among the matches, with their names and links, and the
//! chips of the active filters. A facet is a property by whose values items are filtered, such as the place.

use std::collections::HashSet;

use api::content::{FacetCount, FacetCounts};
use serde::Serialize;

use super::SiteRequest;
use super::concepts::PageNames;
use super::search_form::{FACET_ORDER, SearchForm};
use query::{Facet, FilterField, ItemFilter};

/// Maximum number of values of a facet on the page, unless more of them are active filters.
const FACET_VALUES_MAX: usize = 12;
/// Maximum length of the suggested title of a notification, in characters.
const TITLE_CHARS: usize = 80;
/// The offered orders, as values of the parameter `sort`: newest first, oldest first, best match first.
const ORDERS: [&str; 3] = ["", "default:asc", "relevance"];
/// The media types, in the order in which the page lists them; `_all` searches every media type.
const MEDIA_TYPES: [&str; 10] = [
    "image",
    "stockfoto",
    "graphic",
    "video",
    "text",
    "feature",
    "page",
    "planning",
    "calendar",
    "_all",
];
/// The offered minimum sizes: pixels of the longer side.
const SIZES_PX: [&str; 4] = ["1000", "2000", "4000", "6000"];

/// A facet value with its links.
#[derive(Debug, Serialize)]
pub(super) struct FacetChoice {
    value: String,
    label: String,
    /// Number of matches with the value.
    count: u64,
    /// The link that requires the value, or removes its filter if it is required or excluded.
    url: String,
    /// True if the search requires the value.
    active: bool,
    /// The link that excludes the value; `None` if the value is already required or excluded.
    exclude_url: Option<String>,
    /// True if the search excludes the value.
    excluded: bool,
}

/// The values of one facet.
#[derive(Debug, Serialize)]
pub(super) struct FacetList {
    name: &'static str,
    choices: Vec<FacetChoice>,
}

impl FacetList {
    /// Lists the names of the required values.
    fn required(&self) -> impl Iterator<Item = &str> {
        self.choices.iter().filter(|choice| choice.active).map(|choice| choice.label.as_str())
    }
}

/// Lists the facets that a search has counted, and the chips of the active filters. Codes are shown with the names
/// that they have in the archive.
pub(super) async fn lists_and_chips(
    site: &SiteRequest,
    form: &SearchForm,
    found: &FacetCounts,
) -> (Vec<FacetList>, Vec<FilterChip>) {
    let mut counted: Vec<(Facet, Vec<FacetCount>)> = Vec::new();
    let mut values_shown = HashSet::new();
    for facet in FACET_ORDER {
        // Other searches are limited to one media type.
        if facet == Facet::MediaType && form.media_type != "_all" {
            continue;
        }
        let counted_values = found.get(facet.as_str()).map(Vec::as_slice).unwrap_or_default();
        let counts = values(form, facet, counted_values);
        // The counts include the values of active filters, so the chips need no further names.
        values_shown.extend(counts.iter().map(|count| (facet, count.key.clone())));
        counted.push((facet, counts));
    }
    let names = site.app.shared.site.concepts.load(site, values_shown).await;
    let mut lists = Vec::new();
    for (facet, counts) in counted {
        if counts.is_empty() {
            continue;
        }
        let choices = counts.into_iter().map(|FacetCount { key, count }| {
            choice(form, facet, names.label(facet, &key), key, count)
        });
        lists.push(FacetList { name: facet.as_str(), choices: choices.collect() });
    }
    (lists, chips(form, &names))
}

/// Returns the suggested title of a notification for the search: its words and active facets.
pub(super) fn title(form: &SearchForm, facets: &[FacetList]) -> String {
    let narrowed = facets.iter().flat_map(FacetList::required);
    let parts = std::iter::once(form.q.trim()).chain(narrowed).filter(|part| !part.is_empty());
    let title = parts.collect::<Vec<_>>().join(", ");
    title.chars().take(TITLE_CHARS).collect()
}

/// Lists the facets of which the search requires values. They are counted in the search without these values, so
/// that the page also shows the other values.
pub(super) fn required_facets(form: &SearchForm) -> impl Iterator<Item = Facet> {
    FACET_ORDER.into_iter().filter(move |facet| form.requires(FilterField::Facet(*facet)))
}

/// Lists the values of active filters, followed by the most frequent other values.
fn values(form: &SearchForm, facet: Facet, counted: &[FacetCount]) -> Vec<FacetCount> {
    let filters = form.filters.iter().filter(|own| own.field == FilterField::Facet(facet));
    let mut set: Vec<&str> = filters.map(|own| own.value.as_str()).collect();
    // The products in the API's parameter `p` are filters too.
    if facet == Facet::ProductCode {
        set.extend(form.p.iter().map(|code| code.trim_start_matches('-')));
    }
    let others = counted.iter().map(|count| count.key.as_str()).filter(|key| !set.contains(key));
    // Values of active filters count towards the limit, so that the list does not grow with each click.
    let others = others.take(FACET_VALUES_MAX.saturating_sub(set.len()));
    let all = set.iter().copied().chain(others);
    all.map(|key| FacetCount { key: key.to_owned(), count: count_of(key, counted) }).collect()
}

fn count_of(key: &str, counted: &[FacetCount]) -> u64 {
    let found = counted.iter().find(|count| count.key == key);
    // If the value of an active filter has no matches, the response has no count for it.
    found.map_or(0, |found| found.count)
}

/// Builds a value with its links.
fn choice(
    form: &SearchForm,
    facet: Facet,
    label: String,
    value: String,
    count: u64,
) -> FacetChoice {
    let requirement = ItemFilter::requiring(FilterField::Facet(facet), &value);
    let exclusion = ItemFilter { is_excluded: true, ..requirement.clone() };
    let mut active = form.filters.contains(&requirement);
    let mut excluded = form.filters.contains(&exclusion);
    let mut toggled = form.with_filter(&requirement);
    let mut toggled_exclusion = form.with_filter(&exclusion);
    // Products use the parameter `p`, as in the API, unless the URL has the product as a facet.
    if facet == Facet::ProductCode && !active && !excluded {
        let excluded_code = format!("-{value}");
        active = form.p.contains(&value);
        excluded = form.p.contains(&excluded_code);
        toggled = form.with_product(&value);
        toggled_exclusion = form.with_product(&excluded_code);
    }
    FacetChoice {
        url: if excluded { toggled_exclusion.url(1) } else { toggled.url(1) },
        exclude_url: (!active && !excluded).then(|| toggled_exclusion.url(1)),
        value,
        label,
        count,
        active,
        excluded,
    }
}

/// A choice that is offered regardless of the matches.
#[derive(Debug, Serialize)]
pub(super) struct FixedChoice {
    value: &'static str,
    url: String,
    active: bool,
}

/// Lists the offered minimum sizes of pictures.
pub(super) fn sizes(form: &SearchForm) -> Vec<FixedChoice> {
    SIZES_PX.into_iter().map(|px| fixed(form, FilterField::MinPx, px)).collect()
}

/// Lists the offered terms of use.
pub(super) fn terms(form: &SearchForm) -> Vec<FixedChoice> {
    let values = FilterField::Terms.choices().unwrap_or_default();
    values.iter().copied().map(|value| fixed(form, FilterField::Terms, value)).collect()
}

/// Lists the orders of the hits.
pub(super) fn orders(form: &SearchForm) -> Vec<FixedChoice> {
    let orders = ORDERS.into_iter().map(|value| {
        let other = SearchForm { sort: value.to_owned(), page: 1, ..form.clone() };
        FixedChoice { value, url: other.url(1), active: form.sort == value }
    });
    orders.collect()
}

/// Lists the media types that can be searched.
pub(super) fn media_types(form: &SearchForm) -> Vec<FixedChoice> {
    let media_types = MEDIA_TYPES.into_iter().map(|value| {
        let other = SearchForm { media_type: value.to_owned(), page: 1, ..form.clone() };
        FixedChoice { value, url: other.url(1), active: form.media_type == value }
    });
    media_types.collect()
}

fn fixed(form: &SearchForm, field: FilterField, value: &'static str) -> FixedChoice {
    let filter = ItemFilter::requiring(field, value);
    let active = form.filters.contains(&filter);
    FixedChoice { value, url: form.with_filter(&filter).url(1), active }
}

/// An active filter, with the link that removes it.
#[derive(Debug, Serialize)]
pub(super) struct FilterChip {
    /// The name of the filter's field.
    name: &'static str,
    value: String,
    label: String,
    url: String,
    excluded: bool,
}

/// Lists the active filters: products first, then all others, in the order of the URL.
fn chips(form: &SearchForm, names: &PageNames) -> Vec<FilterChip> {
    let codes = form.p.iter().map(|code| {
        let facet = FilterField::Facet(Facet::ProductCode);
        let is_excluded = code.starts_with('-');
        let product = ItemFilter::requiring(facet, code.trim_start_matches('-'));
        (ItemFilter { is_excluded, ..product }, form.with_product(code).url(1))
    });
    let filters = form.filters.iter().map(|own| (own.clone(), form.with_filter(own).url(1)));
    codes.chain(filters).map(|(filter, url)| chip(filter, url, names)).collect()
}

fn chip(filter: ItemFilter, url: String, names: &PageNames) -> FilterChip {
    let ItemFilter { field, value, is_excluded: excluded } = filter;
    let label = match field {
        FilterField::Facet(facet) => names.label(facet, &value),
        FilterField::MinPx | FilterField::Terms => value.clone(),
    };
    FilterChip { name: field.as_str(), value, label, url, excluded }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> ItemFilter {
        ItemFilter::find(text).unwrap()
    }

    #[test]
    fn values_of_active_filters_are_listed_without_matches() {
        let filters = vec![filter("place.name:Bergen")];
        let wanted = SearchForm { filters, p: vec!["-FOTO".to_owned()], ..SearchForm::default() };
        let of = |key: &str, count| FacetCount { key: key.to_owned(), count };
        let none = |facet| values(&wanted, facet, &[]);
        let one = |value: &str| vec![of(value, 0)];
        assert_eq!(none(Facet::PlaceName), one("Bergen"));
        assert_eq!(none(Facet::ProductCode), one("FOTO"));
        let found = values(&wanted, Facet::PlaceName, &[of("Oslo", 3), of("Bergen", 2)]);
        assert_eq!(found, [of("Bergen", 2), of("Oslo", 3)]);
        assert_eq!(required_facets(&wanted).collect::<Vec<_>>(), [Facet::PlaceName]);
    }

    #[test]
    fn a_value_is_added_removed_or_excluded() {
        let form = SearchForm {
            filters: vec![filter("place.name:Bergen"), filter("-place.name:Voss")],
            p: vec!["FOTO".to_owned()],
            media_type: "image".to_owned(),
            ..SearchForm::default()
        };
        let of = |facet, value: &str| choice(&form, facet, value.to_owned(), value.to_owned(), 1);
        let bergen = of(Facet::PlaceName, "Bergen");
        assert_eq!((bergen.active, bergen.excluded, bergen.exclude_url), (true, false, None));
        assert_eq!(bergen.url, "/?p=FOTO&facet=-place.name%3AVoss");
        let voss = of(Facet::PlaceName, "Voss");
        assert_eq!((voss.active, voss.excluded), (false, true));
        assert_eq!(voss.url, "/?p=FOTO&facet=place.name%3ABergen");
        let oslo = of(Facet::PlaceName, "Oslo");
        let start = "/?p=FOTO&facet=place.name%3ABergen&facet=-place.name%3AVoss";
        assert_eq!(oslo.url, format!("{start}&facet=place.name%3AOslo"));
        assert_eq!(oslo.exclude_url.unwrap(), format!("{start}&facet=-place.name%3AOslo"));
        let places = "facet=place.name%3ABergen&facet=-place.name%3AVoss";
        assert_eq!(of(Facet::ProductCode, "FOTO").url, format!("/?{places}"));
        let excluded = of(Facet::ProductCode, "TT").exclude_url.unwrap();
        assert_eq!(excluded, format!("/?p=FOTO%2C-TT&{places}"));
    }
}
