//! Originals in a bucket: the binary over an S3 server that checks signatures, with a proxy between the two that
//! counts bytes and injects faults.

use std::{fs, time::Instant};

use reqwest::Method;
use serde_json::json;

use crate::buckets::{
    BASE, Bucket, Fault, Gate, LARGE_PROGRESSIVE, SHORT_TIMEOUTS, body, get, import, ingest_demo,
    of_bucket, run, run_ok, serve, text,
};
use crate::common::server::{output, wirephoto};
use crate::common::{
    DEMO_KEY, LARGE, Server, WAIT_TIMEOUT, checkout, oracle, pictures::Picture,
    ports::ReservedPort,
};
use crate::faults::kit::{self, call};

/// One path for each way in which the service reads an original.
fn paths() -> Vec<String> {
    let mut paths: Vec<String> = [
        "/media/graphic/demo-sweden-map.pdf",
        "/media/graphic/demo-sweden-map.eps",
        "/media/graphic/demo-sweden-map.zip",
        "/media/video/demo-hubble-pan_NormalPreview.mp4",
    ]
    .map(str::to_owned)
    .to_vec();
    for item in ["image/demo-trumma-och-vin", LARGE_PROGRESSIVE] {
        for rendition in [
            ".jpg",
            ".zip",
            "_NormalPreview.jpg",
            "_NormalThumbnail.jpg",
            "-watermark.jpg",
            "-crop_w400_h300_x160_y160.jpg",
            "-crop_w401_h299_x333_y77.jpg",
            "-crop_w401_h299_x333_y77-watermark.jpg",
            "-crop_w200_h100_x31_y17_NormalPreview.jpg",
        ] {
            paths.push(format!("/media/{item}{rendition}"));
        }
    }
    paths
}

/// Checks that two servers give the same bytes with the same entity tags, in full and in ranges.
fn compare(one: &Server, other: &Server) {
    for path in paths() {
        let [expected, found] = [one, other].map(|server| {
            let response = get(server, &path);
            assert_eq!(response.status(), 200, "{path}: {}", server.log());
            (response.headers()["etag"].clone(), response.bytes().unwrap())
        });
        assert!(expected == found, "{path} is another one");
        let length = found.1.len();
        for (from, to) in [(0, 0), (length / 3, length / 2), (length - 1, length - 1)] {
            let range = format!("bytes={from}-{to}");
            let request = call(other, Method::GET, &path, DEMO_KEY).header("range", range);
            let part = request.send().unwrap();
            assert_eq!(part.status(), 206, "{path}");
            assert!(part.bytes().unwrap() == found.1[from..=to], "{path} {from}-{to}");
        }
    }
}

#[test]
fn originals_in_a_bucket_and_in_a_folder_give_the_same_bytes() {
    let mut bucket = Bucket::start();
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plain = BASE.map(str::to_owned).to_vec();
    let settings = bucket.settings("wire/a", &[]);
    ingest_demo(there.path(), &settings);
    let data = there.path().join("data");
    assert!(!data.join("originals").exists(), "nothing of an original is on the disk");
    assert_eq!(bucket.keys("").len(), bucket.keys("wire/a/").len());
    let originals = bucket.keys("wire/a/originals/").len();
    assert_eq!(bucket.keys("wire/a/index/").len(), originals);
    assert!(!bucket.keys("wire/a/working/").is_empty());
    assert!(run_ok(there.path(), &settings, &["check"]).contains("0 problems"));
    // The same items in a folder.
    let backup = text(&here.path().join("backup"));
    run_ok(there.path(), &settings, &["backup", &backup]);
    run_ok(here.path(), &plain, &["restore", &backup]);
    let folder = serve(here, &plain);
    let server = serve(there, &settings);
    compare(&folder, &server);
    assert!(server.metric("wirephoto_bucket_bytes_total", "in") > 1e6);
    // A machine with only the database.
    let server = {
        fs::remove_dir_all(data.join("derived")).unwrap();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        server.restart(&settings)
    };
    compare(&folder, &server);
    assert!(!server.log().contains("rebuilding derived files"), "{}", server.log());
    let (status, _) = server.stop();
    assert!(status.success());
}

