//! PostgreSQL: per-test servers, and the databases of all tests that run on PostgreSQL.
//!
//! If the variable `TEST_POSTGRES` is the URL of a database of locale C whose user may create others,
//! every folder that the binary works in has a database on that server.

use std::{
    collections::HashSet,
    env, fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{LazyLock, Mutex},
};

use tempfile::TempDir;

use super::ports::free_port;

/// The variable with the URL of the shared server.
const SERVER: &str = "TEST_POSTGRES";

/// Names of the databases that were created.
static CREATED: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

/// Returns whether tests run on PostgreSQL.
pub fn is_used() -> bool {
    env::var_os(SERVER).is_some()
}

/// The URL of the folder's database, which is created if it is missing; `None` if tests run on SQLite.
pub fn url_of(dir: &Path) -> Option<String> {
    let server = env::var(SERVER).ok()?;
    // A node over another node's data directory shares its database.
    let home = fs::read_link(dir.join("data")).ok();
    let name = name(home.as_deref().and_then(Path::parent).unwrap_or(dir));
    if CREATED.lock().expect("names").insert(name.clone()) {
        run(&server, &format!("CREATE DATABASE {name}"));
    }
    Some(sibling_url(&server, &name))
}

/// Creates the database of the folder `to` as a copy of that of `from`.
pub fn copy(from: &Path, to: &Path) {
    let Ok(server) = env::var(SERVER) else { return };
    let (from, to) = (name(from), name(to));
    // Serialized: a database that is copied must have no connections.
    let mut made = CREATED.lock().expect("names");
    run(&server, &format!("CREATE DATABASE {to} TEMPLATE {from}"));
    made.insert(to);
}

/// The stored bytes of a data directory's database.
pub fn stored(data: &Path) -> Vec<u8> {
    let Some(url) = url_of(data.parent().expect("a folder")) else {
        let files = ["wirephoto.db", "wirephoto.db-wal"];
        return files.map(|name| fs::read(data.join(name)).unwrap_or_default()).concat();
    };
    let mut dump = Command::new(programs().join("pg_dump"));
    checked(&dump.args(["--data-only", &url]).output().expect("pg_dump starts"), "dump")
        .into_bytes()
}

/// Drops the database of the folder.
pub fn remove(dir: &Path) {
    let Ok(server) = env::var(SERVER) else { return };
    let name = name(dir);
    if CREATED.lock().expect("names").remove(&name) {
        run(&server, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
    }
}

/// A database name that is unique to the folder.
fn name(dir: &Path) -> String {
    let bytes = dir.as_os_str().as_encoded_bytes();
    let number = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("suite_{number:016x}")
}

/// The URL of another database on the same server.
fn sibling_url(url: &str, name: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, None), |(a, q)| (a, Some(q)));
    let at = address.rfind('/').expect("an address with a database");
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &address[..at])
}

/// A session that executes its standard input and prints the results.
pub fn session(url: &str) -> Command {
    let mut psql = Command::new(programs().join("psql"));
    psql.args([url, "-qAtX", "-v", "ON_ERROR_STOP=1"]);
    psql
}

/// A shell that runs a line as an operator does, with PostgreSQL's programs and ours on the path and the URL of a
/// database in `$URL`.
pub fn shell(line: &str, url: &str) -> Command {
    let others = env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env("URL", url).stdin(Stdio::null());
    let own = Path::new(env!("CARGO_BIN_EXE_wirephoto")).parent().expect("a folder");
    shell.env("PATH", format!("{}:{}:{others}", programs().display(), own.display()));
    shell
}

/// Runs statements; returns their output.
pub fn run(url: &str, sql: &str) -> String {
    let mut psql = session(url);
    let psql = psql.args(["-c", sql]).stdin(Stdio::null());
    checked(&psql.output().expect("psql starts"), sql)
}

fn checked(output: &Output, what: &str) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {errors}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The folder of PostgreSQL's programs, Debian's newest version.
fn programs() -> PathBuf {
    let all = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed (./test does)");
    let versions = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let newest: u32 = versions.max().expect("a version");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"))
}

/// A PostgreSQL server in its own folder, on a port of loopback.
pub struct Cluster {
    dir: TempDir,
    host: String,
    port: u16,
}

impl Cluster {
    pub fn start() -> Self {
        Self::start_at("127.0.0.1")
    }

