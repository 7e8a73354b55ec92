//! The form of a notification: its fields, its API calls, and the dry run of its query.

use serde::Serialize;
use serde_json::Value;
use strum::VariantNames;
use uuid::Uuid;

use super::api_client::{ApiCall, ApiRefusal, encode_segment};
use super::item_summary::ItemSummary;
use super::{FormFields, SiteRequest};
use crate::runtime::error::{Error, Result};
use api::content::ANY_MEDIA_TYPE;
use api::notifications::{
    CreateEmailNotification, CreateMobileNotification, CreateNotificationStream,
    CreateScheduledEmailNotification, Notification, NotificationMediaType, NotificationQuery,
    ReplaceEmailNotification, ReplaceMobileNotification, ReplaceNotificationStream,
    ReplaceScheduledEmailNotification, SCHEDULE_ZONE_DEFAULT,
};
use model::MediaType;
use model::account::NotificationKind;

/// The cron expressions of the predefined schedules, which `notification_parts.html` names.
pub(super) const SCHEDULES: [&str; 5] =
    ["0 * * * *", "0 7 * * *", WEEKDAYS, "0 7,16 * * *", "0 8 * * 1"];
/// The schedule that a new form selects.
const WEEKDAYS: &str = "0 7 * * 1-5";
/// The value of the form's choice for a custom schedule.
const CUSTOM_SCHEDULE: &str = "own";
/// The period of a dry run: the value of the API's `tr` for seven days.
const DRY_RUN_PERIOD: &str = "w";

/// The fields of the form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct NotificationForm {
    pub(super) title: String,
    /// `mobile`, `email`, `scheduled-email` or `stream`.
    pub(super) kind: String,
    pub(super) media_type: String,
    pub(super) q: String,
    pub(super) p: String,
    pub(super) agr: Vec<String>,
    pub(super) tr: String,
    pub(super) email: String,
    /// An expression of [`SCHEDULES`], or [`CUSTOM_SCHEDULE`].
    pub(super) when: String,
    /// The cron expression if `when` is [`CUSTOM_SCHEDULE`].
    pub(super) cron: String,
    pub(super) timezone: String,
}

impl NotificationForm {
    /// Reads the fields of a new form from the page's query. `email` is the default e-mail address.
    pub(super) fn of_address(site: &SiteRequest, email: &str) -> Result<Self> {
        let kind = site.text_parameter("type")?;
        // An invalid type in a link is replaced, because the visitor can still change the type in the form.
        let kind: NotificationKind = kind.parse().unwrap_or(NotificationKind::Email);
        Ok(Self {
            title: site.text_parameter("title")?.to_owned(),
            kind: kind.as_str().to_owned(),
            media_type: or_default(site.parameter("mediaType")?, "_all"),
            q: site.text_parameter("q")?.to_owned(),
            p: site.query.list("p")?.join(", "),
            agr: site.query.list("agr")?.into_iter().map(str::to_owned).collect(),
            tr: site.text_parameter("tr")?.to_owned(),
            email: or_default(site.parameter("email")?, email),
            when: WEEKDAYS.to_owned(),
            cron: String::new(),
            timezone: SCHEDULE_ZONE_DEFAULT.to_owned(),
        })
    }

    /// Reads the fields of a submitted form.
    ///
    /// Fails for an unknown type.
    pub(super) fn of_form(form: &FormFields) -> Result<Self> {
        let kind = form.text("type");
        // The type is part of the API's path, so it is checked before a call is built.
        if kind.parse::<NotificationKind>().is_err() {
            let message = "type is not a way to be notified";
            return Err(Error::invalid("body", "type", "enum", message));
        }
        Ok(Self {
            title: form.text("title"),
            kind,
            media_type: form.text("mediaType"),
            q: form.text("q"),
            p: form.text("p"),
            agr: form.all("agr").map(str::to_owned).collect(),
            tr: form.text("tr"),
            email: form.text("email"),
            when: form.text("when"),
            cron: form.text("cron"),
            timezone: form.text("timezone"),
        })
    }

    /// Reads the fields of a notification that the API returned. `email` is the default e-mail address.
    pub(super) fn of_saved(saved: &Notification, email: &str) -> Self {
        let schedule = saved.schedule.as_deref().unwrap_or_default();
        let (when, cron) = if schedule.is_empty() {
            (WEEKDAYS, "")
        } else if SCHEDULES.contains(&schedule) {
            (schedule, "")
        } else {
            (CUSTOM_SCHEDULE, schedule)
        };
        Self {
            title: saved.title.clone(),
            kind: saved.kind.as_str().to_owned(),
            media_type: saved.media_type.0.map_or(ANY_MEDIA_TYPE, MediaType::as_str).to_owned(),
            q: saved.q.clone().unwrap_or_default(),
            p: saved.p.join(", "),
            agr: saved.agr.iter().map(i64::to_string).collect(),
            tr: saved.tr.clone().unwrap_or_default(),
            email: or_default(saved.email.as_deref(), email),
            when: when.to_owned(),
            cron: cron.to_owned(),
            timezone: or_default(saved.timezone.as_deref(), SCHEDULE_ZONE_DEFAULT),
        }
    }

