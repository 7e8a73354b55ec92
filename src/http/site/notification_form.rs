//! The form of a notification: its fields, its API calls, and the dry run of its query.

use serde::Serialize;
use serde_json::Value;

use super::api_client::{ApiCall, ApiRefusal, encode_segment, text};
use super::item_summary::ItemSummary;
use super::{FormFields, SiteRequest};
use crate::runtime::error::{Error, Result};
use model::account::NotificationKind;

/// Predefined schedules: cron expression and label.
pub(super) const SCHEDULES: [(&str, &str); 5] = [
    ("0 * * * *", "Every hour"),
    ("0 7 * * *", "Every day at 7:00"),
    ("0 7 * * 1-5", "Weekdays at 7:00"),
    ("0 7,16 * * *", "Every day at 7:00 and 16:00"),
    ("0 8 * * 1", "Mondays at 8:00"),
];
/// The value of the form's choice for a custom schedule.
const CUSTOM_SCHEDULE: &str = "own";
/// The default time zone of the form, which is also the default of the API.
const ZONE_DEFAULT: &str = "Europe/Stockholm";
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
            media_type: or_default(site.text_parameter("mediaType")?, "_all"),
            q: site.text_parameter("q")?.to_owned(),
            p: site.query.list("p")?.join(", "),
            agr: site.query.list("agr")?.into_iter().map(str::to_owned).collect(),
            tr: site.text_parameter("tr")?.to_owned(),
            email: or_default(site.text_parameter("email")?, email),
            when: SCHEDULES[2].0.to_owned(),
            cron: String::new(),
            timezone: ZONE_DEFAULT.to_owned(),
        })
    }

    /// Reads the fields of a submitted form.
    ///
    /// Fails for an unknown type.
    pub(super) fn of_form(form: &FormFields) -> Result<Self> {
        let kind = form.text("type");
        // The type is part of the API's path, so it is checked before a call is built.
        if kind.parse::<NotificationKind>().is_err() {
            return Err(Error::invalid(
                "body",
                "type",
                "enum",
                "type is not a way to be notified",
            ));
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
    pub(super) fn of_saved(saved: &Value, email: &str) -> Self {
        let codes = saved["p"].as_array().into_iter().flatten();
        let codes: Vec<&str> = codes.filter_map(Value::as_str).collect();
        let agreements = saved["agr"].as_array().into_iter().flatten();
        let schedule = text(saved, "schedule");
        let is_offered = SCHEDULES.iter().any(|(cron, _)| *cron == schedule);
        let (when, cron) = if schedule.is_empty() {
            (SCHEDULES[2].0, "")
        } else if is_offered {
            (schedule, "")
        } else {
            (CUSTOM_SCHEDULE, schedule)
        };
        Self {
            title: text(saved, "title").to_owned(),
            kind: text(saved, "type").to_owned(),
            media_type: text(saved, "mediaType").to_owned(),
            q: text(saved, "q").to_owned(),
            p: codes.join(", "),
            agr: agreements.map(Value::to_string).collect(),
            tr: text(saved, "tr").to_owned(),
            email: or_default(text(saved, "email"), email),
            when: when.to_owned(),
            cron: cron.to_owned(),
            timezone: or_default(text(saved, "timezone"), ZONE_DEFAULT),
        }
    }

    fn schedule(&self) -> &str {
        if self.when == CUSTOM_SCHEDULE { &self.cron } else { &self.when }
    }

    /// Returns the product codes in the API's notation.
    fn codes(&self) -> String {
        // Visitors separate codes by commas, spaces, or both.
        let codes = self.p.split([',', ' ']).filter(|code| !code.is_empty());
        codes.collect::<Vec<_>>().join(",")
    }

    /// Returns the call that creates the notification; with `id`, the call that replaces the notification `id`.
    pub(super) fn save(&self, id: Option<&str>) -> ApiCall {
        let base = format!("/content/v1/{}/notification", encode_segment(&self.media_type));
        let kind: NotificationKind = self.kind.parse().unwrap_or(NotificationKind::Email);
        let call = match id {
            None => ApiCall::post(format!("{base}/{}", kind.as_str())),
            Some(id) => ApiCall::put(format!("{base}/{}/{}", encode_segment(id), kind.as_str())),
        };
        let (mails, scheduled, takes_tr) = match kind {
            NotificationKind::Mobile => (false, false, false),
            NotificationKind::Email => (true, false, false),
            NotificationKind::ScheduledEmail => (true, true, true),
            // For a stream, only `PUT` accepts `tr` (contract notifications-4).
            NotificationKind::Stream => (false, false, id.is_some()),
        };
        let codes = self.codes();
        let agreements = self.agr.join(",");
        // `PUT` replaces all fields, so a field that was emptied is left out to clear it (contract
        // notifications-4).
        call.query([
            ("title", Some(self.title.as_str())),
            ("q", Some(self.q.as_str())),
            ("p", Some(codes.as_str())),
            ("agr", Some(agreements.as_str())),
            ("tr", takes_tr.then_some(self.tr.as_str())),
            ("email", mails.then_some(self.email.as_str())),
            ("schedule", scheduled.then(|| self.schedule())),
            ("timezone", scheduled.then_some(self.timezone.as_str())),
        ])
    }

    /// Returns the search for recent matches, limited to `size` items. Events planned for `tomorrow` or later are
    /// excluded.
    pub(super) fn dry_run(&self, size: usize, tomorrow: &str) -> ApiCall {
        let codes = self.codes();
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

    /// Returns the URL of the dry run's search on the search page. As in a notification, inflected forms do not
    /// match.
    pub(super) fn search_page(&self) -> String {
        self.search_within(DRY_RUN_PERIOD)
    }

    /// Returns the URL of the notification's search on the search page, without a limit of time.
    pub(super) fn search_url(&self) -> String {
        self.search_within("")
    }

    fn search_within(&self, period: &str) -> String {
        let codes = self.codes();
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
        let mut included = Vec::new();
        let mut excluded = Vec::new();
        for code in self.codes().split(',').filter(|code| !code.is_empty()) {
            // A minus sign excludes a product, as in the API's parameter `p`.
            if code.starts_with('-') {
                excluded.push(code.trim_start_matches('-').to_owned());
            } else {
                included.push(code.to_owned());
            }
        }
        (included, excluded)
    }
}

fn or_default(text: &str, default: &str) -> String {
    if text.is_empty() { default.to_owned() } else { text.to_owned() }
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
        let search_url = fields.search_page();
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
    use serde_json::json;

    use super::*;

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
    fn each_type_is_called_with_what_it_takes() {
        let question = "title=Ice&q=is+%C3%A5&p=FOTO%2C-TT&agr=1%2C2";
        let check = |kind: &str, id: Option<&str>, path: &str, more: &str| {
            let expected = format!("/content/v1/image/notification/{path}?{question}{more}");
            assert_eq!(fields(kind).save(id).target, expected);
        };
        check("mobile", None, "mobile", "");
        check("email", None, "email", "&email=a%40b.example");
        let schedule = "&tr=d&email=a%40b.example&schedule=5+4+*+*+*&timezone=UTC";
        check("scheduled-email", None, "scheduled-email", schedule);
        check("stream", None, "stream", "");
        check("stream", Some("x/y"), "x%2Fy/stream", "&tr=d");
    }

    #[test]
    fn what_is_saved_fills_the_form() {
        let saved = json!({
            "id": "x", "title": "Ice", "type": "scheduled-email", "mediaType": "image",
            "q": "is å", "p": ["FOTO", "-TT"], "agr": [1, 2], "email": "a@b.example",
            "schedule": "5 4 * * *", "timezone": "UTC", "tr": "d",
        });
        let filled = NotificationForm::of_saved(&saved, "c@d.example");
        assert_eq!(filled, fields("scheduled-email"));
        let mobile = json!({ "type": "mobile", "schedule": null });
        let found = NotificationForm::of_saved(&mobile, "c@d.example");
        assert_eq!((found.email.as_str(), found.when.as_str()), ("c@d.example", "0 7 * * 1-5"));
        let codes = (vec!["FOTO".to_owned()], vec!["TT".to_owned()]);
        assert_eq!(fields("mobile").products(), codes);
    }
}
