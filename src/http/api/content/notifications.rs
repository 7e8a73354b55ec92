//! Notifications over HTTP (`docs/contract/notifications.md`).
//!
//! Inputs are query parameters; bodies are ignored. A notification is found by its id under any media type in
//! the path.

use std::time::Duration;

use axum::{
    Router,
    extract::{Path, State, rejection::PathRejection},
    http::Uri,
    response::Response,
    routing::{delete, get, post, put},
};
use uuid::Uuid;

use super::Segment;
use super::acknowledging_body::AcknowledgingBody;
use super::parameters::{self, ContentParameters};
use crate::access::auth::Principal;
use crate::archive::content::{Content, DocumentForm, RecentSpan};
use crate::distribution::notifications::NotificationDraft;
use crate::distribution::notifications::json::NotificationView;
use crate::http::AppState;
use crate::http::api;
use crate::http::api::ApiCaller;
use crate::http::api::ApiResult;
use crate::http::cache_policy::CachePolicy;
use crate::http::protocol::request;
use crate::http::protocol::request::QueryParameters;
use crate::http::protocol::request::is_email;
use crate::http::protocol::respond;
use crate::media::UrlLinks;
use crate::runtime::clock;
use crate::runtime::error::{Error, Result};
use crate::runtime::limits::{
    HITS_DEFAULT, HITS_MAX, NOTIFICATION_LIST_MAX, NOTIFICATION_TEXT_CHARS_MAX, STREAM_POLL_S,
};
use crate::transport::MailAddress;
use model::MediaType;
use model::account::{NotificationKind, NotificationMethod, SavedQuery};
use model::schedule::{Schedule, ScheduleError};

/// The decoded segments of a path with an id, or the reason why they are missing.
type NotificationPath = Result<Path<(String, String)>, PathRejection>;

/// The time zone of a schedule without one (contract notifications-18).
const ZONE_DEFAULT: &str = "Europe/Stockholm";

/// The routes of notifications.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/content/v1/{media_type}/notification", get(list))
        .route("/content/v1/{media_type}/notification/mobile", post(create_mobile))
        .route("/content/v1/{media_type}/notification/email", post(create_email))
        .route("/content/v1/{media_type}/notification/scheduled-email", post(create_scheduled))
        .route("/content/v1/{media_type}/notification/stream", post(create_stream))
        .route("/content/v1/{media_type}/notification/{id}/mobile", put(replace_mobile))
        .route("/content/v1/{media_type}/notification/{id}/email", put(replace_email))
        .route(
            "/content/v1/{media_type}/notification/{id}/scheduled-email",
            put(replace_scheduled),
        )
        .route(
            "/content/v1/{media_type}/notification/{id}/stream",
            get(read_stream).put(replace_stream),
        )
        .route("/content/v1/{media_type}/notification/{id}", delete(remove))
}

async fn list(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    media_type: Segment,
) -> ApiResult {
    let text = request::path_segment("mediaType", media_type)?;
    let query = QueryParameters::parse("")?;
    let mut parameters = ContentParameters::new(&query, &app.shared.site.zone, Some(&caller));
    let media_type = parameters.media_type(&text, parameters::STREAM_MEDIA_TYPES);
    let media_type = parameters.finish(media_type)?;
    let found =
        app.shared.distribution.notifications.list(&caller, media_type, clock::now()).await?;
    api::json(&found.iter().map(NotificationView::from).collect::<Vec<_>>())
}

async fn create_mobile(
    state: State<AppState>,
    caller: ApiCaller,
    path: Segment,
    uri: Uri,
) -> ApiResult {
    create(state, caller, path, uri, NotificationKind::Mobile).await
}

async fn create_email(
    state: State<AppState>,
    caller: ApiCaller,
    path: Segment,
    uri: Uri,
) -> ApiResult {
    create(state, caller, path, uri, NotificationKind::Email).await
}

async fn create_scheduled(
    state: State<AppState>,
    caller: ApiCaller,
    path: Segment,
    uri: Uri,
) -> ApiResult {
    create(state, caller, path, uri, NotificationKind::ScheduledEmail).await
}

async fn create_stream(
    state: State<AppState>,
    caller: ApiCaller,
    path: Segment,
    uri: Uri,
) -> ApiResult {
    create(state, caller, path, uri, NotificationKind::Stream).await
}

