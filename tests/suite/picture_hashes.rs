//! Perceptual hashes of archives from before ingest computed them: the service adds them in the background, from the
//! kept standard renditions.

use std::{collections::BTreeMap, fs, path::Path};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::pictures::{Picture, with_orientation};
use crate::common::{Server, checkout, postgres};
use crate::pixels::ycck;

/// Bits in which the hash of a kept rendition may differ from the one that ingest computed. Search takes pictures for
/// the same up to six, so two are left for a picture that was saved again.
const BITS_MAX: u32 = 4;

/// A search for the duplicates of the picture `sent`.
const LIKE_SENT: &str = "/content/v1/image/search?layout=bare&duplicates=image/sent";

/// A demo photograph, by its id.
fn photograph(id: &str) -> Vec<u8> {
    let path = checkout(&format!("media-store/demo/image/{id}/NormalHires.jpg"));
    fs::read(path).expect("a demo photograph")
}

/// A picture in inks, black as far as all three colours are dark.
fn in_inks(picture: &Picture) -> Vec<u8> {
    let inks = picture.pixels.chunks_exact(3).flat_map(|pixel| {
        let lightest = pixel.iter().copied().max().unwrap_or(0);
        let ink = |level: u8| {
            let share = u32::from(lightest - level) * 255 / u32::from(lightest.max(1));
            u8::try_from(share).expect("a share of 255")
        };
        [ink(pixel[0]), ink(pixel[1]), ink(pixel[2]), 255 - lightest]
    });
    ycck(picture.width, picture.height, &inks.collect::<Vec<u8>>())
}

/// Photographs in several colour spaces, one of them sent twice, and a picture that cannot be compared.
fn pictures() -> Vec<(&'static str, Vec<u8>)> {
    let sent = photograph("demo-paint-brushes");
    let small = Picture::decode(&photograph("demo-Falcon9-DSCOVR"));
    vec![
        ("half", Picture::decode(&sent).reduced(2).jpeg_with(turbojpeg::Subsamp::Sub2x2, 70)),
        ("sent", sent),
        ("p3", photograph("demo-fig-in-red-bowl_P3")),
        ("adobe-rgb", photograph("demo-Falcon9-DSCOVR")),
        ("grey", photograph("demo-stream-in-forest-bw")),
        ("turned", with_orientation(&small.crop(0, 0, 400, 400).jpeg(), 6)),
        ("inks", in_inks(&small)),
        ("flat", Picture::flat(960, 640, [90, 90, 120]).jpeg()),
    ]
}

/// The first column of the rows that a query of the database returns, which is a text.
fn rows(dir: &Path, sql: &str) -> Vec<String> {
    if let Some(url) = postgres::url_of(dir) {
        return postgres::run(&url, sql).lines().map(str::to_owned).collect();
    }
    let database = Connection::open(dir.join("data/wirephoto.db")).expect("the database");
    let mut query = database.prepare(sql).expect("a query");
    let found = query.query_map([], |row| row.get(0)).expect("rows");
    found.collect::<Result<_, _>>().expect("texts")
}

/// The hashes of the items' pictures, by id; without those of items that have none.
fn hashes(dir: &Path) -> BTreeMap<String, u64> {
    let hash_of = |row: &String| {
        let (id, assets) = row.split_once(' ').expect("an id and its files");
        let assets: Value = serde_json::from_str(assets).expect("JSON");
        let hash = u64::from_str_radix(assets[0]["picture_hash"].as_str()?, 16).expect("a hash");
        Some((id.to_owned(), hash))
    };
    rows(dir, "SELECT id || ' ' || assets FROM items").iter().filter_map(hash_of).collect()
}

/// Makes the archive of a stopped server one of before: no picture has a hash, in the database or in the index.
fn forget_hashes(dir: &Path) {
    let progress = "DELETE FROM state WHERE name = 'picture-hashes'";
    if let Some(url) = postgres::url_of(dir) {
        let hash = "'\"picture_hash\":\"[0-9a-f]{16}\",', '', 'g'";
        postgres::run(&url, &format!("UPDATE items SET assets = regexp_replace(assets, {hash})"));
        postgres::run(&url, progress);
    } else {
        let database = Connection::open(dir.join("data/wirephoto.db")).expect("the database");
        let files = "SELECT json_group_array(json_remove(value, '$.picture_hash'))
                     FROM json_each(items.assets)";
        let forget = format!("UPDATE items SET assets = ({files}); {progress}");
        database.execute_batch(&forget).expect("changed");
    }
    fs::remove_dir_all(dir.join("data/search")).expect("removed");
    assert_eq!(hashes(dir), BTreeMap::new());
}

/// The ids of the pictures that are found as duplicates of `sent`, sorted; `None` if the search is refused.
fn like_sent(server: &Server) -> Option<String> {
    let answer = server.get(LIKE_SENT);
    let answer: Value = (answer.status() == 200).then(|| answer.json().expect("JSON"))?;
    let uri = |hit: &Value| hit["uri"].as_str().expect("a uri").to_owned();
    let uris = answer["hits"].as_array().expect("hits").iter().map(uri);
    let mut ids: Vec<String> =
        uris.filter_map(|uri| uri.rsplit('/').next().map(str::to_owned)).collect();
    ids.sort_unstable();
    Some(ids.join(" "))
}

#[test]
fn an_archive_of_before_is_measured_in_the_background_as_ingest_measures_it() {
    let pictures = pictures();
    let server = Server::with_pictures(&["media.warm=false"], &pictures);
    server.wait_for_index();
    let measured = hashes(server.dir.path());
    assert_eq!(measured.len() + 1, pictures.len(), "all but the flat one: {measured:?}");
    let dir = server.kill();
    forget_hashes(dir.path());
    // Without the job that keeps standard renditions nothing is measured.
    let server = Server::start(dir, &["media.warm=false"]);
    server.wait_for_index();
    assert_eq!(server.get(LIKE_SENT).status(), 400);
    let server = server.restart(&[]);
    server.until("the twin", || (like_sent(&server)? == "half sent").then_some(()));
    server.until("the last item", || {
        let said = server.command(&["check", "--quick", "--json"]).stdout;
        let report = said.trim_ascii_end().rsplit(|&byte| byte == b'\n').next()?;
        let report: Value = serde_json::from_slice(report).expect("JSON");
        let is_whole = report["standardRenditions"]["toGo"] == 0;
        (is_whole && report["pictureHashes"] == json!({ "toGo": 0 })).then_some(())
    });
    let found = hashes(server.dir.path());
    assert_eq!(Vec::from_iter(found.keys()), Vec::from_iter(measured.keys()));
    for (id, hash) in &found {
        let bits = (hash ^ measured[id]).count_ones();
        assert!(bits <= BITS_MAX, "{id}: {hash:016x} instead of {:016x}", measured[id]);
    }
    assert_eq!(found["inks"], measured["inks"], "measured on the original, as at ingest");
    // Each was written once, and the one without a hash not at all.
    let versions =
        rows(server.dir.path(), "SELECT id || ' ' || count(*) FROM item_log GROUP BY id");
    assert_eq!(versions.len(), pictures.len());
    for version in versions {
        let expected = if version.starts_with("flat ") { " 1" } else { " 2" };
        assert!(version.ends_with(expected), "{version}");
    }
    // A picture that ingest measures is found together with those that the job measured.
    let again = server.dir.path().join("again.jpg");
    fs::write(&again, photograph("demo-paint-brushes")).expect("written");
    assert!(server.command(&["ingest", &again.to_string_lossy()]).status.success());
    server.until("the new one", || (like_sent(&server)? == "again half sent").then_some(()));
}
