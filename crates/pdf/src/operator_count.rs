//! Counts the operators that drawing a page executes: a form that is drawn twice counts twice.
//!
//! Each stream is read once, even if it is drawn often. So forms that draw each other can be counted before a
//! reader executes them: thirty forms that each draw the next one twice amount to a billion operators.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Object, ObjectId};

use crate::load::DocumentPage;
use crate::number::{dictionary_of, entry, resolve};
use crate::scan::{ContentScanner, TokenKind, name_of};
use crate::scope::DocumentScope;
use crate::{PdfError, PdfLimits, inline};

/// The state of counting a stream.
#[derive(Clone, Copy)]
enum OperatorCount {
    /// Counting is in progress. If a stream draws this one now, the streams form a cycle.
    InProgress,
    /// The number of operators that drawing the stream executes.
    Known(u64),
}

struct OperatorCounter<'a> {
    scope: DocumentScope<'a>,
    counts: HashMap<ObjectId, OperatorCount>,
}

/// Checks that drawing `page` executes no more operators than [`PdfLimits::operators`].
///
/// Forms, tiling patterns, soft masks and the glyphs of Type 3 fonts count each time a content stream uses them.
/// In a text with such a font, each byte counts as its most expensive glyph.
///
/// Fails with [`PdfError::TooManyOperators`], with [`PdfError::Malformed`] for a form that draws itself, and
/// with the errors of reading the streams.
pub(super) fn check(
    document: &Document,
    limits: &PdfLimits,
    page: &DocumentPage<'_>,
) -> Result<(), PdfError> {
    let none = Dictionary::new();
    let resources = dictionary_of(page.entry(document, b"Resources")).unwrap_or(&none);
    let scope = DocumentScope::new(document, limits);
    let mut counter = OperatorCounter { scope, counts: HashMap::new() };
    let bytes = match page.entry(document, b"Contents") {
        Object::Stream(stream) => counter.scope.data(stream)?,
        Object::Array(parts) => counter.scope.joined(parts)?,
        _ => Vec::new(),
    };
    let drawn = counter.content(&bytes, resources, 0)?;
    let max = limits.operators;
    if drawn > max { Err(PdfError::TooManyOperators { max }) } else { Ok(()) }
}

/// The lookup of a resource that an operator names.
struct NamedResource<'a> {
    document: &'a Document,
    resources: &'a Dictionary,
    /// The name of the resource; `None` if the operator has no name operand.
    name: Option<&'a [u8]>,
}

impl<'a> NamedResource<'a> {
    /// Finds the resource in the dictionary for its kind.
    fn find(&self, kind: &[u8]) -> Option<&'a Object> {
        let objects = dictionary_of(entry(self.document, self.resources, kind))?;
        objects.get(self.name?).ok()
    }
}

impl OperatorCounter<'_> {
    /// Counts the operators that a content stream executes, including the operators of all streams that it draws.
    fn content(
        &mut self,
        bytes: &[u8],
        resources: &Dictionary,
        depth: usize,
    ) -> Result<u64, PdfError> {
        self.scope.budget.check_depth(depth, "forms")?;
        let document = self.scope.document;
        // The sums saturate: nested forms exceed 64 bits easily, and any such sum exceeds the limit.
        let mut count = 0_u64;
        let mut glyph = 0_u64;
        let mut text_bytes = 0_u64;
        let mut name = None;
        let mut scanner = ContentScanner::new(bytes);
        while let Some(token) = scanner.next() {
            let text = bytes.get(token.start..token.end).unwrap_or_default();
            match token.kind {
                TokenKind::Number(_) => {}
                TokenKind::Name => name = Some(name_of(text)),
                TokenKind::Other => text_bytes = text_bytes.saturating_add(length(text)),
                TokenKind::Operator => {
                    self.scope.budget.take_operator()?;
                    let named = NamedResource { document, resources, name: name.as_deref() };
                    let drawn = match text {
                        b"BI" => {
                            // Skipped as an image, because its data could look like operators.
                            inline::read(&mut self.scope, &mut scanner, resources)?;
                            0
                        }
                        b"Do" => self.stream(named.find(b"XObject"), resources, depth)?,
                        b"scn" | b"SCN" => {
                            self.stream(named.find(b"Pattern"), resources, depth)?
                        }
                        b"gs" => {
                            let state = named.find(b"ExtGState");
                            let mask = state.map(|state| resolve(document, state));
                            let mask = mask.and_then(dictionary_of);
                            let mask = mask.map(|state| entry(document, state, b"SMask"));
                            let group = mask.and_then(dictionary_of).map(|mask| mask.get(b"G"));
                            self.stream(group.and_then(Result::ok), resources, depth)?
                        }
                        b"Tf" => {
                            glyph = self.costliest_glyph(named.find(b"Font"), resources, depth)?;
                            0
                        }
                        b"Tj" | b"TJ" | b"'" | b"\"" => glyph.saturating_mul(text_bytes),
                        _ => 0,
                    };
                    count = count.saturating_add(1).saturating_add(drawn);
                    // Operands belong to one operator.
                    name = None;
                    text_bytes = 0;
                }
            }
        }
        Ok(count)
    }

    /// Counts the operators of drawing the stream `object`; zero for images and objects that are not streams.
    fn stream(
        &mut self,
        object: Option<&Object>,
        resources: &Dictionary,
        depth: usize,
    ) -> Result<u64, PdfError> {
        let document = self.scope.document;
        let Some(object) = object else { return Ok(0) };
        let Object::Stream(stream) = resolve(document, object) else { return Ok(0) };
        // An image executes no operators; its pixels have a separate limit.
        if matches!(entry(document, &stream.dict, b"Subtype"), Object::Name(name) if name == b"Image")
        {
            return Ok(0);
        }
        let id = object.as_reference().ok();
        match id.and_then(|id| self.counts.get(&id)) {
            Some(OperatorCount::Known(count)) => return Ok(*count),
            Some(OperatorCount::InProgress) => {
                return Err(PdfError::Malformed { what: "a form that draws itself" });
            }
            None => self.counts.extend(id.map(|id| (id, OperatorCount::InProgress))),
        }
        let bytes = self.scope.data(stream)?;
        // Old forms omit their resources and use the resources of the page (§7.8.3).
        let own = dictionary_of(entry(document, &stream.dict, b"Resources"));
        let count = self.content(&bytes, own.unwrap_or(resources), depth + 1)?;
        self.counts.extend(id.map(|id| (id, OperatorCount::Known(count))));
        Ok(count)
    }

    /// Counts the operators of the most expensive glyph of a Type 3 font; zero for other fonts.
    fn costliest_glyph(
        &mut self,
        font: Option<&Object>,
        resources: &Dictionary,
        depth: usize,
    ) -> Result<u64, PdfError> {
        let document = self.scope.document;
        let Some(font) = font.and_then(|font| dictionary_of(resolve(document, font))) else {
            return Ok(0);
        };
        let own = dictionary_of(entry(document, font, b"Resources")).unwrap_or(resources);
        let glyphs = dictionary_of(entry(document, font, b"CharProcs"));
        let mut highest = 0;
        for (_, glyph) in glyphs.into_iter().flat_map(Dictionary::iter) {
            highest = highest.max(self.stream(Some(glyph), own, depth)?);
        }
        Ok(highest)
    }
}

