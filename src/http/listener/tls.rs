//! TLS of the listener: the certificate and the handshake.
//!
//! TLS 1.2 and 1.3; the handshake negotiates HTTP/2 or HTTP/1.1 (ALPN). Sessions are resumed by tickets whose keys
//! exist only in this process. A renewed certificate is reloaded while the service runs: new connections use it,
//! existing connections keep the old one.

use crate::runtime::error::{Error, ErrorKind, Result};
use jiff::Timestamp;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, RootCertStore, ServerConfig, version};
use std::{fmt, fs, io::Read, path::Path, sync::Arc, time::Duration};
use tokio_rustls::TlsAcceptor;

/// Largest file of certificates or of a key, in bytes; a chain of five with keys of 4096 bits has 12 kB.
const PEM_BYTES_MAX: u64 = 1024 * 1024;
/// Names of the settings for error messages.
const CERTIFICATE: &str = "server.tls_certificate";
const KEY: &str = "server.tls_key";

/// A certificate with its key, ready for handshakes.
#[derive(Clone)]
pub struct Certificate {
    pub(super) acceptor: TlsAcceptor,
    /// The earliest expiry of the certificates in the chain.
    pub expires: Timestamp,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate(until {})", self.expires)
    }
}

impl Certificate {
    /// Reads the certificate chain and the key, both PEM.
    ///
    /// Fails with the setting's name when a file cannot be read or has other content, when the key belongs to a
    /// different certificate, and when a certificate is not valid at `now`.
    pub fn read(chain: &Path, key: &Path, now: Timestamp) -> Result<Self> {
        let text = read_pem(chain).map_err(|cause| chain_error(chain, &cause.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|cause| chain_error(chain, &cause.to_string()))?;
        let mut expires = Timestamp::MAX;
        for certificate in &certificates {
            let end = check_validity(certificate, now);
            // A chain is valid only as long as every certificate in it.
            expires = expires.min(end.map_err(|cause| chain_error(chain, &cause))?);
        }
        if certificates.is_empty() {
            return Err(chain_error(chain, "holds no certificate in PEM"));
        }
        let text = read_pem(key).map_err(|cause| key_error(key, &cause.to_string()))?;
        // The parser's error names the section that was expected, but nothing of the key.
        let secret = PrivateKeyDer::from_pem_slice(&text)
            .map_err(|cause| key_error(key, &format!("holds no private key in PEM: {cause}")))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .map_err(Error::internal)?
            .with_no_client_auth()
            .with_single_cert(certificates, secret);
        let mut config = config.map_err(|cause| {
            if matches!(cause, rustls::Error::InconsistentKeys(_)) {
                let chain = chain.display();
                return key_error(key, &format!("is not the key of the certificate in {chain}"));
            }
            key_error(key, &cause.to_string())
        })?;
        // In order of preference: the server chooses (RFC 7301 §3.2).
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(Error::internal)?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), expires })
    }
}

fn chain_error(chain: &Path, cause: &str) -> Error {
    certificate_error(CERTIFICATE, chain, cause)
}

fn key_error(key: &Path, cause: &str) -> Error {
    certificate_error(KEY, key, cause)
}

fn certificate_error(setting: &str, path: &Path, cause: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("{setting}: {}: {cause}", path.display()))
}

fn read_pem(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?.take(PEM_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Returns the expiry of a certificate that is valid at `now`.
fn check_validity(certificate: &CertificateDer<'_>, now: Timestamp) -> Result<Timestamp, String> {
    let parsed = ParsedCertificate::try_from(certificate).map_err(|cause| cause.to_string())?;
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    match fault_at(&parsed, seconds) {
        Some(CertificateError::ExpiredContext { not_after, .. }) => {
            return Err(format!("the certificate expired at {}", timestamp(not_after)));
        }
        Some(CertificateError::NotValidYetContext { not_before, .. }) => {
            return Err(format!("the certificate is not valid before {}", timestamp(not_before)));
        }
        Some(_) | None => {}
    }
    // In the far future every certificate has expired, and the error names the expiry.
    match fault_at(&parsed, u64::MAX) {
        Some(CertificateError::ExpiredContext { not_after, .. }) => Ok(timestamp(not_after)),
        // RFC 5280 §4.1.2.5: a certificate without expiry has 9999-12-31.
        Some(_) | None => Ok(Timestamp::MAX),
    }
}

/// Returns the fault of a certificate at a time in seconds since 1970. The certificate is verified without any issuer,
/// which always fails.
///
/// The certificate parser exposes the validity period only in the error of a verification, which checks it before it
/// looks for an issuer.
fn fault_at(certificate: &ParsedCertificate<'_>, seconds: u64) -> Option<CertificateError> {
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let issuers = RootCertStore::empty();
    let provider = aws_lc_rs::default_provider();
    let algorithms = provider.signature_verification_algorithms.all;
    match verify_server_cert_signed_by_trust_anchor(certificate, &issuers, &[], at, algorithms) {
        Err(rustls::Error::InvalidCertificate(fault)) => Some(fault),
        Ok(()) | Err(_) => None,
    }
}

fn timestamp(time: UnixTime) -> Timestamp {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