async fn create(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    media_type: Segment,
    uri: Uri,
    kind: NotificationKind,
) -> ApiResult {
    let media_type = request::path_segment("mediaType", media_type)?;
    let draft = draft_from_uri(&app, &caller, &media_type, &uri, kind, false)?;
    let created =
        app.shared.distribution.notifications.create(&caller, draft, clock::now()).await?;
    api::json(&NotificationView::from(&created))
}

async fn replace_mobile(
    state: State<AppState>,
    caller: ApiCaller,
    path: NotificationPath,
    uri: Uri,
) -> ApiResult {
    replace(state, caller, path, uri, NotificationKind::Mobile).await
}

async fn replace_email(
    state: State<AppState>,
    caller: ApiCaller,
    path: NotificationPath,
    uri: Uri,
) -> ApiResult {
    replace(state, caller, path, uri, NotificationKind::Email).await
}

async fn replace_scheduled(
    state: State<AppState>,
    caller: ApiCaller,
    path: NotificationPath,
    uri: Uri,
) -> ApiResult {
    replace(state, caller, path, uri, NotificationKind::ScheduledEmail).await
}

async fn replace_stream(
    state: State<AppState>,
    caller: ApiCaller,
    path: NotificationPath,
    uri: Uri,
) -> ApiResult {
    replace(state, caller, path, uri, NotificationKind::Stream).await
}

async fn replace(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    path: NotificationPath,
    uri: Uri,
    kind: NotificationKind,
) -> ApiResult {
    let (media_type, id) = path_segments(path)?;
    let draft = draft_from_uri(&app, &caller, &media_type, &uri, kind, true)?;
    let id = parse_uuid(&id)?;
    let changed =
        app.shared.distribution.notifications.replace(&caller, id, draft, clock::now()).await?;
    api::json(&NotificationView::from(&changed))
}

async fn remove(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    path: NotificationPath,
) -> ApiResult {
    let (media_type, id) = path_segments(path)?;
    // Validated, although the id alone finds the notification (contract notifications-3).
    check_media_type(&app, &media_type)?;
    app.shared.distribution.notifications.delete(&caller, parse_uuid(&id)?).await?;
    api::text("OK")
}

async fn read_stream(
    State(app): State<AppState>,
    ApiCaller(caller): ApiCaller,
    path: NotificationPath,
    uri: Uri,
) -> ApiResult {
    // The request is dropped before the wait, because ten thousand polls may wait at once.
    let StreamPoll { id, size, form, wait } = parse_stream_poll(&app, path, uri)?;
    let stop = app.shared.process.stopped();
    let notifications = &app.shared.distribution.notifications;
    Ok(match notifications.read_stream(&caller, id, size, &form, wait, stop).await? {
        None => api::json_text(Content::empty_answer()),
        Some(response) => stream_response(AcknowledgingBody::new(response)),
    })
}

/// The parameters of a poll of a stream.
struct StreamPoll {
    id: Uuid,
    size: usize,
    form: DocumentForm<UrlLinks>,
    wait: Duration,
}

#[expect(clippy::needless_pass_by_value, reason = "axum's extractors are owned")]
fn parse_stream_poll(app: &AppState, path: NotificationPath, uri: Uri) -> Result<StreamPoll> {
    let (media_type, id) = path_segments(path)?;
    let query = QueryParameters::from_uri(&uri)?;
    let mut parameters = ContentParameters::new(&query, &app.shared.site.zone, None);
    let poll = read_stream_poll(&mut parameters, app, &media_type, &id);
    parameters.finish(poll)
}

/// Reads the parameters of a poll; `None` if one is invalid.
fn read_stream_poll(
    parameters: &mut ContentParameters<'_>,
    app: &AppState,
    media_type: &str,
    id: &str,
) -> Option<StreamPoll> {
    let media_type = parameters.media_type(media_type, parameters::STREAM_MEDIA_TYPES);
    let size = parameters.read(batch_size);
    let layout = parameters.layout();
    let wait = parameters.read(|query| query.integer("wait", 1..=i64::from(STREAM_POLL_S)));
    let id = parameters.read(|_| parse_uuid(id));
    // Every parameter is read before the first `?`, so that all problems are reported together.
    let wait = u64::try_from(wait?.unwrap_or(i64::from(STREAM_POLL_S))).ok()?;
    media_type?;
    let form = DocumentForm { layout: layout?, links: app.shared.media.links().clone() };
    Some(StreamPoll { id: id?, size: size?, form, wait: Duration::from_secs(wait) })
}