/// A photograph with `megapixels`, made from one of the demo archive, with the grain of a camera.
fn large(megapixels: u32) -> Vec<u8> {
    let script = "
import io, math, sys
from PIL import Image, ImageChops, ImageOps
from random import seed
tile = Image.open(sys.argv[1]).convert('RGB')
pixels = float(sys.argv[2]) * 1e6
width = int(math.sqrt(pixels * 4 / 3)); height = int(pixels / width)
whole = Image.new('RGB', (width, height))
for row, y in enumerate(range(0, height, tile.height)):
    for column, x in enumerate(range(0, width, tile.width)):
        part = ImageOps.mirror(tile) if column % 2 else tile
        whole.paste(ImageOps.flip(part) if row % 2 else part, (x, y))
grain = Image.effect_noise((1024, 1024), 5)
noise = Image.new('L', (width, height))
for y in range(0, height, 1024):
    for x in range(0, width, 1024):
        noise.paste(grain, (x, y))
whole = ImageChops.add(whole, Image.merge('RGB', [noise] * 3), 1, -128)
whole.save(sys.stdout.buffer, 'JPEG', quality=92, subsampling='4:2:0')
";
    let tile = checkout(&format!("media-store/demo/{LARGE}/NormalHires.jpg"));
    oracle::python(script, &[&text(&tile), &megapixels.to_string()], b"")
}

/// `S3_MEGAPIXELS` sets the size of the photograph; the documentation quotes 100.
#[test]
fn a_crop_of_a_large_original_fetches_a_small_part_of_it() {
    let megapixels = std::env::var("S3_MEGAPIXELS").map_or(100, |text| text.parse().unwrap());
    let mut bucket = Bucket::start();
    let settings = bucket.settings("wire", &[]);
    let dir = tempfile::tempdir().unwrap();
    let (file, jpeg) = (dir.path().join("large.jpg"), large(megapixels));
    fs::write(&file, &jpeg).unwrap();
    run_ok(dir.path(), &settings, &["ingest", &text(&file)]);
    import(dir.path(), &settings);
    let key = bucket.keys("wire/originals/").remove(0);
    let object = bucket.s3.ask(&key);
    assert_eq!(object["size"], jpeg.len());
    let parts = jpeg.len().div_ceil(8 << 20);
    assert!(object["parts"] == parts && object["open"] == 0, "{object}");
    fs::remove_dir_all(dir.path().join("data/derived")).unwrap();
    let server = serve(dir, &settings);
    let all = jpeg.len() as u64;
    let part = |bytes: u64| 100.0 * bytes as f64 / all as f64;
    let mut fetched = Vec::new();
    for (n, (x, y)) in [(5001, 3003), (801, 77), (7003, 6001), (3333, 5555)].iter().enumerate() {
        let (x, y) = (x * megapixels / 100, y * megapixels / 100);
        let path = format!("/media/image/large-crop_w800_h600_x{x}_y{y}.jpg");
        let (made, bytes, requests) = bucket.gate.count(|| body(&server, &path));
        let (x, y) = (usize::try_from(x).unwrap(), usize::try_from(y).unwrap());
        if n == 0 {
            let expected = Picture::decode(&jpeg).crop(x, y, 800, 600);
            assert!(Picture::decode(&made).psnr(&expected) > 34.0);
        }
        println!("crop {n}: {bytes} bytes, {:.2} % of {all}, {requests} requests", part(bytes));
        fetched.push(bytes);
    }
    // The first request fetches the index file too, which is on the disk from then on.
    let side = bucket.keys("wire/index/").remove(0);
    let side = bucket.s3.ask(&side)["size"].as_u64().unwrap();
    println!("side file: {side} bytes, {:.2} %", part(side));
    assert!(fetched[0] > side, "{fetched:?}");
    for bytes in &fetched[1..] {
        assert!(megapixels < 100 || part(*bytes) < 2.0, "{bytes} bytes of {all}");
    }
    // The Preview takes the whole original, once for all small renditions.
    let small = ["_NormalThumbnail", "_WatermarkPreview", "-fit_w640_NormalPreview"];
    for rendition in ["-watermark", "", "_NormalPreview"].into_iter().chain(small) {
        let path = format!("/media/image/large{rendition}.jpg");
        let (_, bytes, requests) = bucket.gate.count(|| body(&server, &path));
        println!("{path}: {bytes} bytes, {:.2} %, {requests} requests", part(bytes));
        assert!(!small.contains(&rendition) || part(bytes) < 5.0);
    }
}

