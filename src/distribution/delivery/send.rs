//! Sends collected files through the transports, which this module builds from the settings.

use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::{AttemptFailure, collect::CollectedFiles};
use crate::media::{CollectedFile, Media};
use crate::runtime::config::Config;
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::limits::MAIL_ATTACHMENTS_BYTES;
use crate::runtime::{clock, modes};
use crate::transport::{
    ChannelTransports, Content, CustomAuthority, DeliveryParcel, Destination, Introduction,
    MailAddress, MailSettings, MailTransport, Mailer, OutgoingFile, SmtpServer, TransportTimeouts,
};
use model::account::{Channel, Delivery};

/// Connect timeout in a channel test; shorter than the whole, so that the error names the failed step.
const CHANNEL_TEST_CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// Timeout for one response in a channel test.
const CHANNEL_TEST_ANSWER: std::time::Duration = std::time::Duration::from_secs(8);

/// Sends files to the destinations of channels.
#[derive(Clone, Debug)]
pub struct ChannelSender {
    transports: ChannelTransports,
    /// The transports with shorter timeouts, for a user who waits for a channel test.
    probe_transports: ChannelTransports,
    /// True if channels that users create may reach private addresses.
    private_addresses: bool,
}

/// The name of the file that a channel test sends.
const TEST_FILE: &str = "wirephoto-test.txt";

impl ChannelSender {
    /// Creates the sender from the settings.
    ///
    /// Creates the folder of deliveries unless the settings name a folder. Fails if it cannot be created, or if
    /// `mail.from` is not an address.
    pub fn from_config(config: &Config) -> Result<Self> {
        let root = directory_root(config)?;
        let mail = mail_settings(config)?;
        let probe_timeouts =
            TransportTimeouts { connect: CHANNEL_TEST_CONNECT, answer: CHANNEL_TEST_ANSWER };
        Ok(Self {
            transports: transports(&root, &mail, TransportTimeouts::default()),
            probe_transports: transports(&root, &mail, probe_timeouts),
            private_addresses: config.delivery.private_addresses,
        })
    }

    /// Returns the mailer, which is also used for other mails.
    pub fn mailer(&self) -> &Mailer {
        &self.transports.mailer
    }

    /// Sends the files of a delivery to the destination of `channel`.
    pub(super) async fn send(
        &self,
        channel: &Channel,
        delivery: &Delivery,
        media: &Media,
        collected: CollectedFiles,
        introductions: Vec<Introduction>,
    ) -> Result<(), AttemptFailure> {
        let destination = self.destination(channel).await?;
        let CollectedFiles { files, headline } = collected;
        let files = files
            .into_iter()
            .map(|collected| file(media, collected))
            .collect::<Result<Vec<_>, _>>()?;
        let parcel = DeliveryParcel {
            id: delivery.id.to_string(),
            item_uri: super::view::uri(delivery, media.links()),
            headline,
            version: delivery.version.clone(),
            introductions,
            clock: clock::now,
        };
        Ok(self.transports.send(&destination, &parcel, &files).await?)
    }

    /// Sends a self-describing test file to the destination of `channel`. Returns the name of the file.
    pub(super) async fn probe(
        &self,
        channel: &Channel,
        introductions: Vec<Introduction>,
    ) -> Result<&'static str, AttemptFailure> {
        let destination = self.destination(channel).await?;
        // A new id for each test, since a receiver may discard an id that it has seen.
        let id = Uuid::now_v7();
        let text = format!(
            "This file is a test of the delivery channel {} of Wirephoto.\nIts owner requested it \
             at {}. It can be removed.\n",
            channel.id(),
            clock::now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        );
        let file = OutgoingFile::from_bytes(TEST_FILE, "text/plain", text.into());
        let file = file.map_err(|error| AttemptFailure::permanent(error.to_string()))?;
        let parcel = DeliveryParcel {
            id: id.to_string(),
            item_uri: id.urn().to_string(),
            headline: format!("Test of the delivery channel {}", channel.name),
            version: "1".to_owned(),
            introductions,
            clock: clock::now,
        };
        self.probe_transports.send(&destination, &parcel, &[file]).await?;
        Ok(TEST_FILE)
    }

    /// Lists the recipients of the channel's mails; empty for a channel that sends no mail.
    pub(super) async fn recipients(
        &self,
        channel: &Channel,
    ) -> Result<Vec<MailAddress>, AttemptFailure> {
        Ok(destination(channel).await?.recipients().to_vec())
    }

    /// Returns the destination of the channel, restricted to public addresses if a user created it.
    async fn destination(&self, channel: &Channel) -> Result<Destination, AttemptFailure> {
        let destination = destination(channel).await?;
        // A user must not reach the service's own network through a channel (contract deliveries-21).
        if channel.by_user && !self.private_addresses {
            return Ok(destination.only_public());
        }
        Ok(destination)
    }
}

