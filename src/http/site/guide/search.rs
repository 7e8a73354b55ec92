//! Finds the sections of the documentation that contain all words of a query, the best first.
//!
//! An inverted index maps each word to the sections that contain it, with a score. A word of a query also matches
//! longer words that begin with it.
//!
//! Sections that match in the heading come before sections that match in the text. Among sections of equal match,
//! guides come first, then the reference, then contract and internals: a guide and the contract use the same
//! words, and most visitors have a task. The score decides between sections of the same kind.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use serde::Serialize;

use super::excerpt::{ExcerptFragment, excerpt};
use super::links;
use super::render::RenderedDocument;
use super::words::{words, words_of};
use crate::runtime::limits::GUIDE_QUERY_CHARS_MAX;

/// Words of a query for the documentation.
const GUIDE_QUERY_WORDS_MAX: usize = 12;
/// Sections in the results of a documentation search.
const GUIDE_HITS_MAX: usize = 30;
/// Sections of one page in the results of a documentation search.
const GUIDE_HITS_PER_PAGE_MAX: usize = 3;
/// Scores of a word: once for the page title, once for the heading, and for each of at most [`COUNTED_MAX`]
/// occurrences in the text.
const TITLE_SCORE: u32 = 6;
const HEADING_SCORE: u32 = 12;
const TEXT_SCORE: u32 = 2;
const COUNTED_MAX: u32 = 5;
/// Factor by which a whole word scores higher than a longer word that begins with the word of the query.
const WHOLE_WORD_FACTOR: u32 = 3;
/// Score added for a heading that equals the query.
const EXACT_HEADING_SCORE: u32 = 60;

/// The result of a query.
#[derive(Debug)]
pub(super) enum QueryOutcome {
    /// The query has too many characters or words.
    TooLong,
    /// The query has no words to search for.
    NoWords,
    /// The sections, best first; empty if nothing matches.
    Hits(Vec<SectionHit>),
}

/// A section that matches.
#[derive(Debug, Serialize)]
pub(super) struct SectionHit {
    title: String,
    /// The heading; `None` for the first section of a page, which has only the title.
    heading: Option<String>,
    url: String,
    excerpt: Vec<ExcerptFragment>,
}

/// The sections of all documents and the words in them.
#[derive(Debug, Default)]
pub(super) struct DocumentIndex {
    sections: Vec<IndexedSection>,
    /// For each word, the indexes in `sections` of the sections that contain it, each with the word's score there.
    postings: BTreeMap<String, Vec<(usize, u32)>>,
}

#[derive(Debug)]
struct IndexedSection {
    title: String,
    heading: Option<String>,
    url: String,
    text: String,
    kind: PageKind,
    title_words: Vec<String>,
    /// The words of the heading; for the first section of a page, the words of the title.
    heading_words: Vec<String>,
    /// The names that the section's tables describe, each as a list of words.
    names: Vec<Vec<String>>,
}

/// The kind of a page. The order of the variants ranks search results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PageKind {
    /// Instructions: guides, operations, and the index of all documents.
    Guide,
    /// The reference of settings, commands and error codes.
    Reference,
    /// The contract of the service, and its internals.
    Background,
}

/// The part of a section that matches a query. The order of the variants ranks search results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum MatchedPart {
    /// All words are in the heading or the title, at least one in the heading; or they are a name that the section
    /// describes.
    Heading,
    /// At least one of the words is only in the text.
    Text,
}

impl PageKind {
    /// Returns the kind of the page at `path`, which begins with the folder.
    fn from_path(path: &str) -> Self {
        match path.split('/').next().unwrap_or_default() {
            "" | "guide" | "operations" => Self::Guide,
            "reference" => Self::Reference,
            _ => Self::Background,
        }
    }
}

impl IndexedSection {
    fn matched_part(&self, query_words: &[String]) -> MatchedPart {
        let is_heading = query_words.iter().any(|word| has_prefix(&self.heading_words, word))
            && query_words.iter().all(|word| {
                has_prefix(&self.heading_words, word) || has_prefix(&self.title_words, word)
            });
        // A single word is rarely meant as a name: `search` is also a folder and a column.
        let is_name = query_words.len() > 1
            && self.names.iter().any(|name| name.as_slice().ends_with(query_words));
        if is_heading || is_name { MatchedPart::Heading } else { MatchedPart::Text }
    }
}

/// Returns whether one of `words` begins with `prefix`.
fn has_prefix(words: &[String], prefix: &str) -> bool {
    words.iter().any(|word| word.starts_with(prefix))
}