    fn schedule(&self) -> &str {
        if self.when == CUSTOM_SCHEDULE { &self.cron } else { &self.when }
    }

    /// Returns the product codes. Visitors separate them by commas, spaces, or both.
    fn codes(&self) -> Vec<&str> {
        self.p.split([',', ' ']).filter(|code| !code.is_empty()).collect()
    }

    /// Creates the notification that the form describes.
    pub(super) async fn create(&self, site: &SiteRequest) -> Result<Notification, ApiRefusal> {
        match self.kind() {
            NotificationKind::Mobile => site.ask(&self.mobile()?).await,
            NotificationKind::Email => site.ask(&self.email()?).await,
            NotificationKind::ScheduledEmail => site.ask(&self.scheduled_email()?).await,
            // For a stream, only `PUT` accepts `tr` (contract notifications-4).
            NotificationKind::Stream => {
                let CreateMobileNotification { media_type, title, query } = self.mobile()?;
                site.ask(&CreateNotificationStream { media_type, title, query }).await
            }
        }
    }

    /// Replaces the notification `id`. A field that was emptied is cleared.
    pub(super) async fn replace(
        &self,
        site: &SiteRequest,
        id: Uuid,
    ) -> Result<Notification, ApiRefusal> {
        match self.kind() {
            NotificationKind::Mobile => {
                site.ask(&ReplaceMobileNotification { id, notification: self.mobile()? }).await
            }
            NotificationKind::Email => {
                site.ask(&ReplaceEmailNotification { id, notification: self.email()? }).await
            }
            NotificationKind::ScheduledEmail => {
                let notification = self.scheduled_email()?;
                site.ask(&ReplaceScheduledEmailNotification { id, notification }).await
            }
            NotificationKind::Stream => {
                let CreateMobileNotification { media_type, title, query } = self.mobile()?;
                let tr = self.period();
                site.ask(&ReplaceNotificationStream { media_type, id, title, query, tr }).await
            }
        }
    }

    fn kind(&self) -> NotificationKind {
        self.kind.parse().unwrap_or(NotificationKind::Email)
    }

    fn mobile(&self) -> Result<CreateMobileNotification, ApiRefusal> {
        Ok(CreateMobileNotification {
            media_type: self.media_type()?,
            title: self.title.clone(),
            query: self.query()?,
        })
    }

    fn email(&self) -> Result<CreateEmailNotification, ApiRefusal> {
        let CreateMobileNotification { media_type, title, query } = self.mobile()?;
        Ok(CreateEmailNotification { media_type, title, query, email: self.email.clone() })
    }

    fn scheduled_email(&self) -> Result<CreateScheduledEmailNotification, ApiRefusal> {
        let CreateEmailNotification { media_type, title, query, email } = self.email()?;
        Ok(CreateScheduledEmailNotification {
            media_type,
            title,
            query,
            email,
            schedule: self.schedule().to_owned(),
            timezone: self.timezone.clone(),
            tr: self.period(),
        })
    }

    /// Parses the media type. Fails for a form without one, or with one that has no notifications.
    pub(super) fn media_type(&self) -> Result<NotificationMediaType, ApiRefusal> {
        if self.media_type == ANY_MEDIA_TYPE {
            return Ok(NotificationMediaType(None));
        }
        if self.media_type.is_empty() {
            return Err(ApiRefusal::invalid("required", "mediaType", "is missing"));
        }
        let Ok(media_type) = self.media_type.parse::<MediaType>() else {
            let words = MediaType::VARIANTS.join(", ");
            let message = format!("is `{}`, expected one of {words}", self.media_type);
            return Err(ApiRefusal::invalid("enum", "mediaType", &message));
        };
        Ok(NotificationMediaType(Some(media_type)))
    }

    fn query(&self) -> Result<NotificationQuery, ApiRefusal> {
        let agr = self.agr.iter().map(|id| id.parse::<i64>()).collect::<Result<Vec<_>, _>>();
        Ok(NotificationQuery {
            q: Some(self.q.clone()),
            p: self.codes().into_iter().map(str::to_owned).collect(),
            agr: agr.map_err(|_| ApiRefusal::invalid("type", "agr", "is not a number"))?,
        })
    }

    fn period(&self) -> Option<String> {
        Some(self.tr.clone()).filter(|period| !period.is_empty())
    }

    /// Returns the search for recent matches, limited to `size` items. Events planned for `tomorrow` or later are
    /// excluded.
    pub(super) fn dry_run(&self, size: usize, tomorrow: &str) -> ApiCall {
        let codes = self.codes().join(",");
        let agreements = self.agr.join(",");
        let size = size.to_string();
        ApiCall::get(format!("/content/v1/{}/search", encode_segment(&self.media_type))).query([
            ("q", Some(self.q.as_str())),
            ("p", Some(codes.as_str())),
            ("agr", Some(agreements.as_str())),
            ("tr", Some(DRY_RUN_PERIOD)),
            ("tre", Some(tomorrow)),
            ("s", Some(size.as_str())),
            ("layout", Some("bare")),
        ])
    }

