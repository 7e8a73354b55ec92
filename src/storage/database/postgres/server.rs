//! Parses the address of the server and holds its connection settings.

use std::error::Error as _;
use std::net::IpAddr;
use std::path::Path;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};
use uuid::Uuid;

use super::error::unreachable;
use super::tls::ServerTls;
use crate::runtime::config::SecretSource;
use crate::runtime::limits::{DB_CONNECT_TIME, DB_KEEPALIVE_S, DB_KEEPALIVES};
use crate::storage::database::error::{DbError, DbResult, EngineError};

/// Hosts that a database URL may name; each gets the connect timeout before the next one is tried.
const DB_HOSTS_MAX: usize = 16;
/// Poll interval for writes of other processes, in case a notification was lost.
const DB_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A database of a server, with the credentials for it.
pub(in crate::storage::database) struct PostgresServer {
    /// Settings of each host separately, because the driver would not try the next host after a host that
    /// accepts a connection and never answers.
    hosts: Vec<Config>,
    /// Index of the host to try first, which is the host that answered last.
    first: AtomicUsize,
    /// True if the first host to try is random (`load_balance_hosts=random`).
    any_first: bool,
    pub(super) only_reads: bool,
    /// Has precedence over the password in the address.
    password: Option<SecretSource>,
    tls: ServerTls,
    /// Hosts and database, for messages.
    name: String,
    /// Interval at which followers read the version without a notification.
    pub(super) poll_interval: Duration,
    /// True if it was logged that the schema does not belong to this version.
    schema_logged: AtomicBool,
    /// True if it was logged that the server cannot notify.
    notifications_logged: AtomicBool,
}

/// The values of `sslmode` that an address may have.
const MODES: &str = "sslmode is disable, require or verify-full";

impl PostgresServer {
    /// Parses an address `postgres://USER@HOST:PORT/DATABASE`.
    ///
    /// The error repeats no part of a wrong address, which may contain a password.
    pub(in crate::storage::database) fn parse(url: &str) -> DbResult<Self> {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        // The driver would use the rest of the password as the host, which messages and lookups show.
        if rest.matches('@').count() > 1 || query.contains(['@', '?']) {
            return Err(invalid("an @ or ? in a password is written %40 or %3F"));
        }
        let (address, tls) = take_tls(url).map_err(|why| invalid(&why))?;
        let mut config = Config::from_str(&address).map_err(|why| {
            let cause = why.source().map(ToString::to_string).unwrap_or_default();
            invalid(&format!("not an address such as postgres://user@host:5432/database: {cause}"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(invalid("it names no host"));
        }
        let count = config.get_hosts().len();
        if count > DB_HOSTS_MAX {
            return Err(invalid(&format!(
                "it names {count} hosts, at most {DB_HOSTS_MAX} are allowed"
            )));
        }
        // As in libpq, a single port applies to all hosts.
        for number in [config.get_ports().len(), config.get_hostaddrs().len()] {
            if number != count && number > 1 {
                return Err(invalid("it names as many ports as hosts, or one"));
            }
        }
        let encrypted = tls.is_some();
        let tls = match tls {
            None => ServerTls::none(),
            Some(ca) => {
                ServerTls::trusting(ca.as_deref().map(Path::new)).map_err(|why| invalid(&why))?
            }
        };
        config.ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable });
        let hosts = (0..count).map(|index| host_config(&config, index)).collect();
        let any_first = config.get_load_balance_hosts() == LoadBalanceHosts::Random;
        let name = name(&config);
        Ok(Self {
            hosts,
            first: AtomicUsize::new(0),
            any_first,
            only_reads: false,
            password: None,
            tls,
            name,
            poll_interval: DB_POLL_INTERVAL,
            schema_logged: AtomicBool::new(false),
            notifications_logged: AtomicBool::new(false),
        })
    }

    /// Replaces the password in the address by this one, unless it is empty.
    pub(in crate::storage::database) fn with_password(mut self, password: &SecretSource) -> Self {
        self.password = (!password.is_empty()).then(|| password.clone());
        self
    }

    /// Returns the settings of a host with the current password.
    pub(super) fn login(&self, config: &Config) -> Result<Config, EngineError> {
        let mut config = config.clone();
        // Read for each connection, so that a rotated password needs no restart.
        if let Some(password) = &self.password {
            let password = password.read();
            config.password(password.map_err(|cause| unreachable(cause.to_string()))?);
        }
        Ok(config)
    }

    /// Permits any server, such as a read-only standby, for a read-only process.
    pub(in crate::storage::database) fn for_reading(mut self) -> Self {
        for config in &mut self.hosts {
            config.target_session_attrs(TargetSessionAttrs::Any);
        }
        self.only_reads = true;
        self
    }

    /// Returns the hosts that are reached over a network without TLS, without local sockets and loopback
    /// addresses.
    pub(super) fn hosts_in_clear_text(&self) -> Vec<String> {
        let clear = self.hosts.iter().filter(|host| host.get_ssl_mode() == SslMode::Disable);
        clear.filter_map(remote_name).collect()
    }

    /// Polls without an interval, for tests.
    #[cfg(test)]
    pub(in crate::storage::database) fn looked_at_each_time(self) -> Self {
        Self { poll_interval: Duration::ZERO, ..self }
    }

    /// Returns the settings of each host, with its index, in the order in which they are tried.
    pub(super) fn hosts(&self) -> impl Iterator<Item = (usize, &Config)> {
        let first = if self.any_first {
            usize::from(Uuid::new_v4().as_bytes()[0])
        } else {
            self.first.load(Ordering::Relaxed)
        };
        (0..self.hosts.len()).map(move |step| {
            let index = (first + step) % self.hosts.len();
            (index, &self.hosts[index])
        })
    }

    /// Makes the host with that index, which answered, the first to try.
    pub(super) fn prefer_host(&self, index: usize) {
        self.first.store(index, Ordering::Relaxed);
    }

    pub(super) fn tls(&self) -> ServerTls {
        self.tls.clone()
    }

    /// Logs once that the schema does not belong to this version.
    pub(super) fn log_schema_mismatch(&self, cause: &DbError) {
        // Every write would log it while the process runs.
        if !self.schema_logged.swap(true, Ordering::Relaxed) {
            tracing::error!("database schema mismatch: writes are refused: {cause}");
        }
    }

    /// Logs once that the server cannot notify.
    pub(super) fn log_missing_notifications(&self, cause: &EngineError) {
        if !self.notifications_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "{}: no notifications, polling for the writes of other nodes four times a second: \
                 {cause}",
                self.name
            );
        }
    }

    /// Returns hosts and database, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the settings with only the host at `index`.
