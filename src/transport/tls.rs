//! TLS of transports: the certificate authority in a channel's settings.

use rustls::ClientConfig;

pub use crate::runtime::tls_client::CustomAuthority;
use crate::transport::error::{SendFault, SendRefusal};
use crate::transport::settings::{FieldProblem, SettingsReader, invalid_setting};

/// Reads the setting `ca`; a missing setting means no further authority.
pub(super) fn read_authority(
    fields: &mut SettingsReader<'_>,
) -> Result<CustomAuthority, FieldProblem> {
    let Some(pem) = fields.find_secret("ca")? else { return Ok(CustomAuthority::default()) };
    let authority = CustomAuthority::parse(pem.reveal())
        .ok_or_else(|| invalid_setting("ca", "one or more certificates in PEM"))?;
    // Certificates are public, so their number replaces the `***` of a secret.
    fields.record_listed("ca", format!("{} certificates", authority.count()));
    Ok(authority)
}

/// Builds a TLS configuration that trusts the public authorities and `authority`.
pub(super) fn client_config(authority: &CustomAuthority) -> Result<ClientConfig, SendFault> {
    let config = authority.client_config();
    config.map_err(|error| SendRefusal::Certificate(error.to_string()).into())
}
