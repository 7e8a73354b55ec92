//! `/docs/guide`: the documents of the folder `docs` as pages of the site, with a search over them.
//!
//! The documents are compiled into the binary. They are rendered and indexed all at once when the first of
//! them is requested, into values that the templates share; after that a page costs one template. The
//! documents are English, the navigation around them is in the visitor's language.

mod excerpt;
mod links;
mod navigation;
mod render;
mod search;
mod words;

use std::{collections::BTreeMap, sync::OnceLock};

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, Method, StatusCode},
    routing::get,
};
use minijinja::{Value as PageValue, context, value::Serde};
use rust_embed::RustEmbed;

use super::{AppState, PageResult, SiteRequest, assets};
use crate::http::cache_policy::CachePolicy;
use crate::runtime::error::{Error, ErrorKind, Result};
use links::DocumentLinks;
use render::RenderedDocument;
use search::{DocumentIndex, QueryOutcome};

#[derive(RustEmbed)]
#[folder = "docs/"]
#[include = "*.md"]
#[include = "images/*.png"]
#[include = "images/*.svg"]
struct EmbeddedDocs;

/// The path of the index; the pages are below it.
const ROOT: &str = "/docs/guide";
/// The document that the index shows.
const INDEX: &str = "README.md";

/// The routes of the guide.
pub(super) fn routes() -> Router<AppState> {
    Router::new().route("/docs/guide", get(index)).route("/docs/guide/{*page}", get(open))
}

/// `GET /docs/guide`: the index, or with `q` the results of a search.
async fn index(site: SiteRequest) -> PageResult {
    let guide = RenderedGuide::get().await?;
    match site.query.field("q")? {
        None => guide.page(&site, ""),
        Some(query) => {
            let answer = guide.index.search(query);
            let status = match answer {
                // The page explains the limit; the status says that no search took place.
                QueryOutcome::TooLong => StatusCode::BAD_REQUEST,
                QueryOutcome::NoWords | QueryOutcome::Hits(_) => StatusCode::OK,
            };
            let (problem, hits) = match answer {
                QueryOutcome::TooLong => (Some("long"), Vec::new()),
                QueryOutcome::NoWords => (Some("empty"), Vec::new()),
                QueryOutcome::Hits(hits) => (None, hits),
            };
            site.page_with(
                status,
                "guide_search.html",
                context! {
                    groups => &guide.groups,
                    query => search::shortened(query),
                    problem,
                    chars_max => crate::runtime::limits::GUIDE_QUERY_CHARS_MAX,
                    hits => PageValue::from(Serde(hits)),
                },
            )
        }
    }
}

/// `GET /docs/guide/…`: a page, or a picture of a page.
async fn open(
    Path(path): Path<String>,
    method: Method,
    headers: HeaderMap,
    site: SiteRequest,
) -> PageResult {
    if path.starts_with("images/")
        && let Some(file) = EmbeddedDocs::get(&path)
    {
        return Ok(assets::send(
            &method,
            &headers,
            &path,
            // The address of a picture has no fingerprint, so browsers may keep it only briefly.
            assets::AssetFile { file, policy: CachePolicy::PublicMinutes },
        ));
    }
    RenderedGuide::get().await?.page(&site, &path)
}

/// All documents, rendered and indexed.
struct RenderedGuide {
    /// The pages by their path below [`ROOT`]; the index has the empty path.
    pages: BTreeMap<String, PreparedPage>,
    /// The navigation, a list of [`navigation::NavigationGroup`].
    groups: PageValue,
    index: DocumentIndex,
}

/// The parts of a page as its template takes them: shared, so that a request copies no text.
struct PreparedPage {
    title: PageValue,
    /// The table of contents, a list of [`render::ContentsHeading`].
    contents: PageValue,
    /// The HTML in order, and for each part the id of the code block at its end.
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
    /// Returns the guide, which the first caller renders on a blocking thread: that takes some 20 ms.
    async fn get() -> Result<&'static Self> {
        static GUIDE: OnceLock<RenderedGuide> = OnceLock::new();
        if let Some(guide) = GUIDE.get() {
            return Ok(guide);
        }
        // Concurrent first requests wait for one rendering, on blocking threads as well.
        tokio::task::spawn_blocking(|| GUIDE.get_or_init(|| Self::render(&embedded())))
            .await
            .map_err(Error::internal)
    }

    /// Renders `documents`: Markdown by the path of its file in `docs`.
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
            let message = "There is no such page in the documentation.";
            return Err(Error::new(ErrorKind::NotFound, message).into());
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

/// Renders all documents; the keys are the paths of their pages.
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

/// The documents in the binary by the path of their file in `docs`.
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
