//! Archives read by other programs, and layouts at the limits of the 32-bit fields.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};

use jiff::civil::{DateTime, date};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::zip::headers::{ZIP64_ENTRIES_MIN, ZIP64_SIZE_MIN};
use crate::zip::{
    ArchiveEntry, ArchiveError, ArchiveLayout, ArchivePiece, CompressionMethod, DosTime,
    EntryName, EntryNameError, deflate, pack,
};

/// Bytes of the end record alone, and of all three with the ZIP64 ones.
const END: u64 = 22;
const LONG_END: u64 = 56 + 20 + 22;

fn name(text: &str) -> EntryName {
    EntryName::parse(text).unwrap()
}

fn stored(text: &str, size_bytes: u64) -> ArchiveEntry {
    let (method, modified) = (CompressionMethod::Stored, DosTime::FIRST);
    ArchiveEntry { name: name(text), method, size_bytes, crc32: 0, modified }
}

/// An archive in memory.
struct Packed {
    archive: ArchiveLayout,
    /// The contents of each entry as stored in the archive.
    contents: Vec<Vec<u8>>,
}

impl Packed {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let time = DosTime::from_civil(date(2026, 3, 2).at(9, 15, 31, 0));
        let packed = files.iter().map(|(file, bytes)| pack(name(file), time, bytes.to_vec()));
        let (entries, contents) = packed.unzip();
        Self { archive: ArchiveLayout::new(entries).unwrap(), contents }
    }

    fn read(&self, range: Range<u64>) -> Vec<u8> {
        let index = |at: u64| usize::try_from(at).unwrap();
        let bytes = |piece| match piece {
            ArchivePiece::Bytes(bytes) => bytes,
            ArchivePiece::Content { entry, range } => {
                self.contents[entry][index(range.start)..index(range.end)].to_vec()
            }
        };
        self.archive.pieces(range).flat_map(bytes).collect()
    }

    fn whole(&self) -> Vec<u8> {
        self.read(0..self.archive.size_bytes())
    }
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("./test installs the program");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

