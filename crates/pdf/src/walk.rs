//! Walks all objects that a document draws and converts them to grey.
//!
//! The document is read-only during the walk. New objects are collected in `changes` and applied at the end, so
//! that a resource dictionary keeps its meaning for other streams that need it. Objects are handled from a queue,
//! each once, so cycles terminate. Recursion is limited to the nesting within one object, which the parser limits.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use lopdf::{Dictionary, Document, Object, ObjectId, Stream, dictionary};

use crate::bitmap::name;
use crate::content::rewrite;
use crate::filter::deflate;
use crate::load::PageTree;
use crate::number::{dictionary_of, entry, resolve};
use crate::scope::DocumentScope;
use crate::shading::backdrop;
use crate::space::PdfColourSpace;
use crate::{PdfError, PdfLimits};

/// The role of an object, determined by the place that refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectRole {
    Resources,
    /// A dictionary of named objects that all have one kind.
    Named(PdfObjectKind),
    Array(PdfObjectKind),
    One(PdfObjectKind),
    ColourSpaces,
}

/// The kind of a single object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PdfObjectKind {
    /// An external object: an image or a form.
    External,
    Pattern,
    Shading,
    Font,
    GraphicsState,
    SoftMask,
    /// A content stream that is drawn with the resources of its font.
    Glyph,
    Group,
    Annotation,
    /// A form, or a dictionary of forms.
    Appearance,
    Appearances,
    /// The appearance of a form field's button.
    Button,
}

struct PendingObject {
    id: ObjectId,
    role: ObjectRole,
    resources: Rc<Dictionary>,
}

/// The walk and its results.
pub(super) struct DocumentWalk<'a> {
    pub(super) scope: DocumentScope<'a>,
    pub(super) changes: BTreeMap<ObjectId, Object>,
    seen: HashSet<ObjectId>,
    queue: VecDeque<PendingObject>,
    /// Resources by object id, so that many streams share one copy.
    known_resources: HashMap<ObjectId, Rc<Dictionary>>,
    last_id: u32,
}

/// Walks the pages and forms of a document and returns each object that changes.
///
/// Fails if a limit is reached or an image cannot be decoded.
pub(super) fn walk(
    document: &Document,
    limits: &PdfLimits,
    pages: &PageTree<'_>,
) -> Result<BTreeMap<ObjectId, Object>, PdfError> {
    let mut walk = DocumentWalk {
        scope: DocumentScope::new(document, limits),
        changes: BTreeMap::new(),
        seen: HashSet::new(),
        queue: VecDeque::new(),
        known_resources: HashMap::new(),
        last_id: document.max_id,
    };
    for id in &pages.nodes {
        if let Some(Object::Dictionary(node)) = document.objects.get(id)
            && let Ok(own) = node.get(b"Resources")
        {
            let mut node = node.clone();
            node.set("Resources", walk.convert_slot(own, ObjectRole::Resources, &Rc::default())?);
            walk.changes.insert(*id, Object::Dictionary(node));
        }
    }
    let mut shared: Option<(&Object, Rc<Dictionary>)> = None;
    for page in &pages.pages {
        let found = page.entry(document, b"Resources");
        let resources = match &shared {
            // Pages that inherit one dictionary share one copy of it; a file can have thousands of such pages.
            Some((previous, resources)) if std::ptr::eq(*previous, found) => Rc::clone(resources),
            _ => Rc::new(dictionary_of(found).cloned().unwrap_or_default()),
        };
        shared = Some((found, Rc::clone(&resources)));
        let changed = walk.page(page.dictionary, &resources)?;
        walk.changes.insert(page.id, Object::Dictionary(changed));
        walk.process_queue()?;
    }
    walk.interactive_form()?;
    walk.process_queue()?;
    Ok(walk.changes)
}

impl<'a> DocumentWalk<'a> {
    fn process_queue(&mut self) -> Result<(), PdfError> {
        while let Some(PendingObject { id, role, resources }) = self.queue.pop_front() {
            let object = resolve(self.scope.document, &Object::Reference(id)).clone();
            let changed = self.convert_object(object, role, &resources)?;
            self.changes.insert(id, changed);
        }
        Ok(())
    }

