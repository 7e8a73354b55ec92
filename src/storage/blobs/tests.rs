//! Tests the contract that every store fulfils: in a folder, in a bucket over the library's in-memory object
//! store, and in a bucket of an S3 server where `tests/garage.sh` names one. `tests/suite/store_s3.rs` tests
//! the service over such a bucket.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path as Key};
use strum::IntoEnumIterator;

use super::bucket::{Bucket, ObjectClients};
use super::circuit_breaker::CircuitBreaker;
use super::credentials::CredentialSource;
use super::{
    BlobReader, BlobStore, BucketSettings, CopyOutcome, DerivedKind, DerivedStore, StartPolicy,
    StoreError, StoreLocation,
};
use model::ContentHash;

/// More than one part, and not a multiple of the part size.
const LARGE: usize = 9_000_123;

/// The variable that names an S3 server of region `eu-north-1` with the bucket `bilder`: address, key id and
/// key, separated by spaces.
const SERVER: &str = "TEST_S3";

struct Scene {
    dir: tempfile::TempDir,
    store: BlobStore,
    /// The objects of the bucket, accessed past the store; `None` for a folder.
    objects: Arc<dyn ObjectStore>,
    /// The prefix of their keys.
    prefix: Key,
}

fn folder() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let store = BlobStore::open(&dir.path().join("originals")).unwrap();
    Scene { dir, store, objects: Arc::new(InMemory::new()), prefix: Key::default() }
}

fn bucket() -> Scene {
    let (dir, prefix) = (tempfile::tempdir().unwrap(), Key::from("a/b"));
    let place = ("s3://test".to_owned(), prefix.clone());
    let objects: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let over = ObjectClients {
        all: Arc::clone(&objects),
        once: Arc::clone(&objects),
        breaker: Arc::new(CircuitBreaker::new(place.0.clone())),
        settings: None,
    };
    let bucket = Bucket::over(over, place.0, place.1, Duration::from_secs(20), 8).unwrap();
    let store = BlobStore::over(bucket, &dir.path().join("scratch")).unwrap();
    Scene { dir, store, objects, prefix }
}

/// A bucket of the server, if one is configured.
#[expect(clippy::disallowed_methods, reason = "a test may look at its environment")]
fn server() -> Option<Scene> {
    let server = std::env::var(SERVER).ok()?;
    let [endpoint, id, key] = server.split(' ').collect::<Vec<_>>()[..] else {
        panic!("{SERVER}: expected an address, an id and a key");
    };
    let dir = tempfile::tempdir().unwrap();
    let settings = BucketSettings {
        bucket: "bilder".to_owned(),
        prefix: uuid::Uuid::now_v7().to_string(),
        // The store sees one service behind two addresses.
        endpoints: vec![endpoint.to_owned(); 2],
        region: "eu-north-1".to_owned(),
        credentials: CredentialSource::key(id, key),
        path_style: true,
        plain_http: true,
        ca: PathBuf::new(),
        answer: Duration::from_secs(60),
        give_up: Duration::from_secs(60),
        requests: 8,
    };
    let breaker = Arc::new(CircuitBreaker::new(settings.place()));
    let objects = settings.open(&breaker, &Arc::default(), 0, None).unwrap();
    let scratch = dir.path().join("scratch");
    let store = BlobStore::in_bucket(&settings, &scratch, StartPolicy::Fail).unwrap();
    Some(Scene { dir, store, objects, prefix: Key::from(settings.prefix) })
}

/// Returns one bucket of each kind.
fn buckets() -> impl Iterator<Item = Scene> {
    std::iter::once(bucket()).chain(server())
}

/// Returns one store of each kind.
fn all() -> impl Iterator<Item = Scene> {
    std::iter::once(folder()).chain(buckets())
}

/// Runs a check on every kind of store.
fn each(check: impl Fn(&Scene)) {
    all().for_each(|scene| check(&scene));
}

impl Scene {
    fn derived(&self) -> DerivedStore {
        self.store.derived(&self.dir.path().join("derived"), 1 << 20).unwrap()
    }

    fn is_bucket(&self) -> bool {
        matches!(self.store.place, StoreLocation::Bucket(_))
    }

