//! Uploads files to an SSH server over SFTP.
//!
//! The host key is pinned: a channel contains its fingerprint or the key itself, and nothing is sent to a server
//! with a different key. Ed25519 and ECDSA keys are supported. RSA is not supported, because its implementation
//! has a timing side channel (RUSTSEC-2023-0071).

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse};
use russh::keys::ssh_key::Kdf;
use russh::keys::{
    Algorithm, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate,
    decode_secret_key,
};
use russh_sftp::client::{Config, RawSftpSession};

use crate::runtime::limits;
use crate::transport::conversation::{RemoteConversation, TransportTimeouts, host_and_port};
use crate::transport::error::{SendError, SendFault, SendRefusal, SendStep};
use crate::transport::file::OutgoingFile;
use crate::transport::network_policy::NetworkPolicy;
use crate::transport::settings::{
    FieldProblem, FolderPath, SettingsReader, TransportSecret, invalid_setting, missing,
};
use crate::transport::sftp_folder::RemoteFolder;

/// Prompts of one keyboard-interactive login that are answered with the password.
const SFTP_PROMPTS_MAX: usize = 4;

/// The credentials of an SSH login.
#[derive(Debug)]
pub(super) enum SshProof {
    Password(TransportSecret),
    Key(Arc<PrivateKey>),
}

/// The stored credentials, with the private key still locked.
#[derive(Debug)]
pub(super) enum SealedProof {
    Password(TransportSecret),
    Key { key: TransportSecret, passphrase: Option<TransportSecret> },
}

/// The key that the server has to present.
#[derive(Debug)]
struct HostKey {
    /// `SHA256:…`, in the format of `ssh-keygen -l`.
    fingerprint: String,
    /// The key's algorithm, if the settings contain the whole key.
    algorithm: Option<Algorithm>,
}

impl HostKey {
    fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let text = fields.text("hostKey")?;
        let text = text.trim();
        if let Some(digest) = text.strip_prefix("SHA256:") {
            // 32 bytes in base64 without the padding that some tools add.
            let digest = digest.trim_end_matches('=');
            let is_base64 =
                digest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
            if !is_base64 || digest.len() != 43 {
                return Err(invalid_host_key());
            }
            return Ok(Self { fingerprint: format!("SHA256:{digest}"), algorithm: None });
        }
        let key = PublicKey::from_openssh(text).map_err(|_| invalid_host_key())?;
        if key.algorithm().is_rsa() {
            let other = "an Ed25519 or ECDSA key; RSA is not supported";
            return Err(invalid_setting("hostKey", other));
        }
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        Ok(Self { fingerprint, algorithm: Some(key.algorithm()) })
    }
}

fn invalid_host_key() -> FieldProblem {
    invalid_setting("hostKey", "`SHA256:…` or a line such as `ssh-ed25519 AAAA…`")
}

/// An account on an SSH server.
#[derive(Debug)]
pub(super) struct SftpTarget<P = SshProof> {
    host: String,
    port: u16,
    username: String,
    proof: P,
    host_key: HostKey,
    path: FolderPath,
}

impl SftpTarget<SealedProof> {
    /// Reads the settings without unlocking a private key, which is cheap.
    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let passphrase = fields.find_secret("passphrase")?;
        let key = fields.find_secret("privateKey")?;
        let password = fields.find_secret("password")?;
        let proof = match (password, key) {
            (Some(_), Some(_)) => {
                let expected = "given, or password is: not both";
                return Err(invalid_setting("privateKey", expected));
            }
            (Some(password), None) => SealedProof::Password(password),
            (None, Some(key)) => SealedProof::Key { key, passphrase },
            (None, None) => return Err(missing("password")),
        };
        Ok(Self {
            host: fields.host("host")?,
            port: fields.port("port", 22)?,
            username: fields.text("username")?,
            proof,
            host_key: HostKey::read(fields)?,
            path: FolderPath::read(fields, "path", true)?,
        })
    }

    /// Unlocks the private key, if there is one. This is slow by design.
    pub(super) fn open(self) -> Result<SftpTarget, FieldProblem> {
        let Self { host, port, username, proof, host_key, path } = self;
        let proof = match proof {
            SealedProof::Password(password) => SshProof::Password(password),
            SealedProof::Key { key, passphrase } => {
                SshProof::Key(private_key(&key, passphrase.as_ref())?)
            }
        };
        Ok(SftpTarget { host, port, username, proof, host_key, path })
    }
}

