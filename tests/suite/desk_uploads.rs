//! Resumable uploads (`docs/contract/ingest.md`): the protocol tus 1.0.0, interruptions and restarts, limits and
//! expiry, and the publication of what was sent.

use std::{fs, io::Write, net::TcpStream, thread};

use api::ingest::{ItemPath, ListItemChanges, LoadStoredItem};
use api::uploads::{DescribeUpload, ListUploads, UploadDescription};
use base64::{Engine, engine::general_purpose::STANDARD};
use model::MediaType;
use reqwest::{Method, blocking::Response};
use serde_json::{Value, json};

use crate::common::api::{ApiCaller, Refusal};
use crate::common::{DEMO_KEY, Server, oracle, pictures::Picture, postgres, tokens};
use crate::items::provider;

/// The size of the parts in which the server stores an upload, bytes.
const PART: usize = 4 * 1024 * 1024;

/// A server without items, with the accounts of the demo archive.
fn server(settings: &[&str]) -> Server {
    Server::with_pictures::<&str>(settings, &[])
}

/// A user of the uploads with the `Authorization` header of a program.
pub struct Uploader {
    pub auth: String,
}

impl Uploader {
    fn new(server: &Server) -> Self {
        Self { auth: provider(server) }
    }

    /// A caller of the operations beside the protocol.
    fn api<'a>(&self, server: &'a Server) -> ApiCaller<'a> {
        ApiCaller { server, authorization: self.auth.clone() }
    }

    fn send(
        &self,
        server: &Server,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Response {
        let mut request = server.client.request(method, format!("{}{path}", server.url));
        request = request.header("authorization", &self.auth).header("tus-resumable", "1.0.0");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).send().expect("answer")
    }

    fn declare(&self, server: &Server, name: &str, length: usize) -> Response {
        let metadata = format!("filename {}", STANDARD.encode(name));
        let length = length.to_string();
        let headers = [("upload-length", length.as_str()), ("upload-metadata", &metadata)];
        self.send(server, (Method::POST, "/ingest/v1/uploads"), &headers, Vec::new())
    }

    /// Declares a file; returns the path of its upload.
    fn create(&self, server: &Server, name: &str, length: usize) -> String {
        let created = self.declare(server, name, length);
        assert_eq!(created.status(), 201, "{name}");
        created.headers()["location"].to_str().expect("ASCII").to_owned()
    }

    fn append(
        &self,
        server: &Server,
        path: &str,
        offset: usize,
        (bytes, checksum): (&[u8], Option<&str>),
    ) -> Response {
        let offset = offset.to_string();
        let mut headers = vec![
            ("upload-offset", offset.as_str()),
            ("content-type", "application/offset+octet-stream"),
        ];
        headers.extend(checksum.map(|checksum| ("upload-checksum", checksum)));
        self.send(server, (Method::PATCH, path), &headers, bytes.to_vec())
    }

    /// The number of bytes that the server has of an upload.
    fn offset(&self, server: &Server, path: &str) -> usize {
        let answer = self.send(server, (Method::HEAD, path), &[], Vec::new());
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        offset_of(&answer)
    }

    /// Sends a whole file; returns the path of its upload.
    pub fn upload(&self, server: &Server, name: &str, bytes: &[u8]) -> String {
        let path = self.create(server, name, bytes.len());
        let sent = self.append(server, &path, 0, (bytes, None));
        assert_eq!((sent.status().as_u16(), offset_of(&sent)), (204, bytes.len()));
        path
    }

    fn get(&self, server: &Server, path: &str) -> Response {
        self.send(server, (Method::GET, path), &[], Vec::new())
    }

    /// The item that an upload would become.
    fn describe(&self, server: &Server, path: &str) -> UploadDescription {
        let id = path.rsplit('/').next().expect("an id").to_owned();
        self.api(server).ask(&DescribeUpload { id }).unwrap()
    }

    fn publish(&self, server: &Server, path: &str, body: &Value) -> Response {
        let json = [("content-type", "application/json")];
        let path = format!("{path}/publish");
        self.send(server, (Method::POST, &path), &json, body.to_string().into_bytes())
    }
}

