//! The sizes of renditions that clients may request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SettingValue;
use model::{PresetName, ResizeSpec, Size};

/// The maximum number of widths or presets in the settings.
const ENTRIES_MAX: usize = 64;

/// The widths in which open renditions are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RenditionWidths {
    /// Any width, exactly as requested.
    Any,
    /// Ascending widths. A request for a different width gets the next larger one, so that caches hold few
    /// sizes.
    Ladder(Vec<u32>),
}

impl RenditionWidths {
    /// Returns the smallest width of the ladder that is at least `width`, or `width` if there is no ladder or
    /// no such width.
    pub fn rung(&self, width: u32) -> u32 {
        match self {
            Self::Any => width,
            Self::Ladder(widths) => {
                widths.iter().copied().find(|rung| *rung >= width).unwrap_or(width)
            }
        }
    }
}

impl SettingValue for RenditionWidths {
    fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected any, or ascending widths such as 320, 640, 1024";
        if text.trim() == "any" {
            return Ok(Self::Any);
        }
        let widths = text.split(',').map(|width| width.trim().parse::<u32>());
        let widths: Vec<u32> = widths.collect::<Result<_, _>>().map_err(|_| EXPECTED)?;
        let is_ascending = widths.is_sorted_by(|low, high| low < high);
        let is_ladder = is_ascending && widths[0] > 0 && widths.len() <= ENTRIES_MAX;
        is_ladder.then_some(Self::Ladder(widths)).ok_or_else(|| EXPECTED.to_owned())
    }

    fn print(&self) -> String {
        match self {
            Self::Any => "any".to_owned(),
            Self::Ladder(widths) => {
                let widths: Vec<String> = widths.iter().map(u32::to_string).collect();
                widths.join(", ")
            }
        }
    }
}

/// A named size of renditions, with quality, watermark and size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenditionPreset {
    /// The target size and the resize mode, fit or fill.
    pub size: ResizeSpec,
    /// The quality of the encoder, 1 to 100; `None` for the quality of the rendition.
    pub quality: Option<u8>,
    /// True if the picture has a watermark.
    pub mark: bool,
    /// Maximum size of the file in bytes. The quality is reduced until the file fits.
    pub bytes_max: Option<u64>,
}

/// The presets of the settings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RenditionPresets(pub BTreeMap<PresetName, RenditionPreset>);

/// A preset in the format of the settings.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenPreset {
    /// Width and height; 0 for a side that does not limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    fit: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fill: Option<[u32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quality: Option<u8>,
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    mark: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
}

impl WrittenPreset {
    fn read(self) -> Result<RenditionPreset, String> {
        let size = match (self.fit, self.fill) {
            (Some([0, 0]), None) => return Err("fit needs a width or a height".to_owned()),
            (Some([width, height]), None) => {
                ResizeSpec::Fit { width: side(width), height: side(height) }
            }
            (None, Some([width, height])) if width > 0 && height > 0 => {
                ResizeSpec::Fill(Size { width, height })
            }
            (None, Some(_)) => return Err("fill needs a width and a height".to_owned()),
            (Some(_), Some(_)) | (None, None) => {
                return Err("expected either fit or fill, each [width, height]".to_owned());
            }
        };
        if self.quality.is_some_and(|quality| !(1..=100).contains(&quality)) {
            return Err("quality is not 1 to 100".to_owned());
        }
        if self.max_bytes.is_some_and(|bytes| bytes < 1024) {
            return Err("max_bytes is less than 1024".to_owned());
        }
        let Self { quality, mark, max_bytes: bytes_max, .. } = self;
        Ok(RenditionPreset { size, quality, mark, bytes_max })
    }

    fn from_preset(preset: &RenditionPreset) -> Self {
        let (fit, fill) = match preset.size {
            ResizeSpec::Fit { width, height } => {
                (Some([width.unwrap_or(0), height.unwrap_or(0)]), None)
            }
            ResizeSpec::Fill(size) => (None, Some([size.width, size.height])),
            ResizeSpec::Preset(_) => (None, None),
        };
        let RenditionPreset { quality, mark, bytes_max: max_bytes, .. } = *preset;
        Self { fit, fill, quality, mark, max_bytes }
    }
}

/// Returns the limit of a side; `None` for 0, which does not limit.
fn side(px: u32) -> Option<u32> {
    (px > 0).then_some(px)
}

/// The settings file has a table for each preset. The environment and flags have the same as JSON.
impl SettingValue for RenditionPresets {
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let written: BTreeMap<String, WrittenPreset> =
            serde_json::from_str(text).map_err(|error| error.to_string())?;
        if written.len() > ENTRIES_MAX {
            return Err(format!("{} presets, at most {ENTRIES_MAX}", written.len()));
        }
        let presets = written.into_iter().map(|(name, preset)| {
            let known = PresetName::parse(&name).map_err(|error| error.to_string())?;
            let preset = preset.read().map_err(|problem| format!("{name}: {problem}"))?;
            Ok((known, preset))
        });
        presets.collect::<Result<_, String>>().map(Self)
    }

    fn print(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let written: BTreeMap<&str, WrittenPreset> = self
            .0
            .iter()
            .map(|(name, preset)| (name.as_str(), WrittenPreset::from_preset(preset)))
            .collect();
        serde_json::to_string(&written).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_are_any_or_an_ascending_ladder() {
        for text in ["any", "160", "160, 320, 2048"] {
            assert_eq!(RenditionWidths::parse(text).expect(text).print(), text);
        }
        for text in ["", "all", "0, 160", "320, 160", "160, 160", "160, -1", "160,"] {
            assert!(RenditionWidths::parse(text).is_err(), "{text:?}");
        }
        let ladder = RenditionWidths::parse("160, 320").unwrap();
        assert_eq!([1, 160, 161, 321].map(|width| ladder.rung(width)), [160, 160, 320, 321]);
    }

    #[test]
    fn presets_are_read_and_printed() {
        let text = r#"{"card":{"fill":[640,360],"quality":74,"max_bytes":60000},"wide":{"fit":[1600,0],"mark":true}}"#;
        let presets = RenditionPresets::parse(text).unwrap();
        assert_eq!(presets.print(), text);
        assert_eq!(RenditionPresets::parse(" ").unwrap().print(), "");
        let sizes: Vec<String> =
            presets.0.values().map(|preset| preset.size.to_string()).collect();
        assert_eq!(sizes, ["-fill_w640_h360", "-fit_w1600"]);
    }

    #[test]
    fn a_bad_preset_is_named() {
        for (text, part) in [
            (r#"{"Card!":{"fit":[1,1]}}"#, "Card!"),
            (r#"{"card":{}}"#, "card: expected either fit or fill"),
            (r#"{"card":{"fit":[1,1],"fill":[1,1]}}"#, "card: expected either"),
            (r#"{"card":{"fit":[0,0]}}"#, "card: fit needs"),
            (r#"{"card":{"fill":[10,0]}}"#, "card: fill needs"),
            (r#"{"card":{"fit":[1,1],"quality":101}}"#, "card: quality"),
            (r#"{"card":{"fit":[1,1],"max_bytes":10}}"#, "card: max_bytes"),
            (r#"{"card":{"fit":[1,1],"width":10}}"#, "unknown field `width`"),
            ("card", "expected value"),
        ] {
            let message = RenditionPresets::parse(text).unwrap_err();
            assert!(message.contains(part), "{text} gives {message}");
        }
    }
}
