//! Parses the text of a query into its tree.
//!
//! ```text
//! any    = all { ( "OR" | "||" ) all }
//! all    = term { [ "AND" | "&&" ] term }
//! term   = { "NOT" | "!" | "-" | "+" } ( "*:*" | [ name ":" ] value )
//! value  = run [ "*" ] | "*" | quote text quote | "(" any ")" | range
//! range  = ( "[" | "{" ) bound "TO" bound ( "]" | "}" ) | ( ">" | ">=" | "<" | "<=" ) bound
//! ```
//!
//! A `run` is a sequence of characters without spaces, parentheses, brackets, quotes, `&&` and `||`. A `name` is a run
//! that ends before a colon, and a `bound` is a date or a number, in brackets also `*`. A `text` has no quotes and no
//! `*`: `"a*b"` is an error. A backslash makes any character a part of a run or text, as in `"a\*b"`.
//!
//! Spaces separate terms and operators, and may stand inside parentheses and brackets. None may stand beside a colon,
//! after a comparison or after one of the signs `-`, `+` and `!`. Isolated punctuation between terms, as in `a / b`,
//! counts as a space, but an isolated sign, as in `a - b`, is an error.

use jiff::tz::TimeZone;

use super::error::{QueryError, excerpt};
use super::field::{QueryField, TextField};
use super::fold::{is_word_character, words};
use super::range::{RangeBound, RangeLiteral};
use super::scan::{CharacterRun, ColonMeaning, QueryOperator, QueryScanner, is_quote};
use super::tree::{Query, WordPattern};
use super::{address, property};
use crate::limits::{
    PHRASE_WORDS_MAX, PREFIX_CHARS_MIN, QUERY_CLAUSES_MAX, QUERY_DEPTH_MAX, QUERY_PREFIXES_MAX,
};
use model::{ItemId, ItemKey};

/// Parses a query in which every word matches only as written.
///
/// Dates, and times without an offset, are in `zone`. A text that is empty or has only spaces matches every document.
///
/// ```
/// use jiff::tz::TimeZone;
/// use query::{Query, parse};
///
/// let zone = TimeZone::get("Europe/Stockholm")?;
/// assert_eq!(parse("", &zone)?, Query::All);
/// // `AND` may be left out and binds tighter than `OR`.
/// assert_eq!(parse("a b OR c", &zone)?, parse("(a AND b) OR c", &zone)?);
/// // A query prints in its canonical spelling, which parses to the same query.
/// assert_eq!(parse("storm AND NOT (vind OR snö)", &zone)?.to_string(), "storm -(vind OR snö)");
/// assert_eq!(parse("vind)", &zone).unwrap_err().to_string(), "unexpected ) at character 5");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Precedence: `NOT`, `!`, `-` and `+` bind tightest, then `AND`, which may be left out, then `OR`. Operators are in
/// capitals. Characters other than letters and digits separate words. Words that are joined by such characters
/// without a space form a phrase. A backslash removes the special meaning of the next character.
///
/// `+` has no effect, because a term is required unless it is in an `OR`: `a OR +b` is `a OR b`. `*` and `*:*`
/// match every document, `name:*` matches documents with a value. The URL of an item matches that item; any other
/// URL is searched for as a phrase. A word that could be an id also matches the item with this id. Syntax with a
/// meaning in Lucene but not here (`?` within a word, `^`, `~`, regular expressions, ranges of properties without
/// an order) is an error, unless it is quoted or escaped with a backslash.
///
/// The result has no `And` within `And`, no `Or` within `Or`, no `Not` within `Not`, and [`Query::All`] only alone
/// or within a `Not`.
///
/// # Errors
///
/// [`QueryError`] with the first mistake and its position; also when the query exceeds a limit of
/// [`crate::limits`].
pub fn parse(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    parse_tree(text, zone).map(Query::without_forms)
}

/// Parses a query for a search that also finds inflected forms of words ([`WordPattern::forms`]).
///
/// Forms are found for a single word of lower-case letters. The word must not be in quotes, have a `*` or be
/// joined to a second word as in `e-post`, and must be without a field or in one of `headline`, `description_text`
/// and `body_text`. A capital letter asks for a name: `Bergen` does not find `berg`. Below `NOT`, `!` and `-`
/// every word matches only as written, so that an exclusion removes only the written word.
///
/// Syntax, tree and errors are otherwise the same as for [`parse`].
pub fn parse_with_forms(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    parse_tree(text, zone).map(Query::with_exact_exclusions)
}