    /// Starts a server on another address of this machine.
    pub fn start_at(host: &str) -> Self {
        let cluster = Self::allocate(host);
        let data = cluster.data();
        let data = data.to_str().expect("a path");
        let made = ["-D", data, "-U", "wirephoto", "-A", "trust", "-E", "UTF8", "--locale=C"];
        cluster.program("initdb", &[&made[..], &["--no-sync"]].concat(), Stdio::null());
        // Every client that can connect is trusted, from any address.
        let rules = fs::File::options().append(true).open(cluster.data().join("pg_hba.conf"));
        rules.expect("rules").write_all(b"host all all 0.0.0.0/0 trust\n").expect("written");
        cluster.up();
        cluster
    }

    /// Starts a read-only standby that replicates from this server.
    pub fn start_standby(&self) -> Self {
        let copy = Self::allocate(&self.host);
        let data = copy.data();
        let (data, from) = (data.to_str().expect("a path"), self.url("postgres"));
        let made = ["-D", data, "-d", &from, "-R", "-c", "fast", "--no-sync"];
        copy.program("pg_basebackup", &made, Stdio::null());
        copy.up();
        copy
    }

    /// Creates the folder and selects the port of a server.
    fn allocate(host: &str) -> Self {
        let dir = tempfile::tempdir().expect("folder");
        // The port is released and bound again while other tests open connections.
        let port = free_port();
        if is_root() {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode");
            let owned = Command::new("chown").arg("postgres").arg(dir.path()).status();
            assert!(owned.expect("chown").success());
        }
        Self { dir, host: host.to_owned(), port }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs one of the programs, which refuse to run as root; a program of the system if PostgreSQL has none of
    /// that name.
    fn program(&self, name: &str, arguments: &[&str], input: Stdio) {
        let program = programs().join(name);
        let program = if program.exists() { program } else { PathBuf::from(name) };
        let mut command = if is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        // Daemons that outlive the program must not hold a pipe open.
        let log = fs::File::create(self.dir.path().join(format!("{name}.log"))).expect("a log");
        command.args(arguments).current_dir(self.dir.path()).stdin(input);
        let status = command.stdout(log.try_clone().expect("a log")).stderr(log).status();
        let said = fs::read_to_string(self.dir.path().join(format!("{name}.log")));
        assert!(status.expect("it starts").success(), "{name}: {}", said.unwrap_or_default());
    }

    fn control(&self, arguments: &[&str]) {
        let data = self.data();
        let common = ["-D", data.to_str().expect("a path"), "-w"];
        self.program("pg_ctl", &[&common, arguments].concat(), Stdio::null());
    }

    /// Starts the server, also after [`Cluster::down`].
    pub fn up(&self) {
        let options = format!(
            "-p {} -c listen_addresses={} -c unix_socket_directories= -c fsync=off",
            self.port, self.host
        );
        let log = self.dir.path().join("server.log");
        let log = log.to_str().expect("a path").to_owned();
        self.control(&["-l", &log, "-o", &options, "start"]);
    }

    /// Stops the server without waiting for its clients.
    pub fn down(&self) {
        self.control(&["-m", "fast", "stop"]);
    }

    /// Promotes a standby, which accepts writes from then on.
    pub fn promote(&self) {
        self.control(&["promote"]);
    }

    /// Stops the server as a crash would.
    pub fn crash(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    /// Enables TLS, with the certificate and key in that file.
    pub fn enable_tls(&self, pem: &Path) {
        // PostgreSQL requires that it owns the key file.
        self.program("tee", &["tls.pem"], fs::File::open(pem).expect("a certificate").into());
        let file = self.dir.path().join("tls.pem");
        self.program("chmod", &["600", file.to_str().expect("a path")], Stdio::null());
        for setting in ["ssl_cert_file", "ssl_key_file"] {
            let sql = format!("ALTER SYSTEM SET {setting} = '{}'", file.display());
            run(&self.url("postgres"), &sql);
        }
        run(&self.url("postgres"), "ALTER SYSTEM SET ssl = on");
        self.down();
        self.up();
    }

    /// Replaces the client authentication rules (`pg_hba.conf`).
    pub fn set_hba_rules(&self, rules: &str) {
        fs::write(self.data().join("pg_hba.conf"), rules).expect("rules");
        self.down();
        self.up();
    }

    /// Creates an empty database; returns its URL.
    pub fn database(&self, name: &str) -> String {
        run(&self.url("postgres"), &format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    pub fn url(&self, name: &str) -> String {
        format!("postgres://wirephoto@{}:{}/{name}", self.host, self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.data().join("postmaster.pid").exists() {
            self.crash();
        }
    }
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id");
    output.stdout.starts_with(b"0")
}