#[test]
fn an_aborted_multipart_upload_leaves_nothing_and_can_be_retried() {
    let mut bucket = Bucket::start();
    let settings = bucket.settings("wire", &["store.give_up_s=8"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kart.eps");
    let head = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\n";
    fs::write(&file, [&head[..], &vec![b'%'; 20_000_000]].concat()).unwrap();
    let ingest = ["ingest", &text(&file)];
    for way in [Fault::Refuse, Fault::Close] {
        bucket.gate.inject("partNumber=2", way);
        let (said, status) = run(dir.path(), &settings, &ingest);
        assert!(
            status == 1 && said.contains("kart.eps") && said.contains("s3://bilder"),
            "{said}"
        );
        assert_eq!(said.contains("AccessDenied"), way == Fault::Refuse, "{said}");
        bucket.gate.clear_fault();
        assert_eq!(bucket.keys("wire/"), ["wire/archive-id"]);
        assert_eq!(bucket.send_command(&json!({ "do": "open" })), 0, "its parts are taken back");
    }
    run_ok(dir.path(), &settings, &ingest);
    assert_eq!(bucket.keys("wire/originals/").len(), 1);
    assert!(run_ok(dir.path(), &settings, &["check"]).contains("1 originals checked, 0 problems"));
}

#[test]
fn a_failing_bucket_is_503_in_time_and_served_again_when_it_is_back() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    let settings = bucket.settings("wire", &SHORT_TIMEOUTS);
    let server = serve(dir, &settings);
    let known = "/media/image/demo-trumma-och-vin_NormalPreview.jpg";
    let before = body(&server, known);
    for (n, way) in [Fault::Hang, Fault::Close, Fault::Refuse].into_iter().enumerate() {
        // A region of a picture, deep in its file, and a whole file that is not cached.
        let crop =
            format!("/media/image/demo-trumma-och-vin-crop_w{}_h100_x400_y600.jpg", 100 + n);
        let whole = [
            "/media/graphic/demo-sweden-map.pdf",
            "/media/video/demo-hubble-pan_NormalPreview.mp4",
            "/media/graphic/demo-sweden-map.eps",
        ][n];
        bucket.gate.inject("", way);
        for path in [crop.as_str(), whole] {
            let start = Instant::now();
            let response = get(&server, path);
            assert_eq!(response.status(), 503, "{way:?} {path}: {}", server.log());
            assert_eq!(response.headers()["cache-control"], "no-store");
            assert!(start.elapsed() < WAIT_TIMEOUT, "{way:?}");
        }
        assert_eq!(body(&server, known), before, "what is in a cache is served");
        assert_eq!(get(&server, "/media/image/demo-trumma-och-vin.json").status(), 200);
        assert_eq!(server.get("/health/ready").status(), 200);
        let upload = |server: &Server| {
            let key = format!("image/new{n}");
            kit::upload(server, &key, "Ny", &kit::photograph(n)).send().unwrap().status()
        };
        assert_eq!(upload(&server), 503, "{way:?}: {}", server.log());
        bucket.gate.clear_fault();
        for path in [crop.as_str(), whole] {
            server.until("its return", || (get(&server, path).status() == 200).then_some(()));
        }
        server.until("an upload", || (upload(&server) == 201).then_some(()));
        body(&server, &format!("/media/image/new{n}.jpg"));
    }
    let (_, log) = server.stop();
    assert!(log.contains("s3://bilder/wire") && log.contains("AccessDenied"), "{log}");
    assert!(!log.contains(bucket.s3.ready["key"].as_str().unwrap()), "{log}");
}

#[test]
fn a_failing_bucket_opens_the_circuit_until_it_answers_again() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    let settings = bucket.settings("wire", &SHORT_TIMEOUTS);
    let server = serve(dir, &settings);
    let known = "/media/image/demo-trumma-och-vin_NormalPreview.jpg";
    let first = get(&server, known);
    let etag = first.headers()["etag"].to_str().unwrap().to_owned();
    let before = first.bytes().unwrap();
    let away = || server.metric("wirephoto_bucket_circuit_open", "");
    let numbers = std::cell::Cell::new(100);
    // A crop that is not cached.
    let crop = || {
        numbers.set(numbers.get() + 1);
        let width = numbers.get();
        get(&server, &format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x400_y600.jpg"))
    };
    for (n, way) in [Fault::Hang, Fault::Refuse].into_iter().enumerate() {
        server.until("a crop", || (crop().status() == 200 && away() == 0.0).then_some(()));
        bucket.gate.inject("", way);
        server.until("it to be left alone", || {
            assert_eq!(crop().status(), 503, "{way:?}");
            (away() == 1.0).then_some(())
        });
        // No originals are requested while the circuit is open; the probe lists the bucket. Where the probe is
        // refused too, each of these makes one request.
        let (asked, looked) =
            (bucket.gate.request_count("/originals/"), bucket.gate.request_count("list-type"));
        for _ in 0..20 {
            let response = crop();
            assert_eq!(response.status(), 503, "{way:?}");
            assert_eq!(response.headers()["cache-control"], "no-store");
            assert!(response.headers().contains_key("retry-after"));
        }
        let upload = kit::upload(&server, &format!("image/new{n}"), "Ny", &kit::photograph(n));
        assert_eq!(upload.send().unwrap().status(), 503, "{way:?}");
        let more = bucket.gate.request_count("/originals/") - asked;
        let trials = match way {
            // The connection of an earlier probe may not have been accepted yet.
            Fault::Refuse => bucket.gate.request_count("list-type") - looked + 1,
            Fault::Hang | Fault::Close | Fault::Fail => 0,
        };
        assert!(more <= trials, "{way:?}: {more} of {trials}");
        assert_eq!(body(&server, known), before, "what is in a cache is served");
        let unchanged = server.get_with(known, &[("if-none-match", &etag)]);
        assert_eq!(unchanged.status(), 304);
        let lists = bucket.gate.request_count("list-type");
        server.until("somebody to look", || {
            (bucket.gate.request_count("list-type") > lists).then_some(())
        });
        assert_eq!(away(), 1.0, "it still fails");
        bucket.gate.clear_fault();
        server.until("its return", || (away() == 0.0).then_some(()));
        let back = server.until("an answer", || Some(crop()).filter(|one| one.status() == 200));
        assert!(!back.bytes().unwrap().is_empty());
    }
    let (_, log) = server.stop();
    // After a pause of the machine the circuit may have opened a third time; each time it closed again.
    let opened = log.matches("circuit open until a probe succeeds: ").count();
    assert!(opened >= 2, "{log}");
    assert_eq!(log.matches("answers again: circuit closed\"").count(), opened, "{log}");
    let refused = "it answers 403: AccessDenied: Not by this key; see store.access_key_id";
    assert!(log.contains(refused), "{log}");
}

#[test]
fn bucket_requests_are_counted_by_outcome() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    let server = serve(dir, &bucket.settings("wire", &SHORT_TIMEOUTS));
    let outcomes = || {
        ["done", "refused", "failed"].map(|outcome| {
            server.metric("wirephoto_bucket_requests_total", &format!("outcome=\"{outcome}\""))
        })
    };
    let asked = |head: &str| server.metric("wirephoto_bucket_requests_total", head);
    // An upload first checks whether the bucket has the object: 404.
    let heads = asked("method=\"head\"");
    let sent = kit::upload(&server, "image/new", "Ny", &kit::photograph(1)).send().unwrap();
    assert_eq!(sent.status(), 201, "{}", server.log());
    assert!(asked("method=\"head\"") > heads);
    let [done, refused, failed] = outcomes();
    assert!(done > 0.0 && (refused, failed) == (0.0, 0.0), "{:?}", outcomes());
    // Crops that are not cached.
    let crop = |width: u32| {
        let path = format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x400_y600.jpg");
        get(&server, &path).status()
    };
    bucket.gate.inject("", Fault::Refuse);
    assert_eq!(crop(101), 503);
    let [after, refused, failed] = outcomes();
    assert!(after >= done && refused > 0.0 && failed == 0.0, "{:?}", outcomes());
    bucket.gate.inject("", Fault::Fail);
    server.until("failures", || {
        assert_eq!(crop(102), 503);
        (outcomes()[2] > 0.0).then_some(())
    });
    let before = outcomes();
    bucket.gate.inject("", Fault::Close);
    server.until("no answers", || {
        assert_eq!(crop(103), 503);
        (outcomes()[2] > before[2]).then_some(())
    });
    bucket.gate.clear_fault();
    server.until("its return", || (crop(104) == 200).then_some(()));
    assert!(outcomes()[0] > after, "{:?}", outcomes());
}