impl SftpTarget {
    pub(super) async fn send(
        &self,
        timeouts: TransportTimeouts,
        policy: NetworkPolicy,
        id: &str,
        files: &[OutgoingFile],
    ) -> Result<(), SendError> {
        let endpoint = host_and_port(&self.host, self.port);
        let secrets = match &self.proof {
            SshProof::Password(password) => vec![password.reveal()],
            SshProof::Key(_) => Vec::new(),
        };
        let conversation = RemoteConversation { endpoint, timeouts, secrets };
        let mut ssh = self.connect(&conversation, policy).await?;
        conversation.await_answer(SendStep::LogIn, self.log_in(&mut ssh)).await?;
        let session =
            conversation.await_answer(SendStep::Folder, open_sftp(&ssh, timeouts)).await?;
        let folder = RemoteFolder::open(&conversation, session, &self.path).await?;
        for file in files {
            folder.upload(file, &format!(".{}.{id}.part", file.name)).await?;
        }
        // All files have arrived, so a failed disconnect is not an error.
        let disconnected = ssh.disconnect(russh::Disconnect::ByApplication, "", "en");
        let _ignored = tokio::time::timeout(limits::TRANSPORT_CLOSE_TIMEOUT, disconnected).await;
        Ok(())
    }

    async fn connect(
        &self,
        conversation: &RemoteConversation<'_>,
        policy: NetworkPolicy,
    ) -> Result<Handle<HostKeyCheck>, SendError> {
        let connected = policy.connect(&self.host, self.port);
        let tcp = conversation.await_connection(SendStep::Connect, connected).await?;
        let mut config = client::Config {
            inactivity_timeout: Some(conversation.timeouts.answer),
            nodelay: true,
            ..client::Config::default()
        };
        // A server with several keys presents the key that the client asks for.
        if let Some(algorithm) = &self.host_key.algorithm {
            config.preferred.key = Cow::Owned(vec![algorithm.clone()]);
        }
        let presented = Arc::new(OnceLock::new());
        let expected = self.host_key.fingerprint.clone();
        let handler = HostKeyCheck { expected: expected.clone(), presented: presented.clone() };
        let secured = async {
            let connected = client::connect_stream(Arc::new(config), tcp, handler).await;
            connected.map_err(|error| match presented.get().cloned() {
                // The library reports only a refusal, but the operator needs both fingerprints.
                Some(presented) if presented != expected => {
                    SendFault::HostKey { expected, presented }
                }
                Some(_) | None => error.into(),
            })
        };
        conversation.await_connection(SendStep::Secure, secured).await
    }

    async fn log_in(&self, ssh: &mut Handle<HostKeyCheck>) -> Result<(), SendFault> {
        let user = self.username.as_str();
        let result = match &self.proof {
            SshProof::Password(password) => {
                let result = ssh.authenticate_password(user, password.reveal()).await?;
                if let AuthResult::Failure { remaining_methods, .. } = &result
                    && remaining_methods.contains(&russh::MethodKind::KeyboardInteractive)
                {
                    return answer_questions(ssh, user, password).await;
                }
                result
            }
            SshProof::Key(key) => {
                let key = PrivateKeyWithHashAlg::new(key.clone(), None);
                ssh.authenticate_publickey(user, key).await?
            }
        };
        match result {
            AuthResult::Success => Ok(()),
            // The credentials were accepted, but the server requires a second factor.
            AuthResult::Failure { partial_success: true, .. } => Err(SendRefusal::NoLogin.into()),
            AuthResult::Failure { .. } => Err(SendFault::Credentials(String::new())),
        }
    }
}

