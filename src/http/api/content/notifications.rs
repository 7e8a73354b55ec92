//! Notifications over HTTP (`docs/contract/notifications.md`).
//!
//! Inputs are query parameters; bodies are ignored. A notification is found by its id under any media type in
//! the path.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use uuid::Uuid;

use api::notifications::{
    CreateEmailNotification, CreateMobileNotification, CreateNotificationStream,
    CreateScheduledEmailNotification, ListNotifications, Notification, NotificationMediaType,
    NotificationQuery, ReadNotificationStream, RemoveNotification, ReplaceEmailNotification,
    ReplaceMobileNotification, ReplaceNotificationStream, ReplaceScheduledEmailNotification,
    SCHEDULE_ZONE_DEFAULT,
};
use api::{Done, Endpoint, Json, KnownCaller};

use super::acknowledging_body::AcknowledgingBody;
use super::parameters::read_selection;
use crate::archive::content::{DocumentForm, empty_answer};
use crate::distribution::notifications::{NotificationDraft, view};
use crate::http::api::binding::{ApiRequest, BoundEndpoints};
use crate::http::api::response::{json_text, no_store};
use crate::http::protocol::request::{QueryParameters, ValidationErrors};
use crate::http::protocol::respond;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::transport::MailAddress;
use model::account::{AgreementId, NotificationMethod, SavedQuery};
use model::schedule::{Schedule, ScheduleError};

/// A rule of parameters that the schema does not say.
type ParameterCheck = fn(&QueryParameters) -> Result<()>;

/// The checks of notifications that have a query and nothing else.
const QUERY: &[ParameterCheck] = &[];
const EMAIL: &[ParameterCheck] = &[check_email];
const SCHEDULED_EMAIL: &[ParameterCheck] = &[check_email, check_schedule];

/// The endpoints of notifications.
pub(crate) fn endpoints() -> BoundEndpoints {
    BoundEndpoints::new()
        .bind::<ListNotifications, _, _>(list)
        .bind::<CreateMobileNotification, _, _>(|request| create(request, QUERY))
        .bind::<CreateEmailNotification, _, _>(|request| create(request, EMAIL))
        .bind::<CreateScheduledEmailNotification, _, _>(|request| create(request, SCHEDULED_EMAIL))
        .bind::<CreateNotificationStream, _, _>(|request| create(request, QUERY))
        .bind::<ReplaceMobileNotification, _, _>(|request| {
            replace(request, QUERY, |read| (read.id, read.notification.into()))
        })
        .bind::<ReplaceEmailNotification, _, _>(|request| {
            replace(request, EMAIL, |read| (read.id, read.notification.into()))
        })
        .bind::<ReplaceScheduledEmailNotification, _, _>(|request| {
            replace(request, SCHEDULED_EMAIL, |read| (read.id, read.notification.into()))
        })
        .bind::<ReplaceNotificationStream, _, _>(|request| replace(request, QUERY, stream_draft))
        .bind_response::<ReadNotificationStream, _, _>(read_stream)
        .bind::<RemoveNotification, _, _>(remove)
}

async fn list(request: ApiRequest<ListNotifications>) -> Result<Json<Vec<Notification>>> {
    let media_type = request.parameters()?.media_type.0;
    let notifications = &request.app.shared.distribution.notifications;
    let found = notifications.list(&request.caller, media_type, clock::now()).await?;
    Ok(Json(found.into_iter().map(view::notification).collect()))
}

async fn create<E>(
    request: ApiRequest<E>,
    checks: &'static [ParameterCheck],
) -> Result<Json<Notification>>
where
    E: Endpoint<Caller = KnownCaller> + Into<NotificationDraft>,
{
    let draft = read(&request, checks)?.into();
    let notifications = &request.app.shared.distribution.notifications;
    let created = notifications.create(&request.caller, draft, clock::now()).await?;
    Ok(Json(view::notification(created)))
}

/// Replaces a notification by its id and draft, which `split` takes from the parameters.
async fn replace<E>(
    request: ApiRequest<E>,
    checks: &'static [ParameterCheck],
    split: fn(E) -> (Uuid, NotificationDraft),
) -> Result<Json<Notification>>
where
    E: Endpoint<Caller = KnownCaller>,
{
    let (id, draft) = split(read(&request, checks)?);
    let notifications = &request.app.shared.distribution.notifications;
    let changed = notifications.replace(&request.caller, id, draft, clock::now()).await?;
    Ok(Json(view::notification(changed)))
}

fn stream_draft(replace: ReplaceNotificationStream) -> (Uuid, NotificationDraft) {
    let ReplaceNotificationStream { media_type, id, title, query, tr } = replace;
    (id, draft(media_type, title, saved_query(query, tr), NotificationMethod::Stream))
}

