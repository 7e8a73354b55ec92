//! Converts annotations and form fields: their own colours, and the streams that draw them.

use std::rc::Rc;

use lopdf::{Dictionary, Document, Object, StringFormat};

use crate::PdfError;
use crate::content::{rewrite, solid_grey};
use crate::number::{dictionary_of, entry, numbers, resolve};
use crate::space::device_space;
use crate::walk::{DocumentWalk, ObjectRole, PdfObjectKind};

impl<'a> DocumentWalk<'a> {
    /// Converts an annotation or a field to grey.
    pub(super) fn annotation(
        &mut self,
        mut annotation: Dictionary,
        resources: &Rc<Dictionary>,
    ) -> Result<Object, PdfError> {
        for key in ["C", "IC"] {
            colour(self, &mut annotation, key)?;
        }
        appearance_string(self, &mut annotation, resources)?;
        self.convert_one(&mut annotation, "MK", PdfObjectKind::Button, resources)?;
        self.convert_one(&mut annotation, "AP", PdfObjectKind::Appearances, resources)?;
        let kids = ObjectRole::Array(PdfObjectKind::Annotation);
        self.convert_entry(&mut annotation, "Kids", kids, resources)?;
        Ok(Object::Dictionary(annotation))
    }

    /// Converts the border and background of a button to grey.
    pub(super) fn button(&mut self, mut button: Dictionary) -> Result<Object, PdfError> {
        for key in ["BC", "BG"] {
            colour(self, &mut button, key)?;
        }
        Ok(Object::Dictionary(button))
    }

    /// Converts the fields of an interactive form, whose appearances readers may regenerate.
    pub(super) fn interactive_form(&mut self) -> Result<(), PdfError> {
        let document: &'a Document = self.scope.document;
        // The catalog has to be an indirect object (ISO 32000-1 §7.5.5), so a change can be stored under its id.
        let Ok(Object::Reference(root)) = document.trailer.get(b"Root") else { return Ok(()) };
        let Some(Object::Dictionary(catalog)) = document.objects.get(root) else {
            return Ok(());
        };
        let Ok(form_entry) = catalog.get(b"AcroForm") else { return Ok(()) };
        let Object::Dictionary(form) = resolve(document, form_entry) else { return Ok(()) };
        let resources = dictionary_of(entry(document, form, b"DR")).cloned().unwrap_or_default();
        let resources = Rc::new(resources);
        let mut form = form.clone();
        self.convert_entry(&mut form, "DR", ObjectRole::Resources, &resources)?;
        let fields = ObjectRole::Array(PdfObjectKind::Annotation);
        self.convert_entry(&mut form, "Fields", fields, &resources)?;
        appearance_string(self, &mut form, &resources)?;
        match form_entry {
            Object::Reference(id) => {
                self.changes.insert(*id, Object::Dictionary(form));
            }
            _ => {
                // A form that is written into the catalog has no id of its own.
                let mut catalog = catalog.clone();
                catalog.set("AcroForm", form);
                self.changes.insert(*root, Object::Dictionary(catalog));
            }
        }
        Ok(())
    }
}

/// Converts a colour of an annotation. Its number of components implies the space; an empty colour is transparent.
fn colour(
    walk: &mut DocumentWalk<'_>,
    holder: &mut Dictionary,
    key: &str,
) -> Result<(), PdfError> {
    let Some(colour) = numbers(walk.scope.document, holder, key.as_bytes()) else {
        return Ok(());
    };
    // One component is grey already.
    if colour.len() > 1
        && let Some(space) = device_space(colour.len())
    {
        let grey = solid_grey(&mut walk.scope, &space, &colour)?;
        holder.set(key, vec![Object::Real(grey)]);
    }
    Ok(())
}

/// Converts a default appearance to grey: a fragment of content that sets font and colour.
fn appearance_string(
    walk: &mut DocumentWalk<'_>,
    holder: &mut Dictionary,
    resources: &Dictionary,
) -> Result<(), PdfError> {
    // The string may be inherited from a parent field, which is converted on its own.
    let Object::String(text, _) = entry(walk.scope.document, holder, b"DA") else {
        return Ok(());
    };
    if let Some(text) = rewrite(&mut walk.scope, text, resources, false)? {
        holder.set("DA", Object::String(text, StringFormat::Literal));
    }
    Ok(())
}
