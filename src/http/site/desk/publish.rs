//! `/desk/publish`: the form that describes uploads and publishes them. Each upload has its own fields, which are
//! filled in from its file. A template can be applied to all uploads.

use api::ingest::{ItemPath, LoadStoredItem};
use api::uploads::{
    DescribeUpload, ExistingPolicy, ListUploads, PublishUpload, Upload, UploadDescription,
    UploadPublish,
};
use axum::http::StatusCode;
use minijinja::{Value as PageValue, context, value::Serde};
use serde::Serialize;
use serde_json::{Map, Value};
use strum::IntoEnumIterator;

use super::fields::{FieldRules, FieldView, attach_errors, fields_of, is_embargoed, typed};
use super::templates::{self, FoundTemplate};
use super::{EditorForm, EditorRequest, PageError, PageResult, SiteRequest};
use crate::http::form::{FormFields, see_other};
use crate::http::site::api_client::{ApiCall, ApiRefusal};
use crate::http::site::item_summary::key_of;
use crate::runtime::clock;
use crate::runtime::limits::{SITE_PUBLISH_ITEMS_MAX, UPLOAD_PREVIEW_PX};
use model::item::{MetadataField, patch_between};
use model::{ItemKey, Size};

/// The name of the embargo, both of the document's property and of the form's field.
const EMBARGO: &str = "embargoed";

/// Returns the name of the form's field with the initial text of an upload's embargo.
fn embargo_base_name(id: &str) -> String {
    format!("base.{EMBARGO}.{id}")
}

/// An upload whose file was read.
struct DescribedUpload {
    id: String,
    /// The embargo of the existing item, if the upload becomes its next version.
    kept_embargo: Option<String>,
    description: UploadDescription,
}

/// An upload in the form.
#[derive(Default, Serialize)]
struct UploadCard {
    id: String,
    name: String,
    /// The key of the item that the upload becomes, if known.
    item: Option<String>,
    exists: bool,
    /// The editor's choice if the item already exists.
    existing: String,
    /// The embargo of the existing item, while it holds.
    kept_embargo: Option<String>,
    /// The initial text of the embargo field, if known.
    embargo_base: Option<String>,
    preview: Option<PreviewPicture>,
    pixels: Option<String>,
    warnings: Vec<String>,
    fields: Vec<FieldView>,
    errors: Vec<String>,
}

/// The preview picture of an upload, with its size in pixels.
#[derive(Serialize)]
struct PreviewPicture {
    url: String,
    width: u32,
    height: u32,
}

impl PreviewPicture {
    fn from_description(id: &str, description: &UploadDescription) -> Option<Self> {
        let whole = Size { width: description.width?, height: description.height? };
        let Size { width, height } = whole.fit_within(UPLOAD_PREVIEW_PX);
        Some(Self { url: format!("/desk/uploads/{id}/preview"), width, height })
    }
}

/// The page with the form for several uploads.
#[derive(Default)]
struct PublishPage {
    cards: Vec<UploadCard>,
    /// The names and errors of uploads that the form cannot show, because their files were refused or deleted.
    refused: Vec<PageValue>,
    /// Items that have been published.
    published: Vec<String>,
    /// Number of uploads that were dropped because of the limit of one form.
    left_out: usize,
    /// The template that was applied to the fields.
    applied: Option<String>,
}

impl PublishPage {
    async fn show(self, site: &SiteRequest, status: StatusCode) -> PageResult {
        let is_refused = status != StatusCode::OK || !self.refused.is_empty();
        let context = context! {
            cards => Serde(self.cards),
            refused => self.refused,
            published => self.published,
            left_out => self.left_out,
            is_refused => is_refused,
            applied => self.applied,
            templates => templates::choices(site).await?,
        };
        site.page_with(status, "desk/publish.html", context)
    }

    fn refuse(&mut self, name: String, refusal: &ApiRefusal) {
        self.refused.push(context! { name, errors => refusal.sentences() });
    }
}

