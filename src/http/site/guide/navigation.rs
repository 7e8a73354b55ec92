//! The navigation beside every page, which lists the documents by folder.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::links;
use super::render::RenderedDocument;

/// The folders in the order of the navigation. Other folders follow by name.
const FOLDERS: [&str; 6] = ["", "guide", "operations", "reference", "contract", "internals"];

/// A folder in the navigation.
#[derive(Debug, Serialize)]
pub(super) struct NavigationGroup {
    title: String,
    /// The URL of the folder's own page, its `README.md`. The title links to it.
    url: Option<String>,
    /// The other pages of the folder.
    pages: Vec<NavigationLink>,
}

/// A page in the navigation.
#[derive(Debug, Serialize)]
struct NavigationLink {
    title: String,
    url: String,
}

/// Builds the navigation: the pages of each folder, first the pages with a link in the index, in the order of the
/// index.
pub(super) fn groups(
    documents: &BTreeMap<String, String>,
    pages: &BTreeMap<String, RenderedDocument>,
) -> Vec<NavigationGroup> {
    let listed: HashMap<&str, usize> = pages.get("").map_or_else(HashMap::new, |index| {
        // Reversed, so that the first of several links to a page determines its position.
        index.links.iter().enumerate().rev().map(|(at, url)| (url.as_str(), at)).collect()
    });
    let mut folders: BTreeMap<(usize, &str), NavigationGroup> = BTreeMap::new();
    for file in documents.keys() {
        let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let rank = FOLDERS.iter().position(|known| *known == folder).unwrap_or(FOLDERS.len());
        let path = links::page_path(file);
        let Some(document) = pages.get(path) else { continue };
        let group = folders.entry((rank, folder)).or_insert_with(|| NavigationGroup {
            title: folder_title(folder),
            url: None,
            pages: Vec::new(),
        });
        // The title of the group links to this page. A second link would have nearly the same text.
        if path == folder {
            group.url = Some(links::url(path));
        } else {
            let title = document.title.clone();
            group.pages.push(NavigationLink { title, url: links::url(path) });
        }
    }
    let mut groups: Vec<NavigationGroup> = folders.into_values().collect();
    for group in &mut groups {
        // Pages without a link in the index follow, sorted by title.
        group.pages.sort_by_cached_key(|page| {
            let index_position = listed.get(page.url.as_str()).copied().unwrap_or(usize::MAX);
            (index_position, page.title.to_lowercase())
        });
    }
    groups
}

fn folder_title(folder: &str) -> String {
    let mut letters = folder.chars();
    match letters.next() {
        None => "Documentation".to_owned(),
        Some(first) => format!("{}{}", first.to_uppercase(), letters.as_str().replace('-', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::site::guide::links::DocumentLinks;
    use crate::http::site::guide::rendered;

    #[test]
    fn the_index_decides_the_order_and_the_page_of_a_folder_is_its_title() {
        let documents = [
            ("README.md", "# All\n\n[Z](guide/z.md) [A](guide/a.md)"),
            ("guide/a.md", "# A"),
            ("guide/m.md", "# M"),
            ("guide/z.md", "# Z"),
            ("loose.md", "# Loose"),
            ("other-things/README.md", "# Other things"),
            ("other-things/x.md", "# X"),
        ];
        let documents = documents.map(|(file, text)| (file.to_owned(), text.to_owned()));
        let documents = BTreeMap::from(documents);
        let links = DocumentLinks::new(documents.keys().map(String::as_str), |_| false);
        let groups = groups(&documents, &rendered(&documents, &links));
        let found: Vec<(&str, Option<&str>, Vec<&str>)> = groups
            .iter()
            .map(|group| {
                let pages = group.pages.iter().map(|page| page.title.as_str()).collect();
                (group.title.as_str(), group.url.as_deref(), pages)
            })
            .collect();
        assert_eq!(
            found,
            [
                ("Documentation", Some("/docs/guide"), vec!["Loose"]),
                ("Guide", None, vec!["Z", "A", "M"]),
                ("Other things", Some("/docs/guide/other-things"), vec!["X"]),
            ]
        );
    }
}
