//! `/docs/guide`: shows the documents of the folder `docs` as pages of the site, and searches them.
//!
//! The documents are compiled into the binary. The first request renders and indexes all of them, into values that
//! the templates share; each further page renders only its template. The documents are in English. The navigation
//! around them is in the visitor's language.

mod excerpt;
mod links;
mod navigation;
mod render;
mod search;
mod words;

use std::{collections::BTreeMap, sync::OnceLock};

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::get;
use minijinja::{Value as PageValue, context, value::Serde};
use rust_embed::RustEmbed;

use super::{AppState, PageResult, SiteRequest, assets, not_found};
use crate::http::cache_policy::CachePolicy;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::GUIDE_QUERY_CHARS_MAX;
use links::DocumentLinks;
use render::RenderedDocument;
use search::{DocumentIndex, QueryOutcome};

#[derive(RustEmbed)]
#[folder = "docs/"]
#[include = "*.md"]
#[include = "images/*.png"]
#[include = "images/*.svg"]
struct EmbeddedDocs;

/// The path of the index. All pages are below it.
const ROOT: &str = "/docs/guide";
/// The document that the index shows.
const INDEX: &str = "README.md";

/// The routes of the guide.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/docs/guide", get(index)).route("/docs/guide/{*page}", get(open))
}

/// `GET /docs/guide`: shows the index, or with `q` the results of a search.
async fn index(site: SiteRequest) -> PageResult {
    let guide = RenderedGuide::get().await?;
    let Some(query) = site.query.field("q")? else { return guide.page(&site, "") };
    let (status, problem, hits) = match guide.index.search(query) {
        // The page explains the limit. The status tells programs that no search was made.
        QueryOutcome::TooLong => (StatusCode::BAD_REQUEST, Some("long"), Vec::new()),
        QueryOutcome::NoWords => (StatusCode::OK, Some("empty"), Vec::new()),
        QueryOutcome::Hits(hits) => (StatusCode::OK, None, hits),
    };
    let context = context! {
        groups => &guide.groups,
        query => search::shortened(query),
        problem,
        chars_max => GUIDE_QUERY_CHARS_MAX,
        hits => Serde(hits),
    };
    site.page_with(status, "guide_search.html", context)
}

/// `GET /docs/guide/…`: shows a page, or returns a picture of a page.
async fn open(
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
    site: SiteRequest,
) -> PageResult {
    if path.starts_with("images/")
        && let Some(file) = EmbeddedDocs::get(&path)
    {
        // The URL of a picture has no fingerprint, so browsers may cache the picture only briefly.
        return Ok(assets::send(&method, &headers, &path, file, CachePolicy::PublicMinutes));
    }
    RenderedGuide::get().await?.page(&site, &path)
}

/// All documents, rendered and indexed.
struct RenderedGuide {
    /// The pages by their path below [`ROOT`]. The index has the empty path.
    pages: BTreeMap<String, PreparedPage>,
    /// The navigation, a list of [`navigation::NavigationGroup`].
    groups: PageValue,
    index: DocumentIndex,
}

/// The parts of a page as template values, which are shared so that a request does not copy any text.
struct PreparedPage {
    title: PageValue,
    /// The table of contents, a list of [`render::ContentsHeading`].
    contents: PageValue,
    /// The HTML blocks in order, each with the id of the code block at its end.
    blocks: PageValue,
}

impl PreparedPage {
    fn new(document: RenderedDocument) -> Self {
        let blocks = document.blocks.into_iter().map(|block| {
            // The renderer has escaped everything that is not its own markup.
            let html = PageValue::from_safe_string(block.html);
            context! { html, code => block.code_id }
        });
        Self {
            title: PageValue::from(document.title),
            contents: PageValue::from(Serde(document.contents)),
            blocks: blocks.collect(),
        }
    }
}

impl RenderedGuide {
    /// Returns the guide. The first caller renders it on a blocking thread, in about 20 ms.
    async fn get() -> Result<&'static Self> {
        static GUIDE: OnceLock<RenderedGuide> = OnceLock::new();
        if let Some(guide) = GUIDE.get() {
            return Ok(guide);
        }
        // Concurrent first requests wait for the same rendering, also on blocking threads.
        tokio::task::spawn_blocking(|| GUIDE.get_or_init(|| Self::render(&embedded())))
            .await
            .map_err(Error::internal)
    }

    /// Renders `documents`, which maps paths in `docs` to Markdown.
    fn render(documents: &BTreeMap<String, String>) -> Self {
        let links = DocumentLinks::new(documents.keys().map(String::as_str), |path| {
            path.starts_with("images/") && EmbeddedDocs::get(path).is_some()
        });
        let rendered = rendered(documents, &links);
        Self {
            groups: PageValue::from(Serde(navigation::groups(documents, &rendered))),
            index: DocumentIndex::new(&rendered),
            pages: rendered
                .into_iter()
                .map(|(path, document)| (path, PreparedPage::new(document)))
                .collect(),
        }
    }

    /// Renders the page at `path`.
    fn page(&self, site: &SiteRequest, path: &str) -> PageResult {
        let Some(page) = self.pages.get(path) else {
            return Err(not_found("There is no such page in the documentation."));
        };
        site.page(
            "guide.html",
            context! {
                groups => &self.groups,
                title => &page.title,
                contents => &page.contents,
                blocks => &page.blocks,
            },
        )
    }
}

/// Renders all documents. The keys of the result are the paths of the pages.
fn rendered(
    documents: &BTreeMap<String, String>,
    links: &DocumentLinks<'_>,
) -> BTreeMap<String, RenderedDocument> {
    documents
        .iter()
        .map(|(file, text)| {
            (links::page_path(file).to_owned(), render::document(file, text, links))
        })
        .collect()
}

/// Returns the documents in the binary, by the path of their file in `docs`.
fn embedded() -> BTreeMap<String, String> {
    let mut documents: BTreeMap<String, String> = EmbeddedDocs::iter()
        .filter(|file| links::is_document(file))
        .filter_map(|file| {
            let text = EmbeddedDocs::get(&file)?.data.into_owned();
            Some((file.into_owned(), String::from_utf8(text).ok()?))
        })
        .collect();
    // A build without the documents still has an index page.
    documents.entry(INDEX.to_owned()).or_insert_with(|| "# Documentation\n".to_owned());
    documents
}
