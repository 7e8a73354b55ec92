//! Makes a Preview and a still of a video with ffmpeg.

use std::{ffi::OsString, path::Path};

use super::{ProgramError, ProgramRunner, run::run, words};

/// Threads of ffmpeg that use CPU time concurrently: decoder, encoder, audio.
const THREADS: u64 = 6;

/// Options before the input. A video may refer to other files and URLs, so ffmpeg may open only the one file.
/// Our own reader recognized an MP4, so no other demuxer may interpret it.
const INPUT_OPTIONS: &str =
    "-nostdin -v error -protocol_whitelist file,pipe -filter_threads 1 -threads 2 -f mov";
/// Options of a Preview. Some browsers play H.264 only with this chroma subsampling.
const PREVIEW_OPTIONS: &str = "-c:v libx264 -preset veryfast -crf 25 -threads 2 -pix_fmt yuv420p \
     -c:a aac -b:a 96k -map_metadata -1 -movflags +faststart -f mp4 -y";
/// Options of a still, which is written to standard output.
const STILL_OPTIONS: &str = "-frames:v 1 -q:v 2 -pix_fmt yuvj420p -f image2pipe -c:v mjpeg -";

impl ProgramRunner {
    /// Writes a Preview of the video at `source` to `target`: H.264 and AAC, at most `long_px` pixels
    /// on the long side, playable while it loads. Blocks.
    pub fn video_preview(
        &self,
        source: &Path,
        target: &Path,
        long_px: u32,
    ) -> Result<(), ProgramError> {
        // H.264 needs even edges; a video is never enlarged.
        let scale = format!(
            "scale='min({long_px},iw)':'min({long_px},ih)':force_original_aspect_ratio=decrease:\
             force_divisible_by=2"
        );
        let mut all: Vec<OsString> =
            ["-i".into(), file_url(source), "-vf".into(), scale.into()].into();
        all.extend(words(PREVIEW_OPTIONS));
        all.push(file_url(target));
        self.ffmpeg(all).map(drop)
    }

    /// Extracts a still of the video at `source`, at `at_ms`, as a JPEG. Blocks.
    pub fn video_still(&self, source: &Path, at_ms: u64) -> Result<Vec<u8>, ProgramError> {
        let position = format!("{}.{:03}", at_ms / 1000, at_ms % 1000);
        // In front of `-i`, ffmpeg seeks instead of decoding everything up to the position.
        let mut all: Vec<OsString> = ["-ss", &position, "-i"].map(Into::into).into();
        all.push(file_url(source));
        all.extend(words(STILL_OPTIONS));
        let still = self.ffmpeg(all)?;
        // Beyond the last frame ffmpeg writes nothing and still exits with 0.
        if still.is_empty() {
            return Err(ProgramError::Failed("it has no picture there".to_owned()));
        }
        Ok(still)
    }

    /// Runs ffmpeg through `wirephoto limited`, which sets the limits and then executes it.
    fn ffmpeg(&self, arguments: Vec<OsString>) -> Result<Vec<u8>, ProgramError> {
        let Some(ffmpeg) = &self.ffmpeg else {
            return Err(ProgramError::Missing("ffmpeg".to_owned()));
        };
        let memory = self.limits.memory_bytes;
        // The CPU time of all its threads adds up.
        let seconds = self.limits.time.as_secs() * THREADS;
        let limited = format!("limited --memory-bytes {memory} --seconds {seconds} --");
        let input = words(INPUT_OPTIONS).chain(arguments);
        let all = words(&limited).chain([ffmpeg.into()]).chain(input);
        run(&self.own, all, self.limits.time)
    }
}

/// Builds a `file:` URL, so that ffmpeg does not parse the path as an option or protocol.
fn file_url(path: &Path) -> OsString {
    let mut url = OsString::from("file:");
    url.push(path);
    url
}
