//! `wirephoto check`: each kind of damage is seeded separately; the check must report it under its name, and report
//! nothing else.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::server::{output, wirephoto};
use crate::common::{DEMO_KEY, Server, checkout, pictures::Picture};

/// An archive whose server was killed: photographs stored in each possible form, an order, files in the cache.
fn archive() -> Server {
    // Progressive, and large enough for a standard set with a base.
    let large = checkout("media-store/demo/image/demo-dandelion-seeding/NormalHires.jpg");
    let large = fs::read(large).unwrap();
    let small = Picture::waves(64, 48).jpeg();
    let mut server =
        Server::with_pictures(&["media.warm=false"], &[("large", large), ("small", small)]);
    server.bytes("/media/image/large_NormalThumbnail.jpg");
    server.bytes(&format!("/media/image/small.jpg?ak={DEMO_KEY}"));
    // A file that is still being written has another name.
    let is_whole = |path: &PathBuf| path.file_name().is_some_and(|name| name.len() == 64);
    server.until("a file in the cache", || {
        files(&server.data().join("derived/cache/standard")).into_iter().find(is_whole)
    });
    server.signal("KILL");
    server.child.wait().unwrap();
    server
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let all = entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    // The archive id is not an original.
    all.filter(|path| !path.ends_with("archive-id")).collect()
}