#[test]
fn the_circuit_of_a_bucket_without_list_permission_closes_when_it_answers() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    bucket.gate.inject("", Fault::Hang);
    let server = serve(dir, &bucket.settings("wire", &SHORT_TIMEOUTS));
    assert_eq!(server.metric("wirephoto_bucket_circuit_open", ""), 1.0);
    // The probe is refused, and everything else works.
    bucket.gate.inject("list-type", Fault::Refuse);
    server.until("its return", || {
        (server.metric("wirephoto_bucket_circuit_open", "") == 0.0).then_some(())
    });
    let hires = "/media/image/demo-trumma-och-vin.jpg";
    server.until("the original", || (get(&server, hires).status() == 200).then_some(()));
    // The same after everything was refused for a while: the next request shows that the bucket is back.
    bucket.gate.inject("", Fault::Refuse);
    let crop = |width: usize| {
        get(&server, &format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x400_y600.jpg"))
    };
    let widths = std::cell::Cell::new(100);
    let next = || {
        widths.set(widths.get() + 1);
        crop(widths.get()).status()
    };
    server.until("it to be left alone", || {
        assert_eq!(next(), 503);
        (server.metric("wirephoto_bucket_circuit_open", "") == 1.0).then_some(())
    });
    bucket.gate.inject("list-type", Fault::Refuse);
    server.until("a crop", || (next() == 200).then_some(()));
    assert_eq!(server.metric("wirephoto_bucket_circuit_open", ""), 0.0);
}