/// Returns the distinct ids in order, at most as many as one form can hold, and the number of dropped ids.
fn parse_ids<'a>(named: impl IntoIterator<Item = &'a str>) -> (Vec<String>, usize) {
    let mut ids: Vec<String> = Vec::new();
    for id in named {
        if !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    let left_out = ids.len().saturating_sub(SITE_PUBLISH_ITEMS_MAX);
    ids.truncate(SITE_PUBLISH_ITEMS_MAX);
    (ids, left_out)
}

/// Reads the file of an upload. An expired session is an error of the page; every other refusal is an error of
/// this upload alone.
async fn describe(
    site: &SiteRequest,
    id: &str,
) -> Result<Result<DescribedUpload, ApiRefusal>, PageError> {
    match load(site, id).await {
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal.into()),
        described => Ok(described),
    }
}

/// Loads the metadata in the file of an upload, and the embargo of the item that it would replace.
async fn load(site: &SiteRequest, id: &str) -> Result<DescribedUpload, ApiRefusal> {
    let description = site.ask(&DescribeUpload { id: id.to_owned() }).await?;
    let mut upload = DescribedUpload { id: id.to_owned(), kept_embargo: None, description };
    if let Some(key) = upload.item().filter(|_| upload.description.exists) {
        let item = site.ask(&LoadStoredItem { item: ItemPath::new(&key) }).await?.value;
        upload.kept_embargo = item.get(EMBARGO).and_then(Value::as_str).map(str::to_owned);
    }
    Ok(upload)
}

impl DescribedUpload {
    /// Returns the key of the item that the upload becomes, if known.
    fn item(&self) -> Option<ItemKey> {
        let id = self.description.id.clone()?;
        Some(ItemKey::new(self.description.media_type, id))
    }

    /// Returns the card that shows the upload in the form.
    fn card(&self, name: &str, existing: &str, fields: Vec<FieldView>) -> UploadCard {
        let pixels = self.description.width.zip(self.description.height);
        let now = clock::now();
        let embargo = fields.iter().find(|field| field.name == EMBARGO);
        UploadCard {
            id: self.id.clone(),
            name: name.to_owned(),
            item: self.item().map(|key| key.to_string()),
            exists: self.description.exists,
            existing: existing.to_owned(),
            kept_embargo: self.kept_embargo.clone().filter(|end| is_embargoed(end, now)),
            embargo_base: embargo.map(|field| field.base.clone()),
            preview: PreviewPicture::from_description(&self.id, &self.description),
            pixels: pixels.map(|(width, height)| format!("{width} × {height}")),
            warnings: self.description.warnings.clone(),
            fields,
            errors: Vec::new(),
        }
    }

    /// Returns the properties that the form shows initially: the file's properties, with the embargo of the
    /// existing item, which its next version keeps.
    fn shown_document(&self) -> Map<String, Value> {
        let mut document = self.description.document.clone();
        if let Some(embargo) = &self.kept_embargo {
            document.insert(EMBARGO.to_owned(), Value::from(embargo.as_str()));
        }
        document
    }

    /// Returns the typed text of a field; `None` if the form does not have the field.
    fn typed<'a>(&self, field: MetadataField, form: &'a FormFields) -> Option<&'a str> {
        form.find_untrimmed(&format!("{}.{}", field.as_str(), self.id))
    }

    /// Returns the embargo that the editor entered, empty if they cleared it; `None` if they did not change the
    /// field.
    fn entered_embargo<'a>(&self, form: &'a FormFields, rules: &FieldRules) -> Option<&'a str> {
        let field = MetadataField::Embargo;
        let typed = self.typed(field, form)?;
        let base = form.find_untrimmed(&embargo_base_name(&self.id)).map(str::to_owned);
        let base = base.unwrap_or_else(|| rules.text(field, &self.description.document));
        (field.normalize(typed) != field.normalize(&base)).then_some(typed)
    }

    /// Returns the fields with the typed values.
    fn typed_views(&self, form: &FormFields, rules: &FieldRules) -> Vec<FieldView> {
        let shown = self.shown_document();
        let mut views = Vec::new();
        for field in fields_of(self.description.media_type) {
            let own = rules.text(field, &shown);
            // If the editor did not change the embargo, the field shows the item's current embargo.
            let typed = if field == MetadataField::Embargo {
                self.entered_embargo(form, rules)
            } else {
                self.typed(field, form)
            };
            let text = typed.map_or_else(|| own.clone(), str::to_owned);
            views.push(rules.view(field, text, own));
        }
        views
    }

    /// Returns the merge patch for the file's properties.
    fn patch(
        &self,
        form: &FormFields,
        rules: &FieldRules,
        existing: ExistingPolicy,
    ) -> Map<String, Value> {
        let mut changed = self.description.document.clone();
        let fields = fields_of(self.description.media_type);
        for field in fields.filter(|field| *field != MetadataField::Embargo) {
            if let Some(text) = self.typed(field, form) {
                rules.write(field, &mut changed, text);
            }
        }
        let mut patch = patch_between(&self.description.document, &changed);
        let embargo = self.embargo_change(form, rules, existing);
        patch.extend(embargo.map(|embargo| (EMBARGO.to_owned(), embargo)));
        patch
    }

    /// Returns the value of the embargo in the merge patch, `null` to clear it; `None` keeps the embargo that the
    /// item has at that time.
    fn embargo_change(
        &self,
        form: &FormFields,
        rules: &FieldRules,
        existing: ExistingPolicy,
    ) -> Option<Value> {
        match self.entered_embargo(form, rules) {
            Some(text) => {
                let text = rules.stored_text(MetadataField::Embargo, text);
                Some(if text.is_empty() { Value::Null } else { Value::from(text) })
            }
            None if existing == ExistingPolicy::Replace => None,
            // The form showed the embargo of the existing item. A new item does not inherit it, so it is written.
            None => self.kept_embargo.clone().map(Value::from),
        }
    }
}