/// The largest file below a folder of the data directory.
fn largest(data: &Path, folder: &str) -> PathBuf {
    let found = files(&data.join(folder));
    found.into_iter().max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

/// Changes the bytes of a file.
fn change(path: &Path, how: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    how(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn flip(path: &Path) {
    change(path, |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    });
}

/// Sets the modification time of a file to two hours ago.
fn make_old(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, b"nobody's").unwrap();
    let then = SystemTime::now() - Duration::from_secs(7200);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn sql(data: &Path, statements: &str) {
    let database = Connection::open(data.join("wirephoto.db")).unwrap();
    database.pragma_update(None, "foreign_keys", "OFF").unwrap();
    database.execute_batch(statements).unwrap();
}

/// Modifies the database file without SQLite's knowledge.
fn modify_database_file(data: &Path, at: impl FnOnce(&Connection) -> usize, bytes: &[u8]) {
    let path = data.join("wirephoto.db");
    let database = Connection::open(&path).unwrap();
    // Checkpoints the WAL into the database file.
    database.pragma_update(None, "journal_mode", "DELETE").unwrap();
    let at = at(&database);
    drop(database);
    change(&path, |all| all[at..at + bytes.len()].copy_from_slice(bytes));
}

/// Runs a check; returns the problems that it reports, each a kind and a text, and its exit status.
fn check(data: &Path, arguments: &[&str]) -> (Vec<(String, String)>, i32) {
    let mut command = wirephoto(data.parent().unwrap());
    let output = output(command.args(["check", "--json"]).args(arguments).arg("--data").arg(data));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let problems = lines
        .filter(|line| line["problem"].is_string())
        .map(|line| (text(&line["problem"]), text(&line["text"])))
        .collect();
    (problems, output.status.code().unwrap())
}

/// A kind of damage: its name, how it is done, and the expected problems, each a kind and a part of its text.
type Seed = (&'static str, Box<dyn Fn(&Path)>, Vec<(&'static str, &'static str)>);

fn seed(
    what: &'static str,
    how: impl Fn(&Path) + 'static,
    expected: &[(&'static str, &'static str)],
) -> Seed {
    (what, Box::new(how), expected.to_vec())
}

fn file_damage() -> Vec<Seed> {
    let original = |data: &Path| largest(data, "originals");
    let remove = |path: PathBuf| fs::remove_file(path).unwrap();
    let mut seeds = vec![
        seed("a missing original", move |data| remove(original(data)), &[("missing", "large")]),
        seed(
            "a truncated original",
            move |data| change(&original(data), |bytes| bytes.truncate(1000)),
            &[("damaged", "image/large")],
        ),
        seed("a flipped bit", move |data| flip(&original(data)), &[("damaged", "image/large")]),
        seed(
            "bytes behind an original",
            move |data| change(&original(data), |bytes| bytes.push(7)),
            &[("damaged", "image/large")],
        ),
        seed(
            "what an interrupted write left",
            |data| make_old(&data.join("originals/tmp/0199")),
            &[("leftover", "originals/tmp/0199")],
        ),
        seed(
            "what an interrupted derivation left",
            |data| make_old(&data.join("derived/standard/tmp-0199")),
            &[("leftover", "derived/standard/tmp-0199")],
        ),
        seed(
            "a damaged file of the cache",
            |data| flip(&largest(data, "derived/cache/standard")),
            &[("cache", "derived/cache/standard")],
        ),
    ];
    for kind in ["index", "working", "standard"] {
        let folder = format!("derived/{kind}");
        let same = folder.clone();
        let expected = [("derived", kind)];
        // Standard renditions that are not made yet are no damage.
        if kind != "standard" {
            let how = move |data: &Path| remove(largest(data, &folder));
            seeds.push(seed("a missing file", how, &expected));
        }
        seeds.push(seed("a damaged file", move |data| flip(&largest(data, &same)), &expected));
    }
    seeds
}

/// Damage done by SQL statements.
fn by_sql(
    what: &'static str,
    statements: &'static str,
    expected: &[(&'static str, &'static str)],
) -> Seed {
    seed(what, move |data| sql(data, statements), expected)
}

fn index_damage() -> Vec<Seed> {
    vec![
        by_sql(
            "a version that the index has from another time",
            "UPDATE items SET stored_ms = stored_ms + 1 WHERE id = 'small'",
            &[("index", "image/small: search does not find it"), ("index", "belongs to no item")],
        ),
        seed(
            "another archive",
            |data| {
                sql(data, "UPDATE state SET value = 'another' WHERE name = 'archive id'");
                let mark = data.join("originals/archive-id");
                let text = fs::read_to_string(&mark).unwrap();
                let (_, rest) = text.split_once(' ').unwrap();
                fs::write(mark, format!("another {rest}")).unwrap();
            },
            &[("index", "belongs to another archive")],
        ),
        by_sql(
            "a state of the archive in which others were written under the same numbers",
            "UPDATE item_log SET at_ms = at_ms + 1",
            &[("index", "belongs to another state")],
        ),
        seed(
            "a damaged file of the index",
            |data| {
                let is_segment =
                    |path: &PathBuf| path.extension().is_some_and(|kind| kind == "fast");
                flip(&files(&data.join("search")).into_iter().find(is_segment).unwrap());
            },
            &[("index", "is damaged")],
        ),
    ]
}

fn row_damage() -> Vec<Seed> {
    vec![
        by_sql(
            "a document that is cut",
            "UPDATE items SET document = substr(document, 1, 20) WHERE id = 'small'",
            &[("row", "image/small: its document cannot be read")],
        ),
        by_sql(
            "a status that is not the document's",
            "UPDATE items SET document = replace(document, '{', '{\"pubstatus\":\"replaced\",')
             WHERE id = 'small' AND document NOT LIKE '%pubstatus%';
             UPDATE items SET document = replace(document, '\"usable\"', '\"replaced\"')
             WHERE id = 'small'",
            &[("row", "image/small: its document has the status replaced, its row usable")],
        ),
        by_sql(
            "a document that is no text",
            "UPDATE items SET document = CAST(substr(document, 1, 20) || X'FF' AS TEXT)
             WHERE id = 'small'",
            &[("row", "image/small: its document cannot be read")],
        ),
        by_sql(
            "a list of files that is no text",
            "UPDATE items SET assets = CAST(assets || X'FF' AS TEXT) WHERE id = 'small'",
            &[("row", "image/small: its list of files cannot be read")],
        ),
        by_sql(
            "a list of files that is cut",
            "UPDATE items SET assets = '[{' WHERE id = 'small'",
            &[("row", "image/small: its list of files")],
        ),
        by_sql(
            "a row that refers to nobody",
            "INSERT INTO profiles VALUES (424242, '{}')",
            &[("reference", "profiles 424242")],
        ),
        by_sql(
            "an order of no item",
            "UPDATE orders SET item_id = 'nowhere'",
            &[("reference", "there is no item image/nowhere")],
        ),
        by_sql(
            "a queue of no notification",
            "INSERT INTO queued_items (position, number, media_type, id, seq)
             VALUES (5, 77, 'image', 'small', 1)",
            &[("reference", "queued_items 5")],
        ),
        by_sql(
            "a collection of no item",
            "INSERT INTO collections VALUES (3, 'c', 101, 'c', 0, 0, 0, NULL);
             INSERT INTO collection_items VALUES (3, 'image', 'nowhere', 1)",
            &[("reference", "collection_items 3: there is no item image/nowhere")],
        ),
    ]
}

#[test]
fn every_seeded_damage_is_reported_and_nothing_else() {
    let server = archive();
    let whole = server.data();
    assert_eq!(check(&whole, &[]), (Vec::new(), 0), "an undamaged archive");
    let seeds = [file_damage(), index_damage(), row_damage()].into_iter().flatten();
    for (what, how, mut expected) in seeds {
        let scratch = tempfile::tempdir().unwrap();
        let data = scratch.path().join("data");
        let copied = Command::new("cp").arg("-a").args([&whole, &data]).status().unwrap();
        assert!(copied.success());
        how(&data);
        let (problems, status) = check(&data, &[]);
        assert_eq!(status, 1, "{what}");
        let mut left = problems.clone();
        expected.retain(|(word, part)| {
            let found = left.iter().position(|(told, text)| told == word && text.contains(part));
            found.map(|at| left.remove(at)).is_none()
        });
        assert!(expected.is_empty() && left.is_empty(), "{what}: {problems:?}");
        let derived = ["derived", "index", "cache", "leftover"];
        if problems.iter().all(|(word, _)| derived.contains(&word.as_str())) {
            let (problems, status) = check(&data, &["--repair"]);
            assert_eq!(status, 0, "{what}: {problems:?}");
            assert!(problems.iter().all(|(word, _)| word == "repaired"), "{what}: {problems:?}");
            assert_eq!(check(&data, &[]), (Vec::new(), 0), "{what}");
        }
    }
}

/// Invalid UTF-8 in a key column must not hide the other rows.
#[test]
fn a_row_with_invalid_utf_8_is_reported_by_item_and_the_rest_is_checked() {
    let server = archive();
    let data = server.data();
    fs::remove_file(largest(&data, "originals")).unwrap();
    for (column, expected) in
        [("id", "item image/small\u{FFFD}: its id"), ("pubstatus", "image/small")]
    {
        let scratch = tempfile::tempdir().unwrap();
        let copy = scratch.path().join("data");
        assert!(Command::new("cp").arg("-a").args([&data, &copy]).status().unwrap().success());
        // Also the first row, before the one with the missing original.
        sql(
            &copy,
            &format!(
                "UPDATE items SET {column} = CAST({column} || X'FF' AS TEXT) WHERE id = 'small'"
            ),
        );
        let (problems, status) = check(&copy, &[]);
        assert_eq!(status, 1);
        let told = |word: &str, text: &str| {
            problems.iter().any(|(told, found)| told == word && found.contains(text))
        };
        assert!(told("row", expected), "{column}: {problems:?}");
        assert!(told("missing", "large"), "{column}: the rest is looked at: {problems:?}");
        assert_eq!(summary(&copy, &[])["orphans"]["count"], 0, "unread items may name any");
    }
    // If an item's list of files cannot be read, the summary says so.
    sql(&data, "UPDATE items SET assets = CAST(assets || X'FF' AS TEXT) WHERE id = 'small'");
    let mut command = wirephoto(server.dir.path());
    let output = output(command.args(["check", "--data"]).arg(&data));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("not all items could be read"), "{said}");
}

#[test]
fn damaged_database_pages_are_reported_with_their_table() {
    let server = archive();
    let whole = server.data();
    let damaged = |how: &dyn Fn(&Path)| {
        let scratch = tempfile::tempdir().unwrap();
        let data = scratch.path().join("data");
        assert!(Command::new("cp").arg("-a").args([&whole, &data]).status().unwrap().success());
        how(&data);
        let (problems, status) = check(&data, &[]);
        assert_eq!(status, 1);
        assert!(problems.iter().all(|(word, _)| word == "database"), "{problems:?}");
        problems.into_iter().map(|(_, text)| text + "\n").collect::<String>()
    };
    let root = |database: &Connection| {
        let sql = "SELECT (rootpage - 1) * (SELECT page_size FROM pragma_page_size)
             FROM sqlite_schema WHERE name = 'licenses'";
        let at: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
        usize::try_from(at).unwrap()
    };
    let told = damaged(&|data| modify_database_file(data, root, &[0xFF; 64]));
    assert!(told.contains("table licenses"), "{told}");
    // The header claims seven hundred free pages.
    let told = damaged(&|data| modify_database_file(data, |_| 36, &700_u32.to_be_bytes()));
    assert!(told.to_lowercase().contains("freelist"), "{told}");
    // A file that is not a database is refused with a clear message.
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("wirephoto.db"), "no database at all".repeat(100)).unwrap();
    let mut command = wirephoto(scratch.path());
    let output = output(command.args(["check", "--data"]).arg(&data));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("not a database"), "{said}");
}

