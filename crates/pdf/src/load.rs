//! Loads a document that is safe to walk, and reads the properties of page 1.

use std::collections::HashSet;
use std::rc::Rc;

use lopdf::{Dictionary, Document, LoadOptions, Object, ObjectId};

use crate::number::{dictionary_of, entry, index, number, resolve};
use crate::{DocumentFacts, PdfError, PdfLimits, active};

/// The number of bytes within which readers search for the header.
const HEADER_WITHIN: usize = 1024;

/// Loads a document from bytes.
///
/// Fails if the file is not a PDF, is encrypted, is malformed beyond repair or exceeds a limit.
pub(super) fn load(bytes: &[u8], limits: &PdfLimits) -> Result<Document, PdfError> {
    if bytes.len() > limits.bytes {
        return Err(PdfError::TooMany { what: "bytes", found: bytes.len(), max: limits.bytes });
    }
    if !has_header(bytes) {
        return Err(PdfError::NotPdf { found: bytes.len() });
    }
    let options = LoadOptions {
        max_decompressed_size: Some(limits.decoded_bytes),
        ..LoadOptions::default()
    };
    let document =
        Document::load_mem_with_options(bytes, options).map_err(|cause| refuse(&cause))?;
    // lopdf opens files with an empty password, but the conversion must not drop their usage rights.
    if document.is_encrypted() || document.encryption_state.is_some() {
        return Err(PdfError::Encrypted);
    }
    // The number is only known after loading; until then the length of the file bounds it.
    if document.objects.len() > limits.objects {
        let found = document.objects.len();
        return Err(PdfError::TooMany { what: "objects", found, max: limits.objects });
    }
    Ok(document)
}

/// Returns whether the file has the header of a PDF.
fn has_header(bytes: &[u8]) -> bool {
    let prefix = &bytes[..bytes.len().min(HEADER_WITHIN)];
    prefix.windows(5).any(|window| window == b"%PDF-")
}

fn refuse(error: &lopdf::Error) -> PdfError {
    match error {
        lopdf::Error::Decryption(_)
        | lopdf::Error::InvalidPassword
        | lopdf::Error::AlreadyEncrypted
        | lopdf::Error::UnsupportedSecurityHandler(_) => PdfError::Encrypted,
        lopdf::Error::Xref(_) => PdfError::Malformed { what: "its cross-reference table" },
        lopdf::Error::Decompress(_) => PdfError::Malformed { what: "its object streams" },
        _ => PdfError::Malformed { what: "its structure" },
    }
}

/// A page: its object and its inherited entries.
#[derive(Debug, Clone)]
pub(super) struct DocumentPage<'a> {
    pub(super) id: ObjectId,
    pub(super) dictionary: &'a Dictionary,
    inherited: Rc<Dictionary>,
}

impl<'a> DocumentPage<'a> {
    /// Returns an entry of the page or of a node above the page.
    pub(super) fn entry(&'a self, document: &'a Document, key: &[u8]) -> &'a Object {
        let holder = if self.dictionary.has(key) { self.dictionary } else { &self.inherited };
        entry(document, holder, key)
    }
}

/// The pages in order, and the nodes above them.
#[derive(Debug, Default)]
pub(super) struct PageTree<'a> {
    pub(super) pages: Vec<DocumentPage<'a>>,
    pub(super) nodes: Vec<ObjectId>,
}

/// The entries that pages inherit from the nodes above them.
const INHERITED: [&[u8]; 4] = [b"Resources", b"MediaBox", b"CropBox", b"Rotate"];