/// Parses a query with [`WordPattern::forms`] wherever forms may be found, also below `Not`. The callers remove them
/// from the words that match only as written.
fn parse_tree(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    let scanner = QueryScanner::new(text)?;
    let mut parser = QueryTreeParser { scanner, zone, depth: 0, clauses: 0, prefixes: 0 };
    // Punctuation is not skipped: a query of punctuation alone is an error, not a search for everything.
    parser.scanner.skip_space();
    if parser.scanner.peek().is_none() {
        return Ok(Query::All);
    }
    let query = parser.parse_any(None)?;
    match parser.scanner.peek() {
        None => Ok(query),
        Some(c) => Err(parser.scanner.error(format!("unexpected {c}"))),
    }
}

struct QueryTreeParser<'a> {
    scanner: QueryScanner,
    zone: &'a TimeZone,
    /// The number of open parentheses.
    depth: usize,
    /// The number of words, phrases and ranges so far.
    clauses: usize,
    /// The number of words that end in `*` so far.
    prefixes: usize,
}

/// The outcome of parsing a part of a query.
type Parsed = Result<Query, QueryError>;

impl QueryTreeParser<'_> {
    /// Parses terms joined by `OR`. Values without a name belong to `field`.
    fn parse_any(&mut self, field: Option<QueryField>) -> Parsed {
        let mut parts = vec![self.parse_all(field)?];
        while self.scanner.take_operator(QueryOperator::Or) {
            parts.push(self.parse_all(field)?);
        }
        Ok(Query::or(parts))
    }

    /// Parses terms joined by `AND`, or by a space, up to `OR`, `)` or the end.
    fn parse_all(&mut self, field: Option<QueryField>) -> Parsed {
        let mut parts = Vec::new();
        loop {
            parts.push(self.parse_term(field)?);
            self.scanner.skip_space_and_marks();
            let is_end = matches!(self.scanner.peek(), None | Some(')'));
            if is_end || self.scanner.peek_operator() == Some(QueryOperator::Or) {
                return Ok(Query::and(parts));
            }
            self.scanner.take_operator(QueryOperator::And);
        }
    }

    /// Parses a term with the operators before it that negate or require it.
    fn parse_term(&mut self, field: Option<QueryField>) -> Parsed {
        let mut negated = false;
        loop {
            self.scanner.skip_space_and_marks();
            if self.scanner.take_operator(QueryOperator::Not) {
                negated = !negated;
                continue;
            }
            // Signs are no operators of the scanner, because a term has to follow without a space.
            let Some(sign @ ('-' | '+' | '!')) = self.scanner.peek() else { break };
            self.scanner.next();
            if self.scanner.peek().is_none_or(char::is_whitespace) {
                return Err(self.scanner.error(format!("expected a word after {sign}")));
            }
            if sign != '+' {
                negated = !negated;
            }
        }
        if self.scanner.peek_operator().is_some() {
            let what = format!("expected a word before {}", self.scanner.operator_text());
            return Err(self.scanner.error(what));
        }
        let term = self.parse_primary(field)?;
        Ok(if negated { Query::negated(term) } else { term })
    }

    /// Parses a term without the operators before it. A value without a name belongs to `field`.
    fn parse_primary(&mut self, field: Option<QueryField>) -> Parsed {
        let colon = match field {
            None | Some(QueryField::Words(_) | QueryField::Id) => ColonMeaning::EndsName,
            // Times of day contain colons, so a different name is not possible within `date:( … )`.
            Some(QueryField::Ordered(_)) => ColonMeaning::Character,
        };
        match self.scanner.peek() {
            None => Err(self.scanner.error("expected a word")),
            Some(bracket @ ('(' | ')' | '[' | ']' | '{' | '}')) => {
                self.parse_bracket(bracket, field)
            }
            Some('<' | '>') => self.parse_comparison(field),
            // A comparison apart from its field, as in `urgency = 3`. Within the group of a field, as in `source:(=x)`,
            // `=` is part of the run: words ignore it like other punctuation, and dates, numbers and ids refuse it.
            Some('=') if field.is_none() => Err(self.unordered()),
            Some(c) if is_quote(c) => self.parse_phrase(field),
            Some(_) => {
                let run = self.scanner.scan_run(colon)?;
                if self.scanner.peek() != Some(':') {
                    return self.parse_run(field, &run);
                }
                // A lone `*` before the colon: its text is empty, since the text of a run is without a final star.
                if run.text.is_empty() && run.star_position.is_some() {
                    return self.parse_every_field(&run);
                }
                let field = find_field(&run)?;
                self.scanner.next();
                self.parse_value(field, &run.text)
            }
        }
    }

    /// Parses the rest of `*:*`, after its beginning `star`.
    fn parse_every_field(&mut self, star: &CharacterRun) -> Parsed {
        self.scanner.next();
        let value = self.scanner.scan_run(ColonMeaning::Character)?;
        if value.text.is_empty() && value.star_position.is_some() {
            return self.star_query(None, star.start);
        }
        let what = "unknown field * (only *:* matches every item)".to_owned();
        Err(QueryError::new(what, star.start))
    }

    /// Parses the value after `name:`.
    fn parse_value(&mut self, field: QueryField, name: &str) -> Parsed {
        match self.scanner.peek() {
            None | Some(')') => Err(self.no_value(name)),
            Some(c) if c.is_whitespace() => Err(self.no_value(name)),
            Some(bracket @ ('(' | '[' | ']' | '{' | '}')) => {
                self.parse_bracket(bracket, Some(field))
            }
            Some('<' | '>') => self.parse_comparison(Some(field)),
            // `source:-x` would lose its minus, since words ignore punctuation. In other fields, the sign is part of
            // the value: a number may be negative, an id refuses it. `+` needs no error, because it would have no
            // effect before the field either.
            Some(sign @ ('-' | '!')) if matches!(field, QueryField::Words(_)) => {
                let name = excerpt(name);
                let what = format!("{sign} has to precede the field, as in {sign}{name}:word");
                Err(self.scanner.error(what))
            }
            Some(c) if is_quote(c) => self.parse_phrase(Some(field)),
            Some(_) => {
                let run = self.scanner.scan_run(ColonMeaning::Character)?;
                self.parse_run(Some(field), &run)
            }
        }
    }

    fn no_value(&self, name: &str) -> QueryError {
        self.scanner.error(format!("expected a value after {}:", excerpt(name)))
    }

    /// Returns the error for a range or comparison on a field without an order, or without a field. Without a field, as
    /// in `urgency > 3` and `urgency = 3`, the examples in the message show the right form.
    fn unordered(&self) -> QueryError {
        let forms = "such as urgency:[1 TO 4] and versioncreated:>2026-03-01";
        self.scanner.error(format!("only date and number fields have ranges, {forms}"))
    }

    /// Parses the group or range that begins with the next character `bracket`.
    fn parse_bracket(&mut self, bracket: char, field: Option<QueryField>) -> Parsed {
        match (bracket, field) {
            ('(', _) => self.parse_group(field),
            ('[' | '{', Some(QueryField::Ordered(field))) => {
                self.count_clause(self.scanner.position())?;
                RangeLiteral::parse_bracketed(&mut self.scanner, field.kind())?
                    .query(field, self.zone)
            }
            ('[' | '{', _) => Err(self.unordered()),
            (')', _) => Err(self.scanner.error("expected a word before )")),
            _ => Err(self.scanner.error(format!("unexpected {bracket}"))),
        }
    }

    /// Parses `>`, `>=`, `<` or `<=` and the bound after it.
    fn parse_comparison(&mut self, field: Option<QueryField>) -> Parsed {
        let Some(QueryField::Ordered(field)) = field else { return Err(self.unordered()) };
        let start = self.scanner.position();
        self.count_clause(start)?;
        let is_lower = self.scanner.next() == Some('>');
        let inclusive = self.scanner.peek() == Some('=');
        if inclusive {
            self.scanner.next();
        }
        let position = self.scanner.position();
        let text = self.scanner.bound();
        if text.is_empty() {
            let sign = if is_lower { '>' } else { '<' };
            let equal = if inclusive { "=" } else { "" };
            let what = format!("expected a {} after {sign}{equal}", field.kind());
            return Err(self.scanner.error(what));
        }
        let bound = Some(RangeBound { text, position, inclusive });
        let (from, until) = if is_lower { (bound, None) } else { (None, bound) };
        RangeLiteral { from, until, start }.query(field, self.zone)
    }

    /// Parses a group in parentheses. Values in it without a name belong to `field`.
    fn parse_group(&mut self, field: Option<QueryField>) -> Parsed {
        if self.depth == QUERY_DEPTH_MAX {
            let what = format!("parentheses are nested deeper than {QUERY_DEPTH_MAX}");
            return Err(self.scanner.error(what));
        }
        self.depth += 1;
        self.scanner.next();
        let query = self.parse_any(field)?;
        if self.scanner.peek() != Some(')') {
            return Err(self.scanner.error("expected )"));
        }
        self.scanner.next();
        self.depth -= 1;
        Ok(query)
    }

    /// Parses a text in quotes, of which no inflected forms are found.
    fn parse_phrase(&mut self, field: Option<QueryField>) -> Parsed {
        let start = self.scanner.position();
        let text = self.scanner.quoted()?;
        let run =
            CharacterRun { text, start, star_position: None, comparison: None, is_address: false };
        let phrase = self.build_leaf(field, &run)?;
        Ok(phrase.without_forms())
    }

    /// Builds the query for a run, which may end in a star.
    fn parse_run(&mut self, field: Option<QueryField>, run: &CharacterRun) -> Parsed {
        if field.is_none() && !run.is_address {
            check_comparison(run)?;
        }
        let Some(star) = run.star_position else { return self.parse_whole_run(field, run) };
        if run.text.is_empty() {
            return self.star_query(field, star);
        }
        if field.is_none() && run.is_address {
            return Err(QueryError::new("an address cannot end in *", star));
        }
        // `storm-*` would otherwise mean the prefix `storm`.
        if !run.text.chars().next_back().is_some_and(is_word_character) {
            return Err(QueryError::new("expected letters or digits before *", star));
        }
        self.count_prefix(star)?;
        self.build_leaf(field, run)
    }

    /// Builds the query for a run without a star. Without a field, it may be the URL or the id of an item.
    fn parse_whole_run(&mut self, field: Option<QueryField>, run: &CharacterRun) -> Parsed {
        if field.is_some() {
            return self.build_leaf(field, run);
        }
        if run.is_address {
            if let Some(key) = address::find_item(&run.text) {
                // Counts the word of the media type; the id itself is not counted.
                self.count_clause(run.start)?;
                return Ok(item(key));
            }
            return self.build_leaf(None, run);
        }
        let found = self.build_leaf(None, run)?;
        Ok(match address::pasted_id(&run.text) {
            // It may also be an ordinary word, so both are searched for (contract search-16). Ids are not counted, see
            // `build_leaf`.
            Some(id) => Query::or(vec![found, Query::Item(id)]),
            None => found,
        })
    }

    /// Returns the query for a single star at `position`: every document, or documents with a value in the field.
    fn star_query(&mut self, field: Option<QueryField>, position: usize) -> Parsed {
        self.count_clause(position)?;
        Ok(match field {
            // Every item has an id.
            None | Some(QueryField::Id) => Query::All,
            Some(QueryField::Words(TextField::Named(name)))
                if property::is_in_every_item(name) =>
            {
                Query::All
            }
            Some(QueryField::Words(place)) => {
                // Looked up like a prefix: in the index, all tokens of a property begin with the code of the property.
                self.count_prefix(position)?;
                Query::Present(place)
            }
            Some(QueryField::Ordered(field)) => {
                // A range without bounds matches every document with a value.
                RangeLiteral { from: None, until: None, start: position }
                    .query(field, self.zone)?
            }
        })
    }

    /// Builds the query for a run, or for a text in quotes. The comparison of the run, and the characters before its
    /// star, have been checked by the caller.
    fn build_leaf(&mut self, field: Option<QueryField>, run: &CharacterRun) -> Parsed {
        // Ids are not counted. A word that could be an id is one clause, but `abc1` prints as `"abc1" OR id:abc1`: if the
        // id counted, a query at the limit would print as one beyond it. The length of the text limits the ids.
        if field != Some(QueryField::Id) {
            self.count_clause(run.start)?;
        }
        match field {
            None => find_words(TextField::Anywhere, run).map(Query::Words),
            Some(QueryField::Words(place)) => find_words(place, run).map(Query::Words),
            Some(QueryField::Ordered(field)) => {
                // No date or number ends in a star; the error quotes the value as typed.
                let star = if run.star_position.is_some() { "*" } else { "" };
                let value = format!("{}{star}", run.text);
                RangeLiteral::from_value(&value, run.start).query(field, self.zone)
            }
            Some(QueryField::Id) => find_id(run).map(Query::Item),
        }
    }

    /// Counts a word, phrase or range that begins at `position`, up to the limit.
    fn count_clause(&mut self, position: usize) -> Result<(), QueryError> {
        let what = "words, phrases and ranges";
        count_up(&mut self.clauses, QUERY_CLAUSES_MAX, what, position)
    }

    /// Counts a prefix whose star is at `position`, up to the limit.
    fn count_prefix(&mut self, position: usize) -> Result<(), QueryError> {
        count_up(&mut self.prefixes, QUERY_PREFIXES_MAX, "words that end in *", position)
    }
}

