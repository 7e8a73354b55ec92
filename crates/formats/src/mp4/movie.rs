//! Parses the index of a movie, its `moov` box: tracks, durations and sizes.
//!
//! A track consists of samples: pictures, or pieces of sound. The index describes them all, except in a fragmented
//! file, where `moof` boxes between the media data describe more of them. An edit list says which parts of a track are
//! played, and after which delay.

use crate::mp4::box_kind::BoxKind;
use crate::mp4::boxes::{BoxFields, BoxIterator, find, load};
use crate::mp4::display::{DisplayMatrix, VideoGeometry};
use crate::mp4::error::VideoError;
use crate::mp4::limits::VideoLimits;

/// The relevant parts of a movie's index.
pub(super) struct MovieIndex {
    /// Time units per second of [`duration`](Self::duration) and the edits.
    timescale: u32,
    /// The duration stated in the movie header.
    duration: Option<u64>,
    matrix: DisplayMatrix,
    /// True if fragments may describe further samples.
    pub(super) fragmented: bool,
    /// The duration with all fragments, in units of [`timescale`](Self::timescale).
    fragments_duration: Option<u64>,
    pub(super) video: Track,
    pub(super) audio: Option<Track>,
}

/// The relevant parts of a track.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) id: u32,
    is_enabled: bool,
    /// The kind of the track, such as `vide` or `soun`.
    handler: [u8; 4],
    /// Time units per second of the track.
    pub(super) timescale: u32,
    /// The duration of the media before edits, in the track's units.
    duration: Option<u64>,
    /// The duration after edits, in the movie's units; `None` if no edit list states it.
    edits_duration: Option<u64>,
    geometry: VideoGeometry,
    /// The timing of the samples that were read: first of the index, then of the fragments.
    pub(super) clock: SampleClock,
    /// The default duration of a sample in a fragment, in the track's units.
    pub(super) sample_duration: u32,
}

/// The timing of a track's samples so far, in the track's time units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SampleClock {
    /// The start of the first sample; a recording may start at any time.
    start: Option<u64>,
    /// The end of the last sample.
    end: u64,
}

impl SampleClock {
    /// Adds `samples` with a total duration of `time` after the existing samples.
    pub(super) fn add(&mut self, samples: u64, time: u64) {
        // An empty run must not set the start of the track.
        if samples == 0 {
            return;
        }
        self.start.get_or_insert(self.end);
        self.end = self.end.saturating_add(time);
    }

    /// Sets the start of the samples that are added next; never moves backwards.
    pub(super) fn advance_to(&mut self, time: u64) {
        self.end = self.end.max(time);
    }

    /// Returns the milliseconds from the first sample to the end of the last sample; `None` if there is no sample, or
    /// if `timescale` is 0.
    pub(super) fn milliseconds(self, timescale: u32) -> Option<u64> {
        // `end` never moves back, so it is not before `start`.
        milliseconds(self.end - self.start?, timescale)
    }
}

impl MovieIndex {
    /// Parses the contents of a `moov` box.
    pub(super) fn parse(moov: &[u8], limits: &VideoLimits) -> Result<Self, VideoError> {
        if find(moov, b"cmov")?.is_some() {
            return Err(VideoError::CompressedIndex);
        }
        let mut fields = BoxFields::new(b"mvhd", load(moov, b"mvhd", b"moov")?);
        let version = fields.version_and_flags()?.0;
        // The times of creation and modification.
        fields.skip(if version == 0 { 8 } else { 16 })?;
        let timescale = fields.u32()?;
        let duration = fields.duration(version)?;
        // Rate, volume and reserved fields.
        fields.skip(16)?;
        let matrix = DisplayMatrix::parse(&mut fields)?;
        let mut tracks = parse_tracks(moov, limits)?;
        let extends = find(moov, b"mvex")?;
        let fragments_duration = parse_extends(extends.unwrap_or_default(), &mut tracks)?;
        let video = select_track(&tracks, *b"vide").ok_or(VideoError::NoVideoTrack)?;
        let audio = select_track(&tracks, *b"soun");
        let fragmented = extends.is_some();
        Ok(Self { timescale, duration, matrix, fragmented, fragments_duration, video, audio })
    }

    /// Returns the displayed width and height in pixels, neither of them 0 nor above the limit.
    pub(super) fn display_size(&self, limits: &VideoLimits) -> Result<(u32, u32), VideoError> {
        let (width, height) = self.video.geometry.display_size(self.matrix);
        let max = limits.side_px;
        let size = side(width, max).zip(side(height, max));
        size.ok_or(VideoError::Size { width, height, max })
    }