/// The address of a photograph.
fn image(id: &str) -> ItemPath {
    ItemPath { media_type: MediaType::Image, id: id.to_owned() }
}

fn offset_of(response: &Response) -> usize {
    response.headers()["upload-offset"].to_str().expect("ASCII").parse().expect("a number")
}

/// The first error code of a refusal with that status.
fn code(response: Response, status: u16) -> String {
    assert_eq!(response.status(), status);
    let body: Value = response.json().expect("JSON");
    body["errors"][0]["errorCode"].as_str().unwrap_or_default().to_owned()
}

fn photograph() -> Vec<u8> {
    Picture::corners(320, 240).jpeg()
}

/// Bytes of a length that is no multiple of the parts.
fn video() -> Vec<u8> {
    (0..2 * PART + 12_345).map(|at: usize| (at / 7).to_le_bytes()[0]).collect()
}

fn find(server: &Server, key: &str) -> Option<Value> {
    let response = server.get(&format!("/media/{key}.json?ak={DEMO_KEY}"));
    (response.status() == 200).then(|| response.json().unwrap())
}

/// The stored parts of uploads.
fn parts(server: &Server) -> usize {
    let files = |folder: &std::path::Path| {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let mut open: Vec<std::path::PathBuf> = files(&server.data().join("originals/parts"));
    let mut count = 0;
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(files(&path)),
            false => count += 1,
        }
    }
    count
}

#[test]
fn a_file_is_sent_in_parts_and_published() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let jpeg = photograph();
    let path = user.create(&server, "harbour.jpg", jpeg.len());
    assert_eq!(user.offset(&server, &path), 0);
    let middle = jpeg.len() / 3;
    let sent = user.append(&server, &path, 0, (&jpeg[..middle], None));
    assert_eq!((sent.status().as_u16(), offset_of(&sent)), (204, middle));
    assert!(sent.headers().contains_key("upload-expires"));
    assert_eq!(sent.headers()["tus-resumable"], "1.0.0");
    // What is not complete cannot be published.
    assert_eq!(code(user.publish(&server, &path, &json!({})), 409), "upload_incomplete");
    // Bytes that do not follow, and bytes beyond the end.
    let twice = user.append(&server, &path, 0, (&jpeg[..middle], None));
    assert_eq!(code(twice, 409), "upload_offset");
    let beyond = [&jpeg[middle..], b"x"].concat();
    assert_eq!(user.append(&server, &path, middle, (&beyond, None)).status(), 413);
    assert_eq!(user.offset(&server, &path), middle, "none of it is stored");
    let rest = user.append(&server, &path, middle, (&jpeg[middle..], None));
    assert_eq!(offset_of(&rest), jpeg.len());
    let listed = user.api(&server).ask(&ListUploads {}).unwrap();
    assert_eq!((listed.len(), listed[0].file_name.as_str()), (1, "harbour.jpg"));
    let length = u64::try_from(jpeg.len()).unwrap();
    assert_eq!((listed[0].received, listed[0].length), (length, length));
    let described = user.describe(&server, &path);
    assert_eq!((described.exists, described.width), (false, Some(320)));
    assert_eq!(described.id.unwrap().to_string(), "harbour");
    let preview = user.get(&server, &format!("{path}/preview"));
    assert_eq!(preview.headers()["content-type"], "image/jpeg");
    assert_eq!(Picture::decode(&preview.bytes().unwrap()).size(), (320, 240));
    let document = json!({ "headline": "Ice breaks up", "description_text": "The harbour." });
    let published = user.publish(&server, &path, &json!({ "document": document }));
    assert_eq!(published.status(), 201);
    assert!(published.headers()["location"].to_str().unwrap().ends_with("/media/image/harbour"));
    let item = find(&server, "image/harbour").expect("seen at once");
    assert_eq!(
        (&item["headline"], &item["description_text"]),
        (&document["headline"], &document["description_text"])
    );
    server.bytes("/media/image/harbour_NormalPreview.jpg");
    assert_eq!(user.get(&server, &path).status(), 404, "a published upload is gone");
    assert_eq!(parts(&server), 0);
    let changes = ListItemChanges { item: image("harbour") };
    let change = user.api(&server).ask(&changes).unwrap().remove(0);
    assert_eq!(json!(change.changes[0]), json!({ "property": "file", "new": "harbour.jpg" }));
    assert_eq!(change.user.as_deref(), Some("demo-admin"));
}

