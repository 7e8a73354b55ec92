//! Defines the fields of an indexed document and the tokenizer of its texts.

use query::{DateField, Facet, NumberField};
use strum::IntoEnumIterator;
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, SchemaBuilder, TextFieldIndexing,
    TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

/// The name of the tokenizer for texts that consist of terms.
const TERMS: &str = "terms";
/// The token that separates two values, so that no phrase matches across them.
const GAP: &str = ".";

/// Names of columns that are read by name.
pub(crate) const ORDER: &str = "order";
pub(crate) const NUMBER: &str = "number";
pub(crate) const STAMP: &str = "stamp";
pub(crate) const HIDDEN_UNTIL: &str = "hidden_until";
pub(crate) const PICTURE_HASH: &str = "picture_hash";

/// The fields of a document. Nothing is stored in the index: the item's document is in the database.
#[derive(Clone, Debug)]
pub(crate) struct SchemaFields {
    /// The version number of the item: a column, and a term for removing the version.
    pub(crate) number: Field,
    /// The stamp of the version.
    pub(crate) stamp: Field,
    /// `_tstamp` in milliseconds; segments are sorted by it, latest first.
    pub(crate) order: Field,
    /// End of the embargo that hides the item, in milliseconds.
    pub(crate) embargoed: Field,
    pub(crate) media_type: Field,
    pub(crate) status: Field,
    /// Words with positions and frequencies.
    pub(crate) headline: Field,
    pub(crate) description: Field,
    pub(crate) body: Field,
    pub(crate) rest: Field,
    /// Words of single properties, each prefixed with the code of its property. All properties share one field
    /// without norms, because separate fields would cost a byte per document and time per commit.
    pub(crate) properties: Field,
    /// Words with accents, prefixed with their place, and the item's id.
    pub(crate) accents: Field,
    /// Stems of the words of texts, prefixed with place and language.
    pub(crate) stems: Field,
    /// The perceptual hash of the picture: a column for comparisons.
    pub(crate) picture_hash: Field,
    /// The bands of the perceptual hash, by which pictures are looked up.
    pub(crate) picture_bands: Field,
    /// The dates of a document, in milliseconds, in the order of [`DateField`].
    dates: Vec<Field>,
    /// The numbers of a document, as integers of the same order, in the order of [`NumberField`].
    numbers: Vec<Field>,
    /// The values of facets, in the order of [`Facet`].
    pub(crate) facets: Vec<Field>,
}

impl SchemaFields {
    /// Returns the field of a date.
    pub(crate) fn date(&self, date: DateField) -> Field {
        self.dates[date as usize]
    }

    /// Returns the field of a number.
    pub(crate) fn number_of(&self, number: NumberField) -> Field {
        self.numbers[number as usize]
    }

    /// Returns the field of a facet.
    pub(crate) fn facet(&self, facet: Facet) -> Field {
        self.facets[facet.index()]
    }
}

/// Builds the schema. Every change of the schema requires a new version of the analysis
/// ([`ANALYSIS`](crate::ANALYSIS)).
pub(crate) fn schema() -> (Schema, SchemaFields) {
    let mut builder = Schema::builder();
    let number = NumericOptions::default().set_fast().set_indexed();
    let column = NumericOptions::default().set_fast();
    // These fields only filter, so they need neither frequencies nor norms.
    let term = text("raw", IndexRecordOption::Basic, false);
    // Positions are needed for phrases, norms for relevance and the lookup of `headline:*`.
    let words = text(TERMS, IndexRecordOption::WithFreqsAndPositions, true);
    let fields = SchemaFields {
        number: builder.add_u64_field(NUMBER, number),
        stamp: builder.add_u64_field(STAMP, column.clone()),
        order: builder.add_i64_field(ORDER, column.clone()),
        embargoed: builder.add_i64_field(HIDDEN_UNTIL, column.clone()),
        media_type: builder.add_text_field("media_type", term.clone()),
        status: builder.add_text_field("status", term.clone()),
        headline: builder.add_text_field("headline", words.clone()),
        description: builder.add_text_field("description", words.clone()),
        body: builder.add_text_field("body", words.clone()),
        rest: builder.add_text_field("rest", words),
        properties: builder.add_text_field(
            "properties",
            text(TERMS, IndexRecordOption::WithFreqsAndPositions, false),
        ),
        accents: builder.add_text_field("accents", text(TERMS, IndexRecordOption::Basic, false)),
        stems: builder.add_text_field("stems", text(TERMS, IndexRecordOption::Basic, false)),
        picture_hash: builder.add_u64_field(PICTURE_HASH, column.clone()),
        picture_bands: builder.add_text_field("picture_bands", term.clone()),
        dates: DateField::iter()
            .map(|date| builder.add_i64_field(date.as_str(), column.clone()))
            .collect(),
        numbers: NumberField::iter()
            .map(|number| builder.add_i64_field(&number_column(number), column.clone()))
            .collect(),
        facets: Facet::iter().map(|facet| add_facet(&mut builder, facet, &term)).collect(),
    };
    (builder.build(), fields)
}

