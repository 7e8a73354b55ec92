//! Facts of movies that are built box by box, and of files that are not movies.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;
use std::process::Command;

use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::Value;

use crate::mp4::test_movies::{
    TURNED, TestTrack, UPRIGHT, file_type, fragment, index, make_box, make_long_box, movie, words,
};
use crate::mp4::{BoxKind, VideoError, VideoFacts, VideoLimits, facts};

fn read(file: &[u8]) -> Result<VideoFacts, VideoError> {
    let size_bytes = u64::try_from(file.len()).unwrap();
    facts(&mut Cursor::new(file), size_bytes, &VideoLimits::default())
}

fn read_ok(file: &[u8]) -> VideoFacts {
    read(file).unwrap()
}

fn one(track: TestTrack) -> VideoFacts {
    read_ok(&movie(10_000, &[track]))
}

/// `expected` is the start of the message.
fn check_err(file: &[u8], expected: &str) {
    let error = read(file).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}, expected {expected}");
}

fn sound() -> TestTrack {
    let times = vec![(480, 1024)];
    TestTrack { id: 2, handler: *b"soun", codec: *b"Opus", times, ..TestTrack::video() }
}

#[test]
fn ok_a_plain_movie() {
    let file = movie(10_000, &[sound(), TestTrack::video()]);
    let found = read_ok(&file);
    assert_eq!((found.width, found.height, found.duration_ms), (640, 360, 10_000));
    assert!(found.fast_start);
    let bits = u64::try_from(file.len()).unwrap() * 8;
    assert_eq!(found.bitrate_bps, (bits + 5) / 10);
}

#[test]
fn ok_the_index_behind_the_media_data_is_no_fast_start() {
    let index = index(10_000, &[TestTrack::video()], &[]);
    let file = [file_type(), make_box(b"mdat", &[&[7; 9]]), index].concat();
    assert!(!read_ok(&file).fast_start);
}

#[test]
fn ok_long_sizes_open_ends_and_files_without_a_type() {
    let index = index(10_000, &[TestTrack::video()], &[]);
    let long = make_long_box(b"moov", &index[8..]);
    let open = [&0_u32.to_be_bytes()[..], b"mdat", &[7; 90]].concat();
    let file = [make_box(b"wide", &[]), make_long_box(b"free", &[0; 3]), long, open].concat();
    assert_eq!(read_ok(&file).duration_ms, 10_000);
    let last = [&0_u32.to_be_bytes()[..], b"moov", &index[8..]].concat();
    let file = [file_type(), make_long_box(b"mdat", &[7; 9]), last].concat();
    assert_eq!(read_ok(&file).duration_ms, 10_000);
}

#[test]
fn ok_foreign_bytes_behind_a_finished_file() {
    let file = movie(10_000, &[TestTrack::video()]);
    for tail in [&b"\0\0\0"[..], b"\xff\xff\xff\xffjunk and more", &[0; 40]] {
        assert_eq!(read_ok(&[&file, tail].concat()).width, 640, "{tail:?}");
    }
}

#[test]
fn the_size_is_the_display_size() {
    let check = |change: fn(&mut TestTrack), expected| {
        let mut track = TestTrack::video();
        change(&mut track);
        let found = one(track);
        assert_eq!((found.width, found.height), expected);
    };
    check(|_| {}, (640, 360));
    check(|track| track.matrix = TURNED, (360, 640));
    check(|track| track.matrix = UPRIGHT.map(u32::wrapping_neg), (640, 360));
    check(|track| track.matrix = [2 << 16, 0, 0, 1 << 15], (1280, 180));
    check(|track| track.matrix = [0; 4], (640, 360));
    // The size in the header takes precedence, with or without the pixel aspect ratio that gives it.
    check(|track| track.coded = (480, 360), (640, 360));
    check(|track| (track.coded, track.pixel) = ((480, 360), Some((4, 3))), (640, 360));
    // It repeats the coded size or is absent, so the pixel aspect ratio applies.
    check(|track| track.pixel = Some((4, 3)), (853, 360));
    check(|track| (track.size, track.pixel) = ((0, 0), Some((2, 1))), (1280, 360));
    check(|track| track.size = (0, 0), (640, 360));
    check(|track| track.pixel = Some((0, 1)), (640, 360));
    check(|track| (track.pixel, track.matrix) = (Some((2, 1)), TURNED), (360, 1280));
}

#[test]
fn a_codec_whose_name_is_blank_has_a_number() {
    assert_eq!(BoxKind(*b"    ").to_string(), "0x20202020");
    assert_eq!(BoxKind(*b"raw ").to_string(), "raw");
}

#[test]
fn the_first_enabled_video_track_counts() {
    let first = TestTrack { is_enabled: false, coded: (8, 8), size: (8, 8), ..TestTrack::video() };
    let second = TestTrack { id: 7, ..TestTrack::video() };
    let third = TestTrack { id: 8, coded: (9, 9), size: (9, 9), ..TestTrack::video() };
    let found = read_ok(&movie(10_000, &[sound(), first.clone(), second, third]));
    assert_eq!(found.width, 640);
    assert_eq!(read_ok(&movie(10_000, &[first])).width, 8);
}

