//! The pages of the visitor's notifications: the list, the form with its dry run, and the URL of a stream.

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::Path;
use axum::routing::{get, post};
use minijinja::{Value as PageValue, context, value::Serde};

use super::api_client::{ApiRefusal, encode_segment};
use super::notification_form::{DryRun, NotificationForm, SCHEDULES};
use super::{
    MemberForm, MemberRequest, PageError, PageResult, SiteRequest, form_refusal, not_found,
    numbered_pager, status_of, times,
};
use crate::http::AppState;
use crate::http::form::see_other;
use crate::runtime::clock;
use crate::runtime::error::Result;
use api::account::{Agreement, Product};
use api::notifications::{
    ListNotifications, Notification, NotificationMediaType, RemoveNotification,
};
use api::user::LoadCaller;
use model::account::NotificationKind;

/// Notifications per page of their list; each one costs a search.
const SITE_NOTIFICATIONS_PER_PAGE: usize = 20;
/// Sample matches that the page of a notification shows.
const SITE_DRY_RUN_ITEMS: usize = 8;
/// Sample matches of each notification in the list.
const SITE_DRY_RUN_ITEMS_LISTED: usize = 4;
/// Product codes that the notification form lists.
const SITE_PRODUCTS_SHOWN: usize = 40;

/// The request for all notifications of the caller.
pub(super) const NOTIFICATIONS: ListNotifications =
    ListNotifications { media_type: NotificationMediaType(None) };

/// The routes of the notification pages.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/notifications", get(list).post(create))
        .route("/notifications/new", get(new))
        .route("/notifications/{id}", get(show).post(save))
        .route("/notifications/{id}/delete", post(remove))
}

/// The parts of the visitor's profile that notifications need.
struct SubscriberProfile {
    email: String,
    agreements: Vec<Agreement>,
    /// Products of the agreements, each once.
    products: Vec<Product>,
}

impl SubscriberProfile {
    async fn find(member: &MemberRequest) -> Result<Self, ApiRefusal> {
        let user = member.ask(&LoadCaller {}).await?;
        let mut products: Vec<Product> = Vec::new();
        for product in user.agreements.iter().flat_map(|agreement| &agreement.products) {
            // Agreements often share products, and the form only suggests codes.
            let is_known = products.iter().any(|known| known.code == product.code);
            if products.len() < SITE_PRODUCTS_SHOWN && !is_known {
                products.push(product.clone());
            }
        }
        let email = user.base.email_address.unwrap_or_default();
        Ok(Self { email, agreements: user.agreements, products })
    }

    /// Returns the names of the agreements `ids`. An agreement that no longer exists is named by its id.
    fn names(&self, ids: &[String]) -> Vec<String> {
        let names = ids.iter().map(|id| {
            let found = self.agreements.iter().find(|agreement| agreement.id.to_string() == *id);
            let name = found.and_then(|agreement| agreement.name.as_ref());
            name.filter(|name| !name.is_empty()).unwrap_or(id).clone()
        });
        names.collect()
    }
}

/// `GET /notifications`: lists the notifications, each with the result of a dry run over the last seven days.
async fn list(member: MemberRequest) -> PageResult {
    let page = member.page_number()?;
    let profile = SubscriberProfile::find(&member).await?;
    let saved = member.ask(&NOTIFICATIONS).await?;
    // The API lists the oldest notification first and has no pages.
    let newest_first = saved.iter().rev().skip((page - 1) * SITE_NOTIFICATIONS_PER_PAGE);
    let mut rows = Vec::new();
    for notification in newest_first.take(SITE_NOTIFICATIONS_PER_PAGE) {
        rows.push(row(&member, &profile, notification).await?);
    }
    let has_more = page * SITE_NOTIFICATIONS_PER_PAGE < saved.len();
    let context = context! { rows, ..numbered_pager("/notifications", page, has_more) };
    member.page("notifications.html", context)
}

/// Describes a notification in the list, with the result of its dry run.
async fn row(
    member: &MemberRequest,
    profile: &SubscriberProfile,
    saved: &Notification,
) -> Result<PageValue, ApiRefusal> {
    // The list shows only the stored e-mail address, not the form's default.
    let fields = NotificationForm::of_saved(saved, "");
    let outcome = member.call(&fields.dry_run(SITE_DRY_RUN_ITEMS_LISTED, &tomorrow(member))).await;
    let (dry, _) = DryRun::from_outcome(&fields, outcome)?;
    let (wanted, unwanted) = fields.products();
    Ok(context! {
        id => saved.id.to_string(),
        agreements => profile.names(&fields.agr),
        wanted,
        unwanted,
        fields => Serde(fields),
        dry => Serde(dry),
    })
}

/// `GET /notifications/new`: shows the form, prefilled from the query.
async fn new(member: MemberRequest) -> PageResult {
    let profile = SubscriberProfile::find(&member).await?;
    let fields = NotificationForm::of_address(&member, &profile.email)?;
    show_form(&member, &profile, &fields, NotificationFormState::default())
}

/// The content of the form page besides its fields.
#[derive(Default)]
struct NotificationFormState<'a> {
    /// The id of the notification to change; `None` for a new one.
    id: Option<&'a str>,
    /// The API's error for the form.
    refusal: Option<ApiRefusal>,
    dry_run: Option<DryRun>,
}