fn text(tokenizer: &str, option: IndexRecordOption, norms: bool) -> TextOptions {
    let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer);
    let indexing = indexing.set_index_option(option).set_fieldnorms(norms);
    TextOptions::default().set_indexing_options(indexing)
}

/// Adds the column of a facet. Products are also terms, because agreements filter by them.
fn add_facet(builder: &mut SchemaBuilder, facet: Facet, term: &TextOptions) -> Field {
    let options = if facet == Facet::ProductCode {
        term.clone()
    } else {
        // Filters read the columns of the other facets; queries for their values use the words of the property.
        TextOptions::default()
    };
    builder.add_text_field(facet_column(facet), options.set_fast("raw"))
}

/// Returns the name of a number column, without dots, which would denote nested objects.
pub(crate) fn number_column(number: NumberField) -> String {
    number.as_str().replace('.', "_")
}

/// Returns the name of a facet column, without dots, which would denote nested objects.
pub(crate) fn facet_column(facet: Facet) -> &'static str {
    match facet {
        Facet::SubjectCode => "subject_code",
        Facet::ProductCode => "product_code",
        Facet::PlaceName => "place_name",
        Facet::PersonName => "person_name",
        Facet::CopyrightHolder => "copyright_holder",
        Facet::DigitalSourceType => "digital_source_type",
        Facet::SubjectName => "subject_name",
        Facet::Byline => "byline",
        Facet::Orientation => "orientation",
        Facet::Colour => "colour",
        // A different name from the field with the terms, which only filters.
        Facet::MediaType => "media_types",
    }
}

/// Returns the tokenizers that the schema names.
pub(crate) fn tokenizers() -> TokenizerManager {
    // The engine also needs its default tokenizers, even for numbers.
    let manager = TokenizerManager::default();
    manager.register(TERMS, TextAnalyzer::builder(TermTokenizer::default()).build());
    manager
}

/// Splits a text at single spaces into terms; [`GAP`] leaves a position without a term.
///
/// The crate `query` has already split and folded the words.
#[derive(Clone, Default)]
struct TermTokenizer {
    token: Token,
}

impl Tokenizer for TermTokenizer {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        self.token.reset();
        self.token.position_length = 1;
        TermStream { terms: text.split(' '), token: &mut self.token, position: 0 }
    }
}

struct TermStream<'a> {
    terms: std::str::Split<'a, char>,
    token: &'a mut Token,
    position: usize,
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        for term in self.terms.by_ref() {
            let position = self.position;
            self.position += 1;
            // A gap occupies a position without a term, so that no phrase matches across it.
            if term != GAP && !term.is_empty() {
                self.token.text.clear();
                self.token.text.push_str(term);
                self.token.position = position;
                return true;
            }
        }
        false
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_position_without_a_term() {
        let mut tokenizer = TextAnalyzer::builder(TermTokenizer::default()).build();
        let mut stream = tokenizer.token_stream("erik berg . anna");
        let mut found = Vec::new();
        stream.process(&mut |token| found.push((token.text.clone(), token.position)));
        let expected = [("erik", 0), ("berg", 1), ("anna", 3)];
        assert_eq!(found, expected.map(|(term, at)| (term.to_owned(), at)));
    }
}