    /// Returns the movie's duration in milliseconds, 0 if unknown. All fragments must have been added first.
    pub(super) fn duration_ms(&self, limits: &VideoLimits) -> Result<u64, VideoError> {
        let header = self.duration.and_then(|duration| milliseconds(duration, self.timescale));
        let samples = self.tracks().filter_map(|track| track.clock.milliseconds(track.timescale));
        let samples = samples.max();
        let found = if self.fragmented {
            // Without this total, the header may cover only the samples of the index, so the longer duration counts.
            let total = self.fragments_duration;
            total.and_then(|total| milliseconds(total, self.timescale)).or(header.max(samples))
        } else {
            header
                .or_else(|| self.tracks().filter_map(|track| self.track_duration_ms(track)).max())
                .or(samples)
        };
        let ms = found.unwrap_or(0);
        let max = limits.duration_ms;
        if ms > max { Err(VideoError::Duration { ms, max }) } else { Ok(ms) }
    }

    fn tracks(&self) -> impl Iterator<Item = &Track> {
        std::iter::once(&self.video).chain(self.audio.as_ref())
    }

    /// Returns a track's duration from its edit list, else from its media header.
    fn track_duration_ms(&self, track: &Track) -> Option<u64> {
        let edited = track.edits_duration.and_then(|edited| milliseconds(edited, self.timescale));
        edited.or_else(|| milliseconds(track.duration?, track.timescale))
    }
}

/// Converts a side of the picture to 32 bits; `None` if it is 0 or above the limit.
fn side(px: u64, max: u32) -> Option<u32> {
    u32::try_from(px).ok().filter(|px| (1..=max).contains(px))
}

/// Converts a duration in units of 1/`timescale` s to milliseconds, rounded to the nearest.
fn milliseconds(duration: u64, timescale: u32) -> Option<u64> {
    let timescale = u128::from(timescale);
    let rounded = (u128::from(duration) * 1000 + timescale / 2).checked_div(timescale)?;
    Some(u64::try_from(rounded).unwrap_or(u64::MAX))
}

/// Selects the first enabled track of a kind, else its first track.
fn select_track(tracks: &[Track], handler: [u8; 4]) -> Option<Track> {
    let mut found = tracks.iter().filter(|track| track.handler == handler);
    let first = found.clone().next();
    found.find(|track| track.is_enabled).or(first).cloned()
}

fn parse_tracks(moov: &[u8], limits: &VideoLimits) -> Result<Vec<Track>, VideoError> {
    let mut tracks = Vec::new();
    for found in BoxIterator(moov) {
        let (kind, contents) = found?;
        if kind.0 != *b"trak" {
            continue;
        }
        if tracks.len() == limits.tracks {
            return Err(VideoError::TooManyTracks { max: limits.tracks });
        }
        tracks.push(Track::parse(contents)?);
    }
    Ok(tracks)
}

/// Parses the contents of an `mvex` box: stores the default sample durations in `tracks`, and returns the
/// duration of the movie with all fragments.
fn parse_extends(mvex: &[u8], tracks: &mut [Track]) -> Result<Option<u64>, VideoError> {
    let mut duration = None;
    for found in BoxIterator(mvex) {
        let (kind, contents) = found?;
        match &kind.0 {
            b"mehd" => {
                let mut fields = BoxFields::new(b"mehd", contents);
                let version = fields.version_and_flags()?.0;
                duration = fields.duration(version)?;
            }
            b"trex" => {
                let mut fields = BoxFields::new(b"trex", contents);
                fields.version_and_flags()?;
                let id = fields.u32()?;
                // The index of the sample description.
                fields.skip(4)?;
                let sample_duration = fields.u32()?;
                for track in tracks.iter_mut().filter(|track| track.id == id) {
                    track.sample_duration = sample_duration;
                }
            }
            _ => {}
        }
    }
    Ok(duration)
}