/// The originals below a data directory, ordered by hash.
fn originals(data: &Path) -> Vec<PathBuf> {
    let mut found = files(&data.join("originals"));
    found.sort();
    found
}

/// The summary of a check with `--json`.
fn summary(data: &Path, arguments: &[&str]) -> Value {
    let mut command = wirephoto(data.parent().unwrap());
    let output = output(command.args(["check", "--json"]).args(arguments).arg("--data").arg(data));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(said.lines().last().unwrap_or_else(|| panic!("{output:?}"))).unwrap()
}

#[test]
fn a_quick_check_compares_presence_and_length_and_a_sample_is_read() {
    let server = archive();
    let data = server.data();
    let quick = ["--quick"];
    assert_eq!(check(&data, &quick), (Vec::new(), 0));
    let small = originals(&data).into_iter().min_by_key(|path| fs::metadata(path).unwrap().len());
    flip(&small.unwrap());
    assert_eq!(check(&data, &quick), (Vec::new(), 0), "no original is read");
    let said = summary(&data, &quick);
    assert_eq!((&said["originals"], &said["read"]), (&2.into(), &0.into()), "{said}");
    // The sample covers every original, because the selection is random.
    let (problems, status) = check(&data, &["--sample", "2"]);
    assert_eq!((problems.len(), status), (1, 1), "{problems:?}");
    assert!(problems[0].0 == "damaged" && problems[0].1.contains("image/small"), "{problems:?}");
    assert_eq!(summary(&data, &["--sample", "1"])["read"], 1);
    assert_eq!(summary(&data, &["--quick", "--sample", "9"])["read"], 2);
    let large = largest(&data, "originals");
    let length = fs::metadata(&large).unwrap().len();
    change(&large, |bytes| bytes.push(7));
    make_old(&data.join("originals/ab").join("0".repeat(62)));
    let (mut problems, status) = check(&data, &quick);
    problems.sort();
    assert_eq!((problems.len(), status), (1, 1), "{problems:?}");
    let told = format!("it has {} bytes and had {length}", length + 1);
    assert!(
        problems[0].1.contains("image/large") && problems[0].1.contains(&told),
        "{problems:?}"
    );
    let orphans = summary(&data, &quick)["orphans"].clone();
    assert_eq!(orphans, json!({ "count": 1, "bytes": 8 }), "an orphan is no problem");
    fs::remove_file(&large).unwrap();
    let (problems, _) = check(&data, &quick);
    assert!(problems.iter().any(|(word, text)| word == "missing" && text.contains("large")));
    let mut command = wirephoto(server.dir.path());
    let refused = output(command.args(["check", "--quick", "--repair", "--data"]).arg(&data));
    assert_eq!(refused.status.code(), Some(2), "a quick check repairs nothing");
}