fn stream_response(body: AcknowledgingBody) -> Response {
    let kind = axum::http::HeaderValue::from_static("application/json");
    let body = axum::body::Body::new(body);
    let mut response = respond::typed(axum::http::StatusCode::OK, kind, body);
    CachePolicy::NoStore.set(response.headers_mut());
    response
}

/// Reads the number of items per response: at least one, because a poll for zero items would never acknowledge any
/// (contract notifications-8).
fn batch_size(query: &QueryParameters) -> Result<usize> {
    let max = i64::try_from(HITS_MAX).unwrap_or(i64::MAX);
    let found = query.integer("s", 1..=max)?;
    Ok(found.and_then(|found| usize::try_from(found).ok()).unwrap_or(HITS_DEFAULT))
}

fn path_segments(path: NotificationPath) -> Result<(String, String)> {
    match path {
        Ok(Path(parts)) => Ok(parts),
        Err(_) => Err(Error::invalid("path", "id", "format", "the path is not UTF-8")),
    }
}

fn parse_uuid(text: &str) -> Result<Uuid> {
    Uuid::try_parse(text).map_err(|_| Error::invalid("path", "id", "format", "id is not a UUID"))
}

fn check_media_type(app: &AppState, text: &str) -> Result<Option<MediaType>> {
    // Only the path is read: parameters of the query are ignored (contract api-9).
    let query = QueryParameters::parse("")?;
    let mut parameters = ContentParameters::new(&query, &app.shared.site.zone, None);
    let media_type = parameters.media_type(text, parameters::STREAM_MEDIA_TYPES);
    parameters.finish(media_type)
}

fn draft_from_uri(
    app: &AppState,
    caller: &Principal,
    media_type: &str,
    uri: &Uri,
    kind: NotificationKind,
    replaces: bool,
) -> Result<NotificationDraft> {
    let query = QueryParameters::from_uri(uri)?;
    let parameters = ContentParameters::new(&query, &app.shared.site.zone, Some(caller));
    parse_draft(parameters, media_type, kind, replaces)
}

/// Parses the parameters of a notification.
///
/// An empty `title` is refused, except in the `POST` of a stream (contract notifications-4).
fn parse_draft(
    mut parameters: ContentParameters<'_>,
    media_type: &str,
    kind: NotificationKind,
    replaces: bool,
) -> Result<NotificationDraft> {
    let draft = read_draft(&mut parameters, media_type, kind, replaces);
    parameters.finish(draft)
}

/// Reads the parameters of a notification; `None` if one is invalid.
fn read_draft(
    parameters: &mut ContentParameters<'_>,
    media_type: &str,
    kind: NotificationKind,
    replaces: bool,
) -> Option<NotificationDraft> {
    let media_type = parameters.media_type(media_type, parameters::STREAM_MEDIA_TYPES);
    let saved_query = parse_saved_query(parameters, kind, replaces);
    let optional = kind == NotificationKind::Stream && !replaces;
    let title = parameters.read(|query| {
        if optional {
            Ok(short_text(query, "title")?.unwrap_or_default())
        } else {
            query.required("title").and_then(|_| required_text(query, "title"))
        }
    });
    let method = match kind {
        NotificationKind::Mobile => Some(NotificationMethod::Mobile),
        NotificationKind::Stream => Some(NotificationMethod::Stream),
        NotificationKind::Email => {
            parameters.read(mail_address).map(|email| NotificationMethod::Email { email })
        }
        NotificationKind::ScheduledEmail => scheduled_email(parameters),
    };
    // Every parameter is read before the first `?`, so that all problems are reported together.
    Some(NotificationDraft {
        media_type: media_type?,
        title: title?,
        question: saved_query?,
        method: method?,
    })
}