#[test]
fn a_writing_node_checks_at_start_that_the_bucket_is_writable() {
    let mut bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &bucket.settings("wire", &[]));
    assert_eq!(bucket.keys("wire/probe/"), [] as [&str; 0], "nothing of it stays");
    let settings = bucket.settings("wire", &SHORT_TIMEOUTS);
    let photograph = text(&checkout(&format!("media-store/demo/{LARGE_PROGRESSIVE}")));
    for (request, word) in [("PUT", "written"), ("GET", "read"), ("DELETE", "removed")] {
        let request: &'static str = match request {
            "PUT" => "PUT /bilder/wire/probe/",
            "GET" => "GET /bilder/wire/probe/",
            _ => "DELETE /bilder/wire/probe/",
        };
        bucket.gate.inject(request, Fault::Refuse);
        for arguments in [
            &["ingest", &photograph][..],
            &["check", "--repair"],
            &["serve", "--listen", "127.0.0.1:0"],
        ] {
            let (said, status) = run(dir.path(), &settings, arguments);
            let words = format!("a small object cannot be {word}: AccessDenied: Not by this key");
            let reported = said.contains("store.access_key_id") && said.contains(&words);
            assert!(status == 1 && reported, "{arguments:?}: {said}");
        }
        // A command that only reads needs no write permission.
        run_ok(dir.path(), &settings, &["check"]);
    }
    // A slow bucket does not stop requests that do not need it.
    bucket.gate.inject("", Fault::Hang);
    let server = serve(dir, &settings);
    assert_eq!(server.metric("wirephoto_bucket_circuit_open", ""), 1.0);
    assert!(server.log().contains("circuit open until a probe succeeds"), "{}", server.log());
    assert_eq!(get(&server, "/media/image/demo-trumma-och-vin.json").status(), 200);
    let hires = "/media/image/demo-trumma-och-vin.jpg";
    assert_eq!(get(&server, hires).status(), 503);
    bucket.gate.clear_fault();
    server.until("its return", || (get(&server, hires).status() == 200).then_some(()));
    bucket.gate.inject("PUT /bilder/wire/probe/", Fault::Hang);
    let server = server.restart(&settings.iter().map(String::as_str).collect::<Vec<_>>());
    let said = "it is not known whether originals can be written";
    assert!(server.log().contains(said), "{}", server.log());
    server.until("a read", || (get(&server, hires).status() == 200).then_some(()));
}

