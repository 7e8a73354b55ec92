//! `GET /`: what is found in the archive, with what narrows it.

use std::collections::HashMap;

use axum::{http::StatusCode, response::Response};
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::Value;

use super::{Page, Refusal, Site, api::Call, collections, hit::Hit};
use crate::error::Result;
use crate::limits::{PAGE_ITEMS, PAGES_MAX};
use crate::types::MediaType;
use crate::web::{form::see_other, pages::login_url};

/// Values of a facet that are offered.
const FACET_VALUES: usize = 8;
/// Facets that are asked for, in the order of the page. A subject has a code and a name.
const FACETS: &str = "subject.code,place.name,person.name,product.code,copyrightholder";

/// What the page was asked for.
#[derive(Clone, Debug, Default, Serialize)]
struct Wanted {
    q: String,
    media_type: String,
    tr: String,
    trs: String,
    tre: String,
    p: Vec<String>,
    /// Agreements that must cover what is found.
    agr: Vec<String>,
    sort: String,
    /// Also what no agreement of the visitor covers.
    all: bool,
    /// Words match only as they are written, not in other forms.
    written: bool,
    page: usize,
}

/// A value of a facet, or a choice of another kind, with where it leads.
#[derive(Debug, Serialize)]
struct Choice {
    label: String,
    count: Option<u64>,
    url: String,
    active: bool,
}

#[derive(Debug, Serialize)]
struct FacetList {
    name: &'static str,
    choices: Vec<Choice>,
}

impl Wanted {
    fn of(site: &Site) -> Result<Self> {
        let text = |name| Ok::<_, crate::error::Error>(site.parameter(name)?.unwrap_or_default());
        let pages = 1..=i64::try_from(PAGES_MAX).unwrap_or(i64::MAX);
        let page = site.query.integer("page", pages)?;
        let media_type = match text("type")? {
            "" => MediaType::Image.as_str(),
            given => given,
        };
        Ok(Self {
            q: text("q")?.to_owned(),
            media_type: media_type.to_owned(),
            tr: text("tr")?.to_owned(),
            trs: text("trs")?.to_owned(),
            tre: text("tre")?.to_owned(),
            p: site.query.list("p")?.into_iter().map(str::to_owned).collect(),
            agr: site.query.list("agr")?.into_iter().map(str::to_owned).collect(),
            sort: text("sort")?.to_owned(),
            all: site.parameter("all")?.is_some(),
            written: site.parameter("written")?.is_some(),
            page: page.and_then(|page| usize::try_from(page).ok()).unwrap_or(1),
        })
    }

    /// Whether nothing narrows the search.
    fn is_plain(&self) -> bool {
        let texts = [&self.q, &self.tr, &self.trs, &self.tre];
        texts.into_iter().all(String::is_empty) && self.p.is_empty() && self.agr.is_empty()
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        let media_type = match self.media_type.as_str() {
            "image" => String::new(),
            other => other.to_owned(),
        };
        let tick = |is_set: bool| if is_set { "1".to_owned() } else { String::new() };
        vec![
            ("type", media_type),
            ("q", self.q.clone()),
            ("tr", self.tr.clone()),
            ("trs", self.trs.clone()),
            ("tre", self.tre.clone()),
            ("p", self.p.join(",")),
            ("agr", self.agr.join(",")),
            ("sort", self.sort.clone()),
            ("all", tick(self.all)),
            ("written", tick(self.written)),
        ]
    }