/// Counts one more part of a query; fails if there are `max` already.
fn count_up(count: &mut usize, max: usize, what: &str, position: usize) -> Result<(), QueryError> {
    if *count == max {
        return Err(QueryError::new(format!("more than {max} {what}"), position));
    }
    *count += 1;
    Ok(())
}

/// Rejects `urgency>3` and `source=TT`, which would otherwise be read as words.
fn check_comparison(run: &CharacterRun) -> Result<(), QueryError> {
    let Some(sign) = run.comparison else { return Ok(()) };
    // `!=` is a comparison too.
    let name = run.text[..sign.bytes_before].trim_end_matches('!');
    match property::find(name) {
        Some(_) => Err(QueryError::new(format!("expected : after {name}"), sign.position)),
        None => Ok(()),
    }
}

/// Builds the query for one item.
fn item(key: ItemKey) -> Query {
    // Ids are unique only within a media type.
    let place = TextField::Named(property::MEDIA_TYPE);
    let words = words(key.media_type.as_str()).collect();
    let media_type = Query::Words(WordPattern { place, words, prefix: false, forms: false });
    Query::and(vec![media_type, Query::Item(key.id)])
}

fn find_id(run: &CharacterRun) -> Result<ItemId, QueryError> {
    if let Some(star) = run.star_position {
        return Err(QueryError::new("an id cannot end in *", star));
    }
    ItemId::parse(&run.text).map_err(|cause| QueryError::new(cause.to_string(), run.start))
}

