//! Converts content streams: each colour operator becomes grey, all other bytes are unchanged.
//!
//! A stream is read token by token. The current colour spaces are tracked through `q` and `Q`, so that `sc` and
//! `scn` can be interpreted; each is replaced by `g` or `G` with the luminance of the colour. The result selects
//! only DeviceGray, Pattern, and the colorant None, which paints nothing in any space.

use std::rc::Rc;

use lopdf::{Dictionary, Object};

use crate::inline::inline_image;
use crate::scan::{ContentScanner, ContentToken, TokenKind, name_of};
use crate::scope::DocumentScope;
use crate::space::{PdfColourSpace, component, device_space};
use crate::{PdfError, luminance};

/// The kind of colour that an operator sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PaintKind {
    Fill,
    Stroke,
}

/// The current colour spaces.
#[derive(Clone)]
struct CurrentSpaces {
    fill: Rc<PdfColourSpace>,
    stroke: Rc<PdfColourSpace>,
}

/// The maximum tracked nesting of `q`; deeper levels share one state.
const SAVED_MAX: usize = 4096;
/// The maximum number of operands of an operator: 32 components and a pattern.
const OPERANDS_MAX: usize = 33;

struct ContentRewriter<'a, 'b, 'c> {
    scope: &'a mut DocumentScope<'b>,
    resources: &'c Dictionary,
    bytes: &'c [u8],
    output: Vec<u8>,
    /// The number of input bytes that have been copied to the output or replaced.
    copied: usize,
    colours: CurrentSpaces,
    saved: Vec<CurrentSpaces>,
}

/// Rewrites a content stream; `None` if nothing in it has to change.
///
/// `inherits` is true if the stream begins with the colours of its caller, as forms do; other streams begin with
/// DeviceGray. Fails if a limit is reached or an inline image cannot be decoded.
pub(super) fn rewrite(
    scope: &mut DocumentScope<'_>,
    bytes: &[u8],
    resources: &Dictionary,
    inherits: bool,
) -> Result<Option<Vec<u8>>, PdfError> {
    let start = Rc::new(if inherits { PdfColourSpace::Inherited } else { PdfColourSpace::Grey });
    let mut rewriter = ContentRewriter {
        scope,
        resources,
        bytes,
        output: Vec::with_capacity(bytes.len()),
        copied: 0,
        colours: CurrentSpaces { fill: Rc::clone(&start), stroke: start },
        saved: Vec::new(),
    };
    rewriter.run()?;
    // An unchanged stream keeps its filters, so the file does not grow.
    if rewriter.copied == 0 {
        return Ok(None);
    }
    rewriter.output.extend_from_slice(&bytes[rewriter.copied..]);
    Ok(Some(rewriter.output))
}