    /// The address of the same search on another page of it.
    fn url(&self, page: usize) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for (name, value) in self.pairs() {
            if !value.is_empty() {
                query.append_pair(name, &value);
            }
        }
        if page > 1 {
            query.append_pair("page", &page.to_string());
        }
        let query = query.finish();
        if query.is_empty() { "/".to_owned() } else { format!("/?{query}") }
    }

    /// Where the search becomes a notification of that type.
    fn notification_url(&self, kind: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("type", kind).append_pair("mediaType", &self.media_type);
        let (p, agr) = (self.p.join(","), self.agr.join(","));
        for (name, value) in [("q", &self.q), ("p", &p), ("agr", &agr), ("tr", &self.tr)] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        format!("/notifications/new?{}", query.finish())
    }

    fn call(&self) -> Call {
        let (p, agr) = (self.p.join(","), self.agr.join(","));
        let from = ((self.page - 1) * PAGE_ITEMS).to_string();
        let size = PAGE_ITEMS.to_string();
        let path = format!("/content/v1/{}/search", super::api::segment(&self.media_type));
        let given = |text: &'static str, value: &'_ str| (text, Some(value.to_owned()));
        let pairs = [
            given("q", &self.q),
            given("p", &p),
            given("agr", &agr),
            given("tr", &self.tr),
            given("trs", &self.trs),
            given("tre", &self.tre),
            given("sort", &self.sort),
            given("forms", if self.written { "" } else { "true" }),
            given("s", &size),
            given("fr", if self.page > 1 { &from } else { "" }),
            given("facets", FACETS),
        ];
        Call::get(path).query(pairs.iter().map(|(name, value)| (*name, value.as_deref())))
    }

    /// The same search with a term more, or without it where it is there.
    fn with_term(&self, term: &str) -> (Self, bool) {
        let mut other = Self { page: 1, ..self.clone() };
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let active = self.q.contains(term);
        other.q = match active {
            true => words(&self.q.replace(term, " ")),
            false => words(&format!("{} {term}", self.q)),
        };
        (other, active)
    }

    /// The same search with a product more, or without it.
    fn with_product(&self, code: &str) -> (Self, bool) {
        let mut other = Self { page: 1, ..self.clone() };
        let active = self.p.iter().any(|own| own == code);
        match active {
            true => other.p.retain(|own| own != code),
            false => other.p.push(code.to_owned()),
        }
        (other, active)
    }
}

/// The page.
pub(super) async fn page(site: Site) -> Page {
    let wanted = Wanted::of(&site)?;
    let call = wanted.call();
    match found(&site, &wanted, &call).await {
        Ok(found) => show(&site, &wanted, Some(&found), None).await,
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {
            Ok(see_other(&login_url(&site.here)))
        }
        Err(refusal) if refusal.is_mistake() => show(&site, &wanted, None, Some(&refusal)).await,
        Err(refusal) => Err(refusal.into()),
    }
}

/// What the API finds. Photographs that everybody may look at are looked for in nobody's name where
/// that is asked for.
async fn found(site: &Site, wanted: &Wanted, call: &Call) -> Result<Value, Refusal> {
    let open = site.app.shared.tuned.get().open_images && wanted.media_type == "image";
    if open && wanted.all {
        let found = site.ask_as_nobody(call).await?;
        site.note(call.clone());
        return Ok(found);
    }
    site.send(call.clone()).await
}

async fn show(
    site: &Site,
    wanted: &Wanted,
    found: Option<&Value>,
    refusal: Option<&Refusal>,
) -> Result<Response, super::Problem> {
    let nothing = Value::Null;
    let found = found.unwrap_or(&nothing);
    let total = found["total"].as_u64().unwrap_or(0);
    let hits = Hit::list(&found["hits"]);
    let shown = u64::try_from(wanted.page * PAGE_ITEMS).unwrap_or(u64::MAX);
    let more = shown < total && wanted.page < PAGES_MAX;
    let collections = match &site.visitor {
        // Without the list, everything else of the page is still there.
        Some(_) if !hits.is_empty() => site.get(collections::NAMES).await.unwrap_or_default(),
        Some(_) | None => Value::Null,
    };
    let status = refusal.map_or(StatusCode::OK, |refusal| refusal.status);
    let context = context! {
        wanted => PageValue::from(Serde(wanted)),
        hits => PageValue::from(Serde(&hits)),
        total => total,
        facets => PageValue::from(Serde(facet_lists(wanted, found))),
        mistakes => refusal.map(Refusal::sentences),
        is_plain => wanted.is_plain(),
        as_pictures => matches!(wanted.media_type.as_str(), "image" | "stockfoto" | "graphic" | "video"),
        may_see_all => site.app.shared.tuned.get().open_images && wanted.media_type == "image",
        newer_url => (wanted.page > 1).then(|| wanted.url(wanted.page - 1)),
        older_url => more.then(|| wanted.url(wanted.page + 1)),
        all_url => Wanted { all: true, page: 1, ..wanted.clone() }.url(1),
        forms_url => Wanted { written: false, page: 1, ..wanted.clone() }.url(1),
        email_url => wanted.notification_url("email"),
        stream_url => wanted.notification_url("stream"),
        collections => PageValue::from(Serde(collections)),
        page => wanted.page,
    };
    site.page_with(status, "search.html", context)
}