fn transports(root: &Path, mail: &MailSettings, timeouts: TransportTimeouts) -> ChannelTransports {
    let mailer = Mailer::new(mail.clone(), timeouts);
    ChannelTransports { directory_root: root.to_owned(), timeouts, mailer }
}

/// Parses the destination of the channel, on a blocking thread because unlocking a private key is slow.
async fn destination(channel: &Channel) -> Result<Destination, AttemptFailure> {
    let method = channel.method;
    let settings = channel.settings.reveal().clone();
    let parsed = spawn_blocking(move || Destination::parse(method, &settings)).await;
    let parsed = parsed.map_err(Error::internal)?;
    let parsed = parsed.map_err(|error| AttemptFailure::permanent(error.to_string()))?;
    parsed.ok_or_else(|| AttemptFailure::permanent("the channel's method sends nothing"))
}

fn file(media: &Media, collected: CollectedFile) -> Result<OutgoingFile, AttemptFailure> {
    let CollectedFile { name, mime, body, url, dated: _ } = collected;
    let media = media.clone();
    let bytes = body.len();
    let file = OutgoingFile::new(&name, mime, bytes, move || {
        // The transport opens the content when it sends the file, so a delivery holds no file open while it sends
        // others.
        let content: Content = Box::pin(media.stream(body.parts().to_vec()));
        async move { Ok(content) }
    });
    file.map(|file| file.with_url(url))
        .map_err(|error| AttemptFailure::permanent(error.to_string()))
}

/// Returns the folder below which channels write. A folder in the settings must already exist: it may be on a disk
/// that is not mounted yet, and then deliveries wait for it.
fn directory_root(config: &Config) -> Result<PathBuf> {
    let root = config.deliveries_dir();
    if config.delivery.directory_root.as_os_str().is_empty() {
        modes::create_shared_folder(&root).map_err(|cause| {
            let message = format!("folder {} cannot be created", root.display());
            Error::new(ErrorKind::Unavailable, message).with_source(cause)
        })?;
    }
    Ok(root)
}