#[test]
fn a_temporary_key_is_sent_with_its_session_token() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let brief = |part: usize| bucket.s3.ready["brief"][part].as_str().unwrap();
    let with = |token: &str| {
        let key = format!("store.access_key_id={}", brief(0));
        let secret = format!("store.secret_access_key={}", brief(1));
        let token = format!("store.session_token={token}");
        bucket.settings("wire", &[&key, &secret, &token])
    };
    let settings = with(brief(2));
    ingest_demo(dir.path(), &settings);
    run_ok(dir.path(), &settings, &["check"]);
    let sent = bucket.gate.request_count(&format!("x-amz-security-token: {}", brief(2)));
    assert!(sent > 0 && sent == bucket.gate.request_count("HTTP/1.1"));
    assert!(!run_ok(dir.path(), &settings, &["config"]).contains(brief(2)));
    let (said, status) = run(dir.path(), &with("t0ken-of-another"), &["check"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("store.session_token") && said.contains("InvalidToken"), "{said}");
    assert!(!said.contains("t0ken"), "{said}");
}

#[test]
fn one_failing_address_of_several_fails_no_request() {
    let bucket = Bucket::start();
    let second = Gate::in_front_of(bucket.s3.ready["port"].as_u64().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let endpoints = format!("127.0.0.1:{},http://127.0.0.1:{}", bucket.gate.port, second.port);
    let own = of_bucket(&bucket.s3, &endpoints, "wire");
    let more = BASE.iter().chain(&SHORT_TIMEOUTS).map(|setting| (*setting).to_owned());
    let settings: Vec<String> = own.into_iter().chain(more).collect();
    ingest_demo(dir.path(), &settings);
    let server = serve(dir, &settings);
    let mut width = 100;
    let mut crop = || {
        width += 1;
        let path = format!("/media/image/demo-trumma-och-vin-crop_w{width}_h90_x40_y60.jpg");
        get(&server, &path).status().as_u16()
    };
    let put = |number: usize| {
        let key = format!("image/new{number}");
        let request = kit::upload(&server, &key, "Ny", &kit::photograph(number));
        request.send().unwrap().status().as_u16()
    };
    assert_eq!((crop(), put(0), second.request_count("")), (200, 201, 0), "the first one answers");
    for (number, way) in [Fault::Close, Fault::Hang].into_iter().enumerate() {
        let (broken, whole) = match number {
            0 => (&bucket.gate, &second),
            _ => (&second, &bucket.gate),
        };
        broken.inject("/bilder", way);
        let before = whole.request_count("");
        assert_eq!((crop(), put(number + 1)), (200, 201), "{way:?}: {}", server.log());
        assert!(whole.request_count("") > before, "{way:?}");
        // The address that answered last is tried first.
        let before = broken.request_count("");
        assert_eq!(crop(), 200);
        assert_eq!(broken.request_count(""), before, "{way:?}");
        assert_eq!(server.metric("wirephoto_bucket_circuit_open", ""), 0.0);
        broken.clear_fault();
    }
    bucket.gate.inject("/bilder", Fault::Close);
    second.inject("/bilder", Fault::Close);
    assert_eq!(crop(), 503, "{}", server.log());
    for number in 0..3 {
        second.clear_fault();
        body(&server, &format!("/media/image/new{number}.jpg"));
    }
}

#[test]
fn an_unusable_bucket_fails_the_start_and_names_the_setting() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let check = |more: &[&str], setting: &str, words: &str| {
        let fast = ["store.answer_s=5", "store.give_up_s=10"];
        let settings = bucket.settings("wire", &[&fast[..], more].concat());
        let (said, status) = run(dir.path(), &settings, &["check"]);
        assert_eq!(status, 1, "{more:?}: {said}");
        assert!(said.contains(setting) && said.contains(words), "{more:?}: {said}");
        assert!(!said.contains(bucket.s3.ready["key"].as_str().unwrap()), "{said}");
        assert!(!said.contains("wr0ng") && !said.contains("StringToSign"), "{said}");
    };
    check(&["store.originals=s3://nowhere/x"], "store.originals", "NoSuchBucket");
    let refusals = bucket.refusals();
    check(&["store.access_key_id=AKIAUNKNOWN"], "store.access_key_id", refusals.unknown_key);
    check(&["store.secret_access_key=wr0ng"], "store.secret_access_key", refusals.wrong_secret);
    check(&["store.access_key_id="], "store.access_key_id", "needs it");
    check(&["store.secret_access_key="], "store.secret_access_key", "needs it");
    check(&["store.plain_http=false"], "store.endpoint", "store.plain_http");
    check(&["store.region=a b"], "store.region", "eu-north-1");
    check(&["store.ca=missing.pem"], "store.ca", "missing.pem");
    check(&["store.address_style=host"], "store.address_style", "address");
    let free = ReservedPort::new();
    let nobody = format!("store.endpoint=http://127.0.0.1:{}", free.port());
    check(&[&nobody], "store.endpoint", "refused");
    bucket.gate.inject("list-type", Fault::Refuse);
    check(&[], "store.access_key_id", "AccessDenied: Not by this key");
    bucket.gate.inject("", Fault::Hang);
    check(&[], "store.endpoint", "did not answer within");
    bucket.gate.clear_fault();
    let settings = bucket.settings("wire", &[]);
    let mut config = wirephoto(dir.path());
    config.arg("config");
    for setting in &settings {
        config.args(["--set", setting]);
    }
    let listed = String::from_utf8(output(&mut config).stdout).unwrap();
    assert!(!listed.contains(bucket.s3.ready["key"].as_str().unwrap()), "{listed}");
    assert!(listed.contains("s3://bilder/wire"), "{listed}");
}