#[test]
fn an_upload_continues_after_a_broken_connection_and_a_killed_server() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let bytes = video();
    let path = user.create(&server, "launch.mp4", bytes.len());
    // The connection breaks off after a part and a half; what arrived is kept.
    let half = PART + PART / 2;
    let address = server.url.strip_prefix("http://").expect("a host");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "PATCH {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {}\r\nTus-Resumable: 1.0.0\r\n\
         Content-Type: application/offset+octet-stream\r\nUpload-Offset: 0\r\nContent-Length: {}\r\n\r\n",
        user.auth,
        bytes.len()
    )
    .unwrap();
    stream.write_all(&bytes[..half]).unwrap();
    stream.flush().unwrap();
    server.until("the first part", || (user.offset(&server, &path) >= PART).then_some(()));
    drop(stream);
    server
        .until("the rest of what arrived", || (user.offset(&server, &path) == half).then_some(()));
    let dir = server.kill();
    let server = Server::start(dir, &[]);
    let offset = user.offset(&server, &path);
    assert_eq!(offset, half);
    let rest = user.append(&server, &path, offset, (&bytes[offset..], None));
    assert_eq!(offset_of(&rest), bytes.len());
    // It is no video, which is found out when it is published; the upload stays and can be discarded.
    assert_eq!(user.publish(&server, &path, &json!({})).status(), 400);
    assert_eq!(user.offset(&server, &path), bytes.len());
    assert_eq!(parts(&server), 3);
    assert_eq!(user.send(&server, (Method::DELETE, &path), &[], Vec::new()).status(), 204);
    assert_eq!(user.get(&server, &path).status(), 404);
    assert_eq!(parts(&server), 0);
    assert_eq!(fs::read_dir(server.data().join("uploads")).unwrap().count(), 0);
}

#[test]
fn the_protocol_is_announced_and_its_versions_and_checksums_are_checked() {
    let server = server(&["media.file_bytes_max=1000000"]);
    let user = Uploader::new(&server);
    let options =
        server.client.request(Method::OPTIONS, format!("{}/ingest/v1/uploads", server.url));
    let options = options.send().unwrap();
    assert_eq!(options.status(), 204);
    let header = |name: &str| options.headers()[name].to_str().unwrap();
    assert_eq!((header("tus-version"), header("tus-max-size")), ("1.0.0", "1000000"));
    assert_eq!(header("tus-extension"), "creation,expiration,checksum,termination");
    let path = user.create(&server, "a.jpg", 11);
    let old = server.client.head(format!("{}{path}", server.url));
    let old = old.header("authorization", &user.auth).header("tus-resumable", "0.2.2").send();
    let old = old.unwrap();
    assert_eq!(old.status(), 412);
    assert_eq!(old.headers()["tus-version"], "1.0.0");
    let wrong = user.append(
        &server,
        &path,
        0,
        (b"hello word!", Some("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=")),
    );
    assert_eq!(code(wrong, 460), "checksum_mismatch");
    assert_eq!(user.offset(&server, &path), 0, "none of it is stored");
    let right = user.append(
        &server,
        &path,
        0,
        (b"hello world", Some("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=")),
    );
    assert_eq!(offset_of(&right), 11);
    let unknown = user.append(&server, &path, 11, (b"", Some("md5 AAAA")));
    assert!(code(unknown, 400).starts_with("enum"));
    let plain = [("upload-offset", "11"), ("content-type", "text/plain")];
    assert_eq!(user.send(&server, (Method::PATCH, &path), &plain, vec![1]).status(), 415);
    assert_eq!(user.get(&server, "/ingest/v1/uploads/none").status(), 404);
    assert!(code(user.declare(&server, "a.xls", 5), 400).starts_with("enum"));
    assert!(code(user.declare(&server, "a.jpg", 0), 400).starts_with("minimum"));
}

