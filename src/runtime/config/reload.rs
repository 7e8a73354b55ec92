//! Lists the settings that a reload applies without a restart.

/// The settings that take effect on SIGHUP. The others need a restart.
///
/// `app` passes each of them to the component that uses it. A name that is only added here would be reported
/// as changed but have no effect.
pub const RELOADABLE: &[&str] = &[
    "server.trusted_proxies",
    "server.connections_max",
    "server.connections_per_address",
    "server.header_timeout_s",
    "server.idle_timeout_s",
    "server.write_rate_min_bytes_s",
    "server.read_rate_min_bytes_s",
    "server.rate_window_s",
    "server.request_timeout_s",
    "server.unready_s",
    "server.work_headers",
    "server.compression",
    "media.max_age_s",
    "media.stale_while_revalidate_s",
    "search.open_images",
    "auth.access_token_s",
    "auth.refresh_token_s",
    "auth.refresh_absolute_days",
    "auth.session_s",
    "auth.failures_per_user",
    "auth.failures_per_user_total",
    "auth.failures_per_address",
    "auth.failure_window_s",
    "mail.user_per_hour",
    "mail.recipient_per_hour",
    "mail.confirm_foreign",
    "delivery.workers",
    "delivery.queue_max",
    "delivery.timeout_s",
    "delivery.retry_first_ms",
    "delivery.retry_hours",
    "delivery.lease_s",
    "notifications.mail_workers",
    "notifications.push_workers",
    "notifications.retry_first_ms",
    "notifications.retry_hours",
    "telemetry.log_level",
    "telemetry.trace_ratio",
];

/// The outcome of a reload. Only names are reported, since some values are secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingChanges {
    /// Names of settings that changed.
    pub applied: Vec<&'static str>,
    /// Names of changed settings that need a restart.
    pub waiting: Vec<&'static str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::{NAMES, SettingSources, load};

    #[test]
    fn every_reloadable_setting_exists() {
        for name in RELOADABLE {
            assert!(NAMES.contains(name), "{name}");
        }
    }

    #[test]
    fn what_can_change_is_taken_over_and_what_cannot_is_named_each_time() {
        let config = |flags: &[(&str, &str)]| {
            let flags = flags.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            load(&SettingSources { file: None, flags }).unwrap().0
        };
        let mut running = config(&[]);
        let next = config(&[("media.max_age_s", "7"), ("mail.password", "new")]);
        let changes = running.adopt(&next);
        assert_eq!(changes.applied, ["media.max_age_s"]);
        assert_eq!(changes.waiting, ["mail.password"]);
        assert_eq!((running.media.max_age_s, running.mail.password.0.as_str()), (7, ""));
        let again = running.adopt(&next);
        assert_eq!((again.applied.len(), again.waiting.len()), (0, 1));
    }
}