#[test]
fn a_damaged_or_lost_object_is_detected_and_repaired() {
    let mut bucket = Bucket::start();
    let settings = bucket.settings("wire", &[]);
    let dir = tempfile::tempdir().unwrap();
    ingest_demo(dir.path(), &settings);
    let hash = |item: &str| {
        let bytes = fs::read(checkout(&format!("media-store/demo/{item}"))).unwrap();
        let name = crate::receivers::sha256(&bytes);
        format!("wire/originals/{}/{}", &name[..2], &name[2..])
    };
    let photograph = hash("image/demo-trumma-och-vin/NormalHires.jpg");
    let graphic = hash("graphic/demo-sweden-map/NormalHires.pdf");
    bucket.send_command(&json!({ "do": "damage", "key": photograph, "at": 400_000 }));
    bucket.send_command(&json!({ "do": "delete", "key": graphic }));
    let (said, status) = run(dir.path(), &settings, &["check"]);
    assert_eq!(status, 1, "{said}");
    for word in
        ["demo-trumma-och-vin", "was changed after ingest", "demo-sweden-map", "is missing"]
    {
        assert!(said.contains(word), "{word}: {said}");
    }
    let server = serve(dir, &settings);
    for path in ["/media/image/demo-trumma-och-vin.jpg", "/media/graphic/demo-sweden-map.pdf"] {
        assert_eq!(get(&server, path).status(), 500, "{path}");
    }
    body(&server, &format!("/media/{LARGE_PROGRESSIVE}.jpg"));
    // Uploading them again repairs them.
    let dir = server.dir.path();
    for item in ["image/demo-trumma-och-vin", "graphic/demo-sweden-map"] {
        let item = text(&checkout(&format!("media-store/demo/{item}")));
        run_ok(dir, &settings, &["ingest", &item]);
    }
    assert!(run_ok(dir, &settings, &["check"]).contains("0 problems"));
    for path in ["/media/image/demo-trumma-och-vin.jpg", "/media/graphic/demo-sweden-map.pdf"] {
        // Cached facts about an object are a few seconds old at most.
        let back = server.until("its return", || {
            Some(get(&server, path)).filter(|response| response.status() == 200)
        });
        assert!(!back.bytes().unwrap().is_empty());
    }
}