#[test]
fn uploads_take_a_limited_space_and_belong_to_their_user() {
    let settings = [
        "media.file_bytes_max=2000",
        "ingest.upload_user_bytes=3000",
        "ingest.upload_total_bytes=4000",
    ];
    let server = server(&settings);
    let user = Uploader::new(&server);
    assert_eq!(user.declare(&server, "a.jpg", 2001).status(), 413);
    let first = user.create(&server, "a.jpg", 2000);
    assert_eq!(code(user.declare(&server, "b.jpg", 1001), 413), "upload_quota");
    // Another provider of the same organization.
    let accounts = server.dir.path().join("more.json");
    let more = json!({
        "users": [{ "id": 201, "organization": 1, "userName": "demo-provider",
                    "roles": ["ROLE_PROVIDER"], "active": true, "password": "demo-provider-password" }],
        "apiKeys": [{ "user": "demo-provider", "key": "provider-key-0000-0000", "name": "a" }],
    });
    fs::write(&accounts, more.to_string()).unwrap();
    let imported = server.command(&["import", &accounts.to_string_lossy()]);
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
    let other = Uploader { auth: "ApiKey provider-key-0000-0000".to_owned() };
    server.until("the key to count", || other.api(&server).ask(&ListUploads {}).ok());
    for method in [Method::GET, Method::HEAD, Method::DELETE] {
        assert_eq!(other.send(&server, (method, &first), &[], Vec::new()).status(), 404);
    }
    assert_eq!(other.append(&server, &first, 0, (b"x", None)).status(), 404);
    other.create(&server, "c.jpg", 1800);
    let full = other.declare(&server, "d.jpg", 400);
    assert!(full.headers().contains_key("retry-after"));
    assert_eq!(code(full, 503), "upload_space");
    assert_eq!(user.send(&server, (Method::DELETE, &first), &[], Vec::new()).status(), 204);
    other.create(&server, "d.jpg", 400);
    assert!(user.api(&server).ask(&ListUploads {}).unwrap().is_empty());
}

#[test]
fn only_providers_upload() {
    let server = server(&[]);
    let editor = Uploader { auth: format!("ApiKey {DEMO_KEY}") };
    assert_eq!(code(editor.declare(&server, "a.jpg", 5), 403), "provider_required");
    assert_eq!(code(editor.get(&server, "/ingest/v1/uploads"), 403), "provider_required");
    let path = format!("/ingest/v1/uploads/{}", "0".repeat(36));
    assert_eq!(code(editor.append(&server, &path, 0, (b"x", None)), 403), "provider_required");
    let no_login = server.client.post(format!("{}/ingest/v1/uploads", server.url));
    let no_login = no_login.header("upload-length", "5").send().unwrap();
    assert_eq!(no_login.status(), 401);
    assert_eq!(no_login.headers()["tus-resumable"], "1.0.0");
    // A session's scripts use the same addresses.
    let token = tokens::admin(&server);
    let admin = Uploader { auth: format!("Bearer {token}") };
    assert_eq!(admin.declare(&server, "a.jpg", 5).status(), 201);
}

#[test]
fn an_expired_upload_is_gone_and_its_parts_are_removed() {
    let server = server(&[]);
    // The test writes to SQLite's file.
    if postgres::url_of(server.dir.path()).is_some() {
        return;
    }
    let user = Uploader::new(&server);
    let path = user.create(&server, "a.jpg", 100);
    assert_eq!(offset_of(&user.append(&server, &path, 0, (b"some", None))), 4);
    let kept = user.upload(&server, "b.jpg", &photograph());
    assert_eq!(parts(&server), 2);
    let id = path.rsplit('/').next().unwrap();
    let database = rusqlite::Connection::open(server.data().join("wirephoto.db")).unwrap();
    let expired = "UPDATE uploads SET expires_ms = 1000 WHERE upload_id = ?1";
    assert_eq!(database.execute(expired, [id]).unwrap(), 1);
    drop(database);
    assert_eq!(user.get(&server, &path).status(), 404);
    let server = server.restart(&[]);
    server.until("the sweep", || (parts(&server) == 1).then_some(()));
    assert_eq!(user.get(&server, &kept).status(), 200);
}