fn facet_lists(wanted: &Wanted, found: &Value) -> Vec<FacetList> {
    let labels = labels(&found["hits"]);
    let list = |name: &'static str| {
        let values = found["facets"][name].as_array().into_iter().flatten();
        let choices = values.filter_map(|value| choice(wanted, name, value, &labels));
        FacetList { name, choices: choices.take(FACET_VALUES).collect() }
    };
    FACETS.split(',').map(list).filter(|list| !list.choices.is_empty()).collect()
}

fn choice(
    wanted: &Wanted,
    name: &'static str,
    value: &Value,
    labels: &HashMap<(&'static str, &str), &str>,
) -> Option<Choice> {
    let key = value["key"].as_str()?;
    if key.contains(['"', '\\']) {
        return None;
    }
    let (other, active) = match name {
        "product.code" => wanted.with_product(key),
        _ => wanted.with_term(&format!("{name}:\"{key}\"")),
    };
    let label = labels.get(&(name, key)).map_or(key, |label| label);
    Some(Choice {
        label: label.to_owned(),
        count: value["count"].as_u64(),
        url: other.url(1),
        active,
    })
}

/// What subjects and products of the hits are called.
fn labels(hits: &Value) -> HashMap<(&'static str, &str), &str> {
    let mut labels = HashMap::new();
    for hit in hits.as_array().into_iter().flatten() {
        for (list, facet) in [("subject", "subject.code"), ("product", "product.code")] {
            for concept in hit[list].as_array().into_iter().flatten() {
                if let (Some(code), Some(name)) =
                    (concept["code"].as_str(), concept["name"].as_str())
                {
                    labels.entry((facet, code)).or_insert(name);
                }
            }
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wanted(q: &str) -> Wanted {
        Wanted { q: q.to_owned(), media_type: "image".to_owned(), page: 2, ..Wanted::default() }
    }

    #[test]
    fn a_search_has_one_address() {
        assert_eq!(wanted("").url(1), "/");
        assert_eq!(wanted("a b").url(3), "/?q=a+b&page=3");
        let mut text = wanted("");
        text.media_type = "text".to_owned();
        text.p = vec!["A".to_owned(), "B".to_owned()];
        assert_eq!(text.url(1), "/?type=text&p=A%2CB");
        assert_eq!(
            text.notification_url("email"),
            "/notifications/new?type=email&mediaType=text&p=A%2CB"
        );
    }

    #[test]
    fn other_forms_of_words_are_found_unless_they_are_turned_off() {
        let mut search = wanted("hund");
        assert!(search.call().target.contains("q=hund&forms=true&"));
        assert_eq!(search.url(1), "/?q=hund");
        search.written = true;
        assert!(!search.call().target.contains("forms"));
        assert_eq!(search.url(2), "/?q=hund&written=1&page=2");
        assert_eq!(search.with_product("FOTO").0.url(1), "/?q=hund&p=FOTO&written=1");
        assert_eq!(
            search.with_term("keyword:\"a\"").0.url(1),
            "/?q=hund+keyword%3A%22a%22&written=1"
        );
        assert_eq!(
            search.notification_url("email"),
            "/notifications/new?type=email&mediaType=image&q=hund"
        );
    }

    #[test]
    fn a_facet_narrows_and_widens_again() {
        let (narrow, active) = wanted("sea").with_term("place.name:\"Bergen\"");
        assert_eq!(
            (narrow.q.as_str(), narrow.page, active),
            ("sea place.name:\"Bergen\"", 1, false)
        );
        let (wide, active) = narrow.with_term("place.name:\"Bergen\"");
        assert_eq!((wide.q.as_str(), active), ("sea", true));
        let (narrow, _) = wanted("").with_product("FOTO");
        assert_eq!(narrow.p, ["FOTO"]);
        assert!(narrow.with_product("FOTO").0.p.is_empty());
    }

    #[test]
    fn facets_are_called_as_the_hits_call_them() {
        let found = json!({
            "hits": [{ "subject": [{ "code": "13", "name": "science" }] }],
            "facets": {
                "subject.code": [{ "key": "13", "count": 4 }, { "key": "a\"b", "count": 1 }],
                "place.name": [],
            },
        });
        let lists = facet_lists(&wanted(""), &found);
        assert_eq!(lists.len(), 1);
        let [only] = lists[0].choices.as_slice() else { panic!("{lists:?}") };
        assert_eq!((only.label.as_str(), only.count), ("science", Some(4)));
        assert_eq!(only.url, "/?q=subject.code%3A%2213%22");
    }
}