#[test]
fn an_interrupted_check_resumes_where_it_stopped() {
    let pictures: Vec<(String, Vec<u8>)> = (0..4_usize)
        .map(|n| (format!("wave{n}"), Picture::waves(64 + 8 * n, 48).jpeg()))
        .collect();
    let mut server = Server::with_pictures(&["media.warm=false"], &pictures);
    server.signal("KILL");
    server.child.wait().unwrap();
    let data = server.data();
    let originals = originals(&data);
    let (first, last) = (&originals[0], &originals[3]);
    flip(first);
    // Opening a pipe blocks until a writer opens it: the check stops before the last original.
    let aside = server.dir.path().join("aside");
    fs::rename(last, &aside).unwrap();
    assert!(Command::new("mkfifo").arg(last).status().unwrap().success());
    let mut command = wirephoto(server.dir.path());
    command.args(["check", "--json", "--set", "ingest.workers=1", "--data"]).arg(&data);
    let mut interrupted = command.stdout(Stdio::null()).spawn().unwrap();
    server.until("a note of how far the check came", || {
        let database = Connection::open(data.join("wirephoto.db")).unwrap();
        let sql = "SELECT count(*) FROM state WHERE name = 'check'";
        let notes: i64 = database.query_row(sql, [], |row| row.get(0)).unwrap();
        (notes == 1).then_some(())
    });
    interrupted.kill().unwrap();
    interrupted.wait().unwrap();
    fs::remove_file(last).unwrap();
    fs::rename(&aside, last).unwrap();
    let mut command = wirephoto(server.dir.path());
    let output = output(command.args(["check", "--json", "--resume", "--data"]).arg(&data));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("\"problem\":"), "the damaged one was read before: {said}");
    let end: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    let skipped = end["resumed"]["originals"].as_u64().unwrap();
    assert!((1..4).contains(&skipped) && end["read"] == 4 - skipped, "{end}");
    // Problems found before the interruption count towards the exit status.
    assert_eq!((&end["problems"], &end["resumed"]["problems"]), (&1.into(), &1.into()), "{end}");
    assert_eq!(output.status.code(), Some(1));
    let end = summary(&data, &["--resume"]);
    assert_eq!((&end["read"], &end["resumed"]), (&4.into(), &Value::Null), "nothing to continue");
}

#[test]
fn a_damaged_row_does_not_stop_the_standard_renditions_of_the_others() {
    let pictures: Vec<(String, Vec<u8>)> = (0..3_usize)
        .map(|n| (format!("wave{n}"), Picture::waves(64 + 8 * n, 48).jpeg()))
        .collect();
    let mut server = Server::with_pictures(&["media.warm=false"], &pictures);
    server.signal("KILL");
    server.child.wait().unwrap();
    let data = server.data();
    sql(
        &data,
        "UPDATE items SET assets = CAST(assets || X'FF' AS TEXT)
         WHERE item_id = (SELECT item_id FROM items ORDER BY item_id LIMIT 1 OFFSET 1);
         UPDATE items SET assets = '[{' WHERE item_id = (SELECT min(item_id) FROM items)",
    );
    let server = server.restart_killed(&[]);
    server.until("the set of the last item", || {
        (files(&data.join("derived/standard")).len() == 1).then_some(())
    });
    server.until("the progress", || {
        let said = summary(&data, &["--quick"]);
        (said["standardRenditions"]["toGo"] == 0).then_some(())
    });
}