#[test]
fn the_length_comes_from_header_then_edits_then_media() {
    let check = |duration, edits: &[u32], media, times: &[(u32, u32)], expected| {
        let (edits, times) = (edits.to_vec(), times.to_vec());
        let track = TestTrack { edits, duration: media, times, ..TestTrack::video() };
        let found = read_ok(&movie(duration, &[track]));
        assert_eq!(found.duration_ms, expected);
        assert_eq!(found.bitrate_bps == 0, expected == 0);
    };
    check(9_000, &[2_000, 3_000], 6_000, &[(250, 24)], 9_000);
    check(0, &[2_000, 3_000], 6_000, &[(250, 24)], 5_000);
    check(u32::MAX, &[], 6_000, &[(250, 24)], 10_000);
    check(0, &[0], 6_000, &[(250, 24)], 10_000);
    check(0, &[], 0, &[(250, 24), (1, 2)], 10_003);
    check(0, &[], 0, &[], 0);
}

#[test]
fn fragments_count_where_the_index_has_no_length() {
    let empty = TestTrack { times: Vec::new(), duration: 0, ..TestTrack::video() };
    let trex = make_box(b"trex", &[&words(&[0, 1, 1, 24, 0, 0])]);
    let check = |more: &[u8], expected| {
        let more = make_box(b"mvex", &[more]);
        let head = [file_type(), index(0, std::slice::from_ref(&empty), &more)].concat();
        // A recording that was joined at 100 s, with a lost second, and a fragment of another track.
        let first = fragment(1, 60_000, &[20, 28], 23);
        let second = fragment(1, 61_200, &[], 25);
        let other = fragment(9, 0, &[1_000_000], 0);
        let found = read_ok(&[head, first, other, second].concat());
        assert_eq!(found.duration_ms, expected);
    };
    check(&trex, 3_000);
    check(&[trex.clone(), make_box(b"mehd", &[&words(&[0, 4_500])])].concat(), 4_500);
    check(&[make_box(b"mehd", &[&words(&[0, 0])]), trex.clone()].concat(), 3_000);
}

#[test]
fn err_files_that_are_not_movies() {
    check_err(b"", "the file is not an MP4: it has 0 bytes");
    check_err(b"RIFF\0\0\0\0WAVEfmt ", "the file is not an MP4: it starts with 0x00000000");
    check_err(b"\x89PNGJFIF\0\0\0\0\0\0\0\0", "the file is not an MP4: it starts with JFIF");
    check_err(&file_type(), "the MP4 has no moov box");
    check_err(&movie(9, &[sound()]), "the MP4 has no video track");
    check_err(&movie(9, &[]), "the MP4 has no video track");
    let packed = make_box(b"moov", &[&make_box(b"cmov", &[])]);
    check_err(&[packed, make_box(b"mdat", &[])].concat(), "the movie's index is compressed");
}

#[test]
fn err_every_shorter_file_is_truncated_or_without_an_index() {
    let file = movie(10_000, &[TestTrack::video()]);
    for length in 0..file.len() {
        let error = read(&file[..length]).unwrap_err();
        let is_good = matches!(
            error,
            VideoError::TooShort { .. }
                | VideoError::NoIndex
                | VideoError::NoMedia
                | VideoError::Truncated { .. }
        );
        assert!(is_good, "{length}: {error}");
        // The same when the reader does not know the length.
        let size_bytes = u64::try_from(file.len()).unwrap();
        let whole = facts(&mut Cursor::new(&file[..length]), size_bytes, &VideoLimits::default());
        // The media data is not read, so its truncation is not detected.
        assert_eq!(whole.is_ok(), length >= file.len() - 100 + 8 || whole.is_ok(), "{length}");
    }
}

#[test]
fn err_counts_larger_than_their_box() {
    for kind in [b"stts", b"elst"] {
        let track = TestTrack { edits: vec![1], ..TestTrack::video() };
        let mut file = movie(0, &[track]);
        let at = file.windows(4).position(|window| window == kind).unwrap();
        file[at + 8..at + 12].copy_from_slice(&u32::MAX.to_be_bytes());
        let kind = std::str::from_utf8(kind).unwrap();
        check_err(&file, &format!("the MP4 is damaged: its {kind} box is too short"));
    }
    let more = make_box(b"mvex", &[]);
    let mut run = fragment(1, 0, &[5], 0);
    let at = run.windows(4).position(|window| window == b"trun").unwrap();
    run[at + 8..at + 12].copy_from_slice(&u32::MAX.to_be_bytes());
    let file = [file_type(), index(0, &[TestTrack::video()], &more), run].concat();
    check_err(&file, "the MP4 is damaged: its trun box is too short");
}