fn host_config(all: &Config, index: usize) -> Config {
    let mut config = Config::new();
    match &all.get_hosts()[index] {
        Host::Tcp(name) => config.host(name),
        Host::Unix(path) => config.host_path(path),
    };
    if let Some(address) = all.get_hostaddrs().get(index) {
        config.hostaddr(*address);
    }
    if let Some(port) = all.get_ports().get(index).or(all.get_ports().first()) {
        config.port(*port);
    }
    if let Some(user) = all.get_user() {
        config.user(user);
    }
    if let Some(password) = all.get_password() {
        config.password(password);
    }
    if let Some(database) = all.get_dbname() {
        config.dbname(database);
    }
    if let Some(options) = all.get_options() {
        config.options(options);
    }
    let keepalive = Duration::from_secs(DB_KEEPALIVE_S);
    config
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .load_balance_hosts(all.get_load_balance_hosts())
        .application_name("wirephoto")
        .connect_timeout(DB_CONNECT_TIME)
        .keepalives(true)
        .keepalives_idle(keepalive)
        .keepalives_interval(keepalive)
        .keepalives_retries(DB_KEEPALIVES)
        .tcp_user_timeout(keepalive * (DB_KEEPALIVES + 1))
        // After a failover the old primary may still answer, but accepts no writes.
        .target_session_attrs(TargetSessionAttrs::ReadWrite);
    config
}

fn name(config: &Config) -> String {
    let hosts: Vec<String> = config
        .get_hosts()
        .iter()
        .map(|host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        })
        .collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("PostgreSQL database {database} at {}", hosts.join(","))
}

fn invalid(why: &str) -> DbError {
    DbError::Address(format!("database.url: {why}"))
}

/// Returns the name or address of a host; `None` for this machine.
fn remote_name(config: &Config) -> Option<String> {
    if let Some(address) = config.get_hostaddrs().first() {
        return (!address.is_loopback()).then(|| address.to_string());
    }
    match config.get_hosts().first()? {
        // The bytes never leave the machine.
        Host::Unix(_) => None,
        Host::Tcp(name) => {
            let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
            let is_local = address.map_or(name == "localhost", |address| address.is_loopback());
            (!is_local).then(|| name.clone())
        }
    }
}