/// Finds the field with the name before a colon.
fn find_field(name: &CharacterRun) -> Result<QueryField, QueryError> {
    if name.text.is_empty() {
        return Err(QueryError::new("expected a field before :", name.start));
    }
    if name.star_position.is_none()
        && let Some(field) = property::find(&name.text)
    {
        return Ok(field);
    }
    let found = excerpt(&name.text);
    let what = format!("unknown field {found} (put text that contains a colon in quotes)");
    Err(QueryError::new(what, name.start))
}

/// Splits a run into the words to search for in `place`. Fails if there are none or too many.
fn find_words(place: TextField, run: &CharacterRun) -> Result<WordPattern, QueryError> {
    let name = place.as_str();
    // In some properties, the URI of an item is searched for by its type and id, and a term of a vocabulary by its
    // code. Text without a field stays as it is.
    let text = property::searched_text(name.unwrap_or_default(), &run.text);
    // One word more than allowed is enough to detect a phrase that is too long.
    let found: Vec<_> = words(&text).take(PHRASE_WORDS_MAX + 1).collect();
    let Some(last) = found.last() else {
        let location = name.map(|name| format!(" in {name}")).unwrap_or_default();
        return Err(QueryError::new(format!("no letters or digits{location}"), run.start));
    };
    if found.len() > PHRASE_WORDS_MAX {
        let what = format!("a phrase of more than {PHRASE_WORDS_MAX} words");
        return Err(QueryError::new(what, run.start));
    }
    let prefix = run.star_position.is_some();
    if let Some(star) = run.star_position
        && last.folded.chars().count() < PREFIX_CHARS_MIN
    {
        let what = format!("expected at least {PREFIX_CHARS_MIN} letters or digits before *");
        return Err(QueryError::new(what, star));
    }
    let forms = found.len() == 1 && !prefix && may_have_forms(place, &run.text);
    Ok(WordPattern { place, words: found, prefix, forms })
}

/// Returns whether a word that is typed like this in this place may match inflected forms.
fn may_have_forms(place: TextField, typed: &str) -> bool {
    let is_text = !matches!(place, TextField::Named(_));
    is_text && !typed.chars().any(|c| c.is_uppercase() || c.is_numeric())
}
