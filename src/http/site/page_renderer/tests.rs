//! Renders every template with samples of its context, so that one that names a property which its page does not
//! have, or that no page uses, is noticed.

use std::collections::{BTreeMap, BTreeSet};

use api::account::{Agreement, User};
use api::collections::{CollectionWithoutContent, RemovedCollectionItem};
use api::deliveries::{Channel, Delivery};
use api::ingest::ItemEdit;
use api::operation::{IngestError, OperatorDelivery, OutboxMessage, ServiceStatus, SlowSearch};
use api::orders::Order;
use api::organization::{Organization, PasswordLink};
use api::uploads::{MetadataTemplate, Upload};
use api::user::{Application, Device, Key, MadeKey};
use minijinja::value::Serde;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value as Json};

use super::*;

/// Names that a shared part of pages tests, and that only some pages have.
const OPTIONAL: [&str; 4] = ["alert", "collections", "count", "hits"];

/// The functions and values of the environment.
const GLOBALS: [&str; 9] = [
    "_",
    "asset",
    "item_links",
    "lang",
    "namespace",
    "picture_sources",
    "scheme",
    "selection_max",
    "zone",
];

/// Checks that the API has the object.
type ApiObjectCheck = fn(&Json);

/// The samples of API objects, without the `$` of their names, and the check that the API has such an object.
const API_OBJECTS: [(&str, ApiObjectCheck); 21] = [
    ("agreement", check_api_object::<Agreement>),
    ("application", check_api_object::<Application>),
    ("channel", check_api_object::<Channel>),
    ("collection", check_api_object::<CollectionWithoutContent>),
    ("delivery", check_api_object::<Delivery>),
    ("device", check_api_object::<Device>),
    ("edit", check_api_object::<ItemEdit>),
    ("ingest_error", check_api_object::<IngestError>),
    ("key", check_api_object::<Key>),
    ("link", check_api_object::<PasswordLink>),
    ("made_key", check_api_object::<MadeKey>),
    ("message", check_api_object::<OutboxMessage>),
    ("operator_delivery", check_api_object::<OperatorDelivery>),
    ("order", check_api_object::<Order>),
    ("organization", check_api_object::<Organization>),
    ("removed", check_api_object::<RemovedCollectionItem>),
    ("slow_search", check_api_object::<SlowSearch>),
    ("status", check_api_object::<ServiceStatus>),
    ("template", check_api_object::<MetadataTemplate>),
    ("upload", check_api_object::<Upload>),
    ("user", check_api_object::<User>),
];

/// The contexts of `samples.json`.
#[derive(Deserialize)]
struct Samples {
    /// Values by name. A text that is one of the names stands for the value. An API object `$name` has all of its
    /// properties, `$bare_name` only those that are always there.
    shared: Map<String, Json>,
    /// The properties of the page's head.
    head: Map<String, Json>,
    /// The context of each template, or a list of contexts, besides the head.
    pages: BTreeMap<String, Json>,
    /// The same for templates that are rendered without the head.
    pages_without_head: BTreeMap<String, Json>,
}

impl Samples {
    fn load() -> Self {
        serde_json::from_str(include_str!("samples.json")).unwrap()
    }

    /// Replaces the names of shared values in `value`.
    fn expand(&self, value: &Json) -> Json {
        match value {
            Json::String(text) => match self.shared.get(text) {
                Some(shared) => self.expand(shared),
                None => value.clone(),
            },
            Json::Array(values) => values.iter().map(|value| self.expand(value)).collect(),
            Json::Object(object) => Json::Object(self.expand_object(object)),
            Json::Null | Json::Bool(_) | Json::Number(_) => value.clone(),
        }
    }

    fn expand_object(&self, object: &Map<String, Json>) -> Map<String, Json> {
        object.iter().map(|(name, value)| (name.clone(), self.expand(value))).collect()
    }

