//! Text to tree.
//!
//! ```text
//! any    = all { "OR" all }
//! all    = term { [ "AND" ] term }
//! term   = { "NOT" | "-" | "+" } ( "(" any ")" | [ name ":" ] value )
//! value  = run [ "*" ] | quote text quote | "(" any ")" | range
//! range  = ( "[" | "{" ) bound "TO" bound ( "]" | "}" )
//! ```

use jiff::tz::TimeZone;

use super::field::{DateField, Place};
use super::fold::{belongs, words};
use super::moment::Moment;
use super::property::{self, Field};
use super::scan::{Colon, Operator, Run, Scanner, is_quote};
use super::tree::{Dates, Query, Words};
use crate::limits::{
    PHRASE_WORDS_MAX, PREFIX_CHARS_MIN, QUERY_CLAUSES_MAX, QUERY_DEPTH_MAX, QUERY_PREFIXES_MAX,
};

/// Why a text is no query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {position}")]
pub struct QueryError {
    /// What is wrong.
    pub what: String,
    /// Where, in characters; the first is 1, and what is missing at the end is behind the last.
    pub position: usize,
}

/// Parses the parameter `q`; dates without a time are days in `zone`.
///
/// An empty text, or one of spaces only, is every document. What binds tightest: `NOT`, `-` and `+`,
/// then `AND`, which may be left out, then `OR`. Operators are in capitals. Characters that are
/// neither letters nor digits part words, and the parts of what is written without a space are a
/// phrase. A backslash takes the meaning from the character behind it.
///
/// Spec §4 is silent: `+` changes nothing, because a term is required unless `OR` says otherwise, and
/// `a OR +b` is `a OR b`; a `-` in front of a value, as in `headline:-b`, is a character like others.
///
/// The result has no `And` within `And`, no `Or` within `Or`, no `Not` within `Not`, and
/// [`Query::All`] only alone. Limits: [`crate::limits`], `QUERY_…` and `PHRASE_…`.
///
/// Every word matches only as it is written. Fails with the first thing that is wrong and its
/// position.
pub fn parse(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    parse_tree(text, zone).map(Query::as_written)
}

/// Parses the parameter `q` of a search that finds other forms of words too: [`Words::forms`].
///
/// They are found for a word of letters in lower case, as it was typed, that stands alone: without
/// quotes, `*` or a hyphen to another word, in no field or in one of `headline`,
/// `description_text` and `body_text`. A capital letter therefore asks for a name, `Bergen`, and
/// finds no `berg`. Below `NOT` and `-` every word matches only as it is written, so that an
/// exclusion takes away nothing that was not named.
///
/// The tree is otherwise the one that [`parse`] gives, and fails alike.
pub fn parse_with_forms(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    parse_tree(text, zone).map(Query::excluding_as_written)
}

fn parse_tree(text: &str, zone: &TimeZone) -> Result<Query, QueryError> {
    let scanner = Scanner::new(text)?;
    let mut parser = Parser { scanner, zone, depth: 0, clauses: 0, prefixes: 0 };
    parser.scanner.skip_space();
    if parser.scanner.peek().is_none() {
        return Ok(Query::All);
    }
    let query = parser.any(None)?;
    match parser.scanner.peek() {
        None => Ok(query),
        Some(c) => Err(parser.scanner.error(format!("unexpected {c}"))),
    }
}

struct Parser<'a> {
    scanner: Scanner,
    zone: &'a TimeZone,
    depth: usize,
    clauses: usize,
    prefixes: usize,
}

/// A part of a query, or why it is none.
type Parsed = Result<Query, QueryError>;

