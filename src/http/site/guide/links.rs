//! Maps documents to URLs of pages, headings to anchors, and links in documents to their targets on the site.

use std::collections::{BTreeSet, HashMap};

use super::ROOT;
use crate::http::heading_anchor::anchor;

/// Returns whether a file in `docs` is a page.
pub(super) fn is_document(file: &str) -> bool {
    file.ends_with(".md")
}

/// Returns the path of a page below the root: `operations/backup` for `operations/backup.md`; the folder for a
/// `README.md`.
pub(super) fn page_path(file: &str) -> &str {
    let path = file.strip_suffix(".md").unwrap_or(file);
    match path.strip_suffix("README") {
        // A file whose name only ends in `README` is an ordinary page.
        Some(folder) if folder.is_empty() || folder.ends_with('/') => folder.trim_end_matches('/'),
        Some(_) | None => path,
    }
}

/// Returns the URL of the page at `path`.
pub(super) fn url(path: &str) -> String {
    if path.is_empty() { ROOT.to_owned() } else { format!("{ROOT}/{path}") }
}

/// Generates the anchors of one page. A repeated heading gets a number.
#[derive(Default)]
pub(super) struct HeadingAnchors {
    used: HashMap<String, usize>,
}

impl HeadingAnchors {
    /// Returns the anchor of the next heading.
    pub(super) fn next(&mut self, heading: &str) -> String {
        let plain = anchor(heading);
        let count = self.used.entry(plain.clone()).or_default();
        *count += 1;
        // Numbered as on GitHub, so that a link works in both places.
        if *count == 1 { plain } else { format!("{plain}-{}", *count - 1) }
    }
}

/// The files to which links can lead.
pub(super) struct DocumentLinks<'a> {
    documents: BTreeSet<&'a str>,
    is_image: fn(&str) -> bool,
}

impl<'a> DocumentLinks<'a> {
    /// Creates the link targets from `documents`, paths of files in `docs`. `is_image` returns whether a path is a
    /// picture.
    pub(super) fn new(
        documents: impl Iterator<Item = &'a str>,
        is_image: fn(&str) -> bool,
    ) -> Self {
        Self { documents: documents.collect(), is_image }
    }

    /// Resolves the link `target` of the document `file` to its URL on the site.
    ///
    /// `None` if the link leads to a file of the repository outside `docs`, which the server does not have, or if
    /// its scheme is neither `http`, `https` nor `mailto`. Such a link is shown as text.
    pub(super) fn resolve(&self, file: &str, target: &str) -> Option<String> {
        // This is an allowlist, so that schemes such as `javascript:` do not become links.
        let is_absolute = ["https://", "http://", "mailto:", "/", "#"]
            .iter()
            .any(|start| target.starts_with(start));
        if is_absolute {
            return Some(target.to_owned());
        }
        let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
        let path = joined(file, path)?;
        let fragment = if fragment.is_empty() { String::new() } else { format!("#{fragment}") };
        if self.documents.contains(path.as_str()) {
            return Some(format!("{}{fragment}", url(page_path(&path))));
        }
        let folder_index =
            if path.is_empty() { "README.md".into() } else { format!("{path}/README.md") };
        // A link to a folder leads to its README.
        if self.documents.contains(folder_index.as_str()) {
            return Some(format!("{}{fragment}", url(&path)));
        }
        (self.is_image)(&path).then(|| format!("{ROOT}/{path}"))
    }
}

/// Resolves `target` relative to `file` in `docs`; `None` if it leaves the folder.
fn joined(file: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            // Files of the repository above `docs` are not on the server.
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_of_github() {
        let check = |heading: &str, expected: &str| assert_eq!(anchor(heading), expected);
        check("What needs a restart", "what-needs-a-restart");
        check("S3, and its rights: `GetObject`", "s3-and-its-rights-getobject");
        check("enum.openapi.requestValidation", "enumopenapirequestvalidation");
        check("agreement_required", "agreement_required");
        check("Bygg & kör", "bygg--kör");
        let mut anchors = HeadingAnchors::default();
        let found = ["Settings", "Rest", "Settings", "Settings"].map(|one| anchors.next(one));
        assert_eq!(found, ["settings", "rest", "settings-1", "settings-2"]);
    }

    #[test]
    fn links_lead_to_pages_pictures_and_the_web_alone() {
        let documents =
            ["README.md", "guide/search.md", "operations/backup.md", "guide/README.md"];
        let links = DocumentLinks::new(documents.into_iter(), |path| path == "images/wall.png");
        let check = |file: &str, target: &str, expected: Option<&str>| {
            assert_eq!(links.resolve(file, target).as_deref(), expected, "{file} {target}");
        };
        let (index, backup) = ("README.md", "operations/backup.md");
        check(index, "guide/search.md#words", Some("/docs/guide/guide/search#words"));
        check(backup, "../guide/search.md", Some("/docs/guide/guide/search"));
        check(backup, "backup.md#restore", Some("/docs/guide/operations/backup#restore"));
        check(backup, "#restore", Some("#restore"));
        check(backup, "../README.md", Some("/docs/guide"));
        check(backup, "../guide/", Some("/docs/guide/guide"));
        check(backup, "..", Some("/docs/guide"));
        check(backup, "../images/wall.png", Some("/docs/guide/images/wall.png"));
        check(backup, "../images/none.png", None);
        check(backup, "../../benches/RESULTS.md", None);
        check(backup, "none.md", None);
        check(backup, "javascript:alert(1)", None);
        check(backup, "https://example.com/", Some("https://example.com/"));
        check(backup, "/openapi.json", Some("/openapi.json"));
    }
}