    /// Lists the contexts of each page.
    fn contexts(&self) -> BTreeMap<&str, Vec<Map<String, Json>>> {
        let head = self.expand_object(&self.head);
        let without_head = Map::new();
        let pages = self.pages.iter().map(|page| (page, &head));
        let others = self.pages_without_head.iter().map(|page| (page, &without_head));
        let contexts = pages.chain(others).map(|((name, samples), head)| {
            let samples = self.expand(samples);
            let samples = samples.as_array().cloned().unwrap_or_else(|| vec![samples.clone()]);
            let contexts = samples.iter().map(|sample| {
                let mut context = head.clone();
                context.extend(sample.as_object().cloned().unwrap());
                context
            });
            (name.as_str(), contexts.collect())
        });
        contexts.collect()
    }
}

/// Checks that `sample` is an object of the type `T`, and has no other properties.
fn check_api_object<T: Serialize + DeserializeOwned>(sample: &Json) {
    let object: T = serde_json::from_value(sample.clone()).unwrap();
    assert_eq!(serde_json::to_value(object).unwrap(), *sample);
}

fn source(template: &str) -> String {
    let file = PageTemplates::get(template).unwrap();
    String::from_utf8(file.data.into_owned()).unwrap()
}

/// Adds `template`, and the templates that it extends, includes or imports, to `found`.
fn add_with_parts(template: &str, found: &mut BTreeSet<String>) {
    if !found.insert(template.to_owned()) {
        return;
    }
    for tag in source(template).split("{%").skip(1) {
        let tag = tag.trim_start_matches('-').trim_start();
        let starts = ["extends \"", "include \"", "from \""];
        let part = starts.iter().find_map(|start| tag.strip_prefix(start));
        if let Some((part, _)) = part.and_then(|part| part.split_once('"')) {
            add_with_parts(part, found);
        }
    }
}

#[test]
fn every_template_renders_with_the_context_of_its_page() {
    let mut rendered = BTreeSet::new();
    let mut failed = Vec::new();
    for language in [PageLanguage::English, PageLanguage::Swedish] {
        let environment = environment(language, &TimeZone::UTC, true).unwrap();
        for (name, contexts) in Samples::load().contexts() {
            let template = environment.get_template(name).unwrap();
            for context in contexts {
                let error = template.render(Value::from(Serde(context))).err();
                // The error names the template, the line and the expression.
                failed.extend(error.map(|error| format!("{name}: {error:#}")));
            }
            add_with_parts(name, &mut rendered);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    let all: BTreeSet<String> = PageTemplates::iter().map(|name| name.into_owned()).collect();
    assert_eq!(rendered, all, "each template has a sample, or is a part of one that has");
}

#[test]
fn a_template_names_only_what_its_page_has() {
    let environment = environment(PageLanguage::English, &TimeZone::UTC, true).unwrap();
    let samples = Samples::load();
    let mut unknown = Vec::new();
    for (page, contexts) in samples.contexts() {
        let mut known: BTreeSet<&str> = OPTIONAL.into_iter().chain(GLOBALS).collect();
        known.extend(samples.head.keys().map(String::as_str));
        known.extend(contexts.iter().flat_map(|context| context.keys().map(String::as_str)));
        let mut parts = BTreeSet::new();
        add_with_parts(page, &mut parts);
        let sources: String = parts.iter().map(|part| source(part)).collect();
        for part in &parts {
            let names = environment.get_template(part).unwrap().undeclared_variables(false);
            for name in names.iter().filter(|name| !known.contains(name.as_str())) {
                // What one part sets, the parts that it includes can read.
                if !sources.contains(&format!("set {name} ")) {
                    unknown.push(format!("{page}, {part}: {name}"));
                }
            }
        }
    }
    assert_eq!(unknown, Vec::<String>::new());
}

#[test]
fn samples_of_api_objects_are_objects_of_the_api() {
    let samples = Samples::load();
    for (name, check) in API_OBJECTS {
        for name in [format!("${name}"), format!("$bare_{name}")] {
            if let Some(sample) = samples.shared.get(&name) {
                check(&samples.expand(sample));
            }
        }
    }
}
