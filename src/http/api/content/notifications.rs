//! Notifications over HTTP (`docs/contract/notifications.md`).
//!
//! Inputs are query parameters; bodies are not looked at. With an id, any media type in the path
//! finds the notification.

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
use super::held_body::HeldBody;
use super::parameters::{self, Parameters};
use crate::access::auth::Principal;
use crate::archive::content::{Content, Form, Recent};
use crate::distribution::notifications::Draft;
use crate::distribution::notifications::json::Shown;
use crate::http::App;
use crate::http::api;
use crate::http::api::Answer;
use crate::http::api::Caller;
use crate::http::protocol::request;
use crate::http::protocol::request::Query;
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
use model::account::{NotificationKind, Question, Way};
use model::schedule::{Schedule, ScheduleError};

/// The parts of a path with an id, decoded, or why there are none.
type Named = Result<Path<(String, String)>, PathRejection>;

/// The zone of a schedule that names none (contract notifications-18).
const ZONE_DEFAULT: &str = "Europe/Stockholm";

/// The addresses of this file.
pub(super) fn routes() -> Router<App> {
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

async fn list(State(app): State<App>, Caller(caller): Caller, media_type: Segment) -> Answer {
    let text = request::segment("mediaType", media_type)?;
    let query = Query::parse("")?;
    let mut parameters = Parameters::new(&query, &app.shared.site.zone, Some(&caller));
    let media_type = parameters.media_type(&text, &parameters::STREAMED);
    let media_type = parameters.end(media_type)?;
    let found =
        app.shared.distribution.notifications.list(&caller, media_type, clock::now()).await?;
    api::json(&found.iter().map(Shown::from).collect::<Vec<_>>())
}

async fn create_mobile(state: State<App>, caller: Caller, path: Segment, uri: Uri) -> Answer {
    create(state, caller, path, uri, NotificationKind::Mobile).await
}

async fn create_email(state: State<App>, caller: Caller, path: Segment, uri: Uri) -> Answer {
    create(state, caller, path, uri, NotificationKind::Email).await
}

async fn create_scheduled(state: State<App>, caller: Caller, path: Segment, uri: Uri) -> Answer {
    create(state, caller, path, uri, NotificationKind::ScheduledEmail).await
}

async fn create_stream(state: State<App>, caller: Caller, path: Segment, uri: Uri) -> Answer {
    create(state, caller, path, uri, NotificationKind::Stream).await
}

async fn create(
    State(app): State<App>,
    Caller(caller): Caller,
    media_type: Segment,
    uri: Uri,
    kind: NotificationKind,
) -> Answer {
    let media_type = request::segment("mediaType", media_type)?;
    let draft = draft(&app, &caller, &media_type, &uri, kind, false)?;
    let made = app.shared.distribution.notifications.create(&caller, draft, clock::now()).await?;
    api::json(&Shown::from(&made))
}

async fn replace_mobile(state: State<App>, caller: Caller, path: Named, uri: Uri) -> Answer {
    replace(state, caller, path, uri, NotificationKind::Mobile).await
}

async fn replace_email(state: State<App>, caller: Caller, path: Named, uri: Uri) -> Answer {
    replace(state, caller, path, uri, NotificationKind::Email).await
}

async fn replace_scheduled(state: State<App>, caller: Caller, path: Named, uri: Uri) -> Answer {
    replace(state, caller, path, uri, NotificationKind::ScheduledEmail).await
}

async fn replace_stream(state: State<App>, caller: Caller, path: Named, uri: Uri) -> Answer {
    replace(state, caller, path, uri, NotificationKind::Stream).await
}

async fn replace(
    State(app): State<App>,
    Caller(caller): Caller,
    path: Named,
    uri: Uri,
    kind: NotificationKind,
) -> Answer {
    let (media_type, id) = named(path)?;
    let draft = draft(&app, &caller, &media_type, &uri, kind, true)?;
    let id = uuid(&id)?;
    let changed =
        app.shared.distribution.notifications.replace(&caller, id, draft, clock::now()).await?;
    api::json(&Shown::from(&changed))
}

async fn remove(State(app): State<App>, Caller(caller): Caller, path: Named) -> Answer {
    let (media_type, id) = named(path)?;
    check_media_type(&app, &media_type)?;
    app.shared.distribution.notifications.delete(&caller, uuid(&id)?).await?;
    api::text("OK")
}

async fn read_stream(
    State(app): State<App>,
    Caller(caller): Caller,
    path: Named,
    uri: Uri,
) -> Answer {
    // Nothing of the request is kept while it waits: ten thousand may.
    let Asked { id, size, form, wait } = asked(&app, path, uri)?;
    let stop = app.shared.process.stopped();
    let notifications = &app.shared.distribution.notifications;
    Ok(match notifications.read_stream(&caller, id, size, &form, wait, stop).await? {
        None => api::json_text(Content::nothing()),
        Some(handed) => answer(HeldBody::new(handed)),
    })
}

/// What a poll of a stream asks for.
struct Asked {
    id: Uuid,
    size: usize,
    form: Form<UrlLinks>,
    wait: Duration,
}

#[expect(clippy::needless_pass_by_value, reason = "what was read of it is given back at once")]
fn asked(app: &App, path: Named, uri: Uri) -> Result<Asked> {
    let (media_type, id) = named(path)?;
    let query = Query::of(&uri)?;
    let mut parameters = Parameters::new(&query, &app.shared.site.zone, None);
    let known = parameters.media_type(&media_type, &parameters::STREAMED);
    let size = parameters.keep(size);
    let layout = parameters.layout();
    let wait = parameters.keep(|query| query.integer("wait", 1..=i64::from(STREAM_POLL_S)));
    let id = parameters.keep(|_| uuid(&id));
    let given = || {
        let wait = u64::try_from(wait?.unwrap_or(i64::from(STREAM_POLL_S))).ok()?;
        known?;
        Some((id?, size?, layout?, Duration::from_secs(wait)))
    };
    let given = given();
    let (id, size, layout, wait) = parameters.end(given)?;
    let form = Form { layout, links: app.shared.media.links().clone() };
    Ok(Asked { id, size, form, wait })
}

fn answer(body: HeldBody) -> Response {
    let kind = axum::http::HeaderValue::from_static("application/json");
    let body = axum::body::Body::new(body);
    let mut response = respond::typed(axum::http::StatusCode::OK, kind, body);
    api::no_store(response.headers_mut());
    response
}

/// Items of one answer, at least one: a poll for nothing would take nothing (contract
/// notifications-8).
fn size(query: &Query) -> Result<usize> {
    let max = i64::try_from(HITS_MAX).unwrap_or(i64::MAX);
    let found = query.integer("s", 1..=max)?;
    Ok(found.and_then(|found| usize::try_from(found).ok()).unwrap_or(HITS_DEFAULT))
}

fn named(path: Named) -> Result<(String, String)> {
    let wrong = |_| Error::invalid("path", "id", "format", "the path is not UTF-8");
    path.map(|Path(parts)| parts).map_err(wrong)
}

fn uuid(text: &str) -> Result<Uuid> {
    let wrong = |_| Error::invalid("path", "id", "format", "id is not a UUID");
    Uuid::try_parse(text).map_err(wrong)
}

fn check_media_type(app: &App, text: &str) -> Result<Option<MediaType>> {
    let query = Query::parse("")?;
    let mut parameters = Parameters::new(&query, &app.shared.site.zone, None);
    let media_type = parameters.media_type(text, &parameters::STREAMED);
    parameters.end(media_type)
}

fn draft(
    app: &App,
    caller: &Principal,
    media_type: &str,
    uri: &Uri,
    kind: NotificationKind,
    replaces: bool,
) -> Result<Draft> {
    let query = Query::of(uri)?;
    let parameters = Parameters::new(&query, &app.shared.site.zone, Some(caller));
    read(parameters, media_type, kind, replaces)
}

/// What a notification says.
///
/// An empty `title` is refused, but for the `POST` of a stream (contract notifications-4).
fn read(
    mut parameters: Parameters<'_>,
    media_type: &str,
    kind: NotificationKind,
    replaces: bool,
) -> Result<Draft> {
    let media_type = parameters.media_type(media_type, &parameters::STREAMED);
    let question = question(&mut parameters, kind, replaces);
    let optional = kind == NotificationKind::Stream && !replaces;
    let title = parameters.keep(|query| match optional {
        true => Ok(line(query, "title")?.unwrap_or_default()),
        false => query.required("title").and_then(|_| needed(query, "title")),
    });
    let way = match kind {
        NotificationKind::Mobile => Some(Way::Mobile),
        NotificationKind::Stream => Some(Way::Stream),
        NotificationKind::Email => parameters.keep(email).map(|email| Way::Email { email }),
        NotificationKind::ScheduledEmail => scheduled(&mut parameters),
    };
    let given = || {
        let (media_type, title) = (media_type?, title?);
        Some(Draft { media_type, title, question: question?, way: way? })
    };
    let given = given();
    parameters.end(given)
}

fn question(
    parameters: &mut Parameters<'_>,
    kind: NotificationKind,
    replaces: bool,
) -> Option<Question> {
    let selection = parameters.selection();
    let q = parameters.keep(|query| text(query, "q"));
    let p = parameters.keep(products);
    // Only these two take `tr` (contract notifications-4).
    let takes_tr = match kind {
        NotificationKind::ScheduledEmail => true,
        NotificationKind::Stream => replaces,
        NotificationKind::Mobile | NotificationKind::Email => false,
    };
    let tr = match takes_tr {
        true => parameters.keep(|query| query.one_of("tr", &Recent::ALL)),
        false => Some(None),
    };
    let agr = parameters.keep(|query| {
        let agr = query.integers("agr")?;
        check_count("agr", agr.len()).map(|()| agr)
    });
    let (selection, q, p, tr) = (selection?, q?, p?, tr?);
    agr?;
    let word = |recent: Recent| {
        let found = Recent::ALL.into_iter().find(|(_, one)| *one == recent);
        found.map(|(word, _)| word.to_owned())
    };
    let q = q.filter(|q| !q.is_empty());
    Some(Question { q, p, agr: selection.agreements, tr: tr.and_then(word) })
}

/// The parameter `name`, without control characters: it goes into mails and lists.
fn text(query: &Query, name: &str) -> Result<Option<String>> {
    let Some(found) = query.text(name)? else { return Ok(None) };
    if found.contains(char::is_control) {
        let message = format!("{name} has a control character");
        return Err(Error::invalid("query", name, "pattern", message));
    }
    Ok(Some(found.to_owned()))
}

/// The same, of a length that a head of a mail can bear.
fn line(query: &Query, name: &str) -> Result<Option<String>> {
    let Some(found) = text(query, name)? else { return Ok(None) };
    if found.chars().count() > NOTIFICATION_TEXT_CHARS_MAX {
        let message = format!("{name} has more than {NOTIFICATION_TEXT_CHARS_MAX} characters");
        return Err(Error::invalid("query", name, "maximum", message));
    }
    Ok(Some(found))
}

fn needed(query: &Query, name: &str) -> Result<String> {
    query.required(name)?;
    Ok(line(query, name)?.unwrap_or_default())
}

fn products(query: &Query) -> Result<Vec<String>> {
    let codes = query.list("p")?;
    check_count("p", codes.len())?;
    let bad = |code: &&str| {
        code.contains(char::is_control) || code.chars().count() > NOTIFICATION_TEXT_CHARS_MAX
    };
    if codes.iter().any(bad) {
        let message = "p has a code with control characters, or one that is too long";
        return Err(Error::invalid("query", "p", "pattern", message));
    }
    Ok(codes.into_iter().map(str::to_owned).collect())
}

fn check_count(name: &str, count: usize) -> Result<()> {
    if count <= NOTIFICATION_LIST_MAX {
        return Ok(());
    }
    let message = format!("{name} has more than {NOTIFICATION_LIST_MAX} elements");
    Err(Error::invalid("query", name, "maximum", message))
}

fn email(query: &Query) -> Result<String> {
    let found = needed(query, "email")?;
    if is_email(&found) && MailAddress::parse(&found).is_some() {
        return Ok(found);
    }
    let message = format!("email is `{}`, expected a mail address", respond::shorten(&found));
    Err(Error::invalid("query", "email", "format", message))
}

fn scheduled(parameters: &mut Parameters<'_>) -> Option<Way> {
    let email = parameters.keep(email);
    let schedule = parameters.keep(|query| needed(query, "schedule"));
    let timezone = parameters.keep(|query| line(query, "timezone"));
    let (schedule, timezone) = (schedule?, timezone?);
    let timezone = timezone.unwrap_or_else(|| ZONE_DEFAULT.to_owned());
    parameters.keep(|_| {
        Schedule::parse(&schedule, &timezone).map(drop).map_err(|cause| {
            let name = match cause {
                ScheduleError::Zone(_) => "timezone",
                ScheduleError::Cron(_) | ScheduleError::Never => "schedule",
            };
            Error::invalid("query", name, "format", format!("{name}: {cause}"))
        })
    })?;
    Some(Way::ScheduledEmail { email: email?, schedule, timezone })
}