impl DocumentIndex {
    /// Indexes `pages`, which maps paths to documents.
    pub(super) fn new(pages: &BTreeMap<String, RenderedDocument>) -> Self {
        let mut index = Self::default();
        for (path, document) in pages {
            for (at, section) in document.sections.iter().enumerate() {
                let address = links::url(path);
                let is_first = at == 0;
                let heading = (!is_first).then(|| section.heading.clone());
                index.add(IndexedSection {
                    kind: PageKind::from_path(path),
                    title_words: words_of(&document.title),
                    heading_words: words_of(heading.as_ref().unwrap_or(&document.title)),
                    names: section.names.iter().map(|name| words_of(name)).collect(),
                    title: document.title.clone(),
                    heading,
                    url: if is_first { address } else { format!("{address}#{}", section.anchor) },
                    text: section.text.trim().to_owned(),
                });
            }
        }
        index
    }

    fn add(&mut self, section: IndexedSection) {
        let mut scores: HashMap<String, u32> = HashMap::new();
        for word in words(&section.text) {
            *scores.entry(word.text).or_default() += 1;
        }
        // A long section must not come first because of repetitions alone.
        scores.values_mut().for_each(|count| *count = (*count).min(COUNTED_MAX) * TEXT_SCORE);
        let headings =
            [(&section.title_words, TITLE_SCORE), (&section.heading_words, HEADING_SCORE)];
        for (words, score) in headings {
            for word in words {
                *scores.entry(word.clone()).or_default() += score;
            }
        }
        let index = self.sections.len();
        for (word, score) in scores {
            self.postings.entry(word).or_default().push((index, score));
        }
        self.sections.push(section);
    }

    /// Searches for sections with all words of `query`.
    pub(super) fn search(&self, query: &str) -> QueryOutcome {
        if query.chars().count() > GUIDE_QUERY_CHARS_MAX {
            return QueryOutcome::TooLong;
        }
        let mut query_words = words_of(query);
        // Only adjacent repetitions are removed, because the order of the words is compared with headings later.
        query_words.dedup();
        match query_words.len() {
            0 => QueryOutcome::NoWords,
            1..=GUIDE_QUERY_WORDS_MAX => QueryOutcome::Hits(self.hits(&query_words)),
            _ => QueryOutcome::TooLong,
        }
    }

    fn hits(&self, query_words: &[String]) -> Vec<SectionHit> {
        let mut ranked: Vec<(usize, u32)> = self.scores(query_words).into_iter().collect();
        for (index, score) in &mut ranked {
            // A visitor who types the whole heading is looking for exactly this section.
            if self.sections[*index].heading_words == query_words {
                *score += EXACT_HEADING_SCORE;
            }
        }
        // Sections of equal rank stay in the order of the pages.
        ranked.sort_by_cached_key(|(index, score)| {
            let section = &self.sections[*index];
            (section.matched_part(query_words), section.kind, u32::MAX - score, *index)
        });
        let mut hits_of_page: HashMap<&str, usize> = HashMap::new();
        let limited =
            ranked.into_iter().map(|(index, _)| &self.sections[index]).filter(|section| {
                let page = section.url.split('#').next().unwrap_or_default();
                let count = hits_of_page.entry(page).or_default();
                *count += 1;
                // One long page must not fill the list.
                *count <= GUIDE_HITS_PER_PAGE_MAX
            });
        let hits = limited.take(GUIDE_HITS_MAX).map(|section| SectionHit {
            title: section.title.clone(),
            heading: section.heading.clone(),
            url: section.url.clone(),
            excerpt: excerpt(&section.text, query_words),
        });
        hits.collect()
    }

    /// Returns the sections that contain every word, each with the sum of the words' scores.
    fn scores(&self, query_words: &[String]) -> HashMap<usize, u32> {
        let mut all: Option<HashMap<usize, u32>> = None;
        for word in query_words {
            let mut found: HashMap<usize, u32> = HashMap::new();
            let from = (Bound::Included(word.as_str()), Bound::Unbounded);
            let from = self.postings.range::<str, _>(from);
            for (term, sections) in from.take_while(|(term, _)| term.starts_with(word)) {
                let factor = if term == word { WHOLE_WORD_FACTOR } else { 1 };
                for (index, score) in sections {
                    let best = found.entry(*index).or_default();
                    // If several words begin with the word of the query, only the best one counts.
                    *best = (*best).max(score * factor);
                }
            }
            all = Some(match all {
                None => found,
                Some(mut previous) => {
                    previous.retain(|index, _| found.contains_key(index));
                    previous.iter_mut().for_each(|(index, score)| *score += found[index]);
                    previous
                }
            });
        }
        all.unwrap_or_default()
    }
}