#[test]
fn a_backup_fetches_the_originals_and_restores_them_into_another_bucket() {
    let mut bucket = Bucket::start();
    let (dir, settings) = (tempfile::tempdir().unwrap(), bucket.settings("a", &[]));
    ingest_demo(dir.path(), &settings);
    let target = text(&dir.path().join("backup"));
    let said = run_ok(dir.path(), &settings, &["backup", &target]);
    let originals = bucket.keys("a/originals/").len();
    assert!(said.contains(&format!("{originals} copied")), "{said}");
    let again = run_ok(dir.path(), &settings, &["backup", &target, "--verify"]);
    assert!(again.contains(&format!("{originals} already there")), "{again}");
    let (other, moved) = (tempfile::tempdir().unwrap(), bucket.settings("b/c", &[]));
    run_ok(other.path(), &moved, &["restore", &target]);
    assert_eq!(bucket.keys("b/c/originals/").len(), originals);
    assert!(run_ok(other.path(), &moved, &["check", "--repair"]).contains("0 problems"));
    let (third, plain) = (tempfile::tempdir().unwrap(), BASE.map(str::to_owned).to_vec());
    run_ok(third.path(), &plain, &["restore", &target]);
    for (dir, settings) in [(third, &plain), (other, &moved)] {
        let server = serve(dir, settings);
        let original = body(&server, "/media/graphic/demo-sweden-map.pdf");
        let file = checkout("media-store/demo/graphic/demo-sweden-map/NormalHires.pdf");
        assert!(original == fs::read(file).unwrap());
    }
    // An unreachable bucket is not reported as one that lost its originals.
    let settings = bucket.settings("a", &["store.give_up_s=10"]);
    bucket.gate.inject("/originals/", Fault::Refuse);
    let (said, status) =
        run(dir.path(), &settings, &["backup", &text(&dir.path().join("second"))]);
    assert!(status == 1 && said.contains("AccessDenied"), "{said}");
    assert!(!dir.path().join("second/backup.json").exists());
}