fn parse_saved_query(
    parameters: &mut ContentParameters<'_>,
    kind: NotificationKind,
    replaces: bool,
) -> Option<SavedQuery> {
    // Parsed only to report mistakes now: the text is stored, and the matcher parses it again.
    let selection = parameters.selection();
    let q = parameters.read(|query| printable_text(query, "q"));
    let p = parameters.read(product_codes);
    // Only scheduled mails and the `PUT` of a stream accept `tr` (contract notifications-4).
    let takes_tr = match kind {
        NotificationKind::ScheduledEmail => true,
        NotificationKind::Stream => replaces,
        NotificationKind::Mobile | NotificationKind::Email => false,
    };
    let tr = if takes_tr {
        parameters.read(|query| query.variant::<RecentSpan>("tr"))
    } else {
        Some(None)
    };
    let agr = parameters.read(|query| {
        let agr = query.integers("agr")?;
        check_count("agr", agr.len()).map(|()| agr)
    });
    let selection = selection?;
    // Only their number was checked here. The ids come from the selection, which has checked that they are
    // agreements of the user.
    agr?;
    let q = q?.filter(|q| !q.is_empty());
    let tr = tr?.map(|recent| <&str>::from(recent).to_owned());
    Some(SavedQuery { q, p: p?, agr: selection.agreements, tr })
}

/// Reads the parameter `name` and refuses control characters, because mails and lists show it.
fn printable_text(query: &QueryParameters, name: &str) -> Result<Option<String>> {
    let Some(found) = query.text(name)? else { return Ok(None) };
    if found.contains(char::is_control) {
        let message = format!("{name} has a control character");
        return Err(Error::invalid("query", name, "pattern", message));
    }
    Ok(Some(found.to_owned()))
}

/// Reads the parameter `name` like [`printable_text`], with a length that fits a mail header.
fn short_text(query: &QueryParameters, name: &str) -> Result<Option<String>> {
    let Some(found) = printable_text(query, name)? else { return Ok(None) };
    if found.chars().count() > NOTIFICATION_TEXT_CHARS_MAX {
        let message = format!("{name} has more than {NOTIFICATION_TEXT_CHARS_MAX} characters");
        return Err(Error::invalid("query", name, "maximum", message));
    }
    Ok(Some(found))
}

fn required_text(query: &QueryParameters, name: &str) -> Result<String> {
    query.required(name)?;
    Ok(short_text(query, name)?.unwrap_or_default())
}

fn product_codes(query: &QueryParameters) -> Result<Vec<String>> {
    let codes = query.list("p")?;
    check_count("p", codes.len())?;
    if codes.iter().any(|code| is_invalid_code(code)) {
        let message = "p has a code with control characters, or one that is too long";
        return Err(Error::invalid("query", "p", "pattern", message));
    }
    Ok(codes.into_iter().map(str::to_owned).collect())
}

fn is_invalid_code(code: &str) -> bool {
    code.contains(char::is_control) || code.chars().count() > NOTIFICATION_TEXT_CHARS_MAX
}

fn check_count(name: &str, count: usize) -> Result<()> {
    if count <= NOTIFICATION_LIST_MAX {
        return Ok(());
    }
    let message = format!("{name} has more than {NOTIFICATION_LIST_MAX} elements");
    Err(Error::invalid("query", name, "maximum", message))
}

fn mail_address(query: &QueryParameters) -> Result<String> {
    let found = required_text(query, "email")?;
    // The address must have the form that all APIs accept, and the mailer must be able to send to it.
    if is_email(&found) && MailAddress::parse(&found).is_some() {
        return Ok(found);
    }
    let message =
        format!("email is `{}`, expected a mail address", respond::shorten_input(&found));
    Err(Error::invalid("query", "email", "format", message))
}

fn scheduled_email(parameters: &mut ContentParameters<'_>) -> Option<NotificationMethod> {
    let email = parameters.read(mail_address);
    let schedule = parameters.read(|query| required_text(query, "schedule"));
    let timezone = parameters.read(|query| short_text(query, "timezone"));
    let schedule = schedule?;
    let timezone = timezone?.unwrap_or_else(|| ZONE_DEFAULT.to_owned());
    // Parsed together, because the time zone decides whether the schedule ever runs.
    parameters.read(|_| {
        Schedule::parse(&schedule, &timezone).map(drop).map_err(|cause| {
            let name = match cause {
                ScheduleError::Zone(_) => "timezone",
                ScheduleError::Cron(_) | ScheduleError::Never => "schedule",
            };
            Error::invalid("query", name, "format", format!("{name}: {cause}"))
        })
    })?;
    Some(NotificationMethod::ScheduledEmail { email: email?, schedule, timezone })
}
