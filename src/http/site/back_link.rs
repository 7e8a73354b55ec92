//! The link from an item back to the search that found it. The item's URL contains the search as the parameter
//! `from`, which works without scripts and after a form of the page was sent.

use super::{SiteRequest, item_summary::anchor};
use crate::runtime::error::Result;
use model::ItemKey;

/// Query parameters of a one-time message, which links omit.
pub(super) const MESSAGE_PARAMETERS: [&str; 2] = ["done", "in"];

/// The parameter that requests a part of a page.
pub(super) const PART_PARAMETER: &str = "part";

/// Returns the query `?from=…` for links from the hits on the page `here`; empty for the default search.
pub(super) fn back_query(here: &str) -> String {
    let search = here.split_once('?').map_or("", |(_, search)| search);
    let pairs = form_urlencoded::parse(search.as_bytes())
        // Empty parameters come from empty form fields and would only lengthen every link.
        .filter(|(name, value)| is_of_search(name) && !value.is_empty());
    let search = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    from_parameter(&search)
}

/// Returns whether the parameter belongs to the search, and not only to the display of its page.
fn is_of_search(name: &str) -> bool {
    name != PART_PARAMETER && !MESSAGE_PARAMETERS.contains(&name)
}

fn from_parameter(search: &str) -> String {
    if search.is_empty() { String::new() } else { format!("?from={}", encode(search)) }
}

fn encode(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// The link from a page of an item back to the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackLink {
    /// URL of the search with the item's anchor.
    pub(super) url: String,
    /// The query for links and forms on the item's pages, which preserves the search.
    pub(super) query: String,
}

impl BackLink {
    /// Reads the search from the page's URL. Without one, the link leads to items of the same type.
    pub(super) fn from_query(site: &SiteRequest, key: &ItemKey) -> Result<Self> {
        Ok(Self::new(site.parameter("from")?.unwrap_or_default(), key))
    }

    fn new(from: &str, key: &ItemKey) -> Self {
        let type_of_item = match key.media_type.as_str() {
            // Photographs are the search's default, so its URL has no `type`.
            "image" => String::new(),
            other => format!("type={other}"),
        };
        // Re-encoding confines hostile input to the query of the site's search.
        let pairs = form_urlencoded::parse(from.as_bytes());
        let from = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        let search = if from.is_empty() { &type_of_item } else { &from };
        let mark = if search.is_empty() { "" } else { "?" };
        // The anchor scrolls back to the hit, which may be far down the page.
        Self { url: format!("/{mark}{search}#{}", anchor(key)), query: from_parameter(&from) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_leads_back_to_the_search_and_place_that_it_was_found_at() {
        let key: ItemKey = "text/a-1".parse().unwrap();
        let check = |here: &str, url: &str| {
            let carried = back_query(here);
            let from = form_urlencoded::parse(carried.trim_start_matches('?').as_bytes()).next();
            let from = from.map_or(String::new(), |(_, from)| from.into_owned());
            let back = BackLink::new(&from, &key);
            assert_eq!((back.url.as_str(), back.query), (url, carried), "{here}");
        };
        check("/", "/?type=text#text-a-1");
        check("/?q=a+%22b%22&page=2&tr=&done=added&in=x", "/?q=a+%22b%22&page=2#text-a-1");
        check("/?q=a&page=2&part=hits", "/?q=a&page=2#text-a-1");
        check("/?facet=place.name%3AÅ&p=A%2CB", "/?facet=place.name%3A%C3%85&p=A%2CB#text-a-1");
        let hostile = BackLink::new("//evil.example/#\"><b>", &key);
        assert_eq!(hostile.url, "/?%2F%2Fevil.example%2F%23%22%3E%3Cb%3E=#text-a-1");
    }
}