impl ContentRewriter<'_, '_, '_> {
    fn run(&mut self) -> Result<(), PdfError> {
        let mut scanner = ContentScanner::new(self.bytes);
        let mut operands: Vec<ContentToken> = Vec::new();
        let mut first_operand: Option<usize> = None;
        while let Some(token) = scanner.next() {
            if token.kind != TokenKind::Operator {
                first_operand.get_or_insert(token.start);
                if operands.len() == OPERANDS_MAX {
                    // Operators read their operands from the end, so surplus operands at the start are dropped.
                    operands.remove(0);
                }
                operands.push(token);
                continue;
            }
            self.scope.budget.take_operator()?;
            // The replacement covers the operands as well.
            let start = first_operand.take().unwrap_or(token.start);
            if &self.bytes[token.start..token.end] == b"BI" {
                let image = inline_image(self.scope, &mut scanner, self.resources)?;
                if let Some(image) = image {
                    self.replace(start, scanner.at, &image);
                }
            } else if let Some(text) = self.operator(token, &operands)? {
                self.replace(start, token.end, &text);
            }
            operands.clear();
        }
        Ok(())
    }

    /// Replaces `start..end` of the input with `text`.
    fn replace(&mut self, start: usize, end: usize, text: &[u8]) {
        self.output.extend_from_slice(&self.bytes[self.copied..start]);
        self.output.extend_from_slice(text);
        self.copied = end;
    }

    /// Returns the replacement of an operator with its operands; `None` keeps it.
    fn operator(
        &mut self,
        token: ContentToken,
        operands: &[ContentToken],
    ) -> Result<Option<Vec<u8>>, PdfError> {
        match &self.bytes[token.start..token.end] {
            b"q" => {
                // A stream of nothing but `q` would otherwise need memory for each byte.
                if self.saved.len() < SAVED_MAX {
                    self.saved.push(self.colours.clone());
                }
                Ok(None)
            }
            b"Q" => {
                // Readers ignore a `Q` without a `q`.
                if let Some(colours) = self.saved.pop() {
                    self.colours = colours;
                }
                Ok(None)
            }
            b"g" => self.set_device_colour(PaintKind::Fill, b"DeviceGray", operands),
            b"G" => self.set_device_colour(PaintKind::Stroke, b"DeviceGray", operands),
            b"rg" => self.set_device_colour(PaintKind::Fill, b"DeviceRGB", operands),
            b"RG" => self.set_device_colour(PaintKind::Stroke, b"DeviceRGB", operands),
            b"k" => self.set_device_colour(PaintKind::Fill, b"DeviceCMYK", operands),
            b"K" => self.set_device_colour(PaintKind::Stroke, b"DeviceCMYK", operands),
            b"cs" => self.set_named_space(PaintKind::Fill, operands),
            b"CS" => self.set_named_space(PaintKind::Stroke, operands),
            b"sc" | b"scn" => self.set_colour(PaintKind::Fill, operands),
            b"SC" | b"SCN" => self.set_colour(PaintKind::Stroke, operands),
            _ => Ok(None),
        }
    }

    fn set_space(&mut self, purpose: PaintKind, space: Rc<PdfColourSpace>) {
        match purpose {
            PaintKind::Fill => self.colours.fill = space,
            PaintKind::Stroke => self.colours.stroke = space,
        }
    }

    fn space(&mut self, name: &[u8]) -> Result<Option<Rc<PdfColourSpace>>, PdfError> {
        PdfColourSpace::parse(self.scope, &Object::Name(name.to_vec()), self.resources)
    }

    /// Handles `g`, `rg`, `k` and their stroking counterparts.
    fn set_device_colour(
        &mut self,
        purpose: PaintKind,
        name: &[u8],
        operands: &[ContentToken],
    ) -> Result<Option<Vec<u8>>, PdfError> {
        // Looked up by name, because the resources may redefine a device space (ISO 32000-1 §8.6.5.6).
        let space = self.space(name)?.unwrap_or_else(|| Rc::new(PdfColourSpace::Grey));
        self.set_space(purpose, Rc::new(PdfColourSpace::Grey));
        // Grey operators are not changed.
        if matches!(*space, PdfColourSpace::Grey) {
            return Ok(None);
        }
        self.set_grey(purpose, &space, &numbers(operands))
    }

    /// Handles `cs` and `CS`.
    fn set_named_space(
        &mut self,
        purpose: PaintKind,
        operands: &[ContentToken],
    ) -> Result<Option<Vec<u8>>, PdfError> {
        let name = match operands.last() {
            Some(ContentToken { kind: TokenKind::Name, start, end }) => {
                name_of(&self.bytes[*start..*end])
            }
            _ => return Ok(Some(Vec::new())),
        };
        let Some(space) = self.space(&name)? else {
            // If the space is missing, readers keep the current colour. A following `sc` has as many operands as
            // the missing space would have required.
            self.set_space(purpose, Rc::new(PdfColourSpace::Inherited));
            return Ok(Some(Vec::new()));
        };
        self.set_space(purpose, Rc::clone(&space));
        // Neither holds a colour here: patterns are converted as objects, and None paints nothing.
        let is_kept = matches!(*space, PdfColourSpace::Pattern(_) | PdfColourSpace::Invisible);
        // Any other name of the grey space refers to resources that the conversion drops.
        let is_grey = matches!(*space, PdfColourSpace::Grey);
        if is_kept || is_grey && matches!(&name[..], b"DeviceGray" | b"G") {
            return Ok(None);
        }
        // Selecting a space also sets its initial colour (§8.6.8), which `g` has to state.
        self.set_grey(purpose, &space, &space.initial())
    }

    /// Handles `sc`, `scn` and their stroking counterparts.
    fn set_colour(
        &mut self,
        purpose: PaintKind,
        operands: &[ContentToken],
    ) -> Result<Option<Vec<u8>>, PdfError> {
        let space = match purpose {
            PaintKind::Fill => Rc::clone(&self.colours.fill),
            PaintKind::Stroke => Rc::clone(&self.colours.stroke),
        };
        let numbers = numbers(operands);
        let pattern = operands.last().filter(|last| last.kind == TokenKind::Name);
        // Numbers before a name are the colour of an uncoloured tiling pattern (§8.7.3.3).
        if let Some(pattern) = pattern {
            let PdfColourSpace::Pattern(underlying) = &*space else { return Ok(None) };
            let underlying =
                underlying.clone().or_else(|| device_space(numbers.len()).map(Rc::new));
            let Some(underlying) = underlying.filter(|_| !numbers.is_empty()) else {
                return Ok(None);
            };
            let mut text = format_grey(solid_grey(self.scope, &underlying, &numbers)?);
            text.push(b' ');
            text.extend_from_slice(&self.bytes[pattern.start..pattern.end]);
            text.extend_from_slice(if purpose == PaintKind::Fill { b" scn" } else { b" SCN" });
            return Ok(Some(text));
        }
        match &*space {
            PdfColourSpace::Pattern(_) | PdfColourSpace::Invisible => Ok(None),
            PdfColourSpace::Grey if numbers.len() == 1 => Ok(None),
            // The caller's space is unknown here, but the number of operands implies it.
            PdfColourSpace::Inherited => match device_space(numbers.len()) {
                Some(PdfColourSpace::Grey) => Ok(None),
                Some(space) => self.set_grey(purpose, &space, &numbers),
                None => Ok(Some(Vec::new())),
            },
            other => self.set_grey(purpose, other, &numbers),
        }
    }

    /// Returns the operator that sets the grey of a colour, whose components are the last numbers.
    ///
    /// Returns nothing for too few numbers, because readers ignore an operator that lacks operands.
    fn set_grey(
        &mut self,
        purpose: PaintKind,
        space: &PdfColourSpace,
        numbers: &[f32],
    ) -> Result<Option<Vec<u8>>, PdfError> {
        let Some(from) = numbers.len().checked_sub(space.components()) else {
            return Ok(Some(Vec::new()));
        };
        let mut text = format_grey(solid_grey(self.scope, space, &numbers[from..])?);
        text.extend_from_slice(if purpose == PaintKind::Fill { b" g" } else { b" G" });
        Ok(Some(text))
    }
}

