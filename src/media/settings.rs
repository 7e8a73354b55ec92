//! The settings of the media section, converted from the configuration.

use std::{fs, path::Path, sync::Arc, time::Duration};

use crate::runtime::config::{self, AvifRendering, Config};
use crate::runtime::error::{Error, Result};
use crate::runtime::hot_swap::HotSwap;
use imaging::{MarkKind, MarkSetup, Watermark};
use jpeg::header::HeaderLimits;
use metadata::RightsMetadata;
use model::item::RenditionSizes;
use serde_json::{Map, Value, json};

/// Maximum size of the watermark's PNG file in bytes; far more than a logo has.
const WATERMARK_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum number of segments (APPn, tables, …) of one JPEG. Real files have fewer than 100, or 255 more with the
/// largest possible ICC profile, 16 MiB.
const JPEG_SEGMENTS_MAX: u32 = 2000;
/// Maximum size of all metadata segments of one JPEG in bytes: the largest ICC profile, and as much of Exif and XMP.
const JPEG_METADATA_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The font of a watermark text. Compiled in, because the nodes of a cluster must draw the same pixels for one `ETag`,
/// whatever fonts their machines have.
const FONT: &[u8] = include_bytes!("../../assets/fonts/Inter-SemiBold.otf");

/// The headers of media responses that tell crawlers the permitted uses of pictures. A text is empty if its header
/// is not sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrawlerPolicy {
    /// The value of the header `Content-Usage`.
    pub content_usage: String,
    /// True if the header `tdm-reservation` reserves the rights of text and data mining (TDM).
    pub tdm_reservation: bool,
    /// The value of the header `tdm-policy`, a URL.
    pub tdm_policy: String,
}

/// The settings of the media section, and values derived from them at the start.
#[derive(Clone)]
pub struct MediaSettings {
    /// The section `media` of the configuration. A reload does not change it.
    pub media: config::Media,
    /// The section `cache` of the configuration: the sizes of the rendition cache.
    pub cache: config::Cache,
    /// Base URL of links to media.
    pub media_url: String,
    pub sizes: RenditionSizes,
    /// True if the standard renditions are made as AVIF too before the first request.
    pub prerenders_avif: bool,
    pub watermark: Arc<Watermark>,
    /// The default rights of every picture, which take precedence over the rights in its original.
    pub rights: Arc<RightsMetadata>,
    pub crawlers: CrawlerPolicy,
    pub limits: DecodeLimits,
    /// Processing time after which a render is stopped.
    pub render_time: Duration,
    /// Timeout of each rendition in an archive or a delivery.
    pub rendition_timeout: HotSwap<Duration>,
}

/// Limits on originals, checked at ingest and again before decoding.
#[derive(Clone, Copy, Debug)]
pub struct DecodeLimits {
    /// Maximum number of pixels of a picture.
    pub pixels_max: u64,
    /// Maximum length of a file in bytes.
    pub file_bytes_max: u64,
    /// Limits of the parser of JPEG segments.
    pub header: HeaderLimits,
}

impl DecodeLimits {
    /// Reads the limits from the configuration.
    pub fn from_config(config: &Config) -> Self {
        Self {
            pixels_max: u64::from(config.media.megapixels_max) * 1_000_000,
            file_bytes_max: config.media.file_bytes_max,
            header: HeaderLimits {
                scans_max: config.media.scans_max,
                segments_max: JPEG_SEGMENTS_MAX,
                metadata_bytes_max: JPEG_METADATA_BYTES_MAX,
            },
        }
    }
}

impl MediaSettings {
    /// Converts the settings of the section from `config`.
    ///
    /// Fails if the watermark's PNG cannot be read or is not a PNG, if the watermark's text has nothing to draw,
    /// or if settings contradict each other. The message names the setting.
    pub fn from_config(config: &Config) -> Result<Self> {
        let media = &config.media;
        Ok(Self {
            media: media.clone(),
            cache: config.cache.clone(),
            media_url: config.media_url().to_owned(),
            sizes: RenditionSizes {
                preview_px: media.preview_px,
                thumbnail_px: media.thumbnail_px,
                cropped_thumbnail_px: media.cropped_thumbnail_px,
                web_preview_px: media.web_preview_px,
            },
            // Without cache warming nothing is rendered before the first request.
            prerenders_avif: media.warm && media.avif == AvifRendering::Ahead,
            // Built once at the start, so that a bad file stops the service instead of failing a request.
            watermark: Arc::new(load_watermark(config)?),
            rights: Arc::new(default_rights(config)?),
            crawlers: crawler_policy(config)?,
            limits: DecodeLimits::from_config(config),
            render_time: Duration::from_secs_f32(media.render_time_s),
            // A reload replaces it: `server.request_timeout_s` needs no restart.
            rendition_timeout: HotSwap::new(Duration::from_secs(u64::from(
                config.server.request_timeout_s,
            ))),
        })
    }
}

