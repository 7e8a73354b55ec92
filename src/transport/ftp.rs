//! Uploads files to an FTP server, plain or over TLS.
//!
//! Uses passive and binary mode. Each file is uploaded under a temporary name and then renamed, so that a process
//! that watches the folder never reads a partial file.

use std::{io, sync::Arc};

use suppaftp::tokio::{AsyncRustlsConnector, AsyncRustlsFtpStream};
use suppaftp::tokio_rustls::TlsConnector;
use suppaftp::types::FileType;
use suppaftp::{FtpError, Mode};
use tokio::io::AsyncWriteExt;

use crate::runtime::limits;
use crate::transport::{
    conversation::{RemoteConversation, TransportTimeouts, host_and_port},
    error::{SendError, SendFault, SendStep},
    file::{OutgoingFile, OutgoingReader},
    network_policy::NetworkPolicy,
    settings::{FieldProblem, FolderPath, SettingsReader, TransportSecret, missing},
    tls::{CustomAuthority, client_config, read_authority},
};

/// The encryption of the control and data connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FtpSecurity {
    None,
    /// Starts with the command `AUTH TLS`.
    Explicit,
    /// TLS from the first byte.
    Implicit,
}

/// An account on an FTP server.
#[derive(Debug)]
pub(super) struct FtpTarget {
    host: String,
    port: u16,
    security: FtpSecurity,
    username: String,
    password: TransportSecret,
    path: FolderPath,
    authority: CustomAuthority,
}

impl FtpTarget {
    pub(super) fn read(
        fields: &mut SettingsReader<'_>,
        encrypted: bool,
    ) -> Result<Self, FieldProblem> {
        let security = if !encrypted {
            FtpSecurity::None
        } else if fields.switch("implicit")? {
            FtpSecurity::Implicit
        } else {
            FtpSecurity::Explicit
        };
        let port = if security == FtpSecurity::Implicit { 990 } else { 21 };
        let password = fields.find_line("password")?;
        Ok(Self {
            host: fields.host("host")?,
            port: fields.port("port", port)?,
            security,
            username: fields.text("username")?,
            password: password.ok_or_else(|| missing("password"))?,
            path: FolderPath::read(fields, "path", true)?,
            authority: encrypted.then(|| read_authority(fields)).transpose()?.unwrap_or_default(),
        })
    }

    pub(super) async fn send(
        &self,
        timeouts: TransportTimeouts,
        policy: NetworkPolicy,
        id: &str,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let endpoint = host_and_port(&self.host, self.port);
        let conversation =
            RemoteConversation { endpoint, timeouts, secrets: vec![self.password.reveal()] };
        let mut session =
            FtpSession { ftp: self.connect(&conversation, policy).await?, conversation };
        session.log_in(self).await?;
        session.enter(&self.path).await?;
        for file in files {
            session.upload(file, &format!(".{}.{id}.part", file.name)).await?;
        }
        // All files have arrived, so a failed `QUIT` is not an error.
        let _ignored =
            tokio::time::timeout(limits::TRANSPORT_CLOSE_TIMEOUT, session.ftp.quit()).await;
        Ok(())
    }

    fn connector(
        &self,
        conversation: &RemoteConversation<'_>,
    ) -> Result<AsyncRustlsConnector, SendError> {
        let config = conversation.check(SendStep::Secure, client_config(&self.authority))?;
        Ok(TlsConnector::from(Arc::new(config)).into())
    }

    async fn connect(
        &self,
        conversation: &RemoteConversation<'_>,
        policy: NetworkPolicy,
    ) -> Result<AsyncRustlsFtpStream, SendError> {
        let host = self.host.as_str();
        if self.security == FtpSecurity::Implicit {
            // The library opens this connection itself, so it is given addresses that were checked.
            let resolved = policy.resolve(host, self.port);
            let addresses = conversation.await_connection(SendStep::Connect, resolved).await?;
            let connected = AsyncRustlsFtpStream::connect_secure_implicit(
                addresses.as_slice(),
                self.connector(conversation)?,
                host,
            );
            let mut ftp = conversation.await_connection(SendStep::Connect, connected).await?;
            // The library leaves the protection of data connections at the server's default.
            for command in ["PBSZ 0", "PROT P"] {
                let agreed = ftp.custom_command(command, &[suppaftp::Status::CommandOk]);
                conversation.await_answer(SendStep::Secure, agreed).await?;
            }
            return Ok(ftp);
        }
        let connected = policy.connect(host, self.port);
        let tcp = conversation.await_connection(SendStep::Connect, connected).await?;
        let greeted = AsyncRustlsFtpStream::connect_with_stream(tcp);
        let ftp = conversation.await_answer(SendStep::Connect, greeted).await?;
        if self.security == FtpSecurity::None {
            return Ok(ftp);
        }
        let connector = self.connector(conversation)?;
        conversation.await_answer(SendStep::Secure, ftp.into_secure(connector, host)).await
    }
}

/// A logged-in control connection.
struct FtpSession<'a> {
    ftp: AsyncRustlsFtpStream,
    conversation: RemoteConversation<'a>,
}

