//! One operation of the document: built step by step beside its siblings, printed as OpenAPI.

#![expect(
    clippy::needless_pass_by_value,
    reason = "parts of the document are made and handed on, never kept"
)]

use serde_json::{Map, Value, json};

use super::schemas::{array, reference};
use model::account::Scope;
use model::account::Scopes;

/// The headings that operations stand below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Content,
    Notification,
    Collection,
    Search,
    User,
    Order,
    Delivery,
    Organization,
    Media,
    OAuth2,
    Ingest,
    Operator,
}

impl Tag {
    /// Every heading, in the order of the page.
    pub(super) const ALL: [Self; 12] = [
        Self::Content,
        Self::Notification,
        Self::Collection,
        Self::User,
        Self::Order,
        Self::Delivery,
        Self::Organization,
        Self::Media,
        Self::OAuth2,
        Self::Search,
        Self::Ingest,
        Self::Operator,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Content => "Content",
            Self::Notification => "Notifications",
            Self::Collection => "Collections",
            Self::Search => "Deprecated search interface",
            Self::User => "User",
            Self::Order => "Orders",
            Self::Delivery => "Deliveries",
            Self::Organization => "Organization",
            Self::Media => "Media",
            Self::OAuth2 => "OAuth2",
            Self::Ingest => "Ingest",
            Self::Operator => "Operator",
        }
    }

    pub(super) fn description(self) -> &'static str {
        match self {
            Self::Content => "Search in the archive, and new items as they come in.",
            Self::Notification => {
                "Questions that stay: new items that match are queued, mailed or pushed."
            }
            Self::Collection => {
                "Named lists of items that users keep, put in order, share and download."
            }
            Self::Search => {
                "An older search interface for callers with an application key. Use the content \
                 API instead."
            }
            Self::User => "The caller with agreements, profile, mobile devices and API keys.",
            Self::Order => "What was downloaded against an agreement, and reports on its use.",
            Self::Delivery => {
                "Delivery channels, and items on their way through them. `GET` of an item's URL \
                 with `channel` asks for one."
            }
            Self::Organization => {
                "The caller's organization. Its users are administered with the scope `admin` and \
                 the access level `admin`."
            }
            Self::Media => {
                "Items and their renditions by URL. Metadata, Previews and Thumbnails of images \
                 are open to everybody; those of other items are for callers whose search finds \
                 the item; a Hires is a purchase."
            }
            Self::OAuth2 => "Access tokens: OAuth2 with PKCE, and OpenID Connect.",
            Self::Ingest => "Items come in and go out. For callers with the role `ROLE_PROVIDER`.",
            Self::Operator => "For the operator's tools; keep them inside your network.",
        }
    }
}

/// Who may call an operation, as names of security schemes with scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everybody.
    Everybody,
    /// A caller with the scope `roles`.
    Caller,
    /// A caller whose token has the scope `profile` too.
    Profile,
    /// A caller that logged in, or whose token has every scope of a key.
    Whole,
    /// An organization's administrator with the scope `admin`.
    Admin,
    /// Some answers are open to everybody, others need a caller.
    Media,
    /// A caller, by whichever scheme media URLs know.
    MediaCaller,
    /// Photographs are found by everybody, the rest by callers, also with name and password.
    Search,
    /// The same without name and password.
    Stream,
    /// An application key in the query.
    Key,
    /// A client of the OAuth2 service.
    Client,
    /// Who holds an access token.
    Token,
}

impl Access {
    fn security(self) -> Value {
        let caller = [json!({"oauth2": ["roles"]}), json!({"bearer": []}), json!({"apiKey": []})];
        let [oauth2, bearer, key] = caller.clone();
        let (anybody, query_key) = (json!({}), json!({"ak": []}));
        match self {
            Self::Everybody => json!([]),
            Self::Caller => json!(caller),
            Self::Profile => json!([{"oauth2": ["roles", "profile"]}, bearer, key]),
            Self::Whole => {
                let needed: Vec<&str> = Scopes::of_key().iter().map(Scope::as_str).collect();
                json!([{ "oauth2": needed }, bearer])
            }
            Self::Admin => json!([{"oauth2": ["roles", "admin"]}, bearer]),
            Self::Media => json!([anybody, oauth2, bearer, key, query_key]),
            Self::MediaCaller => json!([oauth2, bearer, key, query_key]),
            Self::Search => json!([anybody, oauth2, bearer, key, {"basic": []}]),
            Self::Stream => json!([anybody, oauth2, bearer, key]),
            Self::Key => json!([query_key]),
            Self::Client => json!([{"client": []}, anybody]),
            Self::Token => json!([{"oauth2": []}, bearer]),
        }
    }
}

/// Which of our addresses an operation lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Public,
    Media,
    Auth,
}

