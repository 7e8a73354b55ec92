//! Converts inline images: `BI`, a dictionary, `ID`, data, `EI` (ISO 32000-1 §8.9.7).

use lopdf::{Dictionary, Object, Writer};

use crate::PdfError;
use crate::bitmap::{DocumentImage, grey_image};
use crate::filter::names;
use crate::number::{count, whole};
use crate::scan::{ContentScanner, ContentToken, TokenKind, is_space, name_of};
use crate::scope::DocumentScope;
use crate::space::PdfColourSpace;

/// Parses the image after `BI`, leaves the scanner after `EI`, and returns the replacement of the bytes from `BI`
/// to `EI`; `None` if the image needs no conversion.
///
/// Fails if a limit is reached or the image cannot be decoded.
pub(super) fn inline_image(
    scope: &mut DocumentScope<'_>,
    scanner: &mut ContentScanner<'_>,
    resources: &Dictionary,
) -> Result<Option<Vec<u8>>, PdfError> {
    let (dictionary, content) = read(scope, scanner, resources)?;
    let picture = DocumentImage { dictionary: &dictionary, content, resources };
    let Some(converted) = grey_image(scope, &picture)? else { return Ok(None) };
    let mut text = b"BI ".to_vec();
    for (key, value) in converted.dictionary.iter() {
        // `Length` is outdated; `Type`, `Subtype` and `Mask` are not allowed in an inline image (§8.9.7).
        if key != b"Length" && key != b"Type" && key != b"Subtype" && key != b"Mask" {
            for object in [&Object::Name(key.clone()), value] {
                Writer::write_object(&mut text, object).expect("writing to memory does not fail");
                text.push(b' ');
            }
        }
    }
    text.extend_from_slice(b"ID ");
    text.extend_from_slice(&converted.content);
    // Without white space before it, `EI` would be read as data.
    text.extend_from_slice(b"\nEI");
    Ok(Some(text))
}

/// Parses the entries and the data of the image after `BI`, and leaves the scanner after `EI`. An image without
/// `ID` has no data.
///
/// Fails if a limit is reached.
pub(super) fn read<'a>(
    scope: &mut DocumentScope<'_>,
    scanner: &mut ContentScanner<'a>,
    resources: &Dictionary,
) -> Result<(Dictionary, &'a [u8]), PdfError> {
    let (dictionary, has_data) = read_dictionary(scanner);
    if !has_data {
        return Ok((dictionary, &[]));
    }
    // One byte of white space terminates `ID`.
    let start = (scanner.at + 1).min(scanner.bytes.len());
    let length = data_length(scope, &dictionary, &scanner.bytes[start..], resources)?;
    let content = &scanner.bytes[start..start + length];
    scanner.at = start + length;
    skip_end(scanner);
    Ok((dictionary, content))
}

/// Parses the entries, with abbreviated keys expanded, and leaves the scanner after `ID` or `EI`. Also returns
/// whether data follows, which is the case after `ID`.
fn read_dictionary(scanner: &mut ContentScanner<'_>) -> (Dictionary, bool) {
    let mut dictionary = Dictionary::new();
    let mut key: Option<Vec<u8>> = None;
    while let Some(token) = scanner.next() {
        let text = &scanner.bytes[token.start..token.end];
        // Ends at `EI` too, so that an image without `ID` does not consume the content after it.
        if token.kind == TokenKind::Operator && (text == b"ID" || text == b"EI") {
            return (dictionary, text == b"ID");
        }
        match key.take() {
            None if token.kind == TokenKind::Name => {
                key = Some(expand_key(&name_of(text)).to_vec());
            }
            None => {}
            Some(key) => {
                dictionary.set(key, parse_value(text, token, 0));
            }
        }
    }
    (dictionary, false)
}

fn expand_key(key: &[u8]) -> &[u8] {
    match key {
        b"BPC" => b"BitsPerComponent",
        b"CS" => b"ColorSpace",
        b"D" => b"Decode",
        b"DP" => b"DecodeParms",
        b"F" => b"Filter",
        b"H" => b"Height",
        b"IM" => b"ImageMask",
        b"I" => b"Interpolate",
        b"W" => b"Width",
        other => other,
    }
}

/// The maximum nesting inside an inline image's dictionary: an array of parameter dictionaries.
const DEPTH_MAX: usize = 4;

fn parse_value(text: &[u8], token: ContentToken, depth: usize) -> Object {
    match token.kind {
        // Sizes and depths must be written as integers again.
        TokenKind::Number(value) if value.fract() == 0.0 => Object::Integer(whole(value)),
        TokenKind::Number(value) => Object::Real(value),
        TokenKind::Name => Object::Name(name_of(text)),
        TokenKind::Operator if text == b"true" => Object::Boolean(true),
        TokenKind::Operator if text == b"false" => Object::Boolean(false),
        TokenKind::Operator => Object::Null,
        TokenKind::Other if depth >= DEPTH_MAX => Object::Null,
        TokenKind::Other => parse_composite(text, depth),
    }
}