    /// Returns the replacement of `object`. References are kept, and their targets are queued.
    pub(super) fn convert_slot(
        &mut self,
        object: &Object,
        role: ObjectRole,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        if let Object::Reference(id) = object {
            if self.scope.document.objects.contains_key(id) && self.seen.insert(*id) {
                self.queue.push_back(PendingObject {
                    id: *id,
                    role,
                    resources: Rc::clone(resources),
                });
            }
            return Ok(object.clone());
        }
        // A direct object is converted each time it is reached, so it counts as an operator.
        self.scope.budget.take_operator()?;
        self.convert_object(object.clone(), role, resources)
    }

    /// Replaces an entry of a dictionary if it is present.
    pub(super) fn convert_entry(
        &mut self,
        dictionary: &mut Dictionary,
        key: &str,
        role: ObjectRole,
        resources: &Rc<Dictionary>,
    ) -> Result<(), PdfError> {
        if let Ok(object) = dictionary.get(key.as_bytes()) {
            let changed = self.convert_slot(&object.clone(), role, resources)?;
            dictionary.set(key, changed);
        }
        Ok(())
    }

    /// Replaces an entry of a dictionary that has one object of a kind, if it is present.
    pub(super) fn convert_one(
        &mut self,
        dictionary: &mut Dictionary,
        key: &str,
        kind: PdfObjectKind,
        resources: &Rc<Dictionary>,
    ) -> Result<(), PdfError> {
        self.convert_entry(dictionary, key, ObjectRole::One(kind), resources)
    }

    pub(super) fn add(&mut self, object: Object) -> Object {
        self.last_id = self.last_id.saturating_add(1);
        self.changes.insert((self.last_id, 0), object);
        Object::Reference((self.last_id, 0))
    }

    fn convert_object(
        &mut self,
        object: Object,
        role: ObjectRole,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        match (role, object) {
            (ObjectRole::Resources, Object::Dictionary(dictionary)) => self.resources(dictionary),
            (ObjectRole::ColourSpaces, Object::Dictionary(dictionary)) => {
                self.colour_spaces(&dictionary, resources)
            }
            (ObjectRole::Named(part), Object::Dictionary(mut dictionary)) => {
                for (_, value) in dictionary.iter_mut() {
                    *value =
                        self.convert_slot(&value.clone(), ObjectRole::One(part), resources)?;
                }
                Ok(Object::Dictionary(dictionary))
            }
            (ObjectRole::Array(part), Object::Array(mut array)) => {
                for value in &mut array {
                    *value =
                        self.convert_slot(&value.clone(), ObjectRole::One(part), resources)?;
                }
                Ok(Object::Array(array))
            }
            (ObjectRole::One(part), object) => self.convert_kind(object, part, resources),
            (_, other) => Ok(other),
        }
    }

    fn convert_kind(
        &mut self,
        object: Object,
        part: PdfObjectKind,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        match (part, object) {
            (PdfObjectKind::External, Object::Stream(stream)) => {
                let kind = entry(self.scope.document, &stream.dict, b"Subtype");
                match kind {
                    Object::Name(name) if name == b"Image" => self.image(stream, resources),
                    _ => self.form(stream, resources, true),
                }
            }
            (PdfObjectKind::Glyph, Object::Stream(stream)) => self.form(stream, resources, true),
            // A tiling cell starts with the initial colours, not with the colours of its caller (ISO 32000-1
            // §8.7.3.1).
            (PdfObjectKind::Pattern, Object::Stream(stream)) => {
                self.form(stream, resources, false)
            }
            (PdfObjectKind::Pattern, Object::Dictionary(mut pattern)) => {
                self.convert_one(&mut pattern, "Shading", PdfObjectKind::Shading, resources)?;
                Ok(Object::Dictionary(pattern))
            }
            (PdfObjectKind::Shading, object) => self.shading(object, resources),
            (PdfObjectKind::Font, Object::Dictionary(font)) => self.font(font, resources),
            (PdfObjectKind::GraphicsState, Object::Dictionary(state)) => {
                self.graphics_state(state, resources)
            }
            (PdfObjectKind::SoftMask, Object::Dictionary(mask)) => self.soft_mask(mask, resources),
            (PdfObjectKind::Group, Object::Dictionary(mut group)) => {
                if group.has(b"CS") {
                    // The group blends colours that are grey after the conversion.
                    group.set("CS", "DeviceGray");
                }
                Ok(Object::Dictionary(group))
            }
            (PdfObjectKind::Appearance, Object::Stream(stream)) => {
                self.form(stream, resources, false)
            }
            (PdfObjectKind::Appearance, states @ Object::Dictionary(_)) => {
                self.convert_object(states, ObjectRole::Named(PdfObjectKind::External), resources)
            }
            (PdfObjectKind::Appearances, list @ Object::Dictionary(_)) => {
                self.convert_object(list, ObjectRole::Named(PdfObjectKind::Appearance), resources)
            }
            (PdfObjectKind::Annotation, Object::Dictionary(annotation)) => {
                self.annotation(annotation, resources)
            }
            (PdfObjectKind::Button, Object::Dictionary(button)) => self.button(button),
            (_, other) => Ok(other),
        }
    }

