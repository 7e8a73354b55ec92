//! Reports how a rendition was produced: `Server-Timing` (W3C) and `Wirephoto-Path`.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::media::{RenderTiming, RenditionSource};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const TIMING_ALLOW_ORIGIN: HeaderName = HeaderName::from_static("timing-allow-origin");
const WIREPHOTO_PATH: HeaderName = HeaderName::from_static("wirephoto-path");

/// Returns the render path, if the bytes were rendered for this request.
pub(crate) fn render_path(source: &RenditionSource) -> Option<&'static str> {
    match source {
        RenditionSource::Memory | RenditionSource::Disk => None,
        RenditionSource::Rendered { render_path, .. } => Some(render_path.as_str()),
    }
}

/// Returns the time of each stage, if the bytes were rendered for this request.
pub(crate) fn render_timing(source: &RenditionSource) -> Option<RenderTiming> {
    match source {
        RenditionSource::Memory | RenditionSource::Disk => None,
        RenditionSource::Rendered { timing, .. } => Some(*timing),
    }
}

/// Adds headers with the source of the bytes and, if they were rendered, with the time of each stage.
///
/// Scripts of any site may read the times of an `open` rendition, as they may read its bytes.
pub(crate) fn add_headers(headers: &mut HeaderMap, source: &RenditionSource, open: bool) {
    let timing = match source {
        RenditionSource::Memory => HeaderValue::from_static("cache;desc=\"memory\""),
        RenditionSource::Disk => HeaderValue::from_static("cache;desc=\"disk\""),
        RenditionSource::Rendered { timing, .. } => stages(timing),
    };
    headers.insert(SERVER_TIMING, timing);
    // `Server-Timing` names the tier; this header says only that nothing was rendered.
    let path = render_path(source).unwrap_or("cache");
    headers.insert(WIREPHOTO_PATH, HeaderValue::from_static(path));
    if open {
        // Times of a restricted rendition would reveal to other sites whether it was cached.
        headers.insert(TIMING_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
}

/// Prints the stages that ran, in milliseconds.
fn stages(timing: &RenderTiming) -> HeaderValue {
    let mut stages = Vec::new();
    for (name, ms) in timing.stages() {
        stages.push(format!("{name};dur={}", print_ms(ms)));
    }
    HeaderValue::from_str(&stages.join(", ")).expect("names and numbers are ASCII")
}

/// Prints milliseconds with at most three decimals.
fn print_ms(ms: f64) -> String {
    let text = format!("{ms:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use imaging::RenderPath;

    fn check(source: RenditionSource, open: bool, expected: [&str; 3]) {
        let mut headers = HeaderMap::new();
        add_headers(&mut headers, &source, open);
        let text = |name| headers.get(name).map_or("", |value| value.to_str().unwrap());
        assert_eq!([SERVER_TIMING, WIREPHOTO_PATH, TIMING_ALLOW_ORIGIN].map(text), expected);
    }

    #[test]
    fn a_render_names_its_way_and_the_stages_that_happened() {
        let timing = RenderTiming {
            queue_ms: 0.0,
            read_ms: Some(1.5),
            decode_ms: Some(12.345_678),
            blend_ms: None,
            encode_ms: Some(100.0),
        };
        let expected = "queue;dur=0, read;dur=1.5, decode;dur=12.346, encode;dur=100";
        check(
            RenditionSource::Rendered { render_path: RenderPath::Region, timing },
            true,
            [expected, "region", "*"],
        );
        let timing = RenderTiming { read_ms: Some(0.000_4), ..RenderTiming::default() };
        let expected = "queue;dur=0, read;dur=0";
        check(
            RenditionSource::Rendered { render_path: RenderPath::Original, timing },
            false,
            [expected, "original", ""],
        );
    }

    #[test]
    fn a_cached_answer_names_its_tier() {
        check(RenditionSource::Memory, true, ["cache;desc=\"memory\"", "cache", "*"]);
        check(RenditionSource::Disk, false, ["cache;desc=\"disk\"", "cache", ""]);
    }
}
