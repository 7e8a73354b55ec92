//! What `http/api/content` serves: the content API and the deprecated search interface (Spec §4).

use serde_json::{Value, json};

use super::{
    operation::{Access, Answer, Operation, Tag, get, list, path, query},
    schemas::{array, integer, one_of, reference, string},
};
use crate::runtime::limits::{HITS_DEFAULT, HITS_MAX, POLL_S, POLL_S_MAX};
use model::MediaType;
use model::item::PubStatus;
use query::Facet;

/// What stands for every media type.
const EVERY: &str = "_all";
/// The orders of hits; the first is the default.
const SORTS: [&str; 9] = [
    "default:desc",
    "default:asc",
    "date:desc",
    "date:asc",
    "versioncreated:desc",
    "versioncreated:asc",
    "versionstored:desc",
    "versionstored:asc",
    "relevance",
];

pub(super) fn operations() -> Vec<Operation> {
    vec![search(), stream(), old_search(), old_agreements()]
}

fn search() -> Operation {
    get("/content/v1/{mediaType}/search", "search")
        .belongs(Tag::Content, Access::Search)
        .says(
            "Search in the archive",
            "Finds what the caller's agreements cover; `agr` and `p` narrow that. Photographs \
             (`image`) are found without credentials too, unless the operator closed that; \
             `agr` and commissioned items never are. This is the one address that takes a user \
             name with its password (HTTP Basic).",
        )
        .takes(media_type(&MediaType::ALL))
        .takes_all(selection())
        .takes(forms())
        .takes_all(period(&["h", "d", "w", "m", "y"]))
        .takes(statuses())
        .takes_all(page())
        .takes(sort())
        .takes(list(
            "facets",
            "Count the hits by these, so that a search can be narrowed.",
            one_of(&Facet::ALL.map(Facet::as_str)),
        ))
        .takes(layout())
        .gives("The hits.", reference("SearchResult"))
        .refuses(&[400, 401, 403, 503])
}

fn stream() -> Operation {
    let wait = json!({
        "type": "integer", "minimum": 0, "maximum": POLL_S_MAX, "default": POLL_S,
    });
    let uri = json!({ "type": "string", "format": "uri" });
    let types: Vec<MediaType> =
        MediaType::ALL.into_iter().filter(|one| *one != MediaType::Stockfoto).collect();
    let hits = Answer::json("The latest item that matches, or none.", reference("StreamResult"));
    get("/content/v1/{mediaType}/stream", "stream")
        .belongs(Tag::Content, Access::Stream)
        .deprecated()
        .says(
            "Wait for the latest item",
            "A long poll. It cannot guarantee delivery when two items are published at the same \
             instant.",
        )
        .takes(media_type(&types))
        .takes_all(selection())
        .takes(sort())
        .takes(layout())
        .takes(query("last", "The `uri` of the last item received.", uri))
        .takes(query("wait", "Seconds to wait for a match.", wait))
        .answers(200, marked(hits))
        .refuses(&[400, 401, 403, 503])
}

fn old_search() -> Operation {
    let mut sort = one_of(&["asc", "desc", "stor", "rel"]);
    sort["default"] = json!("desc");
    let items = Answer::json("The hits.", array(reference("NewsItem")));
    get("/api/search", "searchWithKey")
        .belongs(Tag::Search, Access::Key)
        .deprecated()
        .says("Search with an application key", "Use `GET /content/v1/{mediaType}/search`.")
        .takes_all(selection())
        .takes_all(period(&["h", "d", "w", "y"]))
        .takes_all(page())
        .takes(query(
            "sort",
            "`asc` and `desc` by the date of creation, `stor` by that of storing, `rel` by \
             relevance.",
            sort,
        ))
        .answers(200, marked(items))
        .refuses(&[400, 401, 503])
}

fn old_agreements() -> Operation {
    let products = Answer::json("Products by agreement.", reference("AgreementsOfKey"));
    get("/api/search/agreements", "getAgreementsOfKey")
        .belongs(Tag::Search, Access::Key)
        .deprecated()
        .says("Agreements of an application key", "Use `GET /user/v1/user`.")
        .answers(200, marked(products))
        .refuses(&[400, 401, 503])
}

/// An answer that says that its address is deprecated.
pub(super) fn marked(answer: Answer) -> Answer {
    answer
        .with("Deprecation", "Since when the address is deprecated (RFC 9745).")
        .with("Link", "The address that took its place, with the relation `successor-version`.")
}

pub(super) fn media_type(types: &[MediaType]) -> Value {
    let words: Vec<&str> =
        std::iter::once(EVERY).chain(types.iter().map(|one| one.as_str())).collect();
    path("mediaType", "What kind of items; `_all` is every kind.", one_of(&words))
}

/// `q`, `p` and `agr`.
pub(super) fn selection() -> [Value; 3] {
    let code = json!({ "type": "string", "pattern": "^(-[^-,\\s]|[^-,\\s])[^,\\s]*$" });
    [
        query(
            "q",
            "Words that must all be there, with `OR` (`||`), `AND` (`&&`), `NOT` (`-`, `!`), \
             parentheses, \"phrases\", `field:value`, `prefix*`, `*`, and of dates and numbers \
             `field:[a TO b]` and `field:>a`. An address or id of an item finds it.",
            string(),
        ),
        list(
            "p",
            "Product codes of which an item has one; behind a `-`, of which it has none.",
            code,
        ),
        list("agr", "Numbers of agreements of the caller of which one covers an item.", integer()),
    ]
}

/// `forms`.
fn forms() -> Value {
    query(
        "forms",
        "Whether words of `q` also match in other forms: `hund` finds *hundar* in a Swedish text. \
         The languages are Swedish, English, Norwegian, Danish, Finnish and German, by the item's \
         `language`; items of unknown and other languages are taken for Swedish and English. Only \
         words in lower case without quotes or `*` have other forms, in no field or in `headline`, \
         `description_text` and `body_text`; behind `NOT` and `-` they have none. By relevance, \
         what matches as written comes first.",
        json!({ "type": "boolean", "default": false }),
    )
}

/// `tr`, `trs` and `tre`.
fn period(words: &[&str]) -> [Value; 3] {
    let date = || json!({ "type": "string", "format": "date" });
    [
        query("tr", "The last hour, day, week, month or year.", one_of(words)),
        query("trs", "From the midnight with which this day begins.", date()),
        query("tre", "Until the midnight with which this day begins.", date()),
    ]
}

fn statuses() -> Value {
    let served = [PubStatus::Usable, PubStatus::Replaced, PubStatus::Commissioned];
    let mut statuses = list(
        "pubstatus",
        "Publication statuses. `commissioned` is for administrators and the provider.",
        one_of(&served.map(PubStatus::as_str)),
    );
    statuses["schema"]["default"] = json!([PubStatus::Usable.as_str()]);
    statuses
}

/// `s` and `fr`.
fn page() -> [Value; 2] {
    let count = |default: usize| json!({ "type": "integer", "minimum": 0, "maximum": HITS_MAX, "default": default });
    [
        query("s", "Hits to give.", count(HITS_DEFAULT)),
        query("fr", "Hits to pass over, preferably a multiple of `s`.", count(0)),
    ]
}

fn sort() -> Value {
    let mut words = one_of(&SORTS);
    words["default"] = json!(SORTS[0]);
    query("sort", "The order of hits; `default` is the order in which items came in.", words)
}

pub(super) fn layout() -> Value {
    let mut words = one_of(&["full", "bare"]);
    words["default"] = json!("full");
    query("layout", "`bare` gives what a list needs: no bodies, one thumbnail.", words)
}