/// Removes the TLS parameters from an address. Returns the rest, and for TLS the file of `sslrootcert`, if
/// any.
fn take_tls(url: &str) -> Result<(String, Option<Option<String>>), String> {
    let Some((address, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let mut encrypted = false;
    let mut ca = None;
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "disable")) => encrypted = false,
            Some(("sslmode", "require" | "verify-full")) => encrypted = true,
            // `prefer` and `allow` fall back to a connection without TLS, which an attacker can cause.
            Some(("sslmode", mode)) => return Err(format!("{MODES}, not {mode}")),
            Some(("sslrootcert", file)) => ca = Some(file.replace("%2F", "/")),
            _ => rest.push(pair),
        }
    }
    // Otherwise the operator would believe that the connection is encrypted.
    if ca.is_some() && !encrypted {
        return Err("sslrootcert needs sslmode=require or verify-full".to_owned());
    }
    let address =
        if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
    Ok((address, encrypted.then_some(ca)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_an_address_says_where_and_never_the_password() {
        let url = "postgres://wp:hunter2@db1:5433,db2/archive?sslmode=require&connect_timeout=3";
        let server = PostgresServer::parse(url).unwrap();
        assert_eq!(server.name(), "PostgreSQL database archive at db1,db2");
        let hosts: Vec<&Config> = server.hosts().map(|(_, config)| config).collect();
        let names: Vec<&[Host]> = hosts.iter().map(|config| config.get_hosts()).collect();
        assert_eq!(names, [[Host::Tcp("db1".to_owned())], [Host::Tcp("db2".to_owned())]]);
        assert_eq!(
            hosts.iter().map(|config| config.get_ports()).collect::<Vec<_>>(),
            [[5433], [5432]]
        );
        for config in hosts {
            assert_eq!(config.get_password(), Some(&b"hunter2"[..]));
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
            assert_eq!((config.get_user(), config.get_dbname()), (Some("wp"), Some("archive")));
        }
        // The host that answered is tried first.
        server.prefer_host(1);
        assert_eq!(server.hosts().map(|(at, _)| at).collect::<Vec<_>>(), [1, 0]);
        let server = PostgresServer::parse("postgres://wp:old@db1/archive").unwrap();
        let server = server.with_password(&SecretSource::text("new"));
        let (_, config) = server.hosts().next().unwrap();
        assert_eq!(server.login(config).unwrap().get_password(), Some(&b"new"[..]));
        assert_eq!(config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn a_host_over_a_network_without_tls_is_named() {
        let check = |url: &str, expected: &[&str]| {
            assert_eq!(
                PostgresServer::parse(url).unwrap().hosts_in_clear_text(),
                expected,
                "{url}"
            );
        };
        check("postgres://wp@db1,db2/x", &["db1", "db2"]);
        check("postgres://wp@db1/x?sslmode=disable", &["db1"]);
        check("postgres://wp@db1/x?sslmode=require", &[]);
        check("postgres://wp@db1/x?sslmode=verify-full", &[]);
        check("postgres://wp@localhost,127.0.0.1,10.0.0.7/x", &["10.0.0.7"]);
        check("postgres://wp@db1/x?hostaddr=127.0.0.1", &[]);
        check("postgres:///x?host=/run/postgresql", &[]);
    }

    #[test]
    fn err_a_wrong_address_is_refused_without_repeating_it() {
        for (url, part) in [
            ("postgres://wp:hunter2@db:port/x", "not an address such as"),
            ("postgres://wp:hunter2@/x", "names no host"),
            ("postgres://wp:hunter2@db/x?sslmode=prefer", "not prefer"),
            ("postgres://wp:hunter2@db/x?sslrootcert=/ca.pem", "needs sslmode"),
            ("postgres://wp:hunter2@db/x?sslmode=require&sslrootcert=/no/file", "/no/file"),
            ("postgres://wp:hunter2@db/x?zzz=1", "not an address such as"),
        ] {
            let message = PostgresServer::parse(url).err().map(|why| why.to_string());
            let message = message.unwrap_or_default();
            assert!(message.contains(part), "{url} gives {message:?}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
