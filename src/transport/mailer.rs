//! Sends mails through an SMTP server, or writes them to a folder as files.

use std::{io, path::PathBuf};

use lettre::transport::smtp::{
    authentication::{Credentials, Mechanism},
    client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters},
    extension::ClientId,
};

use crate::runtime::config::{MailTls, SecretSource};
use crate::runtime::{limits, modes};
use crate::transport::conversation::{RemoteConversation, TransportTimeouts, host_and_port};
use crate::transport::error::{SendError, SendFault, SendRefusal, SendStep};
use crate::transport::mail::{ComposedMail, Mail, MailAddress};
use crate::transport::tls::CustomAuthority;

/// The SMTP server that relays our mails.
#[derive(Clone, Debug)]
pub struct SmtpServer {
    /// The host name or IP address.
    pub host: String,
    /// The port: 587 for STARTTLS, 465 for TLS, 25 for neither.
    pub port: u16,
    /// The encryption of the connection. A server without STARTTLS is refused if it is required.
    pub security: MailTls,
    /// The user name and the password; `None` for a server without login.
    pub account: Option<(String, SecretSource)>,
    /// The certificate authorities that are trusted besides the public ones.
    pub authority: CustomAuthority,
}

/// The destination of mails.
#[derive(Clone, Debug)]
pub enum MailTransport {
    /// A folder, in which each mail is stored as `<id>.eml`. The folder is created if it is missing.
    Outbox {
        folder: PathBuf,
        /// True if other users may read the mails, as in the operator's folder; false for the folder in the data
        /// directory.
        is_shared: bool,
    },
    /// An SMTP server that relays them.
    Smtp(Box<SmtpServer>),
}

/// The settings of the mailer.
#[derive(Clone, Debug)]
pub struct MailSettings {
    pub transport: MailTransport,
    /// The address in the header `From`.
    pub from: MailAddress,
    /// The domain of the `Message-ID`, and our name in `EHLO`.
    pub domain: String,
    /// The maximum size of attached files per mail, in bytes. Larger deliveries contain links instead.
    pub attachments_bytes_max: u64,
}

/// Sends mails over SMTP or to the outbox folder.
#[derive(Clone, Debug)]
pub struct Mailer {
    settings: MailSettings,
    timeouts: TransportTimeouts,
}

impl Mailer {
    /// Creates a mailer from its settings.
    pub fn new(settings: MailSettings, timeouts: TransportTimeouts) -> Self {
        Self { settings, timeouts }
    }

    /// Returns the settings of the mailer.
    pub fn settings(&self) -> &MailSettings {
        &self.settings
    }

    /// Sends a mail, or writes it to the outbox folder, where a retry replaces the file.
    ///
    /// Fails if a header value has a control character, or if the mail server cannot be reached, rejects the login
    /// or refuses the mail. [`SendError::is_temporary`] returns whether a retry may succeed.
    pub async fn send(&self, mail: &Mail) -> Result<(), SendError> {
        let (endpoint, account) = match &self.settings.transport {
            MailTransport::Outbox { .. } => ("mail outbox".to_owned(), None),
            MailTransport::Smtp(smtp) => {
                (host_and_port(&smtp.host, smtp.port), smtp.account.as_ref())
            }
        };
        // Read for every mail, because it may have been rotated.
        let password = account.map(|(_, password)| password.read()).transpose();
        let password = password.map_err(|cause| {
            SendError::new(&endpoint, SendStep::Prepare, SendFault::Local(cause), &[])
        })?;
        let conversation = RemoteConversation {
            endpoint,
            timeouts: self.timeouts,
            secrets: password.as_deref().into_iter().collect(),
        };
        let login = account.map(|(user, _)| user.clone()).zip(password.clone());
        let composed = mail.compose(&self.settings.from, &self.settings.domain);
        let composed = conversation.check(SendStep::Prepare, composed)?;
        match &self.settings.transport {
            MailTransport::Outbox { folder, is_shared } => {
                let folder = folder.clone();
                let is_shared = *is_shared;
                let id = mail.id.clone();
                let written = tokio::task::spawn_blocking(move || {
                    write_to_outbox(&folder, is_shared, &id, &composed)
                });
                let written =
                    async { written.await.map_err(io::Error::other)?.map_err(SendFault::Local) };
                conversation.await_answer(SendStep::Post, written).await
            }
            MailTransport::Smtp(smtp) => self.post(&conversation, smtp, login, &composed).await,
        }
    }

