//! Parses colour spaces (ISO 32000-1 §8.6).

use std::rc::Rc;

use lopdf::{Dictionary, Document, Object};

use crate::PdfError;
use crate::function::PdfFunction;
use crate::number::{count, dictionary_of, entry, index, number, numbers, pairs, resolve};
use crate::profile::GreyProfile;
use crate::scope::DocumentScope;
use crate::space::{PdfColourSpace, device_space};

/// The maximum number of components of a space: DeviceN allows 32.
const COMPONENTS_MAX: usize = 32;

impl PdfColourSpace {
    /// Parses a colour space object or name; `resources` define the named spaces.
    ///
    /// Returns `None` if the space is malformed. Fails if it is nested too deeply or decompresses to too much
    /// data.
    pub(super) fn parse(
        scope: &mut DocumentScope<'_>,
        object: &Object,
        resources: &Dictionary,
    ) -> Result<Option<Rc<PdfColourSpace>>, PdfError> {
        SpaceParser { scope, resources, depth: 0 }.space(object)
    }
}

/// The parser of a space and of the spaces in it.
struct SpaceParser<'s, 'd> {
    scope: &'s mut DocumentScope<'d>,
    /// The resources that define the named spaces.
    resources: &'s Dictionary,
    /// The number of spaces that contain this one.
    depth: usize,
}

impl SpaceParser<'_, '_> {
    /// Parses a space that is an object or a name.
    fn space(&mut self, object: &Object) -> Result<Option<Rc<PdfColourSpace>>, PdfError> {
        self.scope.budget.check_depth(self.depth, "colour spaces")?;
        let id = object.as_reference().ok();
        if let Some(space) = id.and_then(|id| self.scope.spaces.get(&id)) {
            return Ok(Some(Rc::clone(space)));
        }
        let document = self.scope.document;
        let space = match resolve(document, object) {
            // Not cached, because a name has a different meaning with different resources.
            Object::Name(name) => return self.named(name),
            Object::Array(array) => match array.split_first() {
                Some((family, rest)) => match resolve(document, family) {
                    Object::Name(name) if rest.is_empty() => return self.named(name),
                    Object::Name(name) => self.family(name, rest)?,
                    _ => None,
                },
                None => None,
            },
            // Old files have just the profile, without an array.
            stream @ Object::Stream(_) => self.icc(std::slice::from_ref(stream))?,
            _ => None,
        };
        let space = space.map(Rc::new);
        if let Some(id) = id
            && let Some(space) = &space
        {
            self.scope.spaces.insert(id, Rc::clone(space));
        }
        Ok(space)
    }

    /// Parses a space that is part of this one.
    fn nested(
        &mut self,
        object: &Object,
        resources: &Dictionary,
    ) -> Result<Option<Rc<PdfColourSpace>>, PdfError> {
        let depth = self.depth + 1;
        SpaceParser { scope: &mut *self.scope, resources, depth }.space(object)
    }

    /// Looks up a space by name: a device space, with its substitute from the resources, or a named space.
    fn named(&mut self, name: &[u8]) -> Result<Option<Rc<PdfColourSpace>>, PdfError> {
        let (space, substitute): (PdfColourSpace, &[u8]) = match name {
            b"DeviceGray" | b"G" | b"CalGray" => (PdfColourSpace::Grey, b"DefaultGray"),
            b"DeviceRGB" | b"RGB" | b"CalRGB" => (PdfColourSpace::Rgb, b"DefaultRGB"),
            b"DeviceCMYK" | b"CMYK" | b"CalCMYK" => (PdfColourSpace::Cmyk, b"DefaultCMYK"),
            b"Pattern" => return Ok(Some(Rc::new(PdfColourSpace::Pattern(None)))),
            name => {
                let Some(object) = self.entry(name) else { return Ok(None) };
                // Without resources, so that a space cannot be defined by its own name.
                return self.nested(&object, &Dictionary::new());
            }
        };
        if let Some(object) = self.entry(substitute) {
            // Inside a substitute, the names of device spaces have their original meaning.
            let found = self.nested(&object, &Dictionary::new())?;
            // A substitute with a different number of components does not fit the operands.
            if let Some(found) = found.filter(|found| found.components() == space.components()) {
                return Ok(Some(found));
            }
        }
        Ok(Some(Rc::new(space)))
    }

    fn entry(&self, name: &[u8]) -> Option<Object> {
        let spaces = dictionary_of(entry(self.scope.document, self.resources, b"ColorSpace"))?;
        spaces.get(name).ok().cloned()
    }