    fn graphics_state(
        &mut self,
        mut state: Dictionary,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        self.convert_one(&mut state, "SMask", PdfObjectKind::SoftMask, resources)?;
        if let Ok(Object::Array(font)) = state.get(b"Font") {
            // The array holds a font and its size; a number is not changed.
            let font = Object::Array(font.clone());
            let fonts = ObjectRole::Array(PdfObjectKind::Font);
            state.set("Font", self.convert_object(font, fonts, resources)?);
        }
        Ok(Object::Dictionary(state))
    }

    fn soft_mask(
        &mut self,
        mut mask: Dictionary,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        if let Some(grey) = backdrop(&mut self.scope, &mask, resources)? {
            mask.set("BC", vec![Object::Real(grey)]);
        }
        self.convert_one(&mut mask, "G", PdfObjectKind::External, resources)?;
        Ok(Object::Dictionary(mask))
    }

    fn page(
        &mut self,
        page: &Dictionary,
        resources: &Rc<Dictionary>,
    ) -> Result<Dictionary, PdfError> {
        let mut changed = page.clone();
        self.convert_entry(&mut changed, "Resources", ObjectRole::Resources, resources)?;
        self.convert_one(&mut changed, "Group", PdfObjectKind::Group, resources)?;
        let annotations = ObjectRole::Array(PdfObjectKind::Annotation);
        self.convert_entry(&mut changed, "Annots", annotations, resources)?;
        self.convert_one(&mut changed, "Thumb", PdfObjectKind::External, resources)?;
        if let Ok(contents) = page.get(b"Contents") {
            let contents = self.contents(contents, resources)?;
            changed.set("Contents", contents);
        }
        Ok(changed)
    }

    /// Converts the content of a page. A single stream is changed in place. Several streams are joined into one,
    /// because a token or a colour may continue in the next stream.
    fn contents(
        &mut self,
        object: &Object,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        let document = self.scope.document;
        let single = match (resolve(document, object), object) {
            (Object::Array(parts), _) if parts.len() == 1 => parts[0].clone(),
            (Object::Array(parts), _) => return self.joined(object, parts, resources),
            (_, single) => single.clone(),
        };
        let (Object::Reference(id), Object::Stream(stream)) =
            (&single, resolve(document, &single))
        else {
            return Ok(object.clone());
        };
        // Pages may share a content stream.
        if self.seen.insert(*id) {
            let mut stream = stream.clone();
            self.content(&mut stream, resources, false)?;
            self.changes.insert(*id, Object::Stream(stream));
        }
        Ok(single)
    }

    fn joined(
        &mut self,
        object: &Object,
        parts: &[Object],
        resources: &Dictionary,
    ) -> Result<Object, PdfError> {
        let bytes = self.scope.joined(parts)?;
        Ok(match rewrite(&mut self.scope, &bytes, resources, false)? {
            Some(text) => {
                let dictionary = dictionary! { "Filter" => "FlateDecode" };
                self.add(Object::Stream(Stream::new(dictionary, deflate(&text))))
            }
            None => object.clone(),
        })
    }

    /// Rewrites the data of a content stream.
    fn content(
        &mut self,
        stream: &mut Stream,
        resources: &Dictionary,
        inherits: bool,
    ) -> Result<(), PdfError> {
        let bytes = self.scope.data(stream)?;
        if let Some(text) = rewrite(&mut self.scope, &bytes, resources, inherits)? {
            // The parameters belong to the former filter.
            stream.dict.remove(b"DecodeParms");
            stream.dict.set("Filter", "FlateDecode");
            stream.set_content(deflate(&text));
        }
        Ok(())
    }

