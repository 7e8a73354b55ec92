//! Where the server is and how it is reached; what it may answer in place of rows.

use std::{error::Error as _, path::Path, str::FromStr, time::Duration};

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::client::Mismatch;
use super::tls::Tls;
use crate::db::{DbError, EngineError};
use crate::limits::{DB_CONNECT_TIME, DB_KEEPALIVE_S, DB_KEEPALIVES, DB_LOOK};

/// An error of the server, or of the way to it.
#[derive(Debug, thiserror::Error)]
pub enum Postgres {
    /// The server reports it.
    #[error("{message} (SQLSTATE {code})")]
    Reported {
        /// PostgreSQL's code of five characters.
        code: String,
        /// What the server says of it. Its details may repeat what is in a row: they are left out.
        message: String,
    },
    /// There is no connection, or it broke.
    #[error("{0}")]
    Unreachable(String),
    /// A parameter or a column is not what was expected.
    #[error("{0}")]
    Value(String),
}

/// Codes and their beginnings that stand for a state that passes: the connection, resources,
/// conflicts, the operator's doing, files, damage; a lock that took too long, a transaction that did,
/// a server that only reads.
const PASSING: [&str; 10] =
    ["08", "53", "40", "57", "58", "XX001", "XX002", "55P03", "25P03", "25006"];

/// Those behind which a connection is of no use any more: a server that only reads is not the one
/// that writes.
const ENDING: [&str; 5] = ["08", "57P0", "25P03", "25006", "0A000"];

impl Postgres {
    /// Whether the database cannot be used now: a state that passes, not a mistake.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        match self {
            Self::Reported { code, .. } => PASSING.iter().any(|known| code.starts_with(known)),
            Self::Unreachable(_) => true,
            Self::Value(_) => false,
        }
    }

    pub(super) fn ends_session(&self) -> bool {
        match self {
            Self::Reported { code, .. } => ENDING.iter().any(|known| code.starts_with(known)),
            Self::Unreachable(_) => true,
            Self::Value(_) => false,
        }
    }

    /// Whether the server reports one of these codes.
    pub(super) fn is_one_of(&self, codes: &[&str]) -> bool {
        matches!(self, Self::Reported { code, .. } if codes.contains(&code.as_str()))
    }
}

impl From<tokio_postgres::Error> for Postgres {
    fn from(error: tokio_postgres::Error) -> Self {
        if let Some(reported) = error.as_db_error() {
            let code = reported.code().code().to_owned();
            return Self::Reported { code, message: reported.message().to_owned() };
        }
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(one) = cause {
            if one.is::<Mismatch>() {
                return Self::Value(one.to_string());
            }
            text = format!("{text}: {one}");
            cause = one.source();
        }
        Self::Unreachable(text)
    }
}

impl From<Postgres> for DbError {
    fn from(error: Postgres) -> Self {
        Self::Engine(EngineError::Postgres(error))
    }
}

impl From<tokio_postgres::Error> for DbError {
    fn from(error: tokio_postgres::Error) -> Self {
        Postgres::from(error).into()
    }
}

/// A database of a server, with what it takes to be let in.
pub(in crate::db) struct Server {
    config: tokio_postgres::Config,
    tls: Tls,
    /// Hosts and database, for messages.
    name: String,
    /// Time between two looks at whether others wrote, where nothing was heard of it.
    look: Duration,
}

/// What an address may say of TLS.
const MODES: &str = "sslmode is disable, require or verify-full";

