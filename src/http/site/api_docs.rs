//! The documentation page of the APIs, which is rendered at start.

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use minijinja::{Value as PageValue, context};

use crate::http::openapi::description::ApiDocument;
use crate::http::protocol::tagged_text::TaggedText;
use crate::http::site::language::PageLanguage;
use crate::http::site::login_url::login_url;
use crate::http::site::page_renderer::PageRenderer;
use crate::runtime::error::Result;

/// Path of the documentation page.
const PAGE_PATH: &str = "/docs";

/// The documentation page of the APIs.
pub struct ApiDocs {
    /// The pages for anonymous visitors.
    english: TaggedText,
    swedish: TaggedText,
    /// HTML of the page below its head.
    body: String,
}

impl ApiDocs {
    /// Renders the page for `document`, with `site_name` in its head.
    ///
    /// Fails if a template cannot be rendered.
    pub fn render(document: &ApiDocument, pages: &PageRenderer, site_name: &str) -> Result<Self> {
        let context = document.page_context();
        let body = pages.render_in(PageLanguage::English, "docs_body.html", context)?;
        let english = render_page(pages, PageLanguage::English, site_name, &body)?;
        let swedish = render_page(pages, PageLanguage::Swedish, site_name, &body)?;
        Ok(Self { english, swedish, body })
    }

    /// Responds with the page for anonymous visitors in `language`.
    pub(super) fn page(
        &self,
        language: PageLanguage,
        method: &Method,
        headers: &HeaderMap,
    ) -> Response {
        let page = match language {
            PageLanguage::English => &self.english,
            PageLanguage::Swedish => &self.swedish,
        };
        page.response("text/html; charset=utf-8", method, headers)
    }

    /// Returns the HTML of the page below its head. The template has escaped everything in it.
    pub(super) fn body(&self) -> PageValue {
        PageValue::from_safe_string(self.body.clone())
    }
}

/// Renders the page for anonymous visitors in `language`.
fn render_page(
    pages: &PageRenderer,
    language: PageLanguage,
    site_name: &str,
    body: &str,
) -> Result<TaggedText> {
    let context = context! {
        site_name => site_name,
        path => PAGE_PATH,
        here => PAGE_PATH,
        login_url => login_url(PAGE_PATH),
        body => PageValue::from_safe_string(body.to_owned()),
    };
    TaggedText::new(pages.render_in(language, "docs.html", context)?)
}