/// Walks the page tree, skipping nodes that are repeated or not dictionaries.
///
/// Fails if the tree is too deep, or has more kids than the limit on objects.
pub(super) fn pages<'a>(
    document: &'a Document,
    limits: &PdfLimits,
) -> Result<PageTree<'a>, PdfError> {
    let root = document.trailer.get(b"Root").map_or(&Object::Null, |root| resolve(document, root));
    let Some(catalog) = dictionary_of(root) else {
        return Err(PdfError::Malformed { what: "its catalog is missing" });
    };
    let mut result = PageTree::default();
    let mut seen = HashSet::new();
    let mut kids_left = limits.objects;
    let mut pending: Vec<(ObjectId, Rc<Dictionary>, usize)> = Vec::new();
    if let Ok(Object::Reference(id)) = catalog.get(b"Pages") {
        pending.push((*id, Rc::default(), 0));
        seen.insert(*id);
    }
    while let Some((id, above, depth)) = pending.pop() {
        if depth > limits.depth {
            return Err(PdfError::TooDeep { what: "page tree", max: limits.depth });
        }
        let Some(Object::Dictionary(node)) = document.objects.get(&id) else { continue };
        let Object::Array(kids) = entry(document, node, b"Kids") else {
            result.pages.push(DocumentPage { id, dictionary: node, inherited: above });
            continue;
        };
        // Counted before they are visited, because an array can repeat one reference millions of times.
        let Some(rest) = kids_left.checked_sub(kids.len()) else {
            let found = kids.len().saturating_add(limits.objects);
            return Err(PdfError::TooMany { what: "objects", found, max: limits.objects });
        };
        kids_left = rest;
        let below = inherit(node, &above);
        result.nodes.push(id);
        // Reversed, because the stack returns the last kid first and pages have an order.
        for kid in kids.iter().rev() {
            // A node that is its own descendant is visited only once.
            if let Object::Reference(id) = kid
                && seen.insert(*id)
            {
                pending.push((*id, Rc::clone(&below), depth + 1));
            }
        }
    }
    if result.pages.is_empty() { Err(PdfError::NoPages) } else { Ok(result) }
}

/// Returns the entries that the kids of `node` inherit.
fn inherit(node: &Dictionary, above: &Rc<Dictionary>) -> Rc<Dictionary> {
    // Most nodes add nothing, so they share one dictionary.
    if !INHERITED.iter().any(|key| node.has(key)) {
        return Rc::clone(above);
    }
    let mut below = Dictionary::clone(above);
    for key in INHERITED {
        if let Ok(own) = node.get(key) {
            below.set(key, own.clone());
        }
    }
    Rc::new(below)
}

/// The size that readers assume for a page without a usable box: US Letter.
const LETTER: [f32; 4] = [0.0, 0.0, 612.0, 792.0];

/// Reads the properties of a document whose first page is `page`.
pub(super) fn page_facts(
    document: &Document,
    pages: usize,
    page: &DocumentPage<'_>,
) -> DocumentFacts {
    let media = rectangle(document, page, b"MediaBox").unwrap_or(LETTER);
    let displayed = match rectangle(document, page, b"CropBox") {
        // A crop box that lies outside of the media box is ignored.
        Some(crop) => intersection(crop, media).unwrap_or(media),
        None => media,
    };
    let unit = number(document, entry(document, page.dictionary, b"UserUnit"));
    let unit = unit.filter(|unit| *unit > 0.0 && *unit < 1e6).unwrap_or(1.0);
    let [left, bottom, right, top] = displayed;
    let width_pt = (right - left) * unit;
    let height_pt = (top - bottom) * unit;
    let rotation = number(document, page.entry(document, b"Rotate")).unwrap_or(0.0);
    // The angle may be negative or more than a full turn.
    let quarter_turns = index((rotation / 90.0).rem_euclid(4.0), 3);
    let (width_pt, height_pt) =
        if quarter_turns % 2 == 1 { (height_pt, width_pt) } else { (width_pt, height_pt) };
    DocumentFacts { pages, width_pt, height_pt, active: active::find(document) }
}

/// Parses a box as left, bottom, right, top; `None` if it is missing or empty.
fn rectangle(document: &Document, page: &DocumentPage<'_>, key: &[u8]) -> Option<[f32; 4]> {
    let Object::Array(corners) = page.entry(document, key) else { return None };
    let [a, b, c, d] = &corners[..] else { return None };
    let [a, b, c, d] = [a, b, c, d].map(|corner| number(document, corner).unwrap_or(0.0));
    // Any two opposite corners define a rectangle (ISO 32000-1 §7.9.5).
    let sorted = [a.min(c), b.min(d), a.max(c), b.max(d)];
    (sorted[2] > sorted[0] && sorted[3] > sorted[1]).then_some(sorted)
}

fn intersection(first: [f32; 4], second: [f32; 4]) -> Option<[f32; 4]> {
    let left = first[0].max(second[0]);
    let bottom = first[1].max(second[1]);
    let right = first[2].min(second[2]);
    let top = first[3].min(second[3]);
    (right > left && top > bottom).then_some([left, bottom, right, top])
}
