//! Converts shading meshes of types 4 to 7: the colours in their streams become grey.
//!
//! Every number is written with whole bytes, so that vertices and patches need no padding.

use lopdf::{Dictionary, Document, Object};

use crate::PdfError;
use crate::content::solid_grey;
use crate::number::{bits, count, interpolate, numbers, pairs, sample, sample_real};
use crate::scope::DocumentScope;
use crate::space::PdfColourSpace;

/// The storage format of a mesh.
#[derive(Debug)]
pub(super) struct MeshFormat {
    kind: usize,
    coordinate_bits: usize,
    component_bits: usize,
    flag_bits: usize,
    /// The intervals of the two coordinates and of the components.
    decode: Vec<[f32; 2]>,
}

impl MeshFormat {
    /// Parses the entries of a mesh of type `kind`; `None` if they are malformed.
    pub(super) fn read(
        document: &Document,
        dictionary: &Dictionary,
        kind: usize,
    ) -> Option<MeshFormat> {
        let coordinate_bits = count(document, dictionary, b"BitsPerCoordinate")?;
        let component_bits = count(document, dictionary, b"BitsPerComponent")?;
        let flag_bits = match kind {
            // A lattice has no flags: its rows have a fixed number of vertices (ISO 32000-1 §8.7.4.5.6).
            5 => 0,
            _ => count(document, dictionary, b"BitsPerFlag")?,
        };
        let decode = pairs(&numbers(document, dictionary, b"Decode")?);
        let is_valid = matches!(coordinate_bits, 1 | 2 | 4 | 8 | 12 | 16 | 24 | 32)
            && matches!(component_bits, 1 | 2 | 4 | 8 | 12 | 16)
            && (kind == 5 || matches!(flag_bits, 2 | 4 | 8))
            && decode.len() >= 3;
        is_valid.then_some(MeshFormat { kind, coordinate_bits, component_bits, flag_bits, decode })
    }

    /// Returns the interval of the first component, which is the input of the function if the mesh has one.
    pub(super) fn colour_range(&self) -> [f32; 2] {
        self.decode[2]
    }

    /// Returns the number of bits of a coordinate in the new stream.
    fn new_coordinate_bits(&self) -> usize {
        match self.coordinate_bits {
            12 => 16,
            bits => bits.max(8),
        }
    }

    /// Returns the number of coordinates and colours that follow a flag.
    fn parts(&self, flag: u32) -> (usize, usize) {
        // A patch with a flag other than 0 shares an edge with the previous patch (§8.7.4.5.7).
        match (self.kind, flag & 3) {
            (6, 0) => (24, 4),
            (6, _) => (16, 2),
            (7, 0) => (32, 4),
            (7, _) => (24, 2),
            _ => (2, 1),
        }
    }
}

/// Rewrites the data of a mesh without a function, and updates the entries of `dictionary` that describe the data.
///
/// Fails if a limit is reached.
pub(super) fn grey_mesh(
    scope: &mut DocumentScope<'_>,
    mesh: &MeshFormat,
    data: &[u8],
    space: &PdfColourSpace,
    dictionary: &mut Dictionary,
) -> Result<Vec<u8>, PdfError> {
    let mut bits = MeshBits { data, position: 0 };
    let mut output = Vec::new();
    let components = space.components();
    while let Some(part) = read_part(mesh, &mut bits, components) {
        // Each part counts as an operator, which bounds a mesh like a content stream.
        scope.budget.take_operator()?;
        if mesh.flag_bits > 0 {
            output.push(part.flag.to_le_bytes()[0]);
        }
        for coordinate in part.coordinates {
            write(&mut output, coordinate, mesh.coordinate_bits, mesh.new_coordinate_bits());
        }
        for colour in part.colours {
            let grey = solid_grey(scope, space, &colour)?;
            output.extend_from_slice(
                &u16::try_from(sample(f64::from(grey), 65535)).unwrap_or(u16::MAX).to_be_bytes(),
            );
        }
    }
    let flat = mesh.decode[..2].iter().flatten().copied().chain([0.0, 1.0]);
    dictionary.set("Decode", flat.map(Object::Real).collect::<Vec<_>>());
    // Not 8 bits, which would show bands in a gradient of 12 or 16 bits.
    dictionary.set("BitsPerComponent", 16);
    let bits = i64::try_from(mesh.new_coordinate_bits()).unwrap_or(32);
    dictionary.set("BitsPerCoordinate", bits);
    if mesh.flag_bits > 0 {
        dictionary.set("BitsPerFlag", 8);
    }
    Ok(output)
}

/// A vertex or a patch.
struct MeshPart {
    flag: u32,
    coordinates: Vec<u32>,
    colours: Vec<Vec<f32>>,
}

fn read_part(mesh: &MeshFormat, bits: &mut MeshBits<'_>, components: usize) -> Option<MeshPart> {
    let flag = if mesh.flag_bits > 0 { bits.read(mesh.flag_bits)? } else { 0 };
    let (coordinate_count, colour_count) = mesh.parts(flag);
    let coordinates = (0..coordinate_count).map(|_| bits.read(mesh.coordinate_bits));
    let coordinates = coordinates.collect::<Option<Vec<u32>>>()?;
    let mut colours = Vec::with_capacity(colour_count);
    for _ in 0..colour_count {
        let mut colour = Vec::with_capacity(components);
        for at in 0..components {
            let top = sample_real((1 << mesh.component_bits) - 1);
            let value = sample_real(bits.read(mesh.component_bits)?);
            let interval = mesh.decode.get(2 + at).copied().unwrap_or([0.0, 1.0]);
            colour.push(interpolate(value, [0.0, top], interval));
        }
        colours.push(colour);
    }
    if mesh.kind < 6 {
        // Each vertex begins at a byte boundary.
        bits.position = bits.position.next_multiple_of(8);
    }
    Some(MeshPart { flag, coordinates, colours })
}

/// Rescales a coordinate from `from` bits to `to` bits and writes whole bytes. The ends of both intervals
/// coincide.
fn write(output: &mut Vec<u8>, value: u32, from: usize, to: usize) {
    let value = if from == to {
        value
    } else {
        sample(f64::from(value) / f64::from(largest(from)), largest(to))
    };
    output.extend_from_slice(&value.to_be_bytes()[4 - to / 8..]);
}

/// Returns the largest number of `bits` bits.
fn largest(bits: usize) -> u32 {
    u32::MAX >> (32 - bits)
}

struct MeshBits<'a> {
    data: &'a [u8],
    /// The position in bits.
    position: usize,
}

impl MeshBits<'_> {
    fn read(&mut self, count: usize) -> Option<u32> {
        if self.position + count > self.data.len() * 8 {
            return None;
        }
        let value = bits(self.data, self.position, count);
        self.position += count;
        Some(value)
    }
}
