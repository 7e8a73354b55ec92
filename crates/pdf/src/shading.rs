//! Converts shadings, that is, gradients of all seven types, to grey (ISO 32000-1 §8.7.4.5).
//!
//! A function keeps its form if converting its result to grey equals interpolating greys; other functions are
//! sampled finely. Stitched functions keep their bounds.

use std::rc::Rc;

use lopdf::{Dictionary, Object, Stream, dictionary};

use crate::PdfError;
use crate::content::solid_grey;
use crate::filter::deflate;
use crate::function::{FunctionKind, PdfFunction};
use crate::mesh::{MeshFormat, grey_mesh};
use crate::number::{byte, count, dictionary_of, entry, interpolate, numbers, real, resolve};
use crate::scope::DocumentScope;
use crate::space::PdfColourSpace;
use crate::space_parser::grey_in;

/// A function of a new shading: streams must become separate objects.
#[derive(Debug)]
pub(super) enum GreyFunction {
    Plain(Dictionary),
    Table(Stream),
    Stitched { dictionary: Dictionary, functions: Vec<GreyFunction> },
}

/// The result of converting a shading; a mesh also has content.
#[derive(Debug)]
pub(super) struct ConvertedShading {
    pub(super) dictionary: Dictionary,
    pub(super) content: Option<Vec<u8>>,
    pub(super) function: Option<GreyFunction>,
}

/// The number of samples for one input.
const SAMPLES: usize = 256;
/// The number of samples along each of two inputs.
const SAMPLES_2D: usize = 128;

/// Converts a shading to grey; `None` if it is grey already or malformed.
///
/// Fails if a limit is reached.
pub(super) fn grey_shading(
    scope: &mut DocumentScope<'_>,
    object: &Object,
    resources: &Dictionary,
) -> Result<Option<ConvertedShading>, PdfError> {
    let document = scope.document;
    let Some(dictionary) = dictionary_of(object) else { return Ok(None) };
    let Ok(space) = dictionary.get(b"ColorSpace") else { return Ok(None) };
    let Some(space) = PdfColourSpace::parse(scope, space, resources)? else { return Ok(None) };
    // Any other name refers to resources that the conversion drops.
    let is_device_grey =
        matches!(dictionary.get(b"ColorSpace"), Ok(Object::Name(name)) if name == b"DeviceGray");
    if space.components() == 0 || (is_device_grey && matches!(*space, PdfColourSpace::Grey)) {
        return Ok(None);
    }
    let mut changed = dictionary.clone();
    changed.set("ColorSpace", "DeviceGray");
    if let Some(background) = numbers(document, dictionary, b"Background") {
        let grey = solid_grey(scope, &space, &background)?;
        changed.set("Background", vec![Object::Real(grey)]);
    }
    let kind = count(document, dictionary, b"ShadingType").unwrap_or(0);
    let functions = functions(scope, dictionary)?;
    let mut converted = ConvertedShading { dictionary: changed, content: None, function: None };
    match (kind, object) {
        (1, _) => converted.function = plane(scope, dictionary, &functions, &space)?,
        (2 | 3, _) => {
            let domain = numbers(document, dictionary, b"Domain").filter(|ends| ends.len() >= 2);
            let domain = domain.map_or([0.0, 1.0], |ends| [ends[0], ends[1]]);
            converted.function = line(scope, &functions, &space, domain)?;
        }
        (4..=7, Object::Stream(stream)) => {
            let data = scope.data(stream)?;
            let Some(mesh) = MeshFormat::read(document, &stream.dict, kind) else {
                return Ok(None);
            };
            if functions.is_empty() {
                let content = grey_mesh(scope, &mesh, &data, &space, &mut converted.dictionary)?;
                // The parameters belong to the former filter.
                converted.dictionary.remove(b"DecodeParms");
                converted.dictionary.set("Filter", "FlateDecode");
                converted.content = Some(deflate(&content));
            } else {
                // The data holds inputs of the function instead of colours, so it is not changed.
                let domain = mesh.colour_range();
                converted.function = line(scope, &functions, &space, domain)?;
                converted.content = Some(stream.content.clone());
            }
        }
        _ => return Ok(None),
    }
    if converted.function.is_none() {
        converted.dictionary.remove(b"Function");
    }
    Ok(Some(converted))
}

fn functions(
    scope: &mut DocumentScope<'_>,
    dictionary: &Dictionary,
) -> Result<Vec<PdfFunction>, PdfError> {
    let Ok(object) = dictionary.get(b"Function") else { return Ok(Vec::new()) };
    let object = resolve(scope.document, object);
    let list = match object {
        Object::Array(list) => &list[..],
        single => std::slice::from_ref(single),
    };
    let mut functions = Vec::new();
    for object in list {
        functions.extend(PdfFunction::parse(scope, object, 0)?);
    }
    Ok(functions)
}

/// Returns the grey of the functions at one point.
fn grey_at(
    scope: &mut DocumentScope<'_>,
    functions: &[PdfFunction],
    space: &PdfColourSpace,
    point: &[f32],
) -> Result<f32, PdfError> {
    let mut colour = Vec::new();
    for function in functions {
        colour.extend(function.evaluate(point, &mut scope.budget)?);
    }
    space.grey(&mut scope.budget, &colour)
}

