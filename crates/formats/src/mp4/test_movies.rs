//! Builds movies box by box, for tests.

/// Builds a box of `kind` with `contents`.
pub(super) fn make_box(kind: &[u8; 4], contents: &[&[u8]]) -> Vec<u8> {
    let contents = contents.concat();
    let size = u32::try_from(contents.len() + 8).unwrap();
    [&size.to_be_bytes()[..], kind, &contents].concat()
}

/// Builds a box with a 64-bit size.
pub(super) fn make_long_box(kind: &[u8; 4], contents: &[u8]) -> Vec<u8> {
    let size = u64::try_from(contents.len() + 16).unwrap();
    [&1_u32.to_be_bytes()[..], kind, &size.to_be_bytes(), contents].concat()
}

pub(super) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

pub(super) const UPRIGHT: [u32; 4] = [1 << 16, 0, 0, 1 << 16];
/// A clockwise rotation by 90 degrees.
pub(super) const TURNED: [u32; 4] = [0, 1 << 16, 0xffff_0000, 0];

fn matrix([a, b, c, d]: [u32; 4]) -> Vec<u8> {
    words(&[a, b, 0, c, d, 0, 0, 0, 1 << 30])
}

/// A track to be written. The movie has 1000 time units per second, the track 600.
#[derive(Clone)]
pub(super) struct TestTrack {
    pub(super) id: u32,
    pub(super) is_enabled: bool,
    pub(super) handler: [u8; 4],
    /// The size in the track header, in pixels.
    pub(super) size: (u32, u32),
    pub(super) coded: (u16, u16),
    pub(super) pixel: Option<(u32, u32)>,
    pub(super) matrix: [u32; 4],
    pub(super) codec: [u8; 4],
    /// The number and duration of samples.
    pub(super) times: Vec<(u32, u32)>,
    /// The duration in the media header.
    pub(super) duration: u32,
    /// The durations of edits in the movie's units.
    pub(super) edits: Vec<u32>,
}

impl TestTrack {
    /// Builds a video track of ten seconds at 25 frames per second, 640x360.
    pub(super) fn video() -> Self {
        Self {
            id: 1,
            is_enabled: true,
            handler: *b"vide",
            size: (640, 360),
            coded: (640, 360),
            pixel: None,
            matrix: UPRIGHT,
            codec: *b"abcd",
            times: vec![(250, 24)],
            duration: 6000,
            edits: Vec::new(),
        }
    }

    fn entry(&self) -> Vec<u8> {
        if self.handler != *b"vide" {
            return make_box(&self.codec, &[&[0; 28]]);
        }
        let pasp = self.pixel.map(|(h, v)| make_box(b"pasp", &[&words(&[h, v])]));
        let (width, height) = (self.coded.0.to_be_bytes(), self.coded.1.to_be_bytes());
        let pasp = pasp.unwrap_or_default();
        make_box(&self.codec, &[&[0; 24], &width, &height, &[0; 50], &pasp])
    }

    fn print(&self) -> Vec<u8> {
        let (width, height) = (self.size.0 << 16, self.size.1 << 16);
        let head = words(&[u32::from(self.is_enabled), 0, 0, self.id, 0, 0, 0, 0, 0, 0]);
        let tkhd = make_box(b"tkhd", &[&head, &matrix(self.matrix), &words(&[width, height])]);
        let mdhd = make_box(b"mdhd", &[&words(&[0, 0, 0, 600, self.duration, 0])]);
        let hdlr = make_box(b"hdlr", &[&[0; 8], &self.handler, &[0; 13]]);
        let stsd = make_box(b"stsd", &[&words(&[0, 1]), &self.entry()]);
        let count = u32::try_from(self.times.len()).unwrap();
        let times: Vec<u8> = self.times.iter().flat_map(|&(n, time)| words(&[n, time])).collect();
        let stts = make_box(b"stts", &[&words(&[0, count]), &times]);
        let minf = make_box(b"minf", &[&make_box(b"stbl", &[&stsd, &stts])]);
        let count = u32::try_from(self.edits.len()).unwrap();
        let edits: Vec<u8> = self.edits.iter().flat_map(|&edit| words(&[edit, 0, 1])).collect();
        let elst = make_box(b"elst", &[&words(&[0, count]), &edits]);
        let edts = make_box(b"edts", &[&elst]);
        let mdia = make_box(b"mdia", &[&mdhd, &hdlr, &minf]);
        make_box(b"trak", &[&tkhd, &edts, &mdia])
    }
}

/// Builds an index with `tracks`; `duration` is that of the movie header in milliseconds. `more` is appended.
pub(super) fn index(duration: u32, tracks: &[TestTrack], more: &[u8]) -> Vec<u8> {
    let head = words(&[0, 0, 0, 1000, duration, 0, 0, 0, 0]);
    let mvhd = make_box(b"mvhd", &[&head, &matrix(UPRIGHT), &[0; 28]]);
    let tracks: Vec<u8> = tracks.iter().flat_map(TestTrack::print).collect();
    make_box(b"moov", &[&mvhd, &tracks, more])
}

pub(super) fn file_type() -> Vec<u8> {
    make_box(b"ftyp", &[b"isom", &[0; 4]])
}

/// Builds a file with an index of `tracks`, followed by some media data.
pub(super) fn movie(duration: u32, tracks: &[TestTrack]) -> Vec<u8> {
    let data = make_box(b"mdat", &[&[7; 100]]);
    [file_type(), index(duration, tracks, &[]), data].concat()
}

/// Builds a fragment of track `id` that starts at `start`, with two runs of samples: one with the durations
/// `lengths`, and `plain` samples with the track's default duration.
pub(super) fn fragment(id: u32, start: u32, lengths: &[u32], plain: u32) -> Vec<u8> {
    let tfhd = make_box(b"tfhd", &[&words(&[0, id])]);
    let tfdt = make_box(b"tfdt", &[&words(&[0, start])]);
    let count = u32::try_from(lengths.len()).unwrap();
    // Each entry has a duration and a size.
    let entries: Vec<u8> = lengths.iter().flat_map(|&time| words(&[time, 99])).collect();
    let given = make_box(b"trun", &[&words(&[0x300, count]), &entries]);
    let plain = make_box(b"trun", &[&words(&[0, plain])]);
    let traf = make_box(b"traf", &[&tfhd, &tfdt, &given, &plain]);
    let moof = make_box(b"moof", &[&make_box(b"mfhd", &[&words(&[0, 1])]), &traf]);
    [moof, make_box(b"mdat", &[&[7; 50]])].concat()
}
