//! Reloads the settings while the service runs (SIGHUP).

use std::sync::Arc;

use super::services::{hash_limits, listener_limits, live_settings, token_lifetimes};
use crate::distribution::recipients::RecipientSettings;
use crate::distribution::{delivery, notifications};
use crate::http::SharedState;
use crate::http::listener::{Certificate, ListenerSettings};
use crate::runtime::clock;
use crate::runtime::config::{self, Config, SettingChanges, SettingSources};
use crate::runtime::error::{Error, ErrorKind, Result};
use crate::runtime::hot_swap::HotSwap;
use crate::runtime::telemetry::{self, LogFilter, Logs};

/// File descriptors needed besides those of connections: the database, the store, logs, mail servers.
const FILES_BESIDE_CONNECTIONS: u64 = 1000;

/// The inputs of a server.
pub struct ServerLaunch {
    /// The settings as loaded at the start.
    pub config: Config,
    /// The sources from which a reload reads the settings.
    pub sources: SettingSources,
    /// The handle for changing the logs at run time.
    pub logs: Logs,
}

/// The components that a reload of the settings updates.
pub(super) struct SettingsReload {
    pub(super) launch: ServerLaunch,
    /// The settings in force, with `server.public_url` filled in.
    pub(super) running: Config,
    pub(super) shared: Arc<SharedState>,
    pub(super) listener_settings: ListenerSettings,
}

impl SettingsReload {
    /// Reopens the log file, reloads the settings from their sources, and applies the settings that can
    /// change at run time; returns the outcome as a line of text.
    ///
    /// If one setting or the certificate is invalid, no setting is applied and the previous certificate stays in
    /// use. Errors are logged.
    pub(super) fn reload(&mut self) -> &'static str {
        // Invalid settings must not keep the log file from being reopened.
        let reopened = succeeded(
            "log file cannot be reopened, the old one stays in use",
            &self.launch.logs.reopen(),
        );
        let applied = match self.read_renewed_certificate() {
            Ok(renewed) => succeeded(
                "settings cannot be reloaded, the previous ones stay in force",
                &self.settings(renewed),
            ),
            Err(cause) => succeeded(
                "certificate cannot be reloaded, the previous one stays in use, and no setting changes",
                &Err(cause),
            ),
        };
        let all_succeeded = reopened && applied;
        let outcome = if all_succeeded { "done" } else { "failed" };
        metrics::counter!(telemetry::RELOADS, "outcome" => outcome).increment(1);
        if all_succeeded { "settings reloaded" } else { "the reload failed, see the log" }
    }

    /// Reloads the settings, and uses the `renewed` certificate if TLS is enabled.
    fn settings(&mut self, renewed: Option<Certificate>) -> Result<()> {
        let loaded = config::load(&self.launch.sources);
        let (mut next, values) =
            loaded.map_err(|cause| Error::new(ErrorKind::InvalidArgument, cause.to_string()))?;
        // The start filled in an empty URL from the bound address, so a URL that is still empty is no change.
        if next.server.public_url.0.is_empty() && self.launch.config.server.public_url.0.is_empty()
        {
            next.server.public_url = self.running.server.public_url.clone();
        }
        // Parsed before any setting is applied, because an invalid one must change nothing.
        let filter = LogFilter::parse(&next.telemetry.log_level)?;
        let SettingChanges { applied, waiting } = self.running.adopt(&next);
        if applied.contains(&"telemetry.log_level") {
            self.launch.logs.set_filter(filter)?;
        }
        if !applied.is_empty() {
            self.apply();
        }
        if let Some(renewed) = renewed {
            self.use_certificate(renewed);
        }
        tracing::info!(changed = applied.join(" "), "settings reloaded");
        for warning in values.warnings() {
            tracing::warn!("{warning}");
        }
        if !waiting.is_empty() {
            let names = waiting.join(" ");
            tracing::warn!("changed settings that need a restart: {names}");
        }
        Ok(())
    }

    /// Distributes the settings in force to the components that use them.
    fn apply(&self) {
        let config = &self.running;
        let shared = &self.shared;
        // The limit of open files is raised before the listener accepts more connections.
        allow_connections(config.server.connections_max);
        self.listener_settings.limits.set(listener_limits(config));
        let settings = live_settings(config);
        shared.media.settings().rendition_timeout.set(settings.render_timeout);
        shared.edge.live_settings.set(settings);
        shared.access.auth.set_throttle_limits(hash_limits(config));
        shared.access.oauth.set_lifetimes(token_lifetimes(config));
        shared.archive.content.set_slow_ms(config.search.slow_ms);
        shared
            .distribution
            .deliveries
            .set_settings(delivery::DeliverySettings::from_config(config));
        shared
            .distribution
            .notifications
            .set_settings(notifications::NotificationSettings::from_config(config));
        shared.distribution.recipients.set_settings(RecipientSettings::from_config(config));
        if let Some(traces) = &shared.edge.traces {
            traces.set_ratio(config.telemetry.trace_ratio);
        }
    }

    /// Reads certificate and key from the files that were named at the start, if TLS is enabled.
    fn read_renewed_certificate(&self) -> Result<Option<Certificate>> {
        if self.listener_settings.certificate.is_none() {
            return Ok(None);
        }
        read_certificate(&self.running).map(Some)
    }

    fn use_certificate(&self, renewed: Certificate) {
        let Some(current) = &self.listener_settings.certificate else { return };
        record_expiry(&renewed);
        // Each reload reads the certificate, but only a renewed certificate is logged.
        let changed = renewed.expires != current.get().expires;
        current.set(renewed);
        if changed {
            tracing::info!(until = %current.get().expires, "TLS certificate reloaded");
        }
    }
}