/// Fails if the settings have a policy for rights that they do not reserve.
fn crawler_policy(config: &Config) -> Result<CrawlerPolicy> {
    let media = &config.media;
    let tdm_policy = media.tdm_policy.0.clone();
    // A policy states the terms under which reserved rights are licensed (W3C TDMRep, 10 May 2024, §5).
    if !tdm_policy.is_empty() && !media.tdm_reservation {
        let message = "media.tdm_policy is set and media.tdm_reservation is not; a policy is about \
                       rights that are reserved";
        return Err(Error::invalid("body", "media.tdm_reservation", "required", message));
    }
    Ok(CrawlerPolicy {
        content_usage: media.content_usage.0.clone(),
        tdm_reservation: media.tdm_reservation,
        tdm_policy,
    })
}

/// Builds the default rights of every picture from the settings that are not empty.
fn default_rights(config: &Config) -> Result<RightsMetadata> {
    let media = &config.media;
    let licensor = object([
        ("licensorName", non_empty(&media.licensor)),
        ("licensorUrl", non_empty(&media.licensor_url.0)),
    ]);
    let properties = object([
        ("licensors", (!licensor.is_empty()).then(|| json!([licensor]))),
        ("webstatementRights", non_empty(&media.web_statement.0)),
        ("dataMining", non_empty(&media.data_mining.0)),
    ]);
    RightsMetadata::from_json(&Value::Object(properties)).map_err(|cause| {
        let message = format!("media: the settings about rights cannot be embedded: {cause}");
        Error::invalid("body", "media", "format", message)
    })
}

fn non_empty(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| Value::from(text))
}

/// Builds a JSON object of the members that have a value.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Creates the watermark of the PNG file, or of the text if the settings name no file.
fn load_watermark(config: &Config) -> Result<Watermark> {
    let media = &config.media;
    let png = &media.watermark_png;
    // The PNG takes precedence, because the text has a default and is set in most configurations.
    let (name, kind) = if png.as_os_str().is_empty() {
        let line = media.watermark_text.clone();
        ("media.watermark_text", MarkKind::Text { line, font: FONT.to_vec() })
    } else {
        let bytes = read_png(png).map_err(|cause| {
            invalid("media.watermark_png", &format!("{}: {cause}", png.display()))
        })?;
        ("media.watermark_png", MarkKind::Png(bytes))
    };
    let setup = MarkSetup {
        kind,
        width_fraction: media.watermark_width,
        margin_fraction: media.watermark_margin,
        opacity: media.watermark_opacity,
    };
    Watermark::new(setup).map_err(|cause| invalid(name, &cause.to_string()))
}

fn invalid(name: &str, message: &str) -> Error {
    Error::invalid("body", name, "format", format!("{name}: {message}"))
}

fn read_png(path: &Path) -> std::io::Result<Vec<u8>> {
    // Checked before the read: a wrong path may name a file of any size.
    let length = fs::metadata(path)?.len();
    if length > WATERMARK_BYTES_MAX {
        let message = format!("has {length} bytes, at most {WATERMARK_BYTES_MAX} are read");
        return Err(std::io::Error::other(message));
    }
    fs::read(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::SettingSources;

    #[test]
    fn a_policy_on_data_mining_needs_the_reservation() {
        let check = |settings: &[(&str, &str)]| {
            let flags = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            let config = config::load(&SettingSources { file: None, flags }).unwrap().0;
            crawler_policy(&config)
        };
        let policy = ("media.tdm_policy", "https://agency.example/tdm.json");
        let reserved = ("media.tdm_reservation", "true");
        let refused = check(&[policy]).expect_err("a policy without a reservation");
        let problem = &refused.details()[0];
        assert_eq!(problem.path, "media.tdm_reservation");
        assert!(problem.message.starts_with("media.tdm_policy is set"), "{}", problem.message);
        assert_eq!(check(&[policy, reserved]).unwrap().tdm_policy, policy.1);
        assert!(check(&[reserved]).unwrap().tdm_reservation);
        assert_eq!(check(&[]).unwrap(), CrawlerPolicy::default());
    }
}
