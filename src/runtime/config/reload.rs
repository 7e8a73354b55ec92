//! The outcome of a reload of the settings.

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
    use crate::runtime::config::{SettingSources, load};

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