/// Converts the settings of mails from `config`.
///
/// Fails if `mail.from` is not an address, or if the certificates of the mail server cannot be read.
pub fn mail_settings(config: &Config) -> Result<MailSettings> {
    let mail = &config.mail;
    let Some(from) = MailAddress::parse(&mail.from) else {
        let message = format!("mail.from {:?} is not an address", mail.from);
        return Err(Error::new(ErrorKind::InvalidArgument, message));
    };
    let domain = mail.from.rsplit('@').next().unwrap_or_default();
    // `mail.from` may be `Name <address>`, so the domain may end with a bracket.
    let domain = domain.trim_end_matches(['>', ' ']).to_owned();
    let transport = if mail.host.is_empty() {
        MailTransport::Outbox {
            folder: config.outbox_dir(),
            // A different program reads the operator's outbox, so its files need wider modes.
            is_shared: !mail.outbox.as_os_str().is_empty(),
        }
    } else {
        let has_login = !mail.username.is_empty();
        MailTransport::Smtp(Box::new(SmtpServer {
            host: mail.host.clone(),
            port: mail.port,
            security: mail.tls,
            account: has_login.then(|| (mail.username.clone(), config.mail_password())),
            authority: CustomAuthority::read_file(&mail.ca)
                .map_err(|why| Error::new(ErrorKind::InvalidArgument, format!("mail.ca {why}")))?,
        }))
    };
    let attachments_bytes_max = MAIL_ATTACHMENTS_BYTES;
    Ok(MailSettings { transport, from, domain, attachments_bytes_max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::{self, MailTls, SettingSources};

    const AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUdzMHIAQe/cxs0RM2R50aq94so0swCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOVGVzdCBhdXRob3JpdHkwIBcNMjYxMTIyMDgyNjM5WhgPMjEy
NjEwMjkwODI2MzlaMBkxFzAVBgNVBAMMDlRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEuuoqYMAsyY1aSdDtIlcHrl9rQwSNhwCJc6lTQsZV
XWogFKvuLFdSgmm+yBuFied0qzbfg2Bl41ffpMwglJXAOqNTMFEwHQYDVR0OBBYE
FF8tNA4+B/R/Vly86X5NVe16kgGSMB8GA1UdIwQYMBaAFF8tNA4+B/R/Vly86X5N
Ve16kgGSMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgAVru7x51
qDm/FE7KRpqaJPPEsenjlcT0YNXkh6XYxoACIE71zLtzZC79pRtyVBmZuF69e5XW
tDdiwcWb8Odt+i4e
-----END CERTIFICATE-----
";

    fn config(flags: &[(&str, &str)]) -> Config {
        let flags = flags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let sources = SettingSources { file: None, flags: flags.collect() };
        config::load(&sources).unwrap().0
    }

    fn settings(flags: &[(&str, &str)]) -> Result<MailSettings> {
        mail_settings(&config(flags))
    }

    #[test]
    fn the_folder_of_deliveries_is_made_unless_the_operator_names_one() {
        let dir = tempfile::tempdir().unwrap();
        let (data, disk) = (dir.path().join("data"), dir.path().join("disk"));
        let data_flag = ("data.dir", data.to_str().unwrap());
        let root_flag = ("delivery.directory_root", disk.to_str().unwrap());
        assert_eq!(directory_root(&config(&[data_flag, root_flag])).unwrap(), disk);
        assert!(!disk.exists());
        for _ in 0..2 {
            let root = directory_root(&config(&[data_flag])).unwrap();
            assert_eq!((root.is_dir(), root), (true, data.join("deliveries")));
        }
    }

    #[test]
    fn mails_go_to_the_outbox_unless_there_is_a_server() {
        let found = settings(&[("data.dir", "/x")]).unwrap();
        assert_eq!(found.domain, "localhost");
        let MailTransport::Outbox { folder, .. } = found.transport else { panic!("no outbox") };
        assert_eq!(folder, Path::new("/x/outbox"));
        let flags = [
            ("mail.host", "mx.example"),
            ("mail.tls", "tls"),
            ("mail.username", "u"),
            ("mail.password", "hunter2"),
            ("mail.from", "Desk <desk@desk.example>"),
        ];
        let found = settings(&flags).unwrap();
        assert_eq!(found.domain, "desk.example");
        assert!(!format!("{found:?}").contains("hunter2"));
        let MailTransport::Smtp(smtp) = found.transport else { panic!("no server") };
        assert_eq!((smtp.host.as_str(), smtp.port), ("mx.example", 587));
        assert_eq!((smtp.security, smtp.account.is_some()), (MailTls::Tls, true));
    }

    #[test]
    fn err_a_sender_that_is_no_address_is_named() {
        let refused = settings(&[("mail.from", "nobody")]).unwrap_err();
        assert_eq!(refused.message(), "mail.from \"nobody\" is not an address");
    }

    #[test]
    fn the_mail_servers_own_authority_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, AUTHORITY).unwrap();
        let flags = [("mail.host", "mx.example"), ("mail.ca", file.to_str().unwrap())];
        let MailTransport::Smtp(smtp) = settings(&flags).unwrap().transport else {
            panic!("no server")
        };
        assert_ne!(format!("{:?}", smtp.authority), format!("{:?}", CustomAuthority::default()));
    }

    #[test]
    fn err_a_bad_authority_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        let path = file.to_str().unwrap();
        let refused = || {
            settings(&[("mail.host", "mx.example"), ("mail.ca", path)]).map(|_| ()).unwrap_err()
        };
        assert!(
            refused()
                .message()
                .starts_with(&format!("mail.ca {path} cannot be read: No such file"))
        );
        for bad in ["", "hello", "-----BEGIN CERTIFICATE-----\naGk=\n-----END CERTIFICATE-----\n"]
        {
            std::fs::write(&file, bad).unwrap();
            let expected = format!("mail.ca {path} holds no certificates in PEM");
            assert_eq!(refused().message(), expected);
        }
        std::fs::write(&file, "x".repeat(1024 * 1024 + 1)).unwrap();
        let expected = format!("mail.ca {path} has more than 1048576 bytes");
        assert_eq!(refused().message(), expected);
    }
}
