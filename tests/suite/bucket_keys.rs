//! Sources of a bucket's access key: files that are rotated, a token service, a metadata service. The two services
//! are stand-ins that issue a key known to the S3 server; they follow Amazon's documentation of
//! `AssumeRoleWithWebIdentity` and of instance metadata, version 2.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::buckets::{Bucket, get, ingest_demo, run, run_ok, serve, text};
use crate::faults::kit::until;

/// A photograph of the demo archive.
const PICTURE: &str = "image/demo-trumma-och-vin";

#[test]
fn a_key_in_files_is_rotated_without_a_restart() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let settings = bucket.settings("files", &[]);
    ingest_demo(dir.path(), &settings);
    let lasting = ["id", "key"].map(|name| bucket.s3.ready[name].as_str().unwrap().to_owned());
    let brief: Vec<String> = serde_json::from_value(bucket.s3.ready["brief"].clone()).unwrap();
    let names = ["access_key_id", "secret_access_key", "session_token"];
    let files = names.map(|name| dir.path().join(name));
    let write = |values: [&str; 3]| {
        for (file, value) in files.iter().zip(values) {
            fs::write(file, format!("{value}\n")).unwrap();
        }
    };
    write([&lasting[0], &lasting[1], ""]);
    let mut settings: Vec<String> =
        settings.into_iter().filter(|setting| !setting.contains("access_key")).collect();
    for (name, file) in names.iter().zip(&files) {
        settings.push(format!("store.{name}_file={}", text(file)));
    }
    run_ok(dir.path(), &settings, &["check"]);
    let server = serve(dir, &settings);
    let mut width = 100;
    let mut crop = || {
        width += 1;
        let path = format!("/media/{PICTURE}-crop_w{width}_h90_x40_y60.jpg");
        get(&server, &path).status().as_u16()
    };
    assert_eq!(crop(), 200, "{}", server.log());
    assert_eq!(bucket.gate.request_count(&brief[0]), 0);
    write([&brief[0], &brief[1], &brief[2]]);
    until("the new key to count", || {
        assert_eq!(crop(), 200, "{}", server.log());
        (bucket.gate.request_count(&brief[0]) > 0).then_some(())
    });
    // A missing file is named.
    fs::remove_file(&files[1]).unwrap();
    until("the missing file to count", || (crop() == 503).then_some(()));
    assert!(server.log().contains("store.secret_access_key_file"), "{}", server.log());
}

/// A service on its own port that answers each request by its request line; records the requests.
fn service(answer: impl Fn(&str) -> String + Send + 'static) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::<Mutex<Vec<String>>>::default();
    let lines = Arc::clone(&asked);
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut reader = BufReader::new(client.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                if let Some(count) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = count.trim().parse().unwrap();
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let said = answer(head.lines().next().unwrap_or_default());
            lines.lock().unwrap().push(head);
            let length = said.len();
            let text = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{said}"
            );
            drop((&client).write_all(text.as_bytes()));
        }
    });
    (url, asked)
}

/// An archive in a bucket, and settings that reach it without an access key.
fn keyless(bucket: &Bucket, dir: &Path) -> Vec<String> {
    let settings = bucket.settings("keyless", &[]);
    ingest_demo(dir, &settings);
    settings.into_iter().filter(|setting| !setting.contains("access_key")).collect()
}

fn temporary_key(bucket: &Bucket) -> Vec<String> {
    serde_json::from_value(bucket.s3.ready["brief"].clone()).unwrap()
}

#[test]
fn a_web_identity_is_exchanged_for_a_key() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = keyless(&bucket, dir.path());
    let key = temporary_key(&bucket);
    let [id, secret, token] = [0, 1, 2].map(|at| key[at].clone());
    let (url, asked) = service(move |_| {
        format!(
            "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
             <AccessKeyId>{id}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>\
             <SessionToken>{token}</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration>\
             </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
        )
    });
    settings.push("store.credentials=web-identity".to_owned());
    let (said, status) = run(dir.path(), &settings, &["check"]);
    assert!(status == 1 && said.contains("store.role_arn"), "{said}");
    let file = dir.path().join("identity");
    fs::write(&file, "the-token-of-an-issuer").unwrap();
    settings.extend([
        format!("store.credentials_url={url}"),
        "store.role_arn=arn:aws:iam::123456789012:role/desk".to_owned(),
        format!("store.web_identity_token_file={}", text(&file)),
    ]);
    run_ok(dir.path(), &settings, &["check"]);
    let lines = asked.lock().unwrap();
    assert!(lines[0].contains("WebIdentityToken=the-token-of-an-issuer"), "{lines:?}");
    assert!(lines[0].contains("role%2Fdesk"), "{lines:?}");
    assert!(bucket.gate.request_count(&key[0]) > 0);
}

#[test]
fn the_role_of_a_machine_provides_a_key() {
    let bucket = Bucket::start();
    let dir = tempfile::tempdir().unwrap();
    let mut settings = keyless(&bucket, dir.path());
    let key = temporary_key(&bucket);
    let facts = serde_json::json!({
        "AccessKeyId": key[0], "SecretAccessKey": key[1], "Token": key[2],
        "Expiration": "2099-01-01T00:00:00Z",
    });
    let (url, asked) = service(move |line| match line.split(' ').nth(1).unwrap_or_default() {
        "/latest/api/token" => "session".to_owned(),
        "/latest/meta-data/iam/security-credentials/" => "desk".to_owned(),
        _ => facts.to_string(),
    });
    settings
        .extend(["store.credentials=instance".to_owned(), format!("store.credentials_url={url}")]);
    run_ok(dir.path(), &settings, &["check"]);
    let lines = asked.lock().unwrap().concat().to_lowercase();
    assert!(lines.contains("x-aws-ec2-metadata-token: session"), "{lines}");
    assert!(bucket.gate.request_count(&key[0]) > 0);
}
