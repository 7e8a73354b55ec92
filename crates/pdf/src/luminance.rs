//! Converts colours of the basic spaces to grey.
//!
//! Grey is `0.299 R + 0.587 G + 0.114 B` of the gamma-encoded sRGB values, the luma that readers use to show
//! a page in grey: a grey of 0.5 stays 0.5.

/// The weights of red, green and blue.
const WEIGHTS: [f32; 3] = [0.299, 0.587, 0.114];

/// Returns the grey of an sRGB colour, 0 to 1 each.
pub(super) fn rgb(red: f32, green: f32, blue: f32) -> f32 {
    WEIGHTS[0] * red.clamp(0.0, 1.0)
        + WEIGHTS[1] * green.clamp(0.0, 1.0)
        + WEIGHTS[2] * blue.clamp(0.0, 1.0)
}

/// Returns the grey of an sRGB pixel, computed in units of 1/65536 and rounded to the nearest byte.
pub(super) fn rgb_byte(red: u8, green: u8, blue: u8) -> u8 {
    // 0.299, 0.587 and 0.114 times 65536, which add up to exactly 65536.
    let sum = 19595 * u32::from(red) + 38470 * u32::from(green) + 7471 * u32::from(blue);
    u8::try_from((sum + 32768) >> 16).unwrap_or(u8::MAX)
}

/// The sRGB colours of the sixteen full mixtures of inks: bit 3 of the index is cyan, then magenta, yellow, black.
/// They are the overprints of an offset press as in poppler's conversion of DeviceCMYK.
const INKS: [[f32; 3]; 16] = [
    [1.0, 1.0, 1.0],
    [0.1373, 0.1216, 0.1255],
    [1.0, 0.9490, 0.0],
    [0.1098, 0.1020, 0.0],
    [0.9255, 0.0, 0.5490],
    [0.1412, 0.0, 0.0],
    [0.9294, 0.1098, 0.1412],
    [0.1333, 0.0, 0.0],
    [0.0, 0.6784, 0.9373],
    [0.0, 0.0588, 0.1412],
    [0.0, 0.6510, 0.3137],
    [0.0, 0.0745, 0.0],
    [0.1804, 0.1922, 0.5725],
    [0.0, 0.0, 0.0078],
    [0.2118, 0.2119, 0.2235],
    [0.0, 0.0, 0.0],
];

/// The greys of the sixteen mixtures.
const INK_GREYS: [f32; 16] = {
    let mut greys = [0.0; 16];
    let mut at = 0;
    while at < 16 {
        let [red, green, blue] = INKS[at];
        greys[at] = WEIGHTS[0] * red + WEIGHTS[1] * green + WEIGHTS[2] * blue;
        at += 1;
    }
    greys
};

/// Returns the grey of DeviceCMYK, 0 to 1 each, interpolated between the sixteen mixtures, linear in each ink.
pub(super) fn cmyk(cyan: f32, magenta: f32, yellow: f32, black: f32) -> f32 {
    let mut greys = INK_GREYS;
    let mut count = 16;
    // Each ink halves the table, so the cost is 15 interpolations.
    for ink in [cyan, magenta, yellow, black] {
        let ink = ink.clamp(0.0, 1.0);
        count /= 2;
        for at in 0..count {
            greys[at] += ink * (greys[at + count] - greys[at]);
        }
    }
    greys[0]
}

/// Returns the grey of CIE XYZ relative to its white point, through sRGB.
///
/// The white point is scaled to the white point of sRGB, component by component.
pub(super) fn xyz([x, y, z]: [f32; 3]) -> f32 {
    // The white point of sRGB is D65 (IEC 61966-2-1), whose Y is 1.
    let x = x * 0.9505;
    let z = z * 1.089;
    let red = 3.2406 * x - 1.5372 * y - 0.4986 * z;
    let green = -0.9689 * x + 1.8758 * y + 0.0415 * z;
    let blue = 0.0557 * x - 0.2040 * y + 1.0570 * z;
    rgb(srgb_encode(red), srgb_encode(green), srgb_encode(blue))
}

/// Applies the transfer curve of sRGB (IEC 61966-2-1).
pub(super) fn srgb_encode(linear: f32) -> f32 {
    let linear = linear.clamp(0.0, 1.0);
    if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

/// Inverts the transfer curve of sRGB.
pub(super) fn srgb_decode(level: f32) -> f32 {
    if level <= 0.040_45 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
}

/// Returns the grey of a CIE L*a*b* colour, with a lightness of 0 to 100.
pub(super) fn lab([lightness, a, b]: [f32; 3]) -> f32 {
    let middle = (lightness + 16.0) / 116.0;
    xyz([lab_decode(middle + a / 500.0), lab_decode(middle), lab_decode(middle - b / 200.0)])
}

/// Returns a component of CIE XYZ, relative to its white point, from the corresponding part of L*a*b*.
fn lab_decode(part: f32) -> f32 {
    // The curve of CIE 15 is linear near black.
    if part >= 6.0 / 29.0 { part.powi(3) } else { 108.0 / 841.0 * (part - 4.0 / 29.0) }
}