/// Returns a card with the typed values of an upload whose file cannot be read at present; `None` if the form has
/// no fields for it.
fn typed_card(id: &str, name: &str, form: &FormFields, rules: &FieldRules) -> Option<UploadCard> {
    let mut fields = Vec::new();
    for field in MetadataField::iter() {
        let Some(text) = form.find_untrimmed(&format!("{}.{id}", field.as_str())) else {
            continue;
        };
        fields.push(rules.view(field, text.to_owned(), text.to_owned()));
    }
    if fields.is_empty() {
        return None;
    }
    // Only the card of an existing item has this field.
    let existing = form.find_untrimmed(&format!("existing.{id}"));
    Some(UploadCard {
        id: id.to_owned(),
        name: name.to_owned(),
        exists: existing.is_some(),
        existing: existing.unwrap_or_default().to_owned(),
        embargo_base: form.find_untrimmed(&embargo_base_name(id)).map(str::to_owned),
        fields,
        ..UploadCard::default()
    })
}

/// Returns the URL of the form for the uploads `ids`. `left_out` is the number of chosen uploads beyond the limit.
fn form_address(ids: &[String], left_out: usize) -> String {
    let left_out = (left_out > 0).then(|| left_out.to_string());
    let uploads = ids.iter().map(|id| ("upload", Some(id.as_str())));
    ApiCall::get("/desk/publish").query(uploads.chain([("more", left_out.as_deref())])).target
}

/// `POST /desk/uploads/publish`: redirects to the form for the uploads that are ticked in the list. The list is
/// sent by `POST`, because a URL with all uploads would be too long for proxies.
pub(super) async fn choose(posted: EditorForm) -> PageResult {
    let (ids, left_out) = parse_ids(posted.form.all("upload"));
    Ok(see_other(&form_address(&ids, left_out)))
}

/// `GET /desk/publish?upload=…`: shows the form for several uploads.
pub(super) async fn show(editor: EditorRequest) -> PageResult {
    let (ids, beyond) = parse_ids(editor.query.all("upload")?);
    let left_out = beyond + editor.count_parameter("more")?;
    if ids.is_empty() {
        return Ok(see_other("/desk/upload"));
    }
    let rules = FieldRules::new(&editor);
    let uploads = editor.ask(&ListUploads {}).await?;
    let mut page = PublishPage { left_out, ..PublishPage::default() };
    for id in &ids {
        match describe(&editor, id).await? {
            Ok(upload) => {
                let views = rules.views(upload.description.media_type, &upload.shown_document());
                page.cards.push(upload.card(&file_name(&uploads, id), "refuse", views));
            }
            Err(refusal) => page.refuse(file_name(&uploads, id), &refusal),
        }
    }
    page.show(&editor, StatusCode::OK).await
}

/// Finds the file name of the upload `id`; empty if the upload has been deleted.
fn file_name(uploads: &[Upload], id: &str) -> String {
    let found = uploads.iter().find(|upload| upload.id.to_string() == id);
    found.map(|upload| upload.file_name.clone()).unwrap_or_default()
}