/// An operation that is being described.
#[derive(Debug)]
pub(super) struct Operation {
    /// `get`, `put`, `post` or `delete`.
    pub(super) method: &'static str,
    /// Its address with `{names}`.
    pub(super) path: &'static str,
    pub(super) base: Base,
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
}

pub(super) fn get(path: &'static str, id: &str) -> Operation {
    Operation::new("get", path, id)
}

pub(super) fn put(path: &'static str, id: &str) -> Operation {
    Operation::new("put", path, id)
}

pub(super) fn post(path: &'static str, id: &str) -> Operation {
    Operation::new("post", path, id)
}

pub(super) fn delete(path: &'static str, id: &str) -> Operation {
    Operation::new("delete", path, id)
}

impl Operation {
    fn new(method: &'static str, path: &'static str, id: &str) -> Self {
        let mut fields = Map::new();
        fields.insert("operationId".to_owned(), json!(id));
        let (parameters, responses) = (Vec::new(), Map::new());
        Self { method, path, base: Base::Public, fields, parameters, responses }
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    /// Its heading and who may call it.
    pub(super) fn belongs(self, tag: Tag, access: Access) -> Self {
        self.set("tags", json!([tag.name()])).set("security", access.security())
    }

    /// A line and a paragraph about it.
    pub(super) fn says(self, summary: &str, description: &str) -> Self {
        self.set("summary", json!(summary)).set("description", json!(description))
    }

    /// Marks it as one that new programs should not use.
    pub(super) fn deprecated(self) -> Self {
        self.set("deprecated", json!(true))
    }

    /// Which address it lies below, where that is not the public one.
    pub(super) fn at(mut self, base: Base) -> Self {
        self.base = base;
        self
    }

    pub(super) fn takes(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    pub(super) fn takes_all(mut self, parameters: impl IntoIterator<Item = Value>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Takes a JSON body.
    pub(super) fn json_body(self, description: &str, schema: Value) -> Self {
        self.body(description, json!({ "application/json": { "schema": schema } }))
    }

    /// Takes a body in one of the types of `content`.
    pub(super) fn body(self, description: &str, content: Value) -> Self {
        let body = json!({ "required": true, "description": description, "content": content });
        self.set("requestBody", body)
    }

    /// Answers `status` with `answer`.
    pub(super) fn answers(mut self, status: u16, answer: Answer) -> Self {
        self.responses.insert(status.to_string(), answer.print());
        self
    }

    /// Answers 200 with JSON.
    pub(super) fn gives(self, description: &str, schema: Value) -> Self {
        self.answers(200, Answer::json(description, schema))
    }

    /// Answers 200 with a plain string.
    pub(super) fn gives_text(self, description: &str) -> Self {
        self.answers(200, Answer::of(description, "text/plain", json!({"type": "string"})))
    }

    /// May be refused with these statuses and the error body that is common to all.
    pub(super) fn refuses(mut self, statuses: &[u16]) -> Self {
        for status in statuses {
            let name = refusal_name(*status);
            let response = json!({ "$ref": format!("#/components/responses/{name}") });
            self.responses.insert(status.to_string(), response);
        }
        self
    }

    /// The operation as the document holds it; `servers` where they are not those of the document.
    pub(super) fn print(self, servers: Option<Value>) -> Value {
        let mut fields = self.fields;
        if let Some(servers) = servers {
            fields.insert("servers".to_owned(), servers);
        }
        if !self.parameters.is_empty() {
            fields.insert("parameters".to_owned(), Value::Array(self.parameters));
        }
        let mut responses: Vec<(String, Value)> = self.responses.into_iter().collect();
        responses.sort_by(|(one, _), (other, _)| one.cmp(other));
        fields.insert("responses".to_owned(), Value::Object(responses.into_iter().collect()));
        Value::Object(fields)
    }
}

/// An answer of an operation.
pub(super) struct Answer {
    description: String,
    content: Option<Value>,
    headers: Map<String, Value>,
}

impl Answer {
    /// One without a body.
    pub(super) fn empty(description: &str) -> Self {
        Self { description: description.to_owned(), content: None, headers: Map::new() }
    }

    /// One with a body of the media type `kind`.
    pub(super) fn of(description: &str, kind: &str, schema: Value) -> Self {
        let content = Map::from_iter([(kind.to_owned(), json!({ "schema": schema }))]);
        Self { content: Some(Value::Object(content)), ..Self::empty(description) }
    }

    pub(super) fn json(description: &str, schema: Value) -> Self {
        Self::of(description, "application/json", schema)
    }

    /// A page for people.
    pub(super) fn page(description: &str) -> Self {
        Self::of(description, "text/html", json!({"type": "string"}))
    }

    /// Bytes of the media type `kind`.
    pub(super) fn bytes(description: &str, kind: &str) -> Self {
        Self::of(description, kind, json!({ "contentMediaType": kind }))
    }

    /// The same with bytes of the media type `kind` as another possibility.
    pub(super) fn or_bytes(mut self, kind: &str) -> Self {
        if let Some(content) = &mut self.content {
            content[kind] = json!({ "schema": { "contentMediaType": kind } });
        }
        self
    }

    /// A header that comes with it.
    pub(super) fn with(self, name: &str, description: &str) -> Self {
        self.header(name, description, true)
    }

    /// A header that may come with it.
    pub(super) fn perhaps_with(self, name: &str, description: &str) -> Self {
        self.header(name, description, false)
    }

    fn header(mut self, name: &str, description: &str, required: bool) -> Self {
        let schema = json!({"type": "string"});
        let header = json!({ "description": description, "required": required, "schema": schema });
        self.headers.insert(name.to_owned(), header);
        self
    }

    pub(super) fn print(self) -> Value {
        let mut fields = Map::new();
        fields.insert("description".to_owned(), json!(self.description));
        if !self.headers.is_empty() {
            fields.insert("headers".to_owned(), Value::Object(self.headers));
        }
        if let Some(content) = self.content {
            fields.insert("content".to_owned(), content);
        }
        Value::Object(fields)
    }
}

/// Statuses of refusals with the name of the component and what they mean.
const REFUSALS: [(u16, &str, &str); 7] = [
    (400, "Invalid", "A parameter or the body breaks a rule; `errors` names each of them."),
    (401, "Unauthorized", "Credentials are missing, wrong or expired."),
    (
        403,
        "Forbidden",
        "The caller is known but may not do this; `errorCode` says why, for instance \
         `insufficient_scope`, `admin_required`, `agreement_required`, `order_required`, \
         `organization_required`, `provider_required`, `service_account_unsupported`, \
         `api_key_unsupported` or `operator_channel`.",
    ),
    (404, "NotFound", "There is no such thing, or not for this caller."),
    (409, "Conflict", "The state of things does not allow it."),
    (413, "TooLarge", "The body has more bytes than the service takes."),
    (
        503,
        "Overloaded",
        "Too much is waiting, too many logins failed, or something that the service needs is \
         away. Try again after `Retry-After`.",
    ),
];

fn refusal_name(status: u16) -> &'static str {
    let found = REFUSALS.iter().find(|(own, _, _)| *own == status);
    found.map(|(_, name, _)| *name).expect("only statuses of the table are refused with")
}

/// Statuses of refusals with the names of their components.
pub(super) fn refused_statuses() -> impl Iterator<Item = (u16, &'static str)> {
    REFUSALS.into_iter().map(|(status, name, _)| (status, name))
}

/// The components that [`Operation::refuses`] names.
pub(super) fn refusals() -> Map<String, Value> {
    let print = |(status, name, description): (u16, &str, &str)| {
        let answer = Answer::json(description, reference("Errors"));
        let answer = match status {
            401 => answer.with("WWW-Authenticate", "The schemes that are understood (RFC 9110)."),
            403 => answer.perhaps_with(
                "WWW-Authenticate",
                "Names the scope that the token lacks (RFC 6750).",
            ),
            503 => answer.with("Retry-After", "Seconds to wait."),
            _ => answer,
        };
        (name.to_owned(), answer.print())
    };
    REFUSALS.into_iter().map(print).collect()
}

/// A parameter in the path.
pub(super) fn path(name: &str, description: &str, schema: Value) -> Value {
    parameter("path", name, description, schema, true)
}

/// A parameter in the query that may be left out, or have no value.
pub(super) fn query(name: &str, description: &str, schema: Value) -> Value {
    let mut parameter = parameter("query", name, description, schema, false);
    parameter["allowEmptyValue"] = json!(true);
    parameter
}

/// A parameter in the query that must be there.
pub(super) fn required(name: &str, description: &str, schema: Value) -> Value {
    parameter("query", name, description, schema, true)
}

/// A header of the request.
pub(super) fn header(name: &str, description: &str, schema: Value) -> Value {
    parameter("header", name, description, schema, false)
}

/// A list in the query.
pub(super) fn list(name: &str, description: &str, items: Value) -> Value {
    let description = format!(
        "{description} A list: `{name}=a,b`, and as well `{name}=a&{name}=b` or \
         `{name}[]=a&{name}[]=b`."
    );
    let mut parameter = parameter("query", name, &description, array(items), false);
    parameter["style"] = json!("form");
    parameter["explode"] = json!(false);
    parameter
}

fn parameter(place: &str, name: &str, description: &str, schema: Value, required: bool) -> Value {
    json!({
        "name": name,
        "in": place,
        "required": required,
        "description": description,
        "schema": schema,
    })
}
