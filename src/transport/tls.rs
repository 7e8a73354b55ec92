//! The certificate authorities that are trusted for remote systems.

use std::{fmt, fs, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::runtime::limits::CERTIFICATES_BYTES_MAX;
use crate::transport::{
    error::{SendFault, SendRefusal},
    settings::{FieldProblem, SettingsReader, invalid_setting},
};

/// Certificates of a private authority, which are trusted besides the public ones.
#[derive(Clone, Default)]
pub struct CustomAuthority {
    certificates: Vec<CertificateDer<'static>>,
    pem: String,
}

impl CustomAuthority {
    /// Parses certificates in PEM.
    ///
    /// Returns `None` if there is no certificate or a damaged one.
    #[must_use]
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
        // Bytes that are not UTF-8 are no certificate either.
        Self::parse(&String::from_utf8_lossy(&pem))
            .ok_or_else(|| format!("{shown} holds no certificates in PEM"))
    }

    pub(super) fn read(fields: &mut SettingsReader<'_>) -> Result<Self, FieldProblem> {
        let Some(pem) = fields.find_secret("ca")? else { return Ok(Self::default()) };
        let authority = Self::parse(pem.reveal())
            .ok_or_else(|| invalid_setting("ca", "one or more certificates in PEM"))?;
        // Certificates are public, so their number replaces the `***` of a secret.
        fields.record_listed("ca", format!("{} certificates", authority.certificates.len()));
        Ok(authority)
    }

    /// Returns the original PEM, for libraries that parse it themselves.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Builds a TLS configuration that trusts the public authorities and this one.
    pub(super) fn client(&self) -> Result<ClientConfig, SendFault> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for certificate in &self.certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| SendRefusal::Certificate(error.to_string()))?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| SendRefusal::Certificate(error.to_string()))?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    }
}

impl fmt::Debug for CustomAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} certificates", self.certificates.len())
    }
}
