//! Small PDFs for tests, made with lopdf.

use lopdf::{Dictionary, Document, Object, ObjectId, Stream, dictionary};

use crate::PdfLimits;

/// Limits that every test document keeps.
pub(super) const LIMITS: PdfLimits = PdfLimits {
    bytes: 16 << 20,
    objects: 10_000,
    depth: 16,
    decoded_bytes: 64 << 20,
    operators: 1_000_000,
    pixels: 4_000_000,
    image_pixels: 4_000_000,
};

/// A document of one page, 100 by 100 points.
pub(super) struct TestDocument {
    pub(super) document: Document,
    pub(super) resources: Dictionary,
    pub(super) page: Dictionary,
    pub(super) content: Vec<u8>,
}

impl TestDocument {
    pub(super) fn new(content: &str) -> TestDocument {
        TestDocument {
            document: Document::with_version("1.5"),
            resources: Dictionary::new(),
            page: dictionary! {
                "Type" => "Page",
                "MediaBox" => vec![0.into(), 0.into(), 100.into(), 100.into()],
            },
            content: content.as_bytes().to_vec(),
        }
    }

    /// Names an object in a category of the page's resources.
    pub(super) fn with(
        mut self,
        category: &str,
        name: &str,
        object: impl Into<Object>,
    ) -> TestDocument {
        let mut list = match self.resources.get(category.as_bytes()) {
            Ok(Object::Dictionary(list)) => list.clone(),
            _ => Dictionary::new(),
        };
        list.set(name, object);
        self.resources.set(category, list);
        self
    }

    pub(super) fn stream(&mut self, dictionary: Dictionary, content: &[u8]) -> Object {
        Object::Reference(self.document.add_object(Stream::new(dictionary, content.to_vec())))
    }

    pub(super) fn bytes(mut self) -> Vec<u8> {
        let content = self.document.add_object(Stream::new(Dictionary::new(), self.content));
        let mut page = self.page;
        page.set("Contents", content);
        page.set("Resources", self.resources);
        finish(&mut self.document, page)
    }
}

fn finish(document: &mut Document, mut page: Dictionary) -> Vec<u8> {
    let pages = document.new_object_id();
    page.set("Parent", pages);
    let page = document.add_object(page);
    document.objects.insert(
        pages,
        Object::Dictionary(dictionary! {
            "Type" => "Pages", "Kids" => vec![page.into()], "Count" => 1,
        }),
    );
    let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
    document.trailer.set("Root", catalog);
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

/// The content of the first page, unpacked.
pub(super) fn content_of(bytes: &[u8]) -> String {
    let document = Document::load_mem(bytes).unwrap();
    let page = first_page(&document);
    String::from_utf8_lossy(&document.get_page_content(page)).trim().to_owned()
}

pub(super) fn first_page(document: &Document) -> ObjectId {
    document.page_iter().next().unwrap()
}

/// The only object of a kind: streams with this entry of this name.
pub(super) fn stream_with(bytes: &[u8], key: &str, name: &str) -> Stream {
    let document = Document::load_mem(bytes).unwrap();
    let mut found = document.objects.values().filter_map(|object| object.as_stream().ok());
    let has_entry = |stream: &&Stream| {
        stream
            .dict
            .get(key.as_bytes())
            .is_ok_and(|value| value.as_name().is_ok_and(|value| value == name.as_bytes()))
    };
    found.find(has_entry).unwrap().clone()
}

/// A space of names and other objects.
pub(super) fn space(parts: Vec<Object>) -> Object {
    Object::Array(parts)
}

pub(super) fn name(text: &str) -> Object {
    Object::Name(text.as_bytes().to_vec())
}

/// Numbers as an array.
pub(super) fn list(numbers: &[f32]) -> Object {
    Object::Array(numbers.iter().map(|number| Object::Real(*number)).collect())
}

/// A type 2 function from one colour to another.
pub(super) fn ramp(from: &[f32], to: &[f32]) -> Object {
    Object::Dictionary(dictionary! {
        "FunctionType" => 2, "Domain" => list(&[0.0, 1.0]),
        "C0" => list(from), "C1" => list(to), "N" => 1,
    })
}

pub(super) fn image(width: i64, height: i64, bits: i64, space: Object) -> Dictionary {
    dictionary! {
        "Type" => "XObject", "Subtype" => "Image", "Width" => width, "Height" => height,
        "BitsPerComponent" => bits, "ColorSpace" => space,
    }
}

/// 16 by 16 pixels of three components that all vary.
pub(super) fn rainbow() -> Vec<u8> {
    let mut samples = Vec::new();
    for y in 0..16u8 {
        for x in 0..16u8 {
            samples.extend([x * 17, y * 17, 255 - x * 8 - y * 8]);
        }
    }
    samples
}