fn length(text: &[u8]) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use lopdf::{Stream, dictionary};

    use super::*;
    use crate::load;
    use crate::test_documents::{LIMITS, TestDocument};

    /// Adds a form that draws `drawn` from its own resources.
    fn form(document: &mut Document, content: &str, category: &str, drawn: Object) -> Object {
        let resources = dictionary! { category => dictionary! { "A" => drawn } };
        let head = dictionary! { "Subtype" => "Form", "Resources" => resources };
        document.add_object(Stream::new(head, content.as_bytes().to_vec())).into()
    }

    fn check_within(sheet: TestDocument, limits: &PdfLimits) -> Result<(), PdfError> {
        let document = load::load(&sheet.bytes(), &LIMITS).unwrap();
        let pages = load::pages(&document, &LIMITS).unwrap();
        check(&document, limits, &pages.pages[0])
    }

    fn weigh(sheet: TestDocument, max: u64) -> Result<(), PdfError> {
        check_within(sheet, &PdfLimits { operators: max, ..LIMITS })
    }

    /// A page with `count` nested forms, each drawn twice, and a rectangle in the innermost.
    fn nested(count: usize, content: &str, category: &str) -> TestDocument {
        let mut sheet = TestDocument::new("/A Do");
        let mut inner = form(&mut sheet.document, "0 0 9 9 re f", "XObject", Object::Null);
        for _ in 0..count {
            inner = form(&mut sheet.document, content, category, inner);
        }
        sheet.with("XObject", "A", inner)
    }

    #[test]
    fn a_form_counts_as_often_as_it_is_drawn() {
        // One Do, then four times two rectangles, and six times Do.
        assert_eq!(weigh(nested(2, "/A Do /A Do", "XObject"), 15), Ok(()));
        let refused = Err(PdfError::TooManyOperators { max: 14 });
        assert_eq!(weigh(nested(2, "/A Do /A Do", "XObject"), 14), refused);
        let refused = Err(PdfError::TooManyOperators { max: 10_000 });
        assert_eq!(weigh(nested(14, "/A Do /A Do", "XObject"), 10_000), refused);
        assert_eq!(weigh(nested(14, "/A scn /A scn", "Pattern"), 10_000), refused);
    }

    #[test]
    fn a_form_is_read_once() {
        // `/A Do`, ten forms of 11 bytes, and the rectangle: 127 bytes. The forms are drawn two thousand times.
        let limits = PdfLimits { decoded_bytes: 200, ..LIMITS };
        assert_eq!(check_within(nested(10, "/A Do /A Do", "XObject"), &limits), Ok(()));
    }

    #[test]
    fn a_text_counts_the_costliest_glyph_of_its_font_for_each_byte() {
        // Four operators, and four bytes with the parentheses, each a glyph of three operators.
        for (max, expected) in [(16, Ok(())), (15, Err(PdfError::TooManyOperators { max: 15 }))] {
            let mut sheet = TestDocument::new("BT /A 9 Tf (ab) Tj ET");
            let plain = sheet.stream(Dictionary::new(), b"9 0 d0 f");
            let costly = sheet.stream(Dictionary::new(), b"9 0 d0 0 0 9 9 re f");
            let glyphs = dictionary! { "a" => plain, "b" => costly };
            let font = dictionary! { "Subtype" => "Type3", "CharProcs" => glyphs };
            assert_eq!(weigh(sheet.with("Font", "A", font), max), expected);
        }
    }

    #[test]
    fn a_form_that_draws_itself_is_refused() {
        let mut sheet = TestDocument::new("/A Do");
        let id = sheet.document.new_object_id();
        let resources = dictionary! { "XObject" => dictionary! { "A" => id } };
        let head = dictionary! { "Subtype" => "Form", "Resources" => resources };
        sheet.document.objects.insert(id, Stream::new(head, b"/A Do".to_vec()).into());
        let itself = PdfError::Malformed { what: "a form that draws itself" };
        assert_eq!(weigh(sheet.with("XObject", "A", id), 100), Err(itself));
    }
}
