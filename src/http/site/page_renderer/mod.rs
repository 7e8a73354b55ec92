//! Renders the templates of pages in each language.

use std::sync::Arc;

use jiff::tz::TimeZone;
use minijinja::{Environment, Value};
use rust_embed::RustEmbed;

use crate::http::site::language::PageLanguage;
use crate::http::site::{language, template_environment};
use crate::runtime::error::{Error, Result};

#[derive(RustEmbed)]
#[folder = "assets/pages/"]
struct PageTemplates;

/// The compiled page templates in each language.
pub struct PageRenderer {
    english: Environment<'static>,
    swedish: Environment<'static>,
}

impl PageRenderer {
    /// Compiles the templates in the binary. Times are shown in `zone`. Pictures are also offered as AVIF if
    /// `offers_avif`.
    ///
    /// Fails if a template is not UTF-8 or does not parse, or if the translations cannot be loaded.
    pub fn compile(zone: &TimeZone, offers_avif: bool) -> Result<Self> {
        Ok(Self {
            english: environment(PageLanguage::English, zone, offers_avif)?,
            swedish: environment(PageLanguage::Swedish, zone, offers_avif)?,
        })
    }

    /// Renders the page `name` with `context` in the current language.
    pub(crate) fn render(&self, name: &str, context: Value) -> Result<String> {
        self.render_in(language::current_language(), name, context)
    }

    /// Renders the page `name` with `context` in `language`.
    pub(crate) fn render_in(
        &self,
        language: PageLanguage,
        name: &str,
        context: Value,
    ) -> Result<String> {
        let environment = match language {
            PageLanguage::English => &self.english,
            PageLanguage::Swedish => &self.swedish,
        };
        let template = environment.get_template(name).map_err(Error::internal)?;
        template.render(context).map_err(Error::internal)
    }
}

/// Compiles the templates for pages in `language`.
fn environment(
    language: PageLanguage,
    zone: &TimeZone,
    offers_avif: bool,
) -> Result<Environment<'static>> {
    let texts = Arc::new(language::translations(language)?);
    let mut environment = template_environment::environment(language, &texts, zone, offers_avif);
    for name in PageTemplates::iter() {
        let Some(file) = PageTemplates::get(&name) else { continue };
        // Compiled at start, so that a broken template prevents the start instead of failing requests.
        let text = String::from_utf8(file.data.into_owned()).map_err(Error::internal)?;
        environment.add_template_owned(name.into_owned(), text).map_err(Error::internal)?;
    }
    Ok(environment)
}

#[cfg(test)]
mod tests;