impl Track {
    /// Parses the contents of a `trak` box. Sample tables are parsed only for video and audio. In other tracks
    /// they have different layouts and are not needed.
    fn parse(trak: &[u8]) -> Result<Self, VideoError> {
        let mdia = load(trak, b"mdia", b"trak")?;
        let mut track = Self::parse_header(load(trak, b"tkhd", b"trak")?)?;
        (track.timescale, track.duration) = parse_media_header(load(mdia, b"mdhd", b"mdia")?)?;
        let mut hdlr = BoxFields::new(b"hdlr", load(mdia, b"hdlr", b"mdia")?);
        // Version, flags and a predefined field.
        hdlr.skip(8)?;
        track.handler = hdlr.u32()?.to_be_bytes();
        // Edits shorten or delay the media, so a player shows their total.
        if let Some(edts) = find(trak, b"edts")?
            && let Some(elst) = find(edts, b"elst")?
        {
            track.edits_duration = parse_edits(elst)?;
        }
        if matches!(&track.handler, b"vide" | b"soun") {
            let minf = load(mdia, b"minf", b"mdia")?;
            let stbl = load(minf, b"stbl", b"minf")?;
            track.parse_description(load(stbl, b"stsd", b"stbl")?)?;
            if let Some(stts) = find(stbl, b"stts")? {
                track.parse_times(stts)?;
            }
        }
        Ok(track)
    }

    /// Parses a `tkhd` box; properties from other boxes are left empty.
    fn parse_header(tkhd: &[u8]) -> Result<Self, VideoError> {
        let mut fields = BoxFields::new(b"tkhd", tkhd);
        let (version, flags) = fields.version_and_flags()?;
        // The times of creation and modification.
        fields.skip(if version == 0 { 8 } else { 16 })?;
        let id = fields.u32()?;
        // Reserved, duration, reserved, layer, group, volume, reserved.
        fields.skip(if version == 0 { 4 + 4 } else { 4 + 8 })?;
        fields.skip(16)?;
        let matrix = DisplayMatrix::parse(&mut fields)?;
        let track = (fields.u32()?, fields.u32()?);
        Ok(Self {
            id,
            is_enabled: flags & 1 != 0,
            handler: [0; 4],
            timescale: 0,
            duration: None,
            edits_duration: None,
            geometry: VideoGeometry { track, coded: (0, 0), pixel: None, matrix },
            clock: SampleClock::default(),
            sample_duration: 0,
        })
    }

    /// Parses the first entry of an `stsd` box, which describes the coding of the samples. Later entries are for a
    /// change of codec within the track.
    fn parse_description(&mut self, stsd: &[u8]) -> Result<(), VideoError> {
        // Version, flags and the number of entries.
        let entries = stsd.get(8..).ok_or(VideoError::Damaged { kind: BoxKind(*b"stsd") })?;
        let missing =
            VideoError::Missing { kind: BoxKind(self.handler), parent: BoxKind(*b"stsd") };
        let (_, entry) = BoxIterator(entries).next().ok_or(missing)??;
        if self.handler == *b"vide" {
            self.geometry.parse_sample_entry(entry)?;
        }
        Ok(())
    }

    /// Parses an `stts` box: runs of samples that have the same duration.
    fn parse_times(&mut self, stts: &[u8]) -> Result<(), VideoError> {
        let mut fields = BoxFields::new(b"stts", stts);
        fields.version_and_flags()?;
        let count = fields.u32()?;
        for mut entry in fields.entries(count, 8)? {
            let samples = u64::from(entry.u32()?);
            let duration = u64::from(entry.u32()?);
            self.clock.add(samples, samples.saturating_mul(duration));
        }
        Ok(())
    }
}

/// Parses an `mdhd` box: the time units per second of a track, and the duration of its media in these units.
fn parse_media_header(mdhd: &[u8]) -> Result<(u32, Option<u64>), VideoError> {
    let mut fields = BoxFields::new(b"mdhd", mdhd);
    let version = fields.version_and_flags()?.0;
    // The times of creation and modification.
    fields.skip(if version == 0 { 8 } else { 16 })?;
    Ok((fields.u32()?, fields.duration(version)?))
}

/// Adds up the durations of all edits of an `elst` box, in the movie's units. Delays count too. `None` if the total
/// is 0.
fn parse_edits(elst: &[u8]) -> Result<Option<u64>, VideoError> {
    let mut fields = BoxFields::new(b"elst", elst);
    let version = fields.version_and_flags()?.0;
    let count = fields.u32()?;
    let mut sum = 0_u64;
    // Duration, media time and rate; the sizes of the first two depend on the version.
    for mut entry in fields.entries(count, if version == 0 { 12 } else { 20 })? {
        sum = sum.saturating_add(entry.u32_or_u64(version)?);
    }
    Ok((sum != 0).then_some(sum))
}