async fn remove(request: ApiRequest<RemoveNotification>) -> Result<Done> {
    let id = request.parameters()?.id;
    request.app.shared.distribution.notifications.delete(&request.caller, id).await?;
    Ok(Done)
}

async fn read_stream(request: ApiRequest<ReadNotificationStream>) -> Result<Response> {
    let ReadNotificationStream { id, s: size, layout, wait, .. } = request.parameters()?;
    let app = request.app.clone();
    let caller = request.caller.clone();
    // Ten thousand polls may wait at once, so they do not keep their requests.
    drop(request);
    let form = DocumentForm { layout, links: app.shared.media.links().clone() };
    let wait = Duration::from_secs(wait.into());
    let stop = app.shared.process.stopped();
    let notifications = &app.shared.distribution.notifications;
    Ok(match notifications.read_stream(&caller, id, size, &form, wait, stop).await? {
        None => json_text(empty_answer()),
        Some(response) => stream_response(AcknowledgingBody::new(response)),
    })
}

fn stream_response(body: AcknowledgingBody) -> Response {
    let kind = HeaderValue::from_static("application/json");
    no_store(respond::typed(StatusCode::OK, kind, Body::new(body)))
}

/// Reads the parameters of a notification, and checks the rules of its query and the rules `checks` that the schema does
/// not say.
///
/// Fails with everything that is wrong with them.
fn read<E>(request: &ApiRequest<E>, checks: &[ParameterCheck]) -> Result<E>
where
    E: Endpoint<Caller = KnownCaller>,
{
    let query = QueryParameters::from_uri(&request.parts.uri)?;
    let mut problems = ValidationErrors::default();
    let read = problems.check(request.parameters());
    // Parsed only to report mistakes now: the text is stored, and the matcher parses it again.
    let zone = &request.app.shared.site.zone;
    let selection = read_selection(&query, zone, &request.caller, &mut problems);
    for check in checks {
        problems.check(check(&query));
    }
    problems.finish(selection.and(read))
}

/// Checks that the mailer can send to `email`.
fn check_email(query: &QueryParameters) -> Result<()> {
    match query.text("email")? {
        Some(email) if MailAddress::parse(email).is_none() => {
            let email = respond::shorten_input(email);
            let message = format!("email is `{email}`, expected a mail address");
            Err(Error::invalid("query", "email", "format", message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks `schedule` and `timezone` together, because the time zone decides whether the schedule ever runs.
fn check_schedule(query: &QueryParameters) -> Result<()> {
    let Some(schedule) = query.text("schedule")? else { return Ok(()) };
    let timezone = query.text("timezone")?.unwrap_or(SCHEDULE_ZONE_DEFAULT);
    Schedule::parse(schedule, timezone).map(drop).map_err(|cause| {
        let name = match cause {
            ScheduleError::Zone(_) => "timezone",
            ScheduleError::Cron(_) | ScheduleError::Never => "schedule",
        };
        Error::invalid("query", name, "format", format!("{name}: {cause}"))
    })
}

impl From<CreateMobileNotification> for NotificationDraft {
    fn from(create: CreateMobileNotification) -> Self {
        let CreateMobileNotification { media_type, title, query } = create;
        draft(media_type, title, saved_query(query, None), NotificationMethod::Mobile)
    }
}

impl From<CreateEmailNotification> for NotificationDraft {
    fn from(create: CreateEmailNotification) -> Self {
        let CreateEmailNotification { media_type, title, query, email } = create;
        draft(media_type, title, saved_query(query, None), NotificationMethod::Email { email })
    }
}

impl From<CreateScheduledEmailNotification> for NotificationDraft {
    fn from(create: CreateScheduledEmailNotification) -> Self {
        let question = saved_query(create.query, create.tr);
        let method = NotificationMethod::ScheduledEmail {
            email: create.email,
            schedule: create.schedule,
            timezone: create.timezone,
        };
        draft(create.media_type, create.title, question, method)
    }
}

impl From<CreateNotificationStream> for NotificationDraft {
    fn from(create: CreateNotificationStream) -> Self {
        let CreateNotificationStream { media_type, title, query } = create;
        draft(media_type, title, saved_query(query, None), NotificationMethod::Stream)
    }
}

fn draft(
    media_type: NotificationMediaType,
    title: String,
    question: SavedQuery,
    method: NotificationMethod,
) -> NotificationDraft {
    NotificationDraft { media_type: media_type.0, title, question, method }
}

fn saved_query(query: NotificationQuery, tr: Option<String>) -> SavedQuery {
    let NotificationQuery { q, p, agr } = query;
    SavedQuery { q, p, agr: agr.into_iter().map(AgreementId).collect(), tr }
}