#[test]
fn an_upload_says_what_happens_to_an_item_that_exists() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let first = user.upload(&server, "ice.jpg", &photograph());
    let headline = json!({ "document": { "headline": "First" } });
    assert_eq!(user.publish(&server, &first, &headline).status(), 201);
    let other = Picture::waves(200, 100).jpeg();
    let second = user.upload(&server, "ice.jpg", &other);
    assert!(user.describe(&server, &second).exists);
    assert_eq!(code(user.publish(&server, &second, &headline), 409), "item_exists");
    assert_eq!(find(&server, "image/ice").unwrap()["renditions"]["r00"]["width"], 320);
    let replace = json!({ "existing": "replace", "document": { "headline": "Second" } });
    let replaced = user.publish(&server, &second, &replace);
    assert_eq!(replaced.status(), 200);
    let item = find(&server, "image/ice").unwrap();
    assert_eq!(
        (&item["headline"], &item["renditions"]["r00"]["width"]),
        (&json!("Second"), &json!(200))
    );
    assert_eq!(item["version"], "2");
    let third = user.upload(&server, "ice.jpg", &Picture::waves(100, 100).jpeg());
    let own = user.publish(
        &server,
        &third,
        &json!({ "existing": "new", "document": { "headline": "Third" } }),
    );
    assert_eq!(own.status(), 201);
    let own: Value = own.json().unwrap();
    assert!(!own["uri"].as_str().unwrap().ends_with("/image/ice"), "{own}");
    let fourth = user.upload(&server, "ice.jpg", &Picture::waves(90, 60).jpeg());
    let named = json!({ "id": "ice-4", "document": { "headline": "Fourth" } });
    assert_eq!(user.publish(&server, &fourth, &named).status(), 201);
    assert!(find(&server, "image/ice-4").is_some());
}

#[test]
fn a_new_file_keeps_the_embargo_and_the_status_of_its_item() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let publish = |body: &Value| {
        let path = user.upload(&server, "ice.jpg", &photograph());
        user.publish(&server, &path, body).status().as_u16()
    };
    let replace =
        |document: Value| publish(&json!({ "existing": "replace", "document": document }));
    let load = LoadStoredItem { item: image("ice") };
    let stored = || user.api(&server).ask(&load).unwrap().value;
    let embargo = "2999-01-01T00:00:00Z";
    let held = json!({ "headline": "1", "embargoed": embargo, "pubstatus": "commissioned" });
    assert_eq!(publish(&json!({ "document": held })), 201);
    assert_eq!(replace(json!({ "headline": "2" })), 200);
    let item = stored();
    assert_eq!((&item["headline"], &item["version"]), (&json!("2"), &json!("2")));
    assert_eq!(
        (&item["embargoed"], &item["pubstatus"]),
        (&json!(embargo), &json!("commissioned"))
    );
    assert_eq!(find(&server, "image/ice"), None);
    let public = json!({ "headline": "3", "embargoed": null, "pubstatus": "usable" });
    assert_eq!(replace(public), 200);
    let item = find(&server, "image/ice").expect("the editor says so");
    assert_eq!((item.get("embargoed"), &item["pubstatus"]), (None, &json!("usable")));
    let item = (Method::DELETE, "/ingest/v1/image/ice");
    assert_eq!(user.send(&server, item, &[], Vec::new()).status(), 200);
    assert_eq!(replace(json!({ "headline": "4" })), 200);
    assert_eq!(stored()["pubstatus"], "canceled");
    assert_eq!(find(&server, "image/ice"), None, "a new file does not bring it back");
}

#[test]
fn of_two_files_that_replace_a_version_at_a_time_one_is_stored() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let upload = || user.upload(&server, "ice.jpg", &photograph());
    let first = json!({ "document": { "headline": "First" } });
    assert_eq!(user.publish(&server, &upload(), &first).status(), 201);
    let mut stored = 1;
    for _ in 0..5 {
        let paths = [upload(), upload()];
        let replace = json!({ "existing": "replace", "document": { "headline": "Next" } });
        let publish = |path: &str| user.publish(&server, path, &replace);
        let answers: Vec<Response> = thread::scope(|scope| {
            let running = paths.each_ref().map(|path| scope.spawn(move || publish(path)));
            running.into_iter().map(|one| one.join().expect("answer")).collect()
        });
        for (answer, path) in answers.into_iter().zip(&paths) {
            if answer.status() == 200 {
                stored += 1;
            } else {
                assert_eq!(code(answer, 412), "version_conflict");
                assert_eq!(user.get(&server, path).status(), 200, "a refused upload stays");
            }
        }
    }
    let version = find(&server, "image/ice").expect("stored")["version"].clone();
    assert_eq!(version, stored.to_string(), "each follows the one before");
}