/// Builds the grey function of one input over `domain`.
fn line(
    scope: &mut DocumentScope<'_>,
    functions: &[PdfFunction],
    space: &Rc<PdfColourSpace>,
    domain: [f32; 2],
) -> Result<Option<GreyFunction>, PdfError> {
    match functions {
        [] => Ok(None),
        [PdfFunction { kind: FunctionKind::Exponential { from, to, exponent }, domain, .. }]
            // Interpolating two greys equals the grey of the interpolated colours.
            if space.is_linear() =>
        {
            let low = space.grey(&mut scope.budget, from)?;
            let high = space.grey(&mut scope.budget, to)?;
            Ok(Some(GreyFunction::Plain(dictionary! {
                "FunctionType" => 2,
                "Domain" => reals(domain[0]),
                "C0" => vec![Object::Real(low)],
                "C1" => vec![Object::Real(high)],
                "N" => Object::Real(*exponent),
            })))
        }
        [
            PdfFunction {
                kind: FunctionKind::Stitching { functions, bounds, encode },
                domain,
                ..
            },
        ] => {
            let mut parts = Vec::new();
            for (function, encode) in functions.iter().zip(encode) {
                // An encoding may run backwards, but a function is sampled over an ascending domain.
                let span = [encode[0].min(encode[1]), encode[0].max(encode[1])];
                parts.extend(line(scope, std::slice::from_ref(function), space, span)?);
            }
            let flat = encode.iter().take(functions.len()).flatten();
            let dictionary = dictionary! {
                "FunctionType" => 3,
                "Domain" => reals(domain[0]),
                "Bounds" => bounds.iter().map(|bound| Object::Real(*bound)).collect::<Vec<_>>(),
                "Encode" => flat.map(|end| Object::Real(*end)).collect::<Vec<_>>(),
            };
            Ok(Some(GreyFunction::Stitched { dictionary, functions: parts }))
        }
        functions => {
            let count = sample_count(functions, domain);
            let mut table = Vec::with_capacity(count);
            for at in 0..count {
                let input = interpolate(real(at), [0.0, real(count - 1)], domain);
                table.push(byte(grey_at(scope, functions, space, &[input])?));
            }
            let size = i64::try_from(count).unwrap_or(i64::MAX);
            Ok(Some(sampled(&table, vec![size.into()], reals(domain))))
        }
    }
}

/// Builds the array of an interval.
fn reals(interval: [f32; 2]) -> Vec<Object> {
    vec![Object::Real(interval[0]), Object::Real(interval[1])]
}

/// Returns the number of samples that one input needs. A table over the same domain is read at its own samples.
fn sample_count(functions: &[PdfFunction], domain: [f32; 2]) -> usize {
    match functions {
        [PdfFunction { kind: FunctionKind::Sampled(table), domain: table_domain, .. }]
            if table_domain[0] == domain =>
        {
            let steps = table.size[0].saturating_sub(1).max(1);
            // A multiple of the table's own steps includes each of its samples; any other number would blur edges.
            (steps * SAMPLES.div_ceil(steps)).min(4 * SAMPLES) + 1
        }
        _ => SAMPLES + 1,
    }
}

/// Builds the grey function of two inputs, for shadings of type 1.
fn plane(
    scope: &mut DocumentScope<'_>,
    dictionary: &Dictionary,
    functions: &[PdfFunction],
    space: &PdfColourSpace,
) -> Result<Option<GreyFunction>, PdfError> {
    if functions.is_empty() {
        return Ok(None);
    }
    let domain = numbers(scope.document, dictionary, b"Domain").filter(|ends| ends.len() >= 4);
    let domain = domain.unwrap_or(vec![0.0, 1.0, 0.0, 1.0]);
    let last = real(SAMPLES_2D - 1);
    let mut table = Vec::with_capacity(SAMPLES_2D * SAMPLES_2D);
    // In a type 0 function the first input varies fastest.
    for row in 0..SAMPLES_2D {
        let y = interpolate(real(row), [0.0, last], [domain[2], domain[3]]);
        for column in 0..SAMPLES_2D {
            let x = interpolate(real(column), [0.0, last], [domain[0], domain[1]]);
            table.push(byte(grey_at(scope, functions, space, &[x, y])?));
        }
    }
    let size = i64::try_from(SAMPLES_2D).unwrap_or(i64::MAX);
    let domain = domain[..4].iter().map(|end| Object::Real(*end)).collect();
    Ok(Some(sampled(&table, vec![size.into(), size.into()], domain)))
}

/// Builds a type 0 function with one output of 8 bits.
fn sampled(table: &[u8], size: Vec<Object>, domain: Vec<Object>) -> GreyFunction {
    let dictionary = dictionary! {
        "FunctionType" => 0,
        "Domain" => domain,
        "Range" => vec![0.into(), 1.into()],
        "Size" => size,
        "BitsPerSample" => 8,
        "Filter" => "FlateDecode",
    };
    GreyFunction::Table(Stream::new(dictionary, deflate(table)))
}

/// Returns the grey of the colour outside a soft mask's group, in the group's space.
pub(super) fn backdrop(
    scope: &mut DocumentScope<'_>,
    mask: &Dictionary,
    resources: &Dictionary,
) -> Result<Option<f32>, PdfError> {
    let document = scope.document;
    let Some(colour) = numbers(document, mask, b"BC") else { return Ok(None) };
    let group = dictionary_of(entry(document, mask, b"G"));
    let group = group.and_then(|form| dictionary_of(entry(document, form, b"Group")));
    grey_in(scope, group.and_then(|group| group.get(b"CS").ok()), resources, &colour)
}
