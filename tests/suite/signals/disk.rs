//! A disk that fills up: free space, the fault and `doctor` report it, and alerts fire before writes fail. The server
//! has a mount namespace with a file system of its own as its data directory.

use std::fs::{self, File};
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::faults::{until_fault, until_healthy};
use super::recording::Recording;
use crate::common::Server;
use crate::common::server::{isolate_environment, output, wirephoto};
use crate::faults::kit::{document, photograph, scene, upload};

/// Mounts the data directory and fills it from the folder `seed`, then becomes the server.
const MOUNT: &str = "mount -t tmpfs -o size=20g tmpfs data && cp -a seed/. data && exec \"$@\"";

/// A server with a disk of its own.
struct OwnDisk {
    server: Server,
    settings: [String; 2],
}

impl OwnDisk {
    /// Starts the server; `None` where this process may not mount.
    fn start() -> Option<Self> {
        let mut probe = Command::new("unshare");
        let probe = probe.args(["--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
        let may_mount = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !may_mount.is_ok_and(|status| status.success()) {
            return None;
        }
        let dir = scene(&[("image/old", document("Gammal"))]);
        let data = dir.path().join("data");
        fs::rename(&data, dir.path().join("seed")).unwrap();
        fs::create_dir(&data).unwrap();
        let settings = [
            "media.file_bytes_max=1048576".to_owned(),
            format!("store.originals={}", data.join("originals").display()),
        ];
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", MOUNT, "sh"]);
        command.arg(wirephoto(dir.path()).get_program());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        command.args(settings.iter().flat_map(|setting| ["--set", setting.as_str()]));
        isolate_environment(command.current_dir(dir.path()), dir.path());
        Some(Self { server: Server::run(dir, command), settings })
    }

    /// A command in the namespace of the server.
    fn within(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.server.child.id().to_string()]).arg(program);
        isolate_environment(&mut command, self.server.dir.path());
        command
    }

    fn resize(&self, size: &str) {
        let mut mount = self.within("mount");
        mount.args(["-o", &format!("remount,size={size}")]).arg(self.server.data());
        let said = output(&mut mount);
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    }

    /// A file that fills the disk.
    fn filler(&self) -> PathBuf {
        let data = self.server.data();
        PathBuf::from(format!("/proc/{}/root{}/filler", self.server.child.id(), data.display()))
    }

    fn fill(&self) {
        let mut file = File::create(self.filler()).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
    }

    fn doctor(&self) -> (String, Option<i32>) {
        let binary = wirephoto(self.server.dir.path());
        let mut doctor = self.within(binary.get_program());
        doctor.args(["doctor", "--data"]).arg(self.server.data());
        doctor.args(self.settings.iter().flat_map(|setting| ["--set", setting.as_str()]));
        let said = output(&mut doctor);
        (String::from_utf8(said.stdout).unwrap(), said.status.code())
    }

    fn free_bytes(&self, volume: &str) -> f64 {
        self.server.metric("wirephoto_disk_free_bytes", &format!("volume=\"{volume}\""))
    }

    /// Waits until the metrics of both volumes are in `bytes`.
    fn until_free(&self, bytes: Range<f64>) {
        for volume in ["data", "store"] {
            let is_seen = || bytes.contains(&self.free_bytes(volume)).then_some(());
            self.server.until("the space after a change of size", is_seen);
        }
    }

    fn ready(&self) -> (u16, Value) {
        let answer = self.server.get("/health/ready");
        (answer.status().as_u16(), answer.json().unwrap())
    }

    fn send(&self, id: &str) -> u16 {
        let request = upload(&self.server, id, "Ny", &photograph(3));
        request.send().unwrap().status().as_u16()
    }
}

#[test]
fn a_disk_that_fills_up_is_reported_before_writes_fail() {
    let Some(disk) = OwnDisk::start() else {
        eprintln!("left out: this process may not mount");
        return;
    };
    let server = &disk.server;
    until_healthy(server);
    let mut recording = Recording::with_disk();
    recording.record(server, 5);
    recording.expect(&[]);
    assert!(disk.doctor().0.contains("MiB are free"), "{}", disk.doctor().0);

    disk.resize("64m");
    disk.until_free(1.0..70e6);
    recording.record(server, 7);
    recording.expect(&["WirephotoDiskAlmostFull"]);
    assert_eq!(disk.ready(), (200, json!({ "status": "ready" })));
    assert_eq!(disk.send("image/first"), 201);

    disk.fill();
    until_fault(server, "disk");
    // The only node stays ready, since it serves reads.
    let detail = "the data directory is full or cannot be written";
    let expected = json!({ "status": "ready", "detail": detail, "faults": ["disk"] });
    assert_eq!(disk.ready(), (200, expected));
    for path in ["/health/live", "/health/serving", "/media/image/old_NormalPreview.jpg"] {
        assert_eq!(server.get(path).status(), 200, "{path}");
    }
    assert_eq!(disk.send("image/second"), 503);
    recording.record(server, 7);
    recording.expect(&["WirephotoDiskAlmostFull", "WirephotoFault"]);
    let (said, status) = disk.doctor();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
    assert!(!said.contains(" can be written"), "{said}");

    fs::remove_file(disk.filler()).unwrap();
    disk.resize("20g");
    disk.until_free(1e9..f64::INFINITY);
    until_healthy(server);
    assert_eq!(disk.send("image/second"), 201);
    recording.record(server, 10);
    recording.expect(&[]);
    recording.check();
}