impl FtpSession<'_> {
    async fn log_in(&mut self, account: &FtpTarget) -> Result<(), SendError> {
        let username = account.username.as_str();
        let password = account.password.reveal();
        let login = async {
            self.ftp.login(username, password).await.map_err(|e| SendFault::from(e).of_login())
        };
        self.conversation.await_answer(SendStep::LogIn, login).await?;
        // ASCII, the protocol's default type, would corrupt pictures.
        let binary = self.ftp.transfer_type(FileType::Binary);
        self.conversation.await_answer(SendStep::LogIn, binary).await?;
        let peer = self.ftp.get_ref().await.peer_addr();
        let peer = self.conversation.check(SendStep::Connect, peer)?;
        if peer.is_ipv6() {
            self.ftp.set_mode(Mode::ExtendedPassive);
        } else {
            // The data connection uses the address of the control connection, not the announced one. Behind NAT
            // the announced address is wrong, and a hostile server could announce the address of a different
            // machine.
            self.ftp.set_mode(Mode::Passive);
            self.ftp.set_passive_nat_workaround(true);
        }
        Ok(())
    }

    /// Changes to a folder and creates missing parts of its path.
    async fn enter(&mut self, path: &FolderPath) -> Result<(), SendError> {
        let Self { ftp, conversation } = self;
        if path.absolute {
            conversation.await_answer(SendStep::Folder, ftp.cwd("/")).await?;
        }
        for part in &path.parts {
            // A name that begins with a dash or a space is safe: the argument extends to the end of the line.
            match conversation.await_answer(SendStep::Folder, ftp.cwd(part)).await {
                Ok(()) => continue,
                // The folder is probably missing, so it is created below.
                Err(error) if is_final_answer(&error) => {}
                Err(error) => return Err(error),
            }
            let created = conversation.await_answer(SendStep::Folder, ftp.mkdir(part)).await;
            let entered = conversation.await_answer(SendStep::Folder, ftp.cwd(part)).await;
            // A concurrent delivery may create the folder at the same moment, so only its existence counts.
            if let Err(error) = entered {
                return Err(created.err().unwrap_or(error));
            }
        }
        Ok(())
    }

    async fn upload(&mut self, file: &OutgoingFile, temporary: &str) -> Result<(), SendError> {
        let Self { ftp, conversation } = self;
        let timeouts = conversation.timeouts;
        let limit = timeouts.transfer(file.size_bytes);
        let sent = store(ftp, file, temporary, timeouts);
        conversation.run_within(limit, SendStep::Upload, sent).await?;
        let name = file.name.as_str();
        match conversation.await_answer(SendStep::Rename, ftp.rename(temporary, name)).await {
            // Some servers cannot rename over an existing file, so that file is removed first.
            Err(error) if is_final_answer(&error) => {
                let _ignored = conversation.await_answer(SendStep::Rename, ftp.rm(name)).await;
                conversation.await_answer(SendStep::Rename, ftp.rename(temporary, name)).await
            }
            renamed => renamed,
        }
    }
}

fn is_final_answer(error: &SendError) -> bool {
    matches!(*error.fault, SendFault::Answer { temporary: false, .. })
}

async fn store(
    ftp: &mut AsyncRustlsFtpStream,
    file: &OutgoingFile,
    name: &str,
    timeouts: TransportTimeouts,
) -> Result<(), SendFault> {
    let mut reader = OutgoingReader::open(file, timeouts.answer).await?;
    let mut data = ftp.put_with_stream(name).await?;
    while let Some(chunk) = reader.next().await? {
        let written = tokio::time::timeout(timeouts.answer, data.write_all(&chunk)).await;
        written.map_err(|_| SendFault::TimedOut(timeouts.answer))??;
    }
    let finished = tokio::time::timeout(timeouts.answer, data.finish()).await;
    Ok(finished.map_err(|_| SendFault::TimedOut(timeouts.answer))??)
}

impl From<FtpError> for SendFault {
    fn from(error: FtpError) -> Self {
        match error {
            FtpError::ConnectionError(cause) => cause.into(),
            FtpError::SecureError(text) => Self::of_tls(&text),
            FtpError::UnexpectedResponse(response) => answer(&response.body),
            FtpError::BadResponse => Self::Protocol("not an FTP answer".into()),
            other @ (FtpError::InvalidAddress(_) | FtpError::DataConnectionAlreadyOpen) => {
                Self::Network(io::Error::other(other.to_string()))
            }
        }
    }
}

/// Parses a response such as `530 Login incorrect`.
fn answer(body: &[u8]) -> SendFault {
    let text = String::from_utf8_lossy(body);
    let code = text.get(..3).and_then(|code| code.parse().ok()).unwrap_or(0);
    let server_message = text.get(4..).unwrap_or_default().to_owned();
    // RFC 959 §4.2: 4xx is transient, 5xx is permanent.
    SendFault::Answer { code, server_message, temporary: !(500..600).contains(&code) }
}