    /// Parses an array that begins with the name of a family; `rest` has the other elements, at least one.
    fn family(
        &mut self,
        name: &[u8],
        rest: &[Object],
    ) -> Result<Option<PdfColourSpace>, PdfError> {
        let document = self.scope.document;
        let parameters = rest.first().and_then(|first| dictionary_of(resolve(document, first)));
        match name {
            b"CalGray" => Ok(parameters.map(|parameters| {
                let gamma = number(document, entry(document, parameters, b"Gamma")).unwrap_or(1.0);
                PdfColourSpace::CalGrey { gamma }
            })),
            b"CalRGB" => Ok(parameters.map(|parameters| cal_rgb(document, parameters))),
            b"Lab" => Ok(parameters.map(|parameters| {
                let stated = numbers(document, parameters, b"Range").map(|flat| pairs(&flat));
                let stated = stated.unwrap_or_default();
                let range = [0, 1].map(|at| stated.get(at).copied().unwrap_or([-100.0, 100.0]));
                PdfColourSpace::Lab { range }
            })),
            b"ICCBased" => self.icc(rest),
            b"Indexed" | b"I" => self.indexed(rest),
            b"Separation" | b"DeviceN" => self.tint(rest),
            b"Pattern" => {
                // `rest` has an element, because an array with only the name was handled before.
                let underlying = self.nested(&rest[0], self.resources)?;
                Ok(Some(PdfColourSpace::Pattern(
                    underlying.filter(|underlying| underlying.components() > 0),
                )))
            }
            _ => Ok(None),
        }
    }

    fn icc(&mut self, rest: &[Object]) -> Result<Option<PdfColourSpace>, PdfError> {
        let document = self.scope.document;
        let Object::Stream(stream) = resolve(document, &rest[0]) else { return Ok(None) };
        let components = count(document, &stream.dict, b"N").unwrap_or(0);
        let bytes = self.scope.data(stream)?;
        if let Some(profile) = GreyProfile::parse(&bytes, components) {
            return Ok(Some(PdfColourSpace::Icc { profile, components }));
        }
        if let Ok(alternate) = stream.dict.get(b"Alternate") {
            let found = self.nested(alternate, self.resources)?;
            // Without a usable profile, the space equals its alternate space.
            let found =
                found.filter(|found| found.components() == components && found.is_calibrated());
            if let Some(space) = found {
                return Ok(Some(PdfColourSpace::clone(&space)));
            }
        }
        Ok(device_space(components))
    }

    fn indexed(&mut self, rest: &[Object]) -> Result<Option<PdfColourSpace>, PdfError> {
        let [base, last, table, ..] = rest else { return Ok(None) };
        let document = self.scope.document;
        let Some(base) = self.nested(base, self.resources)? else { return Ok(None) };
        // A table of indexes or patterns would be meaningless.
        if base.components() == 0 || matches!(*base, PdfColourSpace::Indexed { .. }) {
            return Ok(None);
        }
        // The format allows 256 entries (§8.6.6.3).
        let last = index(number(document, last).unwrap_or(0.0), 255);
        let mut table = match resolve(document, table) {
            Object::String(bytes, _) => bytes.clone(),
            Object::Stream(stream) => self.scope.data(stream)?,
            _ => return Ok(None),
        };
        table.truncate((last + 1) * base.components());
        Ok(Some(PdfColourSpace::Indexed { base, last, table }))
    }

    fn tint(&mut self, rest: &[Object]) -> Result<Option<PdfColourSpace>, PdfError> {
        let [names, alternate, function, ..] = rest else { return Ok(None) };
        let components = match resolve(self.scope.document, names) {
            // DeviceN has a list of colorants, Separation a single name.
            Object::Array(names) => names.len(),
            Object::Name(name) if name == b"None" => return Ok(Some(PdfColourSpace::Invisible)),
            _ => 1,
        };
        let Some(alternate) = self.nested(alternate, self.resources)? else { return Ok(None) };
        let Some(function) = PdfFunction::parse(self.scope, function, self.depth + 1)? else {
            return Ok(None);
        };
        let is_valid = (1..=COMPONENTS_MAX).contains(&components) && alternate.components() > 0;
        Ok(is_valid.then_some(PdfColourSpace::Tint { components, alternate, function }))
    }
}

fn cal_rgb(document: &Document, parameters: &Dictionary) -> PdfColourSpace {
    let gamma = numbers(document, parameters, b"Gamma").unwrap_or_default();
    let gamma = [0, 1, 2].map(|at| gamma.get(at).copied().unwrap_or(1.0));
    let white = numbers(document, parameters, b"WhitePoint").unwrap_or_default();
    let white = [0, 1, 2].map(|at| white.get(at).copied().filter(|w| *w > 0.0).unwrap_or(1.0));
    let flat = numbers(document, parameters, b"Matrix").unwrap_or_default();
    let matrix = [0, 1, 2].map(|column| {
        [0, 1, 2].map(|row| {
            let identity = if column == row { 1.0 } else { 0.0 };
            flat.get(column * 3 + row).copied().unwrap_or(identity) / white[row]
        })
    });
    PdfColourSpace::CalRgb { gamma, matrix }
}

/// Returns the grey of a colour in the space `object`, or in the device space with its number of components if there
/// is no such space; `None` if no device space has that number.
pub(super) fn grey_in(
    scope: &mut DocumentScope<'_>,
    object: Option<&Object>,
    resources: &Dictionary,
    colour: &[f32],
) -> Result<Option<f32>, PdfError> {
    let space = match object {
        Some(object) => PdfColourSpace::parse(scope, object, resources)?,
        None => None,
    };
    match space.or_else(|| device_space(colour.len()).map(Rc::new)) {
        Some(space) => space.grey(&mut scope.budget, colour).map(Some),
        None => Ok(None),
    }
}
