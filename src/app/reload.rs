//! Reloads the settings while the service runs (SIGHUP).

use std::sync::Arc;

use super::{
    ServerLaunch,
    server::allow_connections,
    services::{hash_limits, lifetimes, listener_limits, tunable_settings},
};
use crate::distribution::delivery;
use crate::distribution::notifications;
use crate::distribution::recipients::RecipientSettings;
use crate::http::SharedState;
use crate::http::listener::Certificate;
use crate::http::listener::ListenerSettings;
use crate::runtime::clock;
use crate::runtime::config::{self, Config, SettingChanges};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::telemetry::{self, LogFilter};

/// The components that a reload of the settings updates.
pub(super) struct SettingsReload {
    pub(super) launch: ServerLaunch,
    /// The settings in force, with `server.public_url` filled in.
    pub(super) running: Config,
    pub(super) shared: Arc<SharedState>,
    pub(super) terms: ListenerSettings,
}

impl SettingsReload {
    /// Reopens the log file, reloads the settings from their sources, and applies those that can change at
    /// run time; returns the outcome as a line of text.
    ///
    /// An invalid part changes nothing: if one setting is invalid, none is applied, and an invalid
    /// certificate is not used. Errors are logged.
    pub(super) fn reload(&mut self) -> &'static str {
        let mut fine = true;
        let mut heed = |what: &str, outcome: Result<()>| {
            if let Err(cause) = outcome {
                tracing::error!("{what}: {cause}");
                fine = false;
            }
        };
        heed("log file cannot be reopened, the old one stays in use", self.launch.logs.reopen());
        heed("settings cannot be reloaded, the previous ones stay in force", self.settings());
        heed("certificate cannot be reloaded, the previous one stays in use", self.certificate());
        let outcome = if fine { "done" } else { "failed" };
        metrics::counter!(telemetry::RELOADS, "outcome" => outcome).increment(1);
        if fine { "settings reloaded" } else { "some settings could not be reloaded, see the log" }
    }

    fn settings(&mut self) -> Result<()> {
        let loaded = config::load(&self.launch.sources);
        let (mut next, _) =
            loaded.map_err(|cause| Error::new(ErrorKind::InvalidArgument, cause.to_string()))?;
        if next.server.public_url.0.is_empty() && self.launch.config.server.public_url.0.is_empty()
        {
            next.server.public_url = self.running.server.public_url.clone();
        }
        // Parsed before any setting is applied, because an invalid one must change nothing.
        let filter = LogFilter::parse(&next.telemetry.log_level)?;
        let SettingChanges { applied: taken, waiting } = self.running.adopt(&next);
        if taken.contains(&"telemetry.log_level") {
            self.launch.logs.set_filter(filter)?;
        }
        if !taken.is_empty() {
            self.apply();
        }
        tracing::info!(changed = taken.join(" "), "settings reloaded");
        if !waiting.is_empty() {
            let names = waiting.join(" ");
            tracing::warn!("changed settings that need a restart: {names}");
        }
        Ok(())
    }

    /// Distributes the settings in force to the components that use them.
    fn apply(&self) {
        let (config, shared) = (&self.running, &self.shared);
        allow_connections(config.server.connections_max);
        self.terms.limits.set(listener_limits(config));
        let tuned = tunable_settings(config);
        shared.media.settings().rendition_timeout.set(tuned.render_timeout);
        shared.edge.live_settings.set(tuned);
        shared.access.auth.set_throttle_limits(hash_limits(config));
        shared.access.oauth.set_lifetimes(lifetimes(config));
        shared.distribution.deliveries.set_settings(delivery::DeliverySettings::of(config));
        shared
            .distribution
            .notifications
            .set_settings(notifications::NotificationSettings::of(config));
        shared.distribution.recipients.set_settings(RecipientSettings::of(config));
        if let Some(traces) = &shared.edge.traces {
            traces.set_ratio(config.telemetry.trace_ratio);
        }
    }

    /// Reloads certificate and key from the files that were named at the start.
    fn certificate(&self) -> Result<()> {
        let Some(live) = &self.terms.certificate else { return Ok(()) };
        let certificate = read_certificate(&self.running)?;
        let changed = certificate.expires() != live.get().expires();
        live.set(certificate);
        if changed {
            tracing::info!(until = %live.get().expires(), "TLS certificate reloaded");
        }
        Ok(())
    }
}

/// Loads the certificate of the settings, if TLS is enabled.
pub(super) fn certificate(config: &Config) -> Result<Option<HotSwap<Certificate>>> {
    let no_key = config.server.tls_key.as_os_str().is_empty();
    if config.serves_tls() == no_key {
        let (there, missing) = match no_key {
            true => ("server.tls_certificate", "server.tls_key"),
            false => ("server.tls_key", "server.tls_certificate"),
        };
        let message = format!("{there} is set and {missing} is not; TLS needs both");
        return Err(Error::invalid("body", missing, "required", message));
    }
    if no_key {
        return Ok(None);
    }
    let certificate = read_certificate(config)?;
    tracing::info!(until = %certificate.expires(), "TLS certificate loaded");
    Ok(Some(HotSwap::new(certificate)))
}

fn read_certificate(config: &Config) -> Result<Certificate> {
    let server = &config.server;
    let certificate = Certificate::read(&server.tls_certificate, &server.tls_key, clock::now())?;
    let seconds = i32::try_from(certificate.expires().as_second() / 3600).unwrap_or(i32::MAX);
    metrics::gauge!(telemetry::CERTIFICATE_EXPIRES).set(f64::from(seconds) * 3600.0);
    Ok(certificate)
}