impl Parser<'_> {
    /// Terms, of which one or more are to hold; values without a name are those of `field`.
    fn any(&mut self, field: Option<Field>) -> Parsed {
        let mut parts = vec![self.all(field)?];
        while self.scanner.takes(Operator::Or) {
            parts.push(self.all(field)?);
        }
        Ok(Query::or(parts))
    }

    fn all(&mut self, field: Option<Field>) -> Parsed {
        let mut parts = Vec::new();
        loop {
            parts.push(self.term(field)?);
            self.scanner.skip_space();
            let ends = matches!(self.scanner.peek(), None | Some(')'));
            if ends || self.scanner.upcoming() == Some(Operator::Or) {
                return Ok(Query::and(parts));
            }
            self.scanner.takes(Operator::And);
        }
    }

    fn term(&mut self, field: Option<Field>) -> Parsed {
        let mut negated = false;
        loop {
            self.scanner.skip_space();
            if self.scanner.takes(Operator::Not) {
                negated = !negated;
                continue;
            }
            let Some(sign @ ('-' | '+')) = self.scanner.peek() else { break };
            self.scanner.next();
            if self.scanner.peek().is_none_or(char::is_whitespace) {
                return Err(self.scanner.error(format!("expected a word after {sign}")));
            }
            negated ^= sign == '-';
        }
        let term = match self.scanner.upcoming() {
            Some(operator) => {
                let what = format!("expected a word before {}", operator.as_str());
                return Err(self.scanner.error(what));
            }
            None => self.primary(field)?,
        };
        Ok(if negated { Query::negated(term) } else { term })
    }

    fn primary(&mut self, field: Option<Field>) -> Parsed {
        let colon = match field {
            Some(Field::Words(Place::Named(name))) if property::names_items(name) => {
                Colon::EndsNameOrScheme
            }
            None | Some(Field::Words(_)) => Colon::EndsName,
            Some(Field::Date(_)) => Colon::Character,
        };
        match self.scanner.peek() {
            None => Err(self.scanner.error("expected a word")),
            Some('(' | ')' | '[' | ']' | '{' | '}') => self.bracket(field),
            Some(c) if is_quote(c) => self.phrase(field),
            Some(_) => {
                let run = self.scanner.run(colon)?;
                if self.scanner.peek() != Some(':') {
                    return self.run(field, &run);
                }
                let field = find(&run)?;
                self.scanner.next();
                self.value(field, &run.text)
            }
        }
    }

    /// What stands behind `name:`.
    fn value(&mut self, field: Field, name: &str) -> Parsed {
        match self.scanner.peek() {
            None | Some(')') => Err(self.no_value(name)),
            Some(c) if c.is_whitespace() => Err(self.no_value(name)),
            Some('(' | '[' | ']' | '{' | '}') => self.bracket(Some(field)),
            Some(c) if is_quote(c) => self.phrase(Some(field)),
            Some(_) => {
                let run = self.scanner.run(Colon::Character)?;
                self.run(Some(field), &run)
            }
        }
    }

    fn no_value(&self, name: &str) -> QueryError {
        self.scanner.error(format!("expected a value after {}:", excerpt(name)))
    }

    fn bracket(&mut self, field: Option<Field>) -> Parsed {
        match (self.scanner.peek(), field) {
            (Some('('), _) => self.group(field),
            (Some('[' | '{'), Some(Field::Date(date))) => self.range(date),
            (Some('[' | '{'), _) => {
                Err(self.scanner.error("only dates have ranges, such as date:[2026-03-01 TO *]"))
            }
            (Some(')'), _) => Err(self.scanner.error("expected a word before )")),
            (c, _) => Err(self.scanner.error(format!("unexpected {}", c.unwrap_or_default()))),
        }
    }

    fn group(&mut self, field: Option<Field>) -> Parsed {
        if self.depth == QUERY_DEPTH_MAX {
            let what = format!("parentheses lie deeper than {QUERY_DEPTH_MAX}");
            return Err(self.scanner.error(what));
        }
        self.depth += 1;
        self.scanner.next();
        let query = self.any(field)?;
        if self.scanner.peek() != Some(')') {
            return Err(self.scanner.error("expected )"));
        }
        self.scanner.next();
        self.depth -= 1;
        Ok(query)
    }

    fn phrase(&mut self, field: Option<Field>) -> Parsed {
        let start = self.scanner.position();
        let text = self.scanner.quoted()?;
        let phrase = self.leaf(field, &Run { text, start, star: None })?;
        Ok(phrase.as_written())
    }

    fn run(&mut self, field: Option<Field>, run: &Run) -> Parsed {
        let Some(star) = run.star else { return self.leaf(field, run) };
        let error = |what: String| QueryError { what, position: star };
        if !run.text.chars().next_back().is_some_and(belongs) {
            return Err(error("expected letters or digits before *".to_owned()));
        }
        if self.prefixes == QUERY_PREFIXES_MAX {
            return Err(error(format!("more than {QUERY_PREFIXES_MAX} words that end in *")));
        }
        self.prefixes += 1;
        self.leaf(field, run)
    }

    /// A term of which all characters are known.
    fn leaf(&mut self, field: Option<Field>, run: &Run) -> Parsed {
        self.count(run.start)?;
        match field {
            None => find_words(Place::Anywhere, run).map(Query::Words),
            Some(Field::Words(place)) => find_words(place, run).map(Query::Words),
            Some(Field::Date(field)) => {
                let moment = run.star.is_none().then(|| Moment::parse(&run.text, self.zone));
                let Some(moment) = moment.flatten() else {
                    return Err(no_date(&run.text, run.start));
                };
                let (from, until) = (Some(moment.start), Some(moment.end));
                Ok(Query::Dates(Dates { field, from, until }))
            }
        }
    }

    /// Counts a term that begins at `position`.
    fn count(&mut self, position: usize) -> Result<(), QueryError> {
        if self.clauses == QUERY_CLAUSES_MAX {
            let what = format!("more than {QUERY_CLAUSES_MAX} words, phrases and ranges");
            return Err(QueryError { what, position });
        }
        self.clauses += 1;
        Ok(())
    }

    fn range(&mut self, field: DateField) -> Parsed {
        let start = self.scanner.position();
        self.count(start)?;
        let inclusive = self.scanner.next() == Some('[');
        let from = self.bound()?;
        self.scanner.skip_space();
        let position = self.scanner.position();
        if self.scanner.bound() != "TO" {
            return Err(QueryError { what: "expected TO".to_owned(), position });
        }
        let until = self.bound()?;
        self.scanner.skip_space();
        let from = from.map(|at| if inclusive { at.start } else { at.end });
        let until = match self.scanner.peek() {
            Some(']') => until.map(|at| at.end),
            Some('}') => until.map(|at| at.start),
            _ => return Err(self.scanner.error("expected ]")),
        };
        self.scanner.next();
        if from.zip(until).is_some_and(|(from, until)| until <= from) {
            let what = "the range is empty".to_owned();
            return Err(QueryError { what, position: start });
        }
        Ok(Query::Dates(Dates { field, from, until }))
    }

    /// A bound of a range; none when it is open.
    fn bound(&mut self) -> Result<Option<Moment>, QueryError> {
        self.scanner.skip_space();
        let start = self.scanner.position();
        match self.scanner.bound().as_str() {
            "*" => Ok(None),
            "" => Err(self.scanner.error("expected a date or *")),
            text => {
                let moment = Moment::parse(text, self.zone);
                moment.map(Some).ok_or_else(|| no_date(text, start))
            }
        }
    }
}