fn show_form(
    member: &MemberRequest,
    profile: &SubscriberProfile,
    fields: &NotificationForm,
    shown: NotificationFormState<'_>,
) -> PageResult {
    let status = status_of(shown.refusal.as_ref());
    // Each error is shown both beside its field and above the form.
    let errors = shown.refusal.iter().flat_map(|refusal| refusal.errors.clone());
    let wrong: BTreeMap<String, String> =
        errors.map(|error| (error.path, error.message)).collect();
    let mistakes = shown.refusal.as_ref().map(ApiRefusal::sentences);
    // A stream has a URL only once it is saved.
    let stream = shown.id.filter(|_| fields.kind == "stream").map(|id| {
        let place = format!("/content/v1/{}/notification", encode_segment(&fields.media_type));
        format!("{}{place}/{}/stream", member.app.shared.site.url, encode_segment(id))
    });
    let context = context! {
        id => shown.id,
        fields => Serde(fields),
        wrong => Serde(wrong),
        mistakes => mistakes,
        dry => Serde(shown.dry_run),
        agreements => Serde(&profile.agreements),
        products => Serde(&profile.products),
        schedules => SCHEDULES.to_vec(),
        stream_url => stream,
    };
    member.page_with(status, "notification.html", context)
}

/// `POST /notifications`: creates a notification, or runs its dry run.
async fn create(posted: MemberForm) -> PageResult {
    let fields = NotificationForm::of_form(&posted.form)?;
    // The media type is part of the path of either call.
    if let Err(refusal) = fields.media_type() {
        return show_refused_form(&posted, &fields, None, refusal).await;
    }
    if posted.form.find("step") == Some("try") {
        return show_dry_run(&posted, &fields, None).await;
    }
    match fields.create(&posted).await {
        // A program reads a stream from its URL, so the visitor continues on the page that shows it (contract
        // site-33).
        Ok(created) if created.kind == NotificationKind::Stream => {
            Ok(see_other(&format!("/notifications/{}?done=created", created.id)))
        }
        Ok(_) => Ok(see_other("/notifications?done=created")),
        Err(refusal) => show_refused_form(&posted, &fields, None, refusal).await,
    }
}

/// Shows the form again with the API's error.
async fn show_refused_form(
    posted: &MemberForm,
    fields: &NotificationForm,
    id: Option<&str>,
    refusal: ApiRefusal,
) -> PageResult {
    let refusal = Some(form_refusal(refusal)?);
    let profile = SubscriberProfile::find(posted).await?;
    show_form(posted, &profile, fields, NotificationFormState { id, refusal, dry_run: None })
}

/// Returns the first day that has not begun yet in the site's time zone.
fn tomorrow(site: &SiteRequest) -> String {
    times::tomorrow(clock::now(), &site.app.shared.site.zone)
}

/// Shows the form again with the result of a dry run over the last seven days. Saves nothing.
async fn show_dry_run(
    posted: &MemberForm,
    fields: &NotificationForm,
    id: Option<&str>,
) -> PageResult {
    let call = fields.dry_run(SITE_DRY_RUN_ITEMS, &tomorrow(posted));
    let outcome = posted.call(&call).await;
    let (dry, refusal) = DryRun::from_outcome(fields, outcome)?;
    let profile = SubscriberProfile::find(posted).await?;
    // If the search was refused, the errors are shown beside the fields. An empty result would contradict them.
    let dry = refusal.is_none().then_some(dry);
    show_form(posted, &profile, fields, NotificationFormState { id, refusal, dry_run: dry })
}

/// Loads the visitor's notification `id`.
async fn load(member: &MemberRequest, id: &str) -> Result<Notification, PageError> {
    // The API has no call that returns a single notification (contract notifications-2).
    let mut saved = member.ask(&NOTIFICATIONS).await?.into_iter();
    let found = saved.find(|notification| notification.id.to_string() == id);
    found.ok_or_else(|| not_found("This notification does not exist."))
}

/// `GET /notifications/{id}`: shows the form with the saved fields.
async fn show(Path(id): Path<String>, member: MemberRequest) -> PageResult {
    let saved = load(&member, &id).await?;
    let profile = SubscriberProfile::find(&member).await?;
    let fields = NotificationForm::of_saved(&saved, &profile.email);
    let state = NotificationFormState { id: Some(&id), ..NotificationFormState::default() };
    show_form(&member, &profile, &fields, state)
}

/// `POST /notifications/{id}`: changes the notification, or runs its dry run.
async fn save(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let saved = load(&posted, &id).await?;
    let mut fields = NotificationForm::of_form(&posted.form)?;
    // Type and media type cannot be changed, so the form's values are ignored.
    let own = NotificationForm::of_saved(&saved, "");
    fields.kind = own.kind;
    fields.media_type = own.media_type;
    if posted.form.find("step") == Some("try") {
        return show_dry_run(&posted, &fields, Some(&id)).await;
    }
    match fields.replace(&posted, saved.id).await {
        Ok(_) => Ok(see_other("/notifications?done=saved")),
        Err(refusal) => show_refused_form(&posted, &fields, Some(&id), refusal).await,
    }
}

async fn remove(Path(id): Path<String>, posted: MemberForm) -> PageResult {
    let id = id.parse().map_err(|_| ApiRefusal::invalid("format", "id", "is not a UUID"))?;
    // The media type in the path does not matter if there is an id (contract notifications-3).
    posted.ask(&RemoveNotification { media_type: NotificationMediaType(None), id }).await?;
    Ok(see_other("/notifications?done=removed"))
}