    async fn post(
        &self,
        conversation: &RemoteConversation<'_>,
        smtp: &SmtpServer,
        login: Option<(String, String)>,
        mail: &ComposedMail,
    ) -> Result<(), SendError> {
        let name = ClientId::Domain(self.settings.domain.clone());
        let tls = match smtp.security {
            MailTls::None => None,
            MailTls::StartTls | MailTls::Tls => {
                Some(conversation.check(SendStep::Secure, smtp.tls())?)
            }
        };
        // Implicit TLS precedes the greeting; STARTTLS follows it.
        let implicit_tls = tls.clone().filter(|_| smtp.security == MailTls::Tls);
        let address = (smtp.host.as_str(), smtp.port);
        let opened = AsyncSmtpConnection::connect_tokio1(address, None, &name, implicit_tls, None);
        let mut server = conversation.await_connection(SendStep::Connect, opened).await?;
        if let (MailTls::StartTls, Some(tls)) = (smtp.security, tls) {
            // No fallback to plain text: an attacker could force it by hiding the capability.
            if !server.can_starttls() {
                return Err(conversation.error(SendStep::Secure, SendRefusal::NoStartTls));
            }
            conversation.await_answer(SendStep::Secure, server.starttls(tls, &name)).await?;
        }
        if let Some((user, password)) = login {
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            if server.server_info().get_auth_mechanism(&mechanisms).is_none() {
                return Err(conversation.error(SendStep::LogIn, SendRefusal::NoLogin));
            }
            let credentials = Credentials::new(user, password);
            let login = async {
                let answer = server.auth(&mechanisms, &credentials).await;
                answer.map(drop).map_err(|error| SendFault::from(error).of_login())
            };
            conversation.await_answer(SendStep::LogIn, login).await?;
        }
        let bytes = u64::try_from(mail.bytes.len()).unwrap_or(u64::MAX);
        let sent = server.send(&mail.envelope, &mail.bytes);
        conversation.run_within(self.timeouts.transfer(bytes), SendStep::Post, sent).await?;
        // The server has accepted the mail, so a failed `QUIT` is not an error.
        let _ignored = tokio::time::timeout(limits::TRANSPORT_CLOSE_TIMEOUT, server.quit()).await;
        Ok(())
    }
}

impl SmtpServer {
    fn tls(&self) -> Result<TlsParameters, SendFault> {
        let mut builder = TlsParameters::builder(self.host.clone())
            .certificate_store(CertificateStore::WebpkiRoots);
        let pem = &self.authority.pem;
        if !pem.is_empty() {
            builder = builder.add_root_certificate(Certificate::from_pem(pem.as_bytes())?);
        }
        Ok(builder.build_rustls()?)
    }
}

/// Writes a mail to the outbox folder, atomically even across a crash.
fn write_to_outbox(
    folder: &std::path::Path,
    is_shared: bool,
    id: &str,
    mail: &ComposedMail,
) -> io::Result<()> {
    if is_shared {
        modes::create_shared_folder(folder)?;
    } else {
        // The folder is in the data directory, which is private to the service.
        std::fs::create_dir_all(folder)?;
    }
    // Hidden until it is complete, since programs may watch the folder.
    let temporary = folder.join(format!(".{id}.part"));
    let mut file = std::fs::File::create(&temporary)?;
    if is_shared {
        modes::set_shared_file_mode(&file, 0o666)?;
    }
    io::Write::write_all(&mut file, &mail.bytes)?;
    file.sync_all()?;
    std::fs::rename(&temporary, folder.join(format!("{id}.eml")))?;
    std::fs::File::open(folder)?.sync_all()
}

impl From<lettre::transport::smtp::Error> for SendFault {
    fn from(error: lettre::transport::smtp::Error) -> Self {
        use std::error::Error as _;
        if let Some(code) = error.status() {
            let server_message = error.source().map(ToString::to_string).unwrap_or_default();
            let temporary = error.is_transient();
            let code = u16::from(code).into();
            return Self::Answer { code, server_message, temporary };
        }
        match Self::of_chain(&error) {
            Some(fault) => fault,
            None if error.is_tls() => Self::of_tls(&error.to_string()),
            None => Self::Protocol(error.to_string()),
        }
    }
}