/// `POST /desk/publish`: publishes the uploads of the form, or applies a template to their fields.
pub(super) async fn publish(posted: EditorForm) -> PageResult {
    let (ids, left_out) = parse_ids(posted.form.all("upload"));
    let rules = FieldRules::new(&posted);
    let uploads = posted.ask(&ListUploads {}).await?;
    let template = match posted.form.find("apply") {
        Some(_) => Some(templates::find_posted(&posted).await?),
        None => None,
    };
    let mut page = PublishPage { left_out, ..PublishPage::default() };
    for id in &ids {
        let upload = match describe(&posted, id).await? {
            Ok(upload) => upload,
            Err(refusal) => {
                let typed = typed_card(id, &file_name(&uploads, id), &posted.form, &rules);
                match typed.filter(|_| refusal.status != StatusCode::NOT_FOUND) {
                    Some(mut card) => {
                        apply(template.as_ref().and_then(Option::as_ref), &mut card.fields);
                        card.errors = refusal.sentences();
                        page.cards.push(card);
                    }
                    None => page.refuse(file_name(&uploads, id), &refusal),
                }
                continue;
            }
        };
        let existing = typed(&posted.form, &format!("existing.{id}"));
        let views = upload.typed_views(&posted.form, &rules);
        let mut card = upload.card(&file_name(&uploads, id), existing, views);
        match &template {
            Some(template) => {
                apply(template.as_ref(), &mut card.fields);
                page.cards.push(card);
            }
            None => publish_one(&posted, &upload, card, &rules, &mut page).await?,
        }
    }
    if page.cards.is_empty() && page.refused.is_empty() {
        let published = page.published.iter().map(|key| ("published", Some(key.as_str())));
        let more = [("done", Some("published"))];
        return Ok(see_other(
            &ApiCall::get("/desk/upload").query(more.into_iter().chain(published)).target,
        ));
    }
    let status = match template {
        Some(_) => StatusCode::OK,
        None => StatusCode::BAD_REQUEST,
    };
    page.applied = template.flatten().map(|template| template.name);
    page.show(&posted, status).await
}

/// Applies a template to the fields of a card.
fn apply(template: Option<&FoundTemplate>, fields: &mut [FieldView]) {
    let Some(template) = template else { return };
    for view in fields {
        let Ok(field) = view.name.parse::<MetadataField>() else { continue };
        if let Some(edit) = template.fields.find(field) {
            view.value = edit.result(field, &view.value);
        }
    }
}