/// Raises the limit of open files to the number that the connections need, or to the system's maximum. Each
/// connection needs one open file, and up to one more to read and send its data.
pub fn allow_connections(connections_max: u32) {
    let wanted = u64::from(connections_max) * 2 + FILES_BESIDE_CONNECTIONS;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => tracing::warn!(
            allowed,
            wanted,
            "the system allows few open files (ulimit -n); connections beyond them fail"
        ),
        Err(cause) => tracing::warn!("the number of open files cannot be raised: {cause}"),
    }
}

/// Logs the error of a part of a reload; returns whether the part was reloaded.
fn succeeded(failure: &str, outcome: &Result<()>) -> bool {
    if let Err(cause) = outcome {
        tracing::error!("{failure}: {cause}");
    }
    outcome.is_ok()
}

/// Loads the certificate of the settings, if TLS is enabled.
pub(super) fn certificate(config: &Config) -> Result<Option<HotSwap<Certificate>>> {
    let no_key = config.server.tls_key.as_os_str().is_empty();
    if config.serves_tls() == no_key {
        let (present, missing) = if no_key {
            ("server.tls_certificate", "server.tls_key")
        } else {
            ("server.tls_key", "server.tls_certificate")
        };
        let message = format!("{present} is set and {missing} is not; TLS needs both");
        return Err(Error::invalid("body", missing, "required", message));
    }
    if no_key {
        return Ok(None);
    }
    let certificate = read_certificate(config)?;
    record_expiry(&certificate);
    tracing::info!(until = %certificate.expires, "TLS certificate loaded");
    Ok(Some(HotSwap::new(certificate)))
}

fn read_certificate(config: &Config) -> Result<Certificate> {
    let server = &config.server;
    Certificate::read(&server.tls_certificate, &server.tls_key, clock::now())
}

fn record_expiry(certificate: &Certificate) {
    // Hours fit into an `i32`, which converts to `f64` without loss; seconds would overflow in
    // 2038.
    let hours = i32::try_from(certificate.expires.as_second() / 3600).unwrap_or(i32::MAX);
    metrics::gauge!(telemetry::CERTIFICATE_EXPIRES).set(f64::from(hours) * 3600.0);
}