impl Server {
    /// Reads an address `postgres://USER@HOST:PORT/DATABASE`; `password` counts where it is not empty.
    ///
    /// Of an address that is wrong the error repeats nothing: a password may stand in it.
    pub(in crate::db) fn parse(url: &str, password: &str) -> Result<Self, DbError> {
        let wrong = |why: &str| DbError::Address(format!("database.url: {why}"));
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let query = rest.split_once('?').map_or("", |(_, query)| query);
        if rest.matches('@').count() > 1 || query.contains(['@', '?']) {
            return Err(wrong("an @ or ? in a password is written %40 or %3F"));
        }
        let (address, tls) = take_tls(url).map_err(|why| wrong(&why))?;
        let mut config = tokio_postgres::Config::from_str(&address).map_err(|why| {
            let cause = why.source().map(ToString::to_string).unwrap_or_default();
            wrong(&format!("no address such as postgres://user@host:5432/database: {cause}"))
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host"));
        }
        if !password.is_empty() {
            config.password(password);
        }
        let encrypted = tls.is_some();
        let tls = match tls {
            None => Tls::none(),
            Some(ca) => Tls::believing(ca.as_deref().map(Path::new)).map_err(|why| wrong(&why))?,
        };
        let keepalive = Duration::from_secs(DB_KEEPALIVE_S);
        config
            .ssl_mode(if encrypted { SslMode::Require } else { SslMode::Disable })
            .application_name("wirephoto")
            .connect_timeout(DB_CONNECT_TIME)
            .keepalives(true)
            .keepalives_idle(keepalive)
            .keepalives_interval(keepalive)
            .keepalives_retries(DB_KEEPALIVES)
            .tcp_user_timeout(keepalive * (DB_KEEPALIVES + 1))
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let name = name(&config);
        Ok(Self { config, tls, name, look: DB_LOOK })
    }

    /// For tests, which look once and do not wait.
    #[cfg(test)]
    pub(in crate::db) fn looked_at_each_time(self) -> Self {
        Self { look: Duration::ZERO, ..self }
    }

    pub(super) fn look(&self) -> Duration {
        self.look
    }

    pub(super) fn config(&self) -> &tokio_postgres::Config {
        &self.config
    }

    pub(super) fn tls(&self) -> Tls {
        self.tls.clone()
    }

    /// Hosts and database, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

fn name(config: &tokio_postgres::Config) -> String {
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

/// Takes what is about TLS out of an address: whether there is any, and the file of `sslrootcert`.
fn take_tls(url: &str) -> Result<(String, Option<Option<String>>), String> {
    let Some((address, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut encrypted, mut ca) = (false, None);
    let mut rest = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some(("sslmode", "disable")) => encrypted = false,
            Some(("sslmode", "require" | "verify-full")) => encrypted = true,
            Some(("sslmode", mode)) => return Err(format!("{MODES}, not {mode}")),
            Some(("sslrootcert", file)) => ca = Some(file.replace("%2F", "/")),
            _ => rest.push(pair),
        }
    }
    if ca.is_some() && !encrypted {
        return Err("sslrootcert needs sslmode=require or verify-full".to_owned());
    }
    let address = match rest.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", rest.join("&")),
    };
    Ok((address, encrypted.then_some(ca)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_an_address_says_where_and_never_the_password() {
        let url = "postgres://wp:hunter2@db1:5433,db2/archive?sslmode=require&connect_timeout=3";
        let server = Server::parse(url, "").unwrap();
        assert_eq!(server.name(), "PostgreSQL database archive at db1,db2");
        assert_eq!(server.config().get_password(), Some(&b"hunter2"[..]));
        assert_eq!(server.config().get_ssl_mode(), SslMode::Require);
        let server = Server::parse("postgres://wp:old@db1/archive", "new").unwrap();
        assert_eq!(server.config().get_password(), Some(&b"new"[..]));
        assert_eq!(server.config().get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn err_a_wrong_address_is_refused_without_repeating_it() {
        for (url, part) in [
            ("postgres://wp:hunter2@db:port/x", "no address such as"),
            ("postgres://wp:hunter2@/x", "names no host"),
            ("postgres://wp:hunter2@db/x?sslmode=prefer", "not prefer"),
            ("postgres://wp:hunter2@db/x?sslrootcert=/ca.pem", "needs sslmode"),
            ("postgres://wp:hunter2@db/x?sslmode=require&sslrootcert=/no/file", "/no/file"),
            ("postgres://wp:hunter2@db/x?zzz=1", "no address such as"),
        ] {
            let message = Server::parse(url, "").err().map(|why| why.to_string());
            let message = message.unwrap_or_default();
            assert!(message.contains(part), "{url} gives {message:?}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }
}
