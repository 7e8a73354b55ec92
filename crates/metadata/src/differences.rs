//! Warns of values that differ between the standards, which only an editor can resolve.

use crate::iim_read::genre_name;
use crate::properties::of_caption;
use crate::rights::values::joined_text;
use crate::{StandardFields, text};

/// Properties that are not compared: lists, of which IIM may hold only a part; codes, which have several
/// notations; and identifiers, because a camera, an editor and an archive each assign their own.
const SKIPPED: [&str; 5] =
    ["keywords", "personInImageNames", "subjectCodes", "countryCode", "digitalImageGuid"];

/// Lists a warning for each property whose value in IIM or EXIF differs from the value of a standard with
/// precedence.
pub(super) fn warnings(
    xmp: &StandardFields,
    iim: &StandardFields,
    exif: &StandardFields,
) -> Vec<String> {
    let [first, second, third] =
        [xmp, iim, exif].map(|fields| (of_caption(&fields.caption), &fields.rights));
    let mut warnings = Vec::new();
    for (standard, lower) in [("iim", &second), ("exif", &third)] {
        for (name, value) in lower.0.iter().chain(lower.1.iter()) {
            let used = [("xmp", &first), ("iim", &second)].into_iter().find_map(|(of, higher)| {
                let candidates = candidates(name, |name| {
                    higher.0.get(name).or_else(|| higher.1.get(name)).map(joined_text)
                });
                (of != standard && !candidates.is_empty()).then_some((of, candidates))
            });
            if let Some((of, candidates)) = used
                && !SKIPPED.contains(&name.as_str())
                && !candidates.iter().any(|text| agrees(text, &joined_text(value)))
            {
                warnings.push(format!("{name} differs between {of} and {standard}"));
            }
        }
    }
    warnings
}

/// Returns the texts with which a property of a lower standard may agree. There are several if the property shares
/// its place with a second one.
fn candidates(name: &str, text: impl Fn(&str) -> Option<String>) -> Vec<String> {
    match name {
        "instructions" => {
            let both = text("usageTerms").zip(text("instructions"));
            let both = both.map(|(terms, instructions)| format!("{terms}; {instructions}"));
            [text("instructions"), text("usageTerms"), both].into_iter().flatten().collect()
        }
        "copyrightNotice" => [text(name), text("copyrightOwners")].into_iter().flatten().collect(),
        // IIM may have a number before the name.
        "intellectualGenre" => {
            text(name).map(|genre| genre_name(&genre).to_owned()).into_iter().collect()
        }
        _ => text(name).into_iter().collect(),
    }
}

/// Returns whether one text equals the other text, or equals its beginning because a limit has cut it.
///
/// Names are separated by commas or semicolons, and each name may be cut.
fn agrees(higher: &str, lower: &str) -> bool {
    let mut pairs = split_names(higher).into_iter().zip(split_names(lower));
    pairs.all(|(higher, lower)| higher.starts_with(&lower) || lower.starts_with(&higher))
}

fn split_names(text: &str) -> Vec<String> {
    text::line(text).split([',', ';']).map(|name| name.trim().to_owned()).collect()
}
