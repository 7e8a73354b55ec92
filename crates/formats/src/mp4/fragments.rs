//! Adds up the durations of the samples in the fragments of a movie.

use crate::mp4::boxes::{BoxFields, BoxIterator, find};
use crate::mp4::error::VideoError;
use crate::mp4::movie::{MovieIndex, SampleClock, Track};

/// Adds the samples of the contents of a `moof` box to the movie's video and audio tracks.
pub(super) fn add_fragment(moof: &[u8], movie: &mut MovieIndex) -> Result<(), VideoError> {
    for found in BoxIterator(moof) {
        let (kind, traf) = found?;
        if kind.0 != *b"traf" {
            continue;
        }
        let Some(tfhd) = find(traf, b"tfhd")? else { continue };
        let mut fields = BoxFields::new(b"tfhd", tfhd);
        let flags = fields.version_and_flags()?.1;
        let id = fields.u32()?;
        let tracks = [Some(&mut movie.video), movie.audio.as_mut()];
        // Other tracks, such as subtitles, are not reported, so their fragments do not count.
        let Some(track) = tracks.into_iter().flatten().find(|track| track.id == id) else {
            continue;
        };
        add_runs(traf, sample_duration(fields, flags, track)?, track)?;
    }
    Ok(())
}

/// Returns the default sample duration of this fragment, in the track's units.
///
/// ISO/IEC 14496-12 §8.8.7: optional fields in the order of their flags.
fn sample_duration(
    mut fields: BoxFields<'_>,
    flags: u32,
    track: &Track,
) -> Result<u32, VideoError> {
    if flags & 0x8 == 0 {
        return Ok(track.sample_duration);
    }
    // The base data offset and the sample description index.
    for (flag, size_bytes) in [(0x1, 8), (0x2, 4)] {
        if flags & flag != 0 {
            fields.skip(size_bytes)?;
        }
    }
    fields.u32()
}

/// Adds the samples of the runs of a `traf` box to `track`.
fn add_runs(traf: &[u8], sample_duration: u32, track: &mut Track) -> Result<(), VideoError> {
    for found in BoxIterator(traf) {
        let (kind, contents) = found?;
        match &kind.0 {
            // `tfdt` precedes the runs to which it applies (ISO/IEC 14496-12 §8.8.12).
            b"tfdt" => {
                let mut fields = BoxFields::new(b"tfdt", contents);
                let version = fields.version_and_flags()?.0;
                track.clock.advance_to(fields.u32_or_u64(version)?);
            }
            b"trun" => add_run(contents, sample_duration, &mut track.clock)?,
            _ => {}
        }
    }
    Ok(())
}

/// Adds the samples of a `trun` box. Runs without durations are only counted. For runs with durations, every entry
/// must be present in the box, so a forged count costs nothing.
///
/// ISO/IEC 14496-12 §8.8.8.
fn add_run(trun: &[u8], sample_duration: u32, clock: &mut SampleClock) -> Result<(), VideoError> {
    let mut fields = BoxFields::new(b"trun", trun);
    let flags = fields.version_and_flags()?.1;
    let count = fields.u32()?;
    // The data offset and the flags of the first sample.
    for flag in [0x1, 0x4] {
        if flags & flag != 0 {
            fields.skip(4)?;
        }
    }
    let samples = u64::from(count);
    if flags & 0x100 == 0 {
        clock.add(samples, samples * u64::from(sample_duration));
        return Ok(());
    }
    // Duration, size, flags and composition offset, four bytes each; the duration comes first.
    let columns = [0x100, 0x200, 0x400, 0x800].iter().filter(|&flag| flags & flag != 0).count();
    let mut time = 0_u64;
    for mut entry in fields.entries(count, 4 * columns)? {
        time = time.saturating_add(u64::from(entry.u32()?));
    }
    clock.add(samples, time);
    Ok(())
}