/// The field that a name before a colon means.
fn find(name: &Run) -> Result<Field, QueryError> {
    let error = |what: String| QueryError { what, position: name.start };
    if name.text.is_empty() {
        return Err(error("expected a field before :".to_owned()));
    }
    let unknown = || {
        let name = excerpt(&name.text);
        error(format!("unknown field {name} (a colon that is text stands in quotes)"))
    };
    let plain = name.star.is_none().then(|| property::find(&name.text));
    plain.flatten().ok_or_else(unknown)
}

fn find_words(place: Place, run: &Run) -> Result<Words, QueryError> {
    let error = |what: String, position| Err(QueryError { what, position });
    let name = place.as_str();
    let text = match name {
        Some(name) if property::names_items(name) => property::item_words(&run.text),
        Some(_) | None => run.text.as_str().into(),
    };
    let found: Vec<_> = words(&text).take(PHRASE_WORDS_MAX + 1).collect();
    let Some(last) = found.last() else {
        let place = name.map(|name| format!(" in {name}")).unwrap_or_default();
        return error(format!("no letters or digits{place}"), run.start);
    };
    if found.len() > PHRASE_WORDS_MAX {
        return error(format!("a phrase of more than {PHRASE_WORDS_MAX} words"), run.start);
    }
    let prefix = run.star.is_some();
    if let Some(star) = run.star
        && last.folded.chars().count() < PREFIX_CHARS_MIN
    {
        return error(
            format!("expected at least {PREFIX_CHARS_MIN} letters or digits before *"),
            star,
        );
    }
    let forms = found.len() == 1 && !prefix && may_have_forms(place, &run.text);
    Ok(Words { place, words: found, prefix, forms })
}

/// Whether a word that was typed like this in a place may match in other forms.
fn may_have_forms(place: Place, typed: &str) -> bool {
    match place {
        Place::Anywhere | Place::Headline | Place::Description | Place::Body => {
            !typed.chars().any(|c| c.is_uppercase() || c.is_numeric())
        }
        Place::Named(_) => false,
    }
}

fn no_date(text: &str, position: usize) -> QueryError {
    let text = excerpt(text);
    let forms = "expected YYYY, YYYY-MM, YYYY-MM-DD or a time such as 2026-03-02T09:15:00+01:00";
    QueryError { what: format!("{text} is no date, {forms}"), position }
}

/// The beginning of what a client wrote, for a message.
fn excerpt(text: &str) -> String {
    const CHARS: usize = 40;
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