/// Publishes one upload. If it is refused, its card stays on the page.
async fn publish_one(
    posted: &EditorForm,
    upload: &DescribedUpload,
    mut card: UploadCard,
    rules: &FieldRules,
    page: &mut PublishPage,
) -> Result<(), PageError> {
    let existing = match card.existing.as_str() {
        "replace" => ExistingPolicy::Replace,
        "new" => ExistingPolicy::New,
        _ => ExistingPolicy::Refuse,
    };
    let document = upload.patch(&posted.form, rules, existing);
    let sent = UploadPublish { id: None, existing, document };
    let publish = PublishUpload { id: upload.id.clone(), template: None };
    match posted.send(&publish, &sent).await {
        Ok(item) => {
            page.published.extend(key_of(&item.uri).map(|key| key.to_string()));
            Ok(())
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => Err(refusal.into()),
        Err(refusal) => {
            card.exists |= refusal.status == StatusCode::CONFLICT;
            card.errors = attach_errors(&mut card.fields, &refusal);
            page.cards.push(card);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{ItemId, MediaType};
    use serde_json::json;

    use super::*;

    #[test]
    fn each_upload_is_named_once_and_a_form_holds_so_many() {
        let many: Vec<String> = (0..SITE_PUBLISH_ITEMS_MAX + 3).map(|at| at.to_string()).collect();
        let (ids, left_out) = parse_ids(many.iter().map(String::as_str).chain(["0", "1"]));
        assert_eq!((ids.len(), left_out), (SITE_PUBLISH_ITEMS_MAX, 3));
        assert_eq!(parse_ids(["b", "a", "b"]), (vec!["b".to_owned(), "a".to_owned()], 0));
        let ids = ["b".to_owned(), "a".to_owned()];
        assert_eq!(form_address(&ids, 0), "/desk/publish?upload=b&upload=a");
        assert_eq!(form_address(&ids[..1], 165), "/desk/publish?upload=b&more=165");
    }

    #[test]
    fn what_was_typed_stays_when_the_file_cannot_be_read() {
        let form = "headline.7=Snow&byline.7=&existing.7=new&headline.8=Other";
        let form = FormFields::parse(form).unwrap();
        let rules = FieldRules::for_tests();
        let card = typed_card("7", "ice.jpg", &form, &rules).unwrap();
        let fields: Vec<_> =
            card.fields.iter().map(|view| (view.name, view.value.as_str())).collect();
        assert_eq!(fields.len(), 2);
        assert!(fields.contains(&("headline", "Snow")) && fields.contains(&("byline", "")));
        assert_eq!((card.exists, card.existing.as_str()), (true, "new"));
        assert!(typed_card("9", "sea.jpg", &form, &rules).is_none());
    }

    fn upload(document: &Value, kept_embargo: Option<&str>) -> DescribedUpload {
        let description = UploadDescription {
            media_type: MediaType::Image,
            exists: true,
            document: document.as_object().unwrap().clone(),
            warnings: Vec::new(),
            id: Some(ItemId::parse("ice").unwrap()),
            width: Some(6000),
            height: Some(4000),
        };
        let kept_embargo = kept_embargo.map(str::to_owned);
        DescribedUpload { id: "7".to_owned(), kept_embargo, description }
    }

    #[test]
    fn only_what_differs_from_the_file_is_sent() {
        let document = json!({ "headline": "Ice", "byline": "Ada", "source": "Agency" });
        let upload = upload(&document, None);
        let form = FormFields::parse("headline.7=Snow&byline.7=Ada&headline.8=Other").unwrap();
        let rules = FieldRules::for_tests();
        let patch = Value::Object(upload.patch(&form, &rules, ExistingPolicy::Refuse));
        assert_eq!(patch, json!({ "headline": "Snow" }));
        let card = upload.card("ice.jpg", "refuse", upload.typed_views(&form, &rules));
        assert_eq!((card.item.as_deref(), card.exists), (Some("image/ice"), true));
        let preview = card.preview.unwrap();
        assert_eq!((preview.width, preview.height), (UPLOAD_PREVIEW_PX, 341));
    }

    #[test]
    fn the_embargo_of_an_item_is_changed_only_by_its_editor() {
        let kept = "2035-01-31T11:00:30Z";
        let upload = upload(&json!({ "headline": "Ice" }), Some(kept));
        let rules = FieldRules::for_tests();
        let check = |form: &str, existing: ExistingPolicy, expected: Value| {
            let form = FormFields::parse(form).unwrap();
            let patch = Value::Object(upload.patch(&form, &rules, existing));
            assert_eq!(patch, expected, "{existing:?} {form:?}");
        };
        let form = |typed: &str| format!("base.embargoed.7=2035-01-31T12:00&embargoed.7={typed}");
        let untouched = form("2035-01-31T12:00");
        check(&untouched, ExistingPolicy::Replace, json!({}));
        check(&untouched, ExistingPolicy::New, json!({ "embargoed": kept }));
        for existing in [ExistingPolicy::Replace, ExistingPolicy::New] {
            check(&form(""), existing, json!({ "embargoed": null }));
            let later = json!({ "embargoed": "2035-07-01T08:30:00+02:00" });
            check(&form("2035-07-01T08:30"), existing, later);
        }
        // A form from before the item existed did not show the embargo.
        check("embargoed.7=", ExistingPolicy::Replace, json!({}));
    }

    #[test]
    fn an_embargo_that_was_left_as_it_was_follows_the_item() {
        let upload = upload(&json!({}), Some("2035-01-31T11:00:00Z"));
        let rules = FieldRules::for_tests();
        let check = |typed: &str, expected: &str| {
            let form = format!("base.embargoed.7=2034-12-24T18:00&embargoed.7={typed}");
            let views = upload.typed_views(&FormFields::parse(&form).unwrap(), &rules);
            let view = views.iter().find(|view| view.name == EMBARGO).unwrap();
            let found = (view.value.as_str(), view.base.as_str());
            assert_eq!(found, (expected, "2035-01-31T12:00"), "{typed}");
        };
        check("2034-12-24T18:00", "2035-01-31T12:00");
        check("", "");
        check("2036-01-01T00:00", "2036-01-01T00:00");
    }
}