    /// Converts a form, tiling pattern or glyph. Without resources of its own, it uses the resources of its
    /// caller.
    fn form(
        &mut self,
        mut stream: Stream,
        resources: &Rc<Dictionary>,
        inherits: bool,
    ) -> Result<Object, PdfError> {
        let resources = self.own_resources(&stream.dict, resources);
        self.convert_entry(&mut stream.dict, "Resources", ObjectRole::Resources, &resources)?;
        self.convert_one(&mut stream.dict, "Group", PdfObjectKind::Group, &resources)?;
        self.content(&mut stream, &resources, inherits)?;
        Ok(Object::Stream(stream))
    }

    /// Returns the resources of a form or font, or else the resources of its caller.
    fn own_resources(&mut self, holder: &Dictionary, caller: &Rc<Dictionary>) -> Rc<Dictionary> {
        let Ok(object) = holder.get(b"Resources") else { return Rc::clone(caller) };
        let id = object.as_reference().ok();
        if let Some(cached) = id.and_then(|id| self.known_resources.get(&id)) {
            return Rc::clone(cached);
        }
        match dictionary_of(resolve(self.scope.document, object)) {
            None => Rc::clone(caller),
            Some(own) => {
                let own = Rc::new(own.clone());
                self.known_resources.extend(id.map(|id| (id, Rc::clone(&own))));
                own
            }
        }
    }

    fn resources(&mut self, mut dictionary: Dictionary) -> Result<Object, PdfError> {
        // Content is interpreted with the original spaces, which the new dictionary lacks.
        let original = Rc::new(dictionary.clone());
        let parts = [
            ("XObject", PdfObjectKind::External),
            ("Pattern", PdfObjectKind::Pattern),
            ("Shading", PdfObjectKind::Shading),
            ("Font", PdfObjectKind::Font),
            ("ExtGState", PdfObjectKind::GraphicsState),
        ];
        for (key, part) in parts {
            self.convert_entry(&mut dictionary, key, ObjectRole::Named(part), &original)?;
        }
        // The dictionary of colour spaces may be shared with objects that refer to it by a different name.
        self.convert_entry(&mut dictionary, "ColorSpace", ObjectRole::ColourSpaces, &original)?;
        Ok(Object::Dictionary(dictionary))
    }

    /// Keeps the spaces that content still selects by name: patterns and the colorant None.
    fn colour_spaces(
        &mut self,
        spaces: &Dictionary,
        resources: &Dictionary,
    ) -> Result<Object, PdfError> {
        let mut retained = Dictionary::new();
        for (key, object) in spaces.iter() {
            let Some(space) = PdfColourSpace::parse(&mut self.scope, object, resources)? else {
                continue;
            };
            let retained_space = match &*space {
                PdfColourSpace::Pattern(None) => name("Pattern"),
                PdfColourSpace::Pattern(Some(_)) => {
                    Object::Array(vec![name("Pattern"), name("DeviceGray")])
                }
                PdfColourSpace::Invisible => invisible_space(),
                // Content states colours of the other spaces as grey.
                _ => continue,
            };
            retained.set(key.clone(), retained_space);
        }
        Ok(Object::Dictionary(retained))
    }

    fn font(
        &mut self,
        mut font: Dictionary,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        let document = self.scope.document;
        // Only the glyphs of Type 3 fonts are content streams.
        if !matches!(entry(document, &font, b"Subtype"), Object::Name(name) if name == b"Type3") {
            return Ok(Object::Dictionary(font));
        }
        let resources = self.own_resources(&font, resources);
        self.convert_entry(&mut font, "Resources", ObjectRole::Resources, &resources)?;
        let glyphs = ObjectRole::Named(PdfObjectKind::Glyph);
        self.convert_entry(&mut font, "CharProcs", glyphs, &resources)?;
        Ok(Object::Dictionary(font))
    }
}

/// Builds a colour space that paints nothing, based on grey.
fn invisible_space() -> Object {
    let tint = dictionary! {
        "FunctionType" => 2,
        "Domain" => vec![0.into(), 1.into()],
        "C0" => vec![1.into()],
        "C1" => vec![0.into()],
        "N" => 1,
    };
    Object::Array(vec![name("Separation"), name("None"), name("DeviceGray"), tint.into()])
}
