//! Provides the credentials of a bucket.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use object_store::CredentialProvider;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsCredential};
use parking_lot::Mutex;

use super::{StoreResult, bad};
use crate::runtime::clock::Stopwatch;
use crate::runtime::config::SecretSource;

/// Period for which a key from files is used without reading the files again.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);

/// The source of a bucket's credentials.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// The settings, or files that they name.
    Key {
        id: SecretSource,
        secret: SecretSource,
        /// Session token of a temporary key; empty: none.
        token: SecretSource,
    },
    /// Amazon's token service issues a key for a role, in exchange for a token of an issuer that it trusts.
    WebIdentity {
        /// ARN of the role.
        role: String,
        /// The file with the token, which is read for each exchange.
        token_file: PathBuf,
        /// Base URL of the token service; empty: Amazon's in the region.
        service: String,
    },
    /// The metadata service of the machine issues a key for the machine's role.
    Instance {
        /// Base URL of the metadata service; empty: Amazon's.
        service: String,
    },
}

impl CredentialSource {
    /// Creates a key from the text of settings.
    #[cfg(test)]
    pub(super) fn key(id: &str, secret: &str) -> Self {
        let [id, secret, token] = [id, secret, ""].map(SecretSource::text);
        Self::Key { id, secret, token }
    }

    /// Applies the credentials to the builder of a bucket's client.
    ///
    /// Fails with the name of the missing setting.
    pub(super) fn apply(&self, builder: AmazonS3Builder) -> StoreResult<AmazonS3Builder> {
        match self {
            Self::Key { id, secret, token } => {
                for (secret, setting) in
                    [(id, "store.access_key_id"), (secret, "store.secret_access_key")]
                {
                    if secret.is_empty() {
                        return Err(bad(setting, "a bucket needs it"));
                    }
                    // Read once here, so that a missing file stops the start and not a request.
                    let value = secret.read();
                    value.map_err(|cause| bad(setting, cause.to_string()))?;
                }
                let key = SettingsKeyProvider {
                    id: id.clone(),
                    secret: secret.clone(),
                    token: token.clone(),
                    last: Mutex::default(),
                };
                Ok(builder.with_credentials(Arc::new(key)))
            }
            Self::WebIdentity { role, token_file, service } => {
                if role.is_empty() {
                    return Err(bad("store.role_arn", "a web identity needs it"));
                }
                if token_file.as_os_str().is_empty() {
                    return Err(bad("store.web_identity_token_file", "a web identity needs it"));
                }
                let file = token_file.to_string_lossy();
                let builder = builder
                    .with_config(AmazonS3ConfigKey::WebIdentityTokenFile, file)
                    .with_config(AmazonS3ConfigKey::RoleArn, role)
                    .with_config(AmazonS3ConfigKey::RoleSessionName, "wirephoto");
                Ok(with_optional(builder, AmazonS3ConfigKey::StsEndpoint, service))
            }
            Self::Instance { service } => {
                Ok(with_optional(builder, AmazonS3ConfigKey::MetadataEndpoint, service))
            }
        }
    }
}

fn with_optional(
    builder: AmazonS3Builder,
    key: AmazonS3ConfigKey,
    value: &str,
) -> AmazonS3Builder {
    if value.is_empty() { builder } else { builder.with_config(key, value) }
}

/// Provides the key of the settings. Reads the files that they name again after [`REREAD_INTERVAL`].
struct SettingsKeyProvider {
    id: SecretSource,
    secret: SecretSource,
    token: SecretSource,
    last: Mutex<Option<(Stopwatch, Arc<AwsCredential>)>>,
}

impl fmt::Debug for SettingsKeyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("key of the settings")
    }
}

fn read_secret(secret: &SecretSource) -> object_store::Result<String> {
    secret
        .read()
        .map_err(|cause| object_store::Error::Generic { store: "S3", source: Box::new(cause) })
}

#[async_trait]
impl CredentialProvider for SettingsKeyProvider {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        // Held while the files are read, so that concurrent requests share one read.
        let mut last = self.last.lock();
        if let Some((since, key)) = last.as_ref()
            && since.elapsed() < REREAD_INTERVAL
        {
            return Ok(Arc::clone(key));
        }
        // Blocking reads are acceptable here: the files are small and local.
        let token = read_secret(&self.token)?;
        let key = Arc::new(AwsCredential {
            key_id: read_secret(&self.id)?,
            secret_key: read_secret(&self.secret)?,
            token: (!token.is_empty()).then_some(token),
        });
        *last = Some((Stopwatch::start(), Arc::clone(&key)));
        Ok(key)
    }
}