/// The directory of an archive as read by Python's `zipfile`.
fn listed(file: &Path) -> Value {
    let script = "import sys,json,zipfile\n\
        entries=zipfile.ZipFile(sys.argv[1]).infolist()\n\
        json.dump([[e.filename,e.file_size,e.compress_size,e.header_offset] for e in entries],\
        sys.stdout)";
    let output = run(Command::new("python3").args(["-c", script]).arg(file));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes an archive whose contents are holes in the file.
fn write_sparse(archive: &ArchiveLayout, file: &mut File) {
    for piece in archive.pieces(0..archive.size_bytes()) {
        match piece {
            ArchivePiece::Bytes(bytes) => file.write_all(&bytes).unwrap(),
            ArchivePiece::Content { range, .. } => {
                let bytes = i64::try_from(range.end - range.start).unwrap();
                file.seek(SeekFrom::Current(bytes)).unwrap();
            }
        }
    }
}

#[test]
fn ok_names_of_files() {
    for text in
        ["a", "storm-1_NormalPreview.jpg", "A.b-c_9", "-", &"x".repeat(EntryName::BYTES_MAX)]
    {
        assert_eq!(name(text).as_str(), text);
    }
}

#[test]
fn err_names_that_leave_the_folder_or_hide() {
    let dots = |found: &str| EntryNameError::Dots { found: found.to_owned() };
    for text in [".", "..", ".a", "a.", "a..b"] {
        assert_eq!(EntryName::parse(text), Err(dots(text)));
    }
    for (text, found) in [("a/b", '/'), ("a\\b", '\\'), ("a b", ' '), ("å", 'å'), ("a\0", '\0')]
    {
        assert_eq!(EntryName::parse(text), Err(EntryNameError::BadCharacter { found }));
    }
    assert_eq!(EntryName::parse(""), Err(EntryNameError::Empty));
    let (bytes, max) = (EntryName::BYTES_MAX + 1, EntryName::BYTES_MAX);
    let long = EntryName::parse(&"x".repeat(bytes));
    assert_eq!(long, Err(EntryNameError::TooLong { bytes, max }));
}

#[test]
fn times_are_rounded_down_and_clamped() {
    let check = |moment: DateTime, (date, time): (u16, u16)| {
        let found = DosTime::from_civil(moment);
        assert_eq!((found.date, found.time), (date, time), "{moment}");
    };
    check(date(2026, 3, 2).at(9, 15, 31, 0), (46 << 9 | 3 << 5 | 2, 9 << 11 | 15 << 5 | 15));
    check(date(1980, 1, 1).at(0, 0, 1, 0), (DosTime::FIRST.date, DosTime::FIRST.time));
    check(date(1979, 12, 31).at(23, 59, 59, 0), (DosTime::FIRST.date, 0));
    check(date(2107, 12, 31).at(23, 59, 59, 0), (DosTime::LAST.date, DosTime::LAST.time));
    check(date(2108, 1, 1).at(0, 0, 0, 0), (DosTime::LAST.date, DosTime::LAST.time));
}

#[test]
fn err_entries_that_cannot_form_an_archive() {
    assert_eq!(ArchiveLayout::new(Vec::new()), Err(ArchiveError::Empty));
    let twice = ArchiveLayout::new(vec![stored("a.TXT", 1), stored("A.txt", 1)]);
    assert_eq!(twice, Err(ArchiveError::Duplicate { name: name("A.txt") }));
    let max = ArchiveLayout::ENTRIES_MAX;
    let many = (0..=max).map(|number| stored(&format!("{number}"), 1)).collect();
    assert_eq!(
        ArchiveLayout::new(many),
        Err(ArchiveError::TooManyEntries { count: max + 1, max })
    );
    let longest = i64::MAX.cast_unsigned();
    assert_eq!(ArchiveLayout::new(vec![stored("a", longest)]), Err(ArchiveError::TooLong));
    let long = ArchiveLayout::new(vec![stored("a", u64::MAX), stored("b", u64::MAX)]);
    assert_eq!(long, Err(ArchiveError::TooLong));
}

#[test]
fn contents_are_compressed_where_that_is_shorter() {
    let text = b"ice ".repeat(100);
    let (entry, contents) = pack(name("a"), DosTime::FIRST, text.clone());
    assert_eq!(entry.method, CompressionMethod::Deflated { unpacked_bytes: 400 });
    assert_eq!(entry.uncompressed_bytes(), 400);
    assert_eq!(contents, deflate(&text));
    let (entry, contents) = pack(name("a"), DosTime::FIRST, b"ice".to_vec());
    assert_eq!((entry.method, contents.as_slice()), (CompressionMethod::Stored, &b"ice"[..]));
}

/// Entity tags of archives identify their bytes: a compressor with different output needs different tags.
#[test]
fn the_packed_stream_is_the_same_in_every_build() {
    let text: String = (0..2_000).map(|number| format!("{} ", number * number)).collect();
    let packed = deflate(text.as_bytes());
    assert_eq!((packed.len(), crc32fast::hash(&packed)), (6_578, 2_165_996_114));
}

#[test]
fn other_programs_read_the_contents() {
    let text = "Isbrytare i Strömmen. ".repeat(500);
    let files: [(&str, &[u8]); 3] =
        [("a.txt", text.as_bytes()), ("b.jpg", &[0xFF, 0xD8, 0xFF, 0xD9]), ("empty", b"")];
    let packed = Packed::new(&files);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.zip");
    std::fs::write(&file, packed.whole()).unwrap();
    run(Command::new("unzip").arg("-tq").arg(&file));
    for (entry, bytes) in files {
        let found = run(Command::new("unzip").arg("-p").arg(&file).arg(entry));
        assert_eq!(found.stdout, bytes, "{entry}");
    }
    let script = "import sys,zipfile\n\
        archive=zipfile.ZipFile(sys.argv[1])\n\
        assert archive.testzip() is None\n\
        assert {e.date_time for e in archive.infolist()}=={(2026,3,2,9,15,30)}\n\
        assert {e.external_attr>>16 for e in archive.infolist()}=={0o100644}";
    run(Command::new("python3").args(["-c", script]).arg(&file));
}

#[test]
fn lengths_beyond_32_bits_use_zip64_fields() {
    let check = |size_bytes: u64, local: u64, record: u64| {
        let archive = ArchiveLayout::new(vec![stored("a", size_bytes)]).unwrap();
        assert_eq!(archive.size_bytes(), local + size_bytes + record + LONG_END, "{size_bytes}");
    };
    check(ZIP64_SIZE_MIN - 1, 30 + 1, 46 + 1);
    check(ZIP64_SIZE_MIN, 30 + 1 + 20, 46 + 1 + 20);
    // Only the offset of the directory decides which end records are needed.
    let short =
        |size_bytes: u64| ArchiveLayout::new(vec![stored("a", size_bytes)]).unwrap().size_bytes();
    let last = ZIP64_SIZE_MIN - 32;
    assert_eq!(short(last), 31 + last + 47 + END);
    assert_eq!(short(last + 1), 31 + last + 1 + 47 + LONG_END);
}

#[test]
fn an_archive_beyond_4_gib_is_read_by_another_program() {
    let sizes = [ZIP64_SIZE_MIN, 7, ZIP64_SIZE_MIN - 1, 9];
    let entries = ["a", "b", "c", "d"].into_iter().zip(sizes);
    let archive =
        ArchiveLayout::new(entries.map(|(name, size)| stored(name, size)).collect()).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write_sparse(&archive, file.as_file_mut());
    let b = 51 + ZIP64_SIZE_MIN;
    let c = b + 31 + 7;
    let d = c + 31 + ZIP64_SIZE_MIN - 1;
    assert_eq!(
        listed(file.path()),
        json!([
            ["a", ZIP64_SIZE_MIN, ZIP64_SIZE_MIN, 0],
            ["b", 7, 7, b],
            ["c", ZIP64_SIZE_MIN - 1, ZIP64_SIZE_MIN - 1, c],
            ["d", 9, 9, d],
        ])
    );
}

#[test]
fn more_entries_than_the_16_bit_field_holds_are_read_by_another_program() {
    for count in [ZIP64_ENTRIES_MIN - 1, ZIP64_ENTRIES_MIN] {
        let entries = (0..count).map(|number| stored(&format!("{number}"), 0)).collect();
        let archive = ArchiveLayout::lay_out(entries).unwrap();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write_sparse(&archive, file.as_file_mut());
        let listed = listed(file.path());
        assert_eq!(listed.as_array().map(Vec::len), usize::try_from(count).ok());
    }
}

proptest! {
    #[test]
    fn the_length_is_known_and_a_range_is_a_slice_of_the_whole(
        contents in prop::collection::vec(prop::collection::vec(0_u8..4, 0..200), 1..200),
        (start, length) in (0_usize..60_000, 0_usize..30_000),
    ) {
        let names: Vec<_> = (0..contents.len()).map(|number| format!("n{number}")).collect();
        let files: Vec<_> =
            names.iter().map(String::as_str).zip(contents.iter().map(Vec::as_slice)).collect();
        let packed = Packed::new(&files);
        let whole = packed.whole();
        prop_assert_eq!(u64::try_from(whole.len()), Ok(packed.archive.size_bytes()));
        let slice = &whole[start.min(whole.len())..(start + length).min(whole.len())];
        let range = u64::try_from(start).unwrap()..u64::try_from(start + length).unwrap();
        prop_assert_eq!(packed.read(range), slice);
    }
}