    /// Returns the URL of the notification's search on the search page, limited to `period`; without a limit if
    /// it is empty. As in a notification, inflected forms do not match.
    pub(super) fn search_url(&self, period: &str) -> String {
        let codes = self.codes().join(",");
        let agreements = self.agr.join(",");
        let call = ApiCall::get("/").query([
            ("type", Some(self.media_type.as_str())),
            ("q", Some(self.q.as_str())),
            ("p", Some(codes.as_str())),
            ("agr", Some(agreements.as_str())),
            ("tr", Some(period)),
            ("written", Some("1")),
        ]);
        call.target
    }

    /// Returns the included and the excluded product codes, for the sentence that describes the query.
    pub(super) fn products(&self) -> (Vec<String>, Vec<String>) {
        let codes = self.codes().into_iter().map(str::to_owned);
        // A minus sign excludes a product, as in the API's parameter `p`.
        let (excluded, included): (Vec<String>, Vec<String>) =
            codes.partition(|code| code.starts_with('-'));
        let excluded = excluded.iter().map(|code| code.trim_start_matches('-').to_owned());
        (included, excluded.collect())
    }
}

fn or_default(text: Option<&str>, default: &str) -> String {
    text.unwrap_or(default).to_owned()
}

/// The result of a dry run, or the mistakes in its search.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DryRun {
    total: u64,
    hits: Vec<ItemSummary>,
    search_url: String,
    mistakes: Vec<String>,
}

impl DryRun {
    /// Builds the result of the dry run of `fields`. If the search is invalid, the result contains the mistakes,
    /// and the refusal is returned as well. Any other failure is an error.
    pub(super) fn from_outcome(
        fields: &NotificationForm,
        outcome: Result<Value, ApiRefusal>,
    ) -> Result<(Self, Option<ApiRefusal>), ApiRefusal> {
        let search_url = fields.search_url(DRY_RUN_PERIOD);
        match outcome {
            Ok(found) => {
                let total = found["total"].as_u64().unwrap_or_default();
                let hits = ItemSummary::list(&found["hits"]);
                Ok((Self { total, hits, search_url, mistakes: Vec::new() }, None))
            }
            Err(refusal) if refusal.is_mistake() => {
                let mistakes = refusal.sentences();
                let found = Self { total: 0, hits: Vec::new(), search_url, mistakes };
                Ok((found, Some(refusal)))
            }
            Err(refusal) => Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::MediaType;

    fn fields(kind: &str) -> NotificationForm {
        NotificationForm {
            title: "Ice".into(),
            kind: kind.into(),
            media_type: "image".into(),
            q: "is å".into(),
            p: "FOTO, -TT".into(),
            agr: vec!["1".into(), "2".into()],
            tr: "d".into(),
            email: "a@b.example".into(),
            when: CUSTOM_SCHEDULE.into(),
            cron: "5 4 * * *".into(),
            timezone: "UTC".into(),
        }
    }

    #[test]
    fn a_form_becomes_the_parameters_of_its_type() {
        let query = NotificationQuery {
            q: Some("is å".into()),
            p: vec!["FOTO".into(), "-TT".into()],
            agr: vec![1, 2],
        };
        let scheduled = CreateScheduledEmailNotification {
            media_type: NotificationMediaType(Some(MediaType::Image)),
            title: "Ice".into(),
            query,
            email: "a@b.example".into(),
            schedule: "5 4 * * *".into(),
            timezone: "UTC".into(),
            tr: Some("d".into()),
        };
        assert_eq!(fields("scheduled-email").scheduled_email().unwrap(), scheduled);
        let any_time = NotificationForm { tr: String::new(), ..fields("scheduled-email") };
        assert_eq!(any_time.scheduled_email().unwrap().tr, None);
        let forged = NotificationForm { agr: vec!["x".into()], ..fields("mobile") };
        assert_eq!(forged.mobile().unwrap_err().errors[0].path, "agr");
    }

    #[test]
    fn what_is_saved_fills_the_form() {
        let saved = Notification {
            id: Uuid::nil(),
            title: "Ice".into(),
            kind: NotificationKind::ScheduledEmail,
            media_type: NotificationMediaType(Some(MediaType::Image)),
            q: Some("is å".into()),
            p: vec!["FOTO".into(), "-TT".into()],
            agr: vec![1, 2],
            tr: Some("d".into()),
            schedule: Some("5 4 * * *".into()),
            timezone: Some("UTC".into()),
            email: Some("a@b.example".into()),
        };
        let filled = NotificationForm::of_saved(&saved, "c@d.example");
        assert_eq!(filled, fields("scheduled-email"));
        let kind = NotificationKind::Mobile;
        let mobile = Notification { kind, schedule: None, timezone: None, email: None, ..saved };
        let found = NotificationForm::of_saved(&mobile, "c@d.example");
        assert_eq!((found.email.as_str(), found.when.as_str()), ("c@d.example", "0 7 * * 1-5"));
        let codes = (vec!["FOTO".to_owned()], vec!["TT".to_owned()]);
        assert_eq!(fields("mobile").products(), codes);
    }
}