#[test]
fn err_limits() {
    let check = |file: &[u8], limits: VideoLimits, expected: &str| {
        let size_bytes = u64::try_from(file.len()).unwrap();
        let error = facts(&mut Cursor::new(file), size_bytes, &limits).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}, expected {expected}");
    };
    let usual = VideoLimits::default();
    let file = movie(10_000, &[TestTrack::video(), sound()]);
    check(&file, VideoLimits { index_bytes: 99, ..usual }, "the MP4's moov box has ");
    check(&file, VideoLimits { boxes: 2, ..usual }, "the MP4 has more than 2 boxes");
    check(&file, VideoLimits { tracks: 1, ..usual }, "the MP4 has more than 1 tracks");
    check(&file, VideoLimits { side_px: 639, ..usual }, "the video is 640x360, expected sides");
    check(&file, VideoLimits { duration_ms: 9_999, ..usual }, "the video is 10000 ms long");
    let file = [file_type(), fragment(1, 0, &[5], 0)].concat();
    check(&file, VideoLimits { fragments_bytes: 50, ..usual }, "the MP4's moof boxes have more");
    let none = TestTrack { size: (0, 0), coded: (0, 9), ..TestTrack::video() };
    check(&movie(9, &[none]), usual, "the video is 0x9, expected sides of 1 to ");
}

/// Boundary values for parsers.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), Just(1), Just(8), Just(u32::MAX), Just(1 << 31), any::<u32>()]
}

/// Two seconds of a test picture with a tone, written by ffmpeg with `options`.
fn write_movie(file: &Path, options: &[&str]) {
    let status = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25:duration=2"])
        .args(["-f", "lavfi", "-i", "sine=duration=2", "-pix_fmt", "yuv420p", "-shortest"])
        .args(options)
        .arg(file)
        .status()
        .expect("./test installs ffmpeg");
    assert!(status.success(), "{options:?}");
}

/// The facts that ffprobe reads from a file.
fn probed(file: &Path) -> Value {
    let arguments = ["-v", "error", "-of", "json", "-show_format", "-show_streams"];
    let output = Command::new("ffprobe").args(arguments).arg(file).output().expect("with ffmpeg");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn facts_match_ffprobe() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.mp4");
    let number = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let cases: [(&[&str], bool, u32); 4] = [
        (&["-y"], false, 320),
        (&["-y", "-movflags", "+faststart"], true, 320),
        (&["-y", "-vf", "setsar=4/3"], false, 427),
        (&["-y", "-movflags", "+frag_keyframe+empty_moov"], true, 320),
    ];
    for (options, fast_start, width) in cases {
        write_movie(&file, options);
        let size_bytes = file.metadata().unwrap().len();
        let limits = VideoLimits::default();
        let found = facts(&mut File::open(&file).unwrap(), size_bytes, &limits).unwrap();
        let probed = probed(&file);
        let video = &probed["streams"][0];
        assert_eq!((video["width"].as_u64(), video["height"].as_u64()), (Some(320), Some(180)));
        assert_eq!((found.width, found.height), (width, 180), "{options:?}");
        let duration_ms = number(&probed["format"]["duration"]) * 1000.0;
        let found_ms = f64::from(u32::try_from(found.duration_ms).unwrap());
        assert!((found_ms - duration_ms).abs() <= 1.0, "{options:?}: {found:?}, {duration_ms}");
        let bitrate_bps = number(&probed["format"]["bit_rate"]);
        let found_bps = f64::from(u32::try_from(found.bitrate_bps).unwrap());
        assert!((found_bps / bitrate_bps - 1.0).abs() < 0.001, "{options:?}: {found:?}");
        assert_eq!(found.fast_start, fast_start, "{options:?}");
    }
}

proptest! {
    #[test]
    fn ok_any_tracks_of_usual_numbers(
        width in 1_u16..4096, height in 1_u16..4096, turned in any::<bool>(),
        samples in 1_u32..100_000, time in 1_u32..1200, ms in 1_u32..1_000_000,
    ) {
        let matrix = if turned { TURNED } else { UPRIGHT };
        let size = (u32::from(width), u32::from(height));
        let times = vec![(samples, time)];
        let track = TestTrack { size, coded: (width, height), matrix, times, ..TestTrack::video() };
        let found = read_ok(&movie(ms, &[track]));
        let expected = if turned { (size.1, size.0) } else { size };
        prop_assert_eq!((found.width, found.height), expected);
        prop_assert_eq!(found.duration_ms, u64::from(ms));
    }

    #[test]
    fn damage_never_panics_and_never_exceeds_the_limits(
        places in proptest::collection::vec((any::<proptest::sample::Index>(), number()), 1..6),
    ) {
        let more = make_box(b"mvex", &[&make_box(b"trex", &[&words(&[0, 1, 1, 24, 0, 0])])]);
        let track = TestTrack { edits: vec![5, 6], pixel: Some((4, 3)), ..TestTrack::video() };
        let mut file = [
            file_type(), index(0, &[track, sound()], &more), fragment(1, 0, &[20, 28], 23),
        ].concat();
        for (place, value) in places {
            let at = place.index(file.len() - 3);
            file[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        if let Ok(found) = read(&file) {
            let limits = VideoLimits::default();
            prop_assert!((1..=limits.side_px).contains(&found.width));
            prop_assert!(found.duration_ms <= limits.duration_ms);
        }
    }
}