/// Returns the grey of a colour that is drawn directly, not as a part of an image or gradient.
///
/// Solid black ink stays solid. Readers display `0 0 0 1 k` as the dark grey of a printed page, but black
/// text and rules must not be screened when the grey page is printed.
pub(super) fn solid_grey(
    scope: &mut DocumentScope<'_>,
    space: &PdfColourSpace,
    colour: &[f32],
) -> Result<f32, PdfError> {
    match space {
        PdfColourSpace::Cmyk if colour == [0.0, 0.0, 0.0, 1.0] => Ok(0.0),
        PdfColourSpace::Tint { alternate, function, .. }
            if matches!(**alternate, PdfColourSpace::Cmyk) =>
        {
            // Black is often a spot colour whose alternate is pure black ink.
            let inks = function.evaluate(colour, &mut scope.budget)?;
            solid_grey(scope, alternate, &inks)
        }
        PdfColourSpace::Cmyk => {
            let [cyan, magenta, yellow, black] = [0, 1, 2, 3].map(|at| component(colour, at));
            Ok(luminance::cmyk(cyan, magenta, yellow, black))
        }
        space => space.grey(&mut scope.budget, colour),
    }
}

fn numbers(operands: &[ContentToken]) -> Vec<f32> {
    let number = |operand: &ContentToken| match operand.kind {
        TokenKind::Number(value) => Some(value),
        _ => None,
    };
    operands.iter().filter_map(number).collect()
}

/// Formats a grey with four decimals, without trailing zeros.
fn format_grey(grey: f32) -> Vec<u8> {
    let text = format!("{:.4}", grey.clamp(0.0, 1.0));
    text.trim_end_matches('0').trim_end_matches('.').as_bytes().to_vec()
}