#[test]
fn house_rules_and_templates_apply_to_uploads() {
    let server = server(&["ingest.required_fields=headline,byline"]);
    let user = Uploader::new(&server);
    let path = user.upload(&server, "x.jpg", &photograph());
    let refused = user.publish(&server, &path, &json!({ "document": { "headline": "Ice" } }));
    let refused = Refusal::read(refused);
    assert_eq!((refused.status, refused.faults.len()), (400, 1), "{refused:?}");
    assert!(refused.faults[0].ends_with(" byline"), "{refused:?}");
    assert_eq!(find(&server, "image/x"), None, "the upload waits");
    let template = json!({ "name": "Desk", "shared": true, "fields": {
        "byline": { "apply": "fill", "value": "Desk" }, "source": "Agency",
    } });
    let json_type = [("content-type", "application/json")];
    let templates = (Method::POST, "/ingest/v1/templates");
    let created = user.send(&server, templates, &json_type, template.to_string().into_bytes());
    assert_eq!(created.status(), 201);
    let id = created.json::<Value>().unwrap()["id"].as_i64().unwrap();
    let address = format!("{path}/publish?template={id}");
    let body = json!({ "document": { "headline": "Ice" } }).to_string().into_bytes();
    assert_eq!(user.send(&server, (Method::POST, &address), &json_type, body).status(), 201);
    let item = find(&server, "image/x").unwrap();
    assert_eq!((&item["byline"], &item["source"]), (&json!("Desk"), &json!("Agency")));
    // Feeds are not stopped by a rule for editors.
    let sent = crate::items::put(
        &server,
        "text/y",
        &user.auth,
        ("application/json", b"{\"headline\":\"y\"}".to_vec()),
    );
    assert_eq!(sent.status(), 201);
}

/// A client of the protocol in another language, written from its specification.
const CLIENT: &str = r#"
import base64, json, sys, urllib.request
url, auth, name = sys.argv[1:]
data = sys.stdin.buffer.read()
def call(method, address, headers, body=None):
    own = {'Tus-Resumable': '1.0.0', 'Authorization': auth}
    request = urllib.request.Request(address, data=body, method=method, headers={**own, **headers})
    return urllib.request.urlopen(request).headers
metadata = 'filename ' + base64.b64encode(name.encode()).decode()
made = call('POST', url + '/ingest/v1/uploads',
            {'Upload-Length': str(len(data)), 'Upload-Metadata': metadata, 'Content-Length': '0'}, b'')
address = url + made['Location']
at = 0
while at < len(data):
    at = int(call('HEAD', address, {})['Upload-Offset'])
    part = data[at:at + 5000]
    sent = call('PATCH', address, {'Upload-Offset': str(at),
                'Content-Type': 'application/offset+octet-stream'}, part)
    at = int(sent['Upload-Offset'])
print(made['Location'])
"#;

#[test]
fn a_client_in_another_language_uploads() {
    let server = server(&[]);
    let user = Uploader::new(&server);
    let jpeg = photograph();
    let arguments = [server.url.as_str(), user.auth.as_str(), "från python.jpg"];
    let path = oracle::python(CLIENT, &arguments, &jpeg);
    let path = String::from_utf8(path).unwrap().trim().to_owned();
    let described: Value = user.get(&server, &path).json().unwrap();
    assert_eq!(described["fileName"], "från python.jpg");
    let publish = json!({ "id": "python", "document": { "headline": "Python" } });
    assert_eq!(user.publish(&server, &path, &publish).status(), 201);
    assert_eq!(find(&server, "image/python").unwrap()["renditions"]["r00"]["width"], 320);
}