/// Logs in by keyboard-interactive authentication, which many servers use to ask for the password.
async fn answer_questions(
    ssh: &mut Handle<HostKeyCheck>,
    user: &str,
    password: &TransportSecret,
) -> Result<(), SendFault> {
    let mut answer = ssh.authenticate_keyboard_interactive_start(user, None).await?;
    for _ in 0..SFTP_PROMPTS_MAX {
        answer = match answer {
            KeyboardInteractiveAuthResponse::Success => return Ok(()),
            KeyboardInteractiveAuthResponse::Failure { .. } => break,
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => {
                let responses = prompts.iter().map(|prompt| {
                    // If the response may be echoed, the prompt does not ask for a password.
                    let response = if prompt.echo { "" } else { password.reveal() };
                    response.to_owned()
                });
                ssh.authenticate_keyboard_interactive_respond(responses.collect()).await?
            }
        };
    }
    Err(SendFault::Credentials(String::new()))
}

fn private_key(
    key: &TransportSecret,
    passphrase: Option<&TransportSecret>,
) -> Result<Arc<PrivateKey>, FieldProblem> {
    let expected = match passphrase {
        Some(_) => "an OpenSSH key that the passphrase opens",
        None => "an OpenSSH key without a passphrase",
    };
    if passphrase.is_some() {
        // The key file comes from a user and sets the cost of unlocking. Without a limit, unlocking could last
        // forever.
        let locked = PrivateKey::from_openssh(key.reveal())
            .map_err(|_| invalid_setting("privateKey", expected))?;
        if matches!(locked.kdf(), Kdf::Bcrypt { rounds, .. } if *rounds > limits::SFTP_KEY_ROUNDS_MAX)
        {
            let most = limits::SFTP_KEY_ROUNDS_MAX;
            let expected = format!("a key encrypted with at most {most} rounds");
            return Err(invalid_setting("privateKey", expected));
        }
    }
    let read = decode_secret_key(key.reveal(), passphrase.map(TransportSecret::reveal));
    let key = read.map_err(|_| invalid_setting("privateKey", expected))?;
    if matches!(key.algorithm(), Algorithm::Ed25519 | Algorithm::Ecdsa { .. }) {
        return Ok(Arc::new(key));
    }
    Err(invalid_setting("privateKey", "an Ed25519 or ECDSA key"))
}

async fn open_sftp(
    ssh: &Handle<HostKeyCheck>,
    timeouts: TransportTimeouts,
) -> Result<RawSftpSession, SendFault> {
    let channel = ssh.channel_open_session().await?;
    channel.request_subsystem(true, "sftp").await?;
    let config =
        Config { request_timeout_secs: timeouts.answer.as_secs().max(1), ..Config::default() };
    Ok(RawSftpSession::new_with_config(channel.into_stream(), config))
}

/// The handler of the client connection, which only checks the host key.
struct HostKeyCheck {
    expected: String,
    presented: Arc<OnceLock<String>>,
}

impl client::Handler for HostKeyCheck {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        key: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let presented = key.public_key().fingerprint(HashAlg::Sha256).to_string();
        // A certificate relies on an authority that the channel does not name.
        let is_trusted = key.certificate().is_none() && presented == self.expected;
        let _first = self.presented.set(presented);
        Ok(is_trusted)
    }
}

impl From<russh::Error> for SendFault {
    fn from(error: russh::Error) -> Self {
        if let russh::Error::NoCommonAlgo { kind, theirs, .. } = &error {
            let text = format!("{kind:?} of the server: {}", theirs.join(", "));
            return SendRefusal::NoAlgorithm(text).into();
        }
        match Self::of_chain(&error) {
            Some(fault) => fault,
            None => Self::Protocol(error.to_string()),
        }
    }
}
