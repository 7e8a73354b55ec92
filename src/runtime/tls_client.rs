//! Connections over TLS to other systems: the certificate authorities that they trust, and HTTP clients.

use std::{fmt, fs, path::Path, sync::Arc};

use bytes::Bytes;
use reqwest::{Client, ClientBuilder, Response, redirect::Policy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};

use crate::runtime::limits::CERTIFICATES_BYTES_MAX;

/// Certificates of a private authority, which are trusted besides the public ones.
#[derive(Clone, Default)]
pub struct CustomAuthority {
    certificates: Vec<CertificateDer<'static>>,
    /// The original PEM, for libraries that parse it themselves.
    pub pem: String,
}

impl CustomAuthority {
    /// Parses certificates in PEM.
    ///
    /// Returns `None` if there is no certificate or a damaged one.
    pub fn parse(pem: &str) -> Option<Self> {
        let read = CertificateDer::pem_slice_iter(pem.as_bytes());
        let certificates = read.collect::<Result<Vec<_>, _>>().ok()?;
        let mut roots = RootCertStore::empty();
        // The decoder accepts any bytes; adding a root parses the certificate.
        let all_valid =
            certificates.iter().all(|certificate| roots.add(certificate.clone()).is_ok());
        let usable = all_valid && !certificates.is_empty();
        usable.then(|| Self { certificates, pem: pem.to_owned() })
    }

    /// Reads certificates in PEM from a file; no certificates if `path` is empty. Blocks.
    ///
    /// Fails with the reason, which begins with the path.
    pub fn read_file(path: &Path) -> Result<Self, String> {
        if path.as_os_str().is_empty() {
            return Ok(Self::default());
        }
        let shown = path.display();
        let metadata = fs::metadata(path);
        let metadata = metadata.map_err(|cause| format!("{shown} cannot be read: {cause}"))?;
        // A wrong path must neither block, like a pipe, nor fill the memory.
        if !metadata.is_file() {
            return Err(format!("{shown} is not a file"));
        }
        if metadata.len() > CERTIFICATES_BYTES_MAX {
            return Err(format!("{shown} has more than {CERTIFICATES_BYTES_MAX} bytes"));
        }
        let pem = fs::read(path).map_err(|cause| format!("{shown} cannot be read: {cause}"))?;
        // Text around certificates may have any encoding. An empty file is a mistake too: the setting would have no
        // effect.
        Self::parse(&String::from_utf8_lossy(&pem))
            .ok_or_else(|| format!("{shown} holds no certificates in PEM"))
    }

    /// Returns the number of certificates.
    pub fn count(&self) -> usize {
        self.certificates.len()
    }

    /// Builds a TLS configuration that trusts the public authorities and this one.
    pub fn client_config(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = public_authorities();
        for certificate in &self.certificates {
            roots.add(certificate.clone())?;
        }
        config_trusting(roots)
    }
}

impl fmt::Debug for CustomAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.count())
    }
}

/// Returns the certificates of the public authorities.
pub fn public_authorities() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// Builds a TLS configuration that trusts `roots`.
pub fn config_trusting(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions()?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the builder of an HTTP client over `tls`, which follows no redirects and uses no proxy.
pub fn http_client(tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        // A redirect could circumvent the check of the address (contract deliveries-22), carry a token to a different
        // host, or need a different signature.
        .redirect(Policy::none())
        // Proxy variables of the environment are ignored; a proxy would be a setting.
        .no_proxy()
        .user_agent(concat!("Wirephoto/", env!("CARGO_PKG_VERSION")))
}

/// Reads the body of a response, truncated at `bytes_max` bytes.
pub async fn read_body(
    response: &mut Response,
    bytes_max: usize,
) -> Result<Bytes, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = bytes_max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        // The rest stays unread: dropping the response closes the connection.
        if body.len() == bytes_max {
            break;
        }
    }
    Ok(body.into())
}