    /// Replaces the bytes of a blob, past the store.
    fn overwrite(&self, hash: ContentHash, bytes: &[u8]) {
        let name = hash.to_string();
        let (start, rest) = name.split_at(2);
        if self.is_bucket() {
            let key = self.prefix.clone().join("originals").join(start).join(rest);
            wait(self.objects.put(&key, Bytes::copy_from_slice(bytes).into())).unwrap();
        } else {
            let path = self.dir.path().join("originals").join(start).join(rest);
            std::fs::write(path, bytes).unwrap();
        }
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn bytes(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

fn within(range: &Range<u64>) -> Range<usize> {
    let index = |at: u64| usize::try_from(at).unwrap();
    index(range.start)..index(range.end)
}

#[test]
fn a_store_that_can_be_written_is_proven_and_nothing_stays_of_it() {
    each(|scene| {
        scene.store.check_writable().unwrap();
        assert_eq!(scene.store.list().unwrap(), []);
        let left: Vec<_> = wait(scene.objects.list(Some(&scene.prefix)).try_collect()).unwrap();
        assert_eq!(left, []);
    });
}

#[test]
fn written_blobs_are_read_completely_and_in_ranges() {
    each(|scene| {
        for length in [1, 100_000, LARGE] {
            let bytes = bytes(length);
            let all = bytes.len() as u64;
            let hash = scene.store.write(&bytes).unwrap();
            assert_eq!(hash, ContentHash::new(&bytes));
            assert!(scene.store.read(hash, all).unwrap() == bytes);
            assert!(scene.store.is_intact(hash, all));
            let reader = scene.store.reader(hash, all).unwrap();
            let at = |part: u64| all * part / 100;
            let ranges = [0..at(1), at(1)..at(1), at(30)..at(60), 0..all, at(99)..all];
            for range in &ranges {
                assert!(reader.read(range.clone()).unwrap() == bytes[within(range)], "{range:?}");
            }
            let many = reader.read_many(&ranges).unwrap();
            assert!(many.iter().zip(&ranges).all(|(got, range)| *got == bytes[within(range)]));
            let pieces: Vec<u8> =
                reader.pieces().flat_map(|range| reader.read(range).unwrap()).collect();
            assert!(pieces == bytes);
        }
        assert_eq!(scene.store.list().unwrap().len(), 3);
    });
}

#[test]
fn equal_bytes_are_one_blob_and_a_damaged_one_is_repaired() {
    each(|scene| {
        let first = scene.store.write(b"picture").unwrap();
        let stamp = |scene: &Scene| scene.store.reader(first, 7).unwrap().stamp;
        let before = stamp(scene);
        assert_eq!(scene.store.write(b"picture").unwrap(), first);
        assert_eq!((scene.store.list().unwrap(), stamp(scene)), (vec![first], before));
        assert!(scene.store.age(first).unwrap().unwrap() < Duration::from_secs(60));
        scene.overwrite(first, b"pictura");
        assert_eq!(scene.store.write(b"picture").unwrap(), first);
        assert_eq!(scene.store.read(first, 7).unwrap(), b"picture");
        scene.store.remove(first).unwrap();
        scene.store.remove(first).unwrap();
        assert_eq!((scene.store.list().unwrap(), scene.store.age(first).unwrap()), (vec![], None));
    });
}

#[test]
fn a_blob_that_is_missing_or_of_another_length_is_refused() {
    each(|scene| {
        let hash = scene.store.write(b"picture").unwrap();
        for expected in [6, 8, 100_000] {
            let found = scene.store.read(hash, expected);
            assert!(matches!(found, Err(StoreError::Length { found: 7, .. })), "{found:?}");
        }
        let none = ContentHash([7; 32]);
        assert!(matches!(scene.store.read(none, 8), Err(StoreError::Missing(_))));
        assert!(!scene.store.is_intact(none, 8));
    });
}

#[test]
fn a_file_is_copied_in_under_its_hash() {
    each(|scene| {
        for length in [0, 3, 700_000, LARGE] {
            let source = scene.store.temporary("mp4");
            std::fs::write(&source, bytes(length)).unwrap();
            for _ in 0..2 {
                let mut seen = Vec::new();
                let copied = scene.store.copy(&source, &mut |piece| seen.push(piece.len()));
                assert_eq!(copied.unwrap(), (ContentHash::new(&bytes(length)), length as u64));
                assert_eq!(seen.iter().sum::<usize>(), length);
                assert!(seen.iter().rev().skip(1).all(|piece| *piece == super::COPY_BYTES));
            }
            assert!(scene.store.is_intact(ContentHash::new(&bytes(length)), length as u64));
        }
    });
}

#[test]
fn a_blob_is_taken_over_once_and_only_with_its_own_bytes() {
    for from in all() {
        for to in all() {
            check_taking_over(&from, &to);
        }
        let large = from.store.write(&bytes(LARGE)).unwrap();
        for to in all() {
            let taken = to.store.copy_from(&from.store, large, LARGE as u64);
            assert!(matches!(taken, Ok(CopyOutcome::Copied)));
            assert!(to.store.is_intact(large, LARGE as u64));
        }
    }
}

fn check_taking_over(from: &Scene, to: &Scene) {
    let hash = from.store.write(b"picture").unwrap();
    let refused = |hash, length| match to.store.copy_from(&from.store, hash, length).unwrap() {
        CopyOutcome::Refused(why) => why,
        other @ (CopyOutcome::Copied | CopyOutcome::AlreadyPresent) => panic!("{other:?}"),
    };
    assert!(matches!(refused(hash, 8), StoreError::Length { .. }));
    assert!(matches!(refused(ContentHash([1; 32]), 8), StoreError::Missing(_)));
    assert!(matches!(to.store.copy_from(&from.store, hash, 7), Ok(CopyOutcome::Copied)));
    assert!(matches!(to.store.copy_from(&from.store, hash, 7), Ok(CopyOutcome::AlreadyPresent)));
    assert!(to.store.is_intact(hash, 7));
    to.overwrite(hash, b"pictuRE");
    assert!(!to.store.is_intact(hash, 7));
    assert!(matches!(to.store.replace(&from.store, hash, 7), Ok(CopyOutcome::Copied)));
    assert!(to.store.is_intact(hash, 7));
    from.overwrite(hash, b"pictura");
    assert!(!from.store.is_intact(hash, 7));
    // The existing blob stays until a better one has been verified.
    let kept = to.store.replace(&from.store, hash, 7);
    assert!(matches!(kept, Ok(CopyOutcome::Refused(StoreError::Corrupted(_)))));
    assert!(to.store.is_intact(hash, 7));
    to.store.remove(hash).unwrap();
    assert!(matches!(refused(hash, 7), StoreError::Corrupted(_)));
    assert!(!to.store.is_intact(hash, 7));
    assert_eq!(to.store.leftovers().unwrap(), [] as [PathBuf; 0]);
    to.store.flush().unwrap();
}

#[test]
fn what_is_not_sent_to_its_end_does_not_show() {
    buckets().for_each(|scene| check_sending(&scene));
}

fn check_sending(scene: &Scene) {
    let StoreLocation::Bucket(blobs) = &scene.store.place else { panic!("a bucket") };
    let all = bytes(LARGE);
    let hash = ContentHash::new(&all);
    let key = blobs.bucket.key("originals", hash);
    let send = |expected: ContentHash, until: u64| {
        let mut part = |range: Range<u64>| {
            (range.start < until).then(|| Bytes::copy_from_slice(&all[within(&range)]))
        };
        blobs.bucket.send(&key, LARGE as u64, Some(expected), &mut part).unwrap()
    };
    assert!(!send(hash, 1), "its source broke off");
    assert!(!send(ContentHash([3; 32]), u64::MAX), "it is something else");
    assert_eq!(scene.store.list().unwrap(), []);
    assert!(send(hash, u64::MAX));
    assert_eq!(scene.store.list().unwrap(), [hash]);
}

#[test]
fn an_object_that_is_replaced_while_it_is_read_is_noticed() {
    buckets().for_each(|scene| check_replacing(&scene));
}

fn check_replacing(scene: &Scene) {
    let hash = scene.store.write(&bytes(LARGE)).unwrap();
    let open = || -> BlobReader { scene.store.reader(hash, LARGE as u64).unwrap() };
    let reader = open();
    assert_eq!(reader.read(8_900_000..8_900_010).unwrap().len(), 10);
    scene.overwrite(hash, &vec![1; LARGE]);
    let found = reader.read(8_900_000..8_900_010);
    assert!(matches!(found, Err(StoreError::Unavailable { .. })), "{found:?}");
    let anew = open();
    assert_ne!(anew.stamp, reader.stamp);
    assert_eq!(anew.read(8_900_000..8_900_010).unwrap(), [1; 10]);
}

#[test]
fn derived_files_are_below_the_same_folders() {
    let words: Vec<_> = DerivedKind::iter().map(DerivedKind::as_str).collect();
    assert_eq!(words, ["index", "working", "standard"]);
}

#[test]
fn derived_files_are_written_read_and_removed() {
    each(|scene| {
        let (derived, hash) = (scene.derived(), ContentHash([9; 32]));
        for kind in DerivedKind::iter() {
            assert_eq!(derived.read(kind, hash, 10).unwrap(), None);
            assert_eq!(derived.length(kind, hash).unwrap(), None);
            derived.write(kind, hash, b"first").unwrap();
            derived.write(kind, hash, b"second").unwrap();
            for again in [false, true] {
                if again {
                    derived.invalidate(hash);
                }
                assert_eq!(derived.read(kind, hash, 6).unwrap().unwrap(), b"second");
                assert_eq!(derived.read(kind, hash, 5).unwrap(), None, "it is longer");
            }
            assert_eq!(derived.length(kind, hash).unwrap(), Some(6));
            let reader = derived.reader(kind, hash, 6).unwrap();
            assert_eq!(reader.read(2..4).unwrap(), b"co");
            assert_eq!(derived.list(kind).unwrap(), [hash]);
            derived.remove(kind, hash).unwrap();
            derived.remove(kind, hash).unwrap();
            assert_eq!(derived.read(kind, hash, 10).unwrap(), None);
        }
        assert_eq!(derived.leftovers().unwrap(), [] as [&Path; 0]);
    });
}

#[test]
fn a_side_file_is_fetched_once() {
    buckets().for_each(|scene| check_fetching_once(&scene));
}

fn check_fetching_once(scene: &Scene) {
    let (derived, hash) = (scene.derived(), ContentHash([9; 32]));
    derived.write(DerivedKind::Index, hash, b"index").unwrap();
    let key = scene.prefix.clone().join("index").join("09").join("09".repeat(31));
    wait(scene.objects.delete(&key)).unwrap();
    // The removal of another file of the original does not remove the local copy.
    for kind in [DerivedKind::Working, DerivedKind::Standard] {
        derived.remove(kind, hash).unwrap();
    }
    assert_eq!(derived.read(DerivedKind::Index, hash, 10).unwrap().unwrap(), b"index");
    derived.invalidate(hash);
    derived.remove(DerivedKind::Index, hash).unwrap();
    assert_eq!(derived.read(DerivedKind::Index, hash, 10).unwrap(), None);
}

#[test]
fn a_call_from_a_thread_of_an_async_runtime_ends() {
    let scene = bucket();
    wait(async {
        let hash = scene.store.write(b"picture").unwrap();
        assert_eq!(scene.store.read(hash, 7).unwrap(), b"picture");
        drop(scene);
    });
}

#[test]
fn the_cause_of_a_store_error_is_reported_once() {
    let cause = || std::io::Error::other("the disk is on fire");
    let path = || "originals/ab".to_owned();
    for error in [
        StoreError::Io { path: path(), cause: cause() },
        StoreError::Unavailable { place: path(), cause: cause() },
    ] {
        let error = crate::runtime::error::Error::internal(error);
        let told = error.cause().unwrap();
        assert_eq!(told.matches("on fire").count(), 1, "{told}");
    }
}

#[test]
fn parts_of_uploads_are_stored_beside_the_originals_until_they_are_removed() {
    each(|scene| {
        let parts = scene.store.parts();
        assert!(parts.list().unwrap().is_empty(), "there is no folder yet");
        assert_eq!(parts.sweep().unwrap(), 0);
        let (key, other) = (ContentHash::new(b"key"), ContentHash::new(b"other"));
        let (bytes, checksum) =
            (b"the first part".as_slice(), ContentHash::new(b"the first part"));
        let length = bytes.len() as u64;
        parts.write(key, bytes).unwrap();
        parts.write(other, bytes).unwrap();
        assert_eq!(parts.read(key, length, checksum).unwrap(), bytes);
        let wrong = parts.read(key, length, ContentHash::new(b"x"));
        assert!(matches!(wrong, Err(StoreError::Corrupted(found)) if found == key));
        assert!(parts.age(key).unwrap().is_some());
        assert_eq!(parts.list().unwrap().len(), 2);
        assert!(scene.store.list().unwrap().is_empty(), "parts are no originals");
        parts.remove(key).unwrap();
        parts.remove(key).unwrap();
        assert!(matches!(parts.read(key, length, checksum), Err(StoreError::Missing(_))));
        assert_eq!((parts.list().unwrap(), parts.age(key).unwrap()), (vec![other], None));
    });
}