/// Truncates a query for display.
pub(super) fn shortened(query: &str) -> String {
    query.chars().take(GUIDE_QUERY_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::super::links::DocumentLinks;
    use super::super::render;
    use super::*;

    fn index(documents: &[(&str, &str)]) -> DocumentIndex {
        let links = DocumentLinks::new(std::iter::empty(), |_| false);
        let rendered = documents.iter().map(|(file, text)| {
            (links::page_path(file).to_owned(), render::document(file, text, &links))
        });
        DocumentIndex::new(&rendered.collect())
    }

    fn urls(index: &DocumentIndex, query: &str) -> Vec<String> {
        match index.search(query) {
            QueryOutcome::Hits(hits) => hits.into_iter().map(|hit| hit.url).collect(),
            other @ (QueryOutcome::TooLong | QueryOutcome::NoWords) => {
                panic!("{query}: {other:?}")
            }
        }
    }

    #[test]
    fn headings_come_before_text_and_every_word_must_be_there() {
        let index = index(&[
            ("a.md", "# Apples\n\nA backup of apples.\n\n## Backup\n\nHow to store them.\n"),
            ("b.md", "# Pears\n\nNo backups here, and `media.preview_px`.\n"),
        ]);
        let [a, backup, b] = ["/docs/guide/a", "/docs/guide/a#backup", "/docs/guide/b"];
        assert_eq!(urls(&index, "backup"), [backup, a, b]);
        assert_eq!(urls(&index, "BACKUP apples"), [backup, a]);
        assert_eq!(urls(&index, "preview_px"), [b]);
        assert_eq!(urls(&index, "backup nothing"), Vec::<String>::new());
    }

    #[test]
    fn headings_come_first_and_then_guides_before_the_reference_and_the_contract() {
        let page =
            |title: &str| format!("# {title}\n\nPurge, purge, purge.\n\n## Calls\n\nA purge.\n");
        let (named, other) = (page("Purge"), page("Caches"));
        let documents: Vec<(String, &str)> =
            ["contract", "guide", "internals", "operations", "reference"]
                .into_iter()
                .flat_map(|folder| {
                    [
                        (format!("{folder}/other.md"), other.as_str()),
                        (format!("{folder}/purge.md"), named.as_str()),
                    ]
                })
                .collect();
        let documents: Vec<(&str, &str)> =
            documents.iter().map(|(file, text)| (file.as_str(), *text)).collect();
        let found = urls(&index(&documents), "purge");
        let pages: Vec<&str> = found
            .iter()
            .filter(|url| !url.contains('#'))
            .map(|url| url.trim_start_matches("/docs/guide/"))
            .collect();
        assert_eq!(
            pages,
            [
                "guide/purge",
                "operations/purge",
                "reference/purge",
                "contract/purge",
                "internals/purge",
                "guide/other",
                "operations/other",
                "reference/other",
                "contract/other",
                "internals/other",
            ]
        );
    }

    #[test]
    fn a_section_that_describes_a_name_comes_before_those_that_mention_it() {
        let index = index(&[
            (
                "operations/load.md",
                "# Load\n\nMore `media.max_workers`: `media.max_workers` 1, 2 or 3.\n",
            ),
            (
                "reference/settings.md",
                "# Settings\n\n## media\n\n| Setting | Unit |\n| - | - |\n| `media.max_workers` | |\n",
            ),
        ]);
        let [guide, entry] =
            ["/docs/guide/operations/load", "/docs/guide/reference/settings#media"];
        assert_eq!(urls(&index, "media.max_workers"), [entry, guide]);
        assert_eq!(urls(&index, "max_workers"), [entry, guide]);
        assert_eq!(urls(&index, "workers"), [guide, entry]);
    }

    #[test]
    fn empty_and_overlong_queries_are_no_searches() {
        let index = index(&[("a.md", "# A\n\ntext")]);
        for query in ["", "  ", "-- ?"] {
            assert!(matches!(index.search(query), QueryOutcome::NoWords), "{query}");
        }
        let words = (0..=GUIDE_QUERY_WORDS_MAX).map(|n| n.to_string()).collect::<Vec<_>>();
        for query in [&"x".repeat(GUIDE_QUERY_CHARS_MAX + 1), &words.join(" ")] {
            assert!(matches!(index.search(query), QueryOutcome::TooLong), "{query}");
        }
        assert!(matches!(index.search(&"é".repeat(GUIDE_QUERY_CHARS_MAX)), QueryOutcome::Hits(_)));
    }
}
