//! The rendition cache in memory and on disk.

use std::fs;

use super::{THUMBNAIL, from_disk, header, renders};
use crate::common::{Server, pictures::Picture};

#[test]
fn each_cache_tier_can_be_disabled() {
    for (settings, rendered_again) in [
        (["cache.memory_bytes=0", "cache.disk_bytes=0"], 2.0),
        (["cache.memory_bytes=0", "cache.disk_bytes=100000000"], 0.0),
        (["cache.memory_bytes=100000000", "cache.disk_bytes=0"], 0.0),
    ] {
        let server = Server::demo_with(&settings);
        let first = server.bytes(THUMBNAIL);
        if settings == ["cache.memory_bytes=0", "cache.disk_bytes=100000000"] {
            from_disk(&server, THUMBNAIL);
        }
        let before = renders(&server);
        for _ in 0..2 {
            assert!(server.bytes(THUMBNAIL) == first, "{settings:?}");
        }
        assert_eq!(renders(&server) - before, rendered_again, "{settings:?}");
    }
}

/// The number of complete files in the disk tier.
fn files_on_disk(server: &Server) -> usize {
    fn count(dir: &std::path::Path) -> usize {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let whole = |path: &std::path::PathBuf| {
            path.is_dir() || path.file_name().is_some_and(|name| name.len() == 64)
        };
        let paths = entries.map(|entry| entry.path()).filter(whole);
        paths.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    count(&server.data().join("derived"))
}

#[test]
fn renditions_on_disk_survive_a_restart() {
    // The port changes with the restart, and a picture's caption contains URLs.
    let settings = ["server.public_url=http://wire.example"];
    let server = Server::with_pictures(&settings, &[("one", Picture::waves(600, 400).jpeg())]);
    let path = "/media/image/one_NormalPreview.jpg";
    let response = server.get(path);
    let tag = header(&response, "etag");
    let bytes = response.bytes().expect("body");
    server.until("the file", || files_on_disk(&server).gt(&0).then_some(()));
    let server = server.restart(&settings);
    let response = server.get(path);
    assert_eq!(header(&response, "etag"), tag);
    assert!(response.bytes().expect("body") == bytes);
    assert_eq!(renders(&server), 0.0);
}

#[test]
fn endless_crops_never_evict_a_preview() {
    let pictures = [("grain", Picture::grain(500, 350).jpeg_with(turbojpeg::Subsamp::None, 90))];
    for settings in [
        ["cache.memory_bytes=2000000", "cache.disk_bytes=0"],
        ["cache.memory_bytes=0", "cache.disk_bytes=2000000"],
    ] {
        let server = Server::with_pictures(&settings, &pictures);
        let preview = "/media/image/grain_NormalPreview.jpg";
        server.bytes(preview);
        let (mut bytes, before) = (0, renders(&server));
        for n in 0..150 {
            let crop = format!("/media/image/grain-crop_w300_h{}_NormalPreview.jpg", 150 + n);
            // The disk tier admits a crop on its second request.
            bytes += server.bytes(&crop).len() + server.bytes(&crop).len();
        }
        assert!(bytes > 4_000_000 && renders(&server) >= before + 150.0, "{bytes} bytes");
        let before = renders(&server);
        server.bytes(preview);
        assert_eq!(renders(&server), before, "{settings:?}");
        let tier = server.metric("wirephoto_cache_bytes", "");
        assert!(tier <= 2_100_000.0, "{settings:?}: {tier} bytes");
    }
}