/// Parses a dictionary, an array or a string.
fn parse_composite(text: &[u8], depth: usize) -> Object {
    if text.starts_with(b"<<") {
        let mut dictionary = Dictionary::new();
        for pair in parse_values(text, 2, depth + 1).chunks_exact(2) {
            if let Object::Name(key) = &pair[0] {
                dictionary.set(key.clone(), pair[1].clone());
            }
        }
        Object::Dictionary(dictionary)
    } else if text.starts_with(b"[") {
        Object::Array(parse_values(text, 1, depth + 1))
    } else {
        Object::String(decode_string(text), lopdf::StringFormat::Hexadecimal)
    }
}

/// Parses the values between brackets of `bracket_bytes` each.
fn parse_values(text: &[u8], bracket_bytes: usize, depth: usize) -> Vec<Object> {
    // `max`, because an unterminated group can be shorter than its brackets.
    let end = text.len().saturating_sub(bracket_bytes).max(bracket_bytes);
    let mut scanner = ContentScanner::new(&text[bracket_bytes..end]);
    let mut values = Vec::new();
    while let Some(token) = scanner.next() {
        values.push(parse_value(&scanner.bytes[token.start..token.end], token, depth));
    }
    values
}

/// Decodes the bytes of a literal or hexadecimal string.
fn decode_string(text: &[u8]) -> Vec<u8> {
    if text.starts_with(b"<") {
        return crate::filter::hexadecimal(&text[1..]);
    }
    let text = text.strip_prefix(b"(").unwrap_or(text);
    let text = text.strip_suffix(b")").unwrap_or(text);
    let mut bytes = Vec::with_capacity(text.len());
    let mut position = 0;
    while position < text.len() {
        let byte = text[position];
        position += 1;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let Some(&escaped) = text.get(position) else { break };
        position += 1;
        match escaped {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            // A backslash at the end of a line continues the string (§7.3.4.2).
            b'\n' => {}
            b'\r' => position += usize::from(text.get(position) == Some(&b'\n')),
            b'0'..=b'7' => {
                let mut code = u32::from(escaped - b'0');
                for _ in 0..2 {
                    match text.get(position) {
                        Some(digit @ b'0'..=b'7') => code = code * 8 + u32::from(digit - b'0'),
                        _ => break,
                    }
                    position += 1;
                }
                // Overflow beyond a byte is ignored (§7.3.4.2).
                bytes.push(code.to_le_bytes()[0]);
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// Returns the number of bytes of `data` that belong to the image.
///
/// Without a filter, the size of the image determines the length. Otherwise the data ends at an `EI` that is
/// surrounded by white space and followed by bytes that look like content.
fn data_length(
    scope: &mut DocumentScope<'_>,
    dictionary: &Dictionary,
    data: &[u8],
    resources: &Dictionary,
) -> Result<usize, PdfError> {
    let document = scope.document;
    let mut min_length = 0;
    if names(document, dictionary).is_empty() {
        let mask = matches!(dictionary.get(b"ImageMask"), Ok(Object::Boolean(true)));
        let components = match dictionary.get(b"ColorSpace") {
            Ok(space) if !mask => {
                let space = PdfColourSpace::parse(scope, space, resources)?;
                space.map_or(1, |space| space.components().max(1))
            }
            _ => 1,
        };
        let stated_bits = count(document, dictionary, b"BitsPerComponent").unwrap_or(8);
        let bits = if mask { 1 } else { stated_bits };
        let width = count(document, dictionary, b"Width").unwrap_or(0);
        let height = count(document, dictionary, b"Height").unwrap_or(0);
        let row = width.saturating_mul(components).saturating_mul(bits);
        min_length = row.div_ceil(8).saturating_mul(height).min(data.len());
    }
    let mut search_start = min_length;
    while let Some(found) = data[search_start..].windows(2).position(|pair| pair == b"EI") {
        let end = search_start + found;
        // Unfiltered data may end without white space, as its length is known.
        let is_delimited = end == min_length || is_space(data[end - 1]);
        if is_delimited && looks_like_content(&data[end + 2..]) {
            // The white space before `EI` is not data.
            let has_separator = end > min_length && is_space(data[end - 1]);
            return Ok(if has_separator { end - 1 } else { end });
        }
        search_start = end + 2;
    }
    Ok(data.len())
}

/// The number of bytes after an `EI` that must look like content. Binary data does so in one of two million
/// places.
const LOOKAHEAD_BYTES: usize = 12;

/// Returns whether the text after an `EI` looks like content: white space or the end, and no binary data.
fn looks_like_content(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| is_space(*byte))
        && rest.iter().take(LOOKAHEAD_BYTES).all(|byte| is_plain(*byte))
}

fn is_plain(byte: u8) -> bool {
    // NUL is white space in PDF, but far more frequent in binary data.
    is_space(byte) && byte != 0 || (b' '..=b'~').contains(&byte)
}

fn skip_end(scanner: &mut ContentScanner<'_>) {
    scanner.skip_space();
    if scanner.bytes[scanner.at..].starts_with(b"EI") {
        scanner.at += 2;
    }
}
