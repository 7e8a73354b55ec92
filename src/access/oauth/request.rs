//! Authorization requests: parses the parameters of a client, and checks that the client may request them
//! (RFC 6749 §4.1.1 and §4.2.1, RFC 7636, OpenID Connect Core §3.1.2.1).

use std::fmt;

use strum::{EnumString, IntoStaticStr, VariantNames};

use super::error::{AuthorizationError, OAuthErrorCode, description};
use super::parameters::OAuthParameters;
use super::redirect_response::{self, ResponseMode};
use crate::runtime::limits::ECHO_BYTES_MAX;
use model::account::{GrantType, OAuthClient, Scope, ScopeSet};

/// Maximum number of characters of the request that an error message repeats.
const SHOWN_CHARS_MAX: usize = 80;
/// Characters of an S256 code challenge: 32 bytes as base64url.
const CHALLENGE_CHARS: usize = 43;

/// The parameters that determine the address of the response.
const ADDRESSING: [&str; 2] = ["client_id", "redirect_uri"];
/// The other known parameters. A request that repeats one of them is refused.
const KNOWN: [&str; 12] = [
    "response_type",
    "response_mode",
    "scope",
    "state",
    "nonce",
    "prompt",
    "max_age",
    "code_challenge",
    "code_challenge_method",
    "request",
    "request_uri",
    "registration",
];

/// A screen that a client asks the provider to show to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Prompt {
    /// Show nothing, even if that means an error.
    None,
    /// Show the login, even if the user is logged in.
    Login,
    /// Show the consent, even if it was given before.
    Consent,
    /// Show a choice of accounts.
    SelectAccount,
}

/// The kind of response that a client requests, by the tokens in it; consent is stored under its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[derive(EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum ResponseType {
    Code,
    Token,
    IdToken,
    /// The words may have any order.
    #[strum(to_string = "id_token token", serialize = "token id_token")]
    IdTokenAndToken,
}

model::impl_as_str!(ResponseType);

impl ResponseType {
    fn grant(self) -> GrantType {
        match self {
            Self::Code => GrantType::AuthorizationCode,
            Self::Token | Self::IdToken | Self::IdTokenAndToken => GrantType::Implicit,
        }
    }

    pub(super) fn has_token(self) -> bool {
        matches!(self, Self::Token | Self::IdTokenAndToken)
    }

    pub(super) fn has_id_token(self) -> bool {
        matches!(self, Self::IdToken | Self::IdTokenAndToken)
    }
}

/// A request of a known client for an authorization, to be answered at a registered address.
#[derive(Clone)]
pub struct AuthorizationRequest {
    /// The identifier of the client.
    pub client_id: String,
    /// The display name of the client.
    pub client_name: String,
    /// The address of the response: a registered address of the client, with the port of the request if it is a
    /// loopback address.
    pub redirect_uri: String,
    /// The requested scopes; `roles` if the request names no scope.
    pub scopes: ScopeSet,
    /// The screens that the client asks the provider to show.
    pub prompt: Vec<Prompt>,
    /// Seconds since the login after which the user must log in again.
    pub max_age_s: Option<u64>,
    /// True if the scopes of the client are enforced.
    pub scopes_enforced: bool,
    pub(super) response_type: ResponseType,
    /// True if consent is needed each time, even if it was given before, because a different program on the
    /// user's machine could receive the response (RFC 8252 §8.6).
    pub(super) asks_each_time: bool,
    /// Lifetime of the client's access tokens in seconds, if it is shorter than the general lifetime.
    pub(super) access_token_s: Option<u32>,
    /// True if the request named its redirect address; then the exchange of the code must name it, too.
    pub(super) named_redirect_uri: bool,
    pub(super) nonce: Option<String>,
    pub(super) challenge: Option<String>,
    mode: ResponseMode,
    state: Option<String>,
}

impl fmt::Debug for AuthorizationRequest {
    /// Leaves out the values that only the client should know: state, nonce and challenge.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationRequest")
            .field("client_id", &self.client_id)
            .field("redirect_uri", &self.redirect_uri)
            .field("scopes", &self.scopes.to_string())
            .field("prompt", &self.prompt)
            .field("max_age_s", &self.max_age_s)
            .field("response_type", &self.response_type)
            .finish_non_exhaustive()
    }
}

/// The reason why a client whose redirect address is valid is refused.
struct AuthorizationRefusal(OAuthErrorCode, String);

fn refuse<T>(code: OAuthErrorCode, text: impl Into<String>) -> Result<T, AuthorizationRefusal> {
    Err(AuthorizationRefusal(code, text.into()))
}

/// Returns the client id of a request.
pub(super) fn client_id(parameters: &OAuthParameters) -> Result<&str, AuthorizationError> {
    if let Some(name) = parameters.find_repeated(&ADDRESSING) {
        return page(&format!("The parameter {name} is given more than once."));
    }
    match parameters.find("client_id") {
        Some(client_id) => Ok(client_id),
        None => page("The parameter client_id is missing."),
    }
}

/// Returns the error for a client that is unknown or not active.
pub(super) fn unknown_client<T>(client_id: &str) -> Result<T, AuthorizationError> {
    let shown: String = client_id.chars().take(SHOWN_CHARS_MAX).collect();
    page(&format!("There is no application {shown}."))
}

fn page<T>(message: &str) -> Result<T, AuthorizationError> {
    Err(AuthorizationError::Page(message.to_owned()))
}

/// Parses the request of `client`, which is active.
///
/// Errors are [`AuthorizationError::Page`] until the redirect address has been verified, and
/// [`AuthorizationError::Redirect`] afterwards.
pub fn parse(
    parameters: &OAuthParameters,
    client: &OAuthClient,
    issuer: &str,
) -> Result<AuthorizationRequest, AuthorizationError> {
    let redirect_uri = redirect_uri(parameters, client)?;
    let is_https = redirect_uri.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let words: Vec<_> = parameters.find("response_type").unwrap_or("code").split(' ').collect();
    // Responses for a page of the client, including errors, are put after `#`, even if the words
    // are not a response type of this provider (OAuth 2.0 Multiple Response Types §5).
    let is_for_page = words.iter().any(|word| matches!(*word, "token" | "id_token"));
    let requested_mode = parameters.find("response_mode");
    let mode = if is_for_page || requested_mode == Some("fragment") {
        ResponseMode::Fragment
    } else {
        ResponseMode::Query
    };
    // A repeated `state` is ambiguous and is not echoed.
    let is_echoed = parameters.find_repeated(&["state"]).is_none();
    let state = parameters.find("state").filter(|_| is_echoed);
    // A `state` that is too long is refused below, and the refusal must not repeat it.
    let state = state.filter(|state| state.len() <= ECHO_BYTES_MAX).map(str::to_owned);
    // Complete enough to send errors: errors of `fill` are sent to the client with mode and state.
    let mut request = AuthorizationRequest {
        client_id: client.client_id.clone(),
        client_name: client.name.clone(),
        redirect_uri,
        scopes: ScopeSet::NONE,
        prompt: Vec::new(),
        max_age_s: None,
        scopes_enforced: client.scopes_enforced,
        response_type: ResponseType::Code,
        asks_each_time: client.is_public() && !is_https,
        access_token_s: client.access_token_s,
        named_redirect_uri: parameters.find("redirect_uri").is_some(),
        nonce: None,
        challenge: None,
        mode,
        state,
    };
    match request.fill(parameters, client) {
        Ok(()) => Ok(request),
        Err(AuthorizationRefusal(code, text)) => {
            Err(AuthorizationError::Redirect(request.refusal(issuer, code, &text)))
        }
    }
}

/// Returns the redirect address, which must be a registered address of the client ([`is_registered`]).
fn redirect_uri(
    parameters: &OAuthParameters,
    client: &OAuthClient,
) -> Result<String, AuthorizationError> {
    let found = match (parameters.find("redirect_uri"), client.redirect_uris.as_slice()) {
        (Some(requested), registered) => {
            registered.iter().any(|uri| is_registered(uri, requested)).then_some(requested)
        }
        // A single registered address need not be named (RFC 6749 §3.1.2.3).
        (None, [only]) => Some(only.as_str()),
        (None, _) => return page("The parameter redirect_uri is missing."),
    };
    match found {
        Some(uri) if redirect_response::is_usable(uri) => Ok(uri.to_owned()),
        Some(_) => page("The redirect address is not valid."),
        None => page("This application may not use this redirect address."),
    }
}

/// Starts of addresses at which a program on the user's own machine listens. Not `localhost`, which can be resolved to
/// a different machine (RFC 8252 §8.3).
const LOOPBACK_STARTS: [&str; 2] = ["http://127.0.0.1", "http://[::1]"];

/// Returns whether `requested` equals the address `registered` as text, except for the port of a loopback address:
/// a program gets a free port from its system each time it listens (RFC 8252 §7.3, RFC 9700 §2.1).
fn is_registered(registered: &str, requested: &str) -> bool {
    registered == requested
        || without_loopback_port(registered)
            .is_some_and(|address| without_loopback_port(requested) == Some(address))
}

/// Returns start and path of a loopback address, without the port between them; `None` for any other address.
fn without_loopback_port(uri: &str) -> Option<(&str, &str)> {
    let start = LOOPBACK_STARTS.into_iter().find(|start| uri.starts_with(*start))?;
    let rest = &uri[start.len()..];
    let (port, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    // Anything else here continues the name of a host or is a user name.
    let is_port = port.strip_prefix(':').map_or(port.is_empty(), is_port_number);
    is_port.then_some((start, path))
}

fn is_port_number(text: &str) -> bool {
    // `parse` would accept a leading `+`.
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

impl AuthorizationRequest {
    fn fill(
        &mut self,
        parameters: &OAuthParameters,
        client: &OAuthClient,
    ) -> Result<(), AuthorizationRefusal> {
        use OAuthErrorCode::{
            InvalidRequest, RegistrationNotSupported, RequestNotSupported, RequestUriNotSupported,
            UnauthorizedClient, UnsupportedResponseType,
        };
        if let Some(name) = parameters.find_repeated(&KNOWN) {
            return refuse(InvalidRequest, format!("{name} is given more than once"));
        }
        for (name, code) in [
            // Ignoring one of them would authorize a different request than the client meant.
            ("request", RequestNotSupported),
            ("request_uri", RequestUriNotSupported),
            ("registration", RegistrationNotSupported),
        ] {
            if parameters.find(name).is_some() {
                return refuse(code, format!("{name} is not supported"));
            }
        }
        let Some(response_type) = parameters.find("response_type") else {
            return refuse(InvalidRequest, "response_type is missing");
        };
        let Ok(response_type) = response_type.parse::<ResponseType>() else {
            return refuse(UnsupportedResponseType, "the response_type is unknown");
        };
        self.response_type = response_type;
        if !client.allows(response_type.grant()) {
            let text = "the client may not use this response_type";
            return refuse(UnauthorizedClient, text);
        }
        self.check_mode(parameters)?;
        self.fill_echoes(parameters)?;
        self.scopes = scopes(parameters)?;
        if let Some(prompt) = parameters.find("prompt") {
            let Some(prompt) = prompts(prompt) else {
                let text =
                    "prompt must be none alone, or a list of login, consent and select_account";
                return refuse(InvalidRequest, text);
            };
            self.prompt = prompt;
        }
        if let Some(max_age) = parameters.find("max_age") {
            // `parse` would accept a leading `+`.
            let digits = max_age.bytes().all(|byte| byte.is_ascii_digit());
            let Some(max_age_s) = max_age.parse().ok().filter(|_| digits) else {
                return refuse(InvalidRequest, "max_age is not a number of seconds");
            };
            self.max_age_s = Some(max_age_s);
        }
        // PKCE binds a code to its client; the implicit grant has no code.
        if response_type == ResponseType::Code {
            self.challenge = challenge(parameters, client)?;
        }
        Ok(())
    }

    /// Checks `response_mode`. A token must never be in a query, where servers would log it.
    fn check_mode(&self, parameters: &OAuthParameters) -> Result<(), AuthorizationRefusal> {
        let code = OAuthErrorCode::InvalidRequest;
        match (parameters.find("response_mode"), self.response_type) {
            (None | Some("fragment"), _) | (Some("query"), ResponseType::Code) => Ok(()),
            (Some("query"), _) => refuse(code, "response_mode query cannot carry tokens"),
            (Some(_), _) => refuse(code, "response_mode must be query or fragment"),
        }
    }

    fn fill_echoes(&mut self, parameters: &OAuthParameters) -> Result<(), AuthorizationRefusal> {
        let code = OAuthErrorCode::InvalidRequest;
        for name in ["state", "nonce"] {
            if parameters.find(name).is_some_and(|value| value.len() > ECHO_BYTES_MAX) {
                return refuse(code, format!("{name} is longer than {ECHO_BYTES_MAX} bytes"));
            }
        }
        self.nonce = parameters.find("nonce").map(str::to_owned);
        // The nonce protects an id token in a redirect from replay (OpenID Connect Core §3.2.2.1).
        if self.nonce.is_none() && self.response_type.has_id_token() {
            return refuse(code, "nonce is missing, which this response_type needs");
        }
        Ok(())
    }

    /// Returns the redirect address with `pairs` and the parameters of every response: `state`, and `iss`, by
    /// which the client identifies the issuer (RFC 9207).
    pub(super) fn address<'a>(
        &'a self,
        issuer: &'a str,
        mut pairs: Vec<(&'a str, &'a str)>,
    ) -> String {
        if let Some(state) = &self.state {
            pairs.push(("state", state));
        }
        pairs.push(("iss", issuer));
        redirect_response::redirect_url(&self.redirect_uri, self.mode, &pairs)
    }

    /// Returns the redirect address with an error.
    pub(super) fn refusal(&self, issuer: &str, code: OAuthErrorCode, text: &str) -> String {
        let description = description(text);
        let pairs = vec![("error", code.as_str()), ("error_description", description.as_str())];
        self.address(issuer, pairs)
    }
}

/// Parses the scopes. A request without `scope` gets `roles`, which every API needs (contract login-12).
fn scopes(parameters: &OAuthParameters) -> Result<ScopeSet, AuthorizationRefusal> {
    let scopes = ScopeSet::parse(parameters.find("scope").unwrap_or_default());
    match scopes {
        Ok(scopes) if scopes.is_empty() => Ok(ScopeSet::NONE.with(Scope::Roles)),
        Ok(scopes) => Ok(scopes),
        Err(cause) => refuse(OAuthErrorCode::InvalidScope, cause.to_string()),
    }
}

/// Parses the parameter `prompt`, in which `none` must be alone (OpenID Connect Core §3.1.2.1).
fn prompts(text: &str) -> Option<Vec<Prompt>> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    let prompts = words.map(|word| word.parse::<Prompt>().ok()).collect::<Option<Vec<_>>>()?;
    let is_silent = prompts.iter().all(|prompt| *prompt == Prompt::None);
    (is_silent || !prompts.contains(&Prompt::None)).then_some(prompts)
}

/// Returns the S256 code challenge. `plain` is refused: it would reveal the verifier to anyone who sees the
/// request (RFC 9700 §2.1.1).
fn challenge(
    parameters: &OAuthParameters,
    client: &OAuthClient,
) -> Result<Option<String>, AuthorizationRefusal> {
    let code = OAuthErrorCode::InvalidRequest;
    let method = parameters.find("code_challenge_method");
    let Some(challenge) = parameters.find("code_challenge") else {
        if client.is_public() {
            return refuse(code, "code_challenge is missing, which a public client needs");
        }
        if method.is_some() {
            return refuse(code, "code_challenge is missing");
        }
        return Ok(None);
    };
    // An absent method means `plain` (RFC 7636 §4.3).
    if method != Some("S256") {
        return refuse(code, "code_challenge_method is not S256");
    }
    if challenge.len() != CHALLENGE_CHARS || !challenge.bytes().all(is_base64url) {
        return refuse(code, "code_challenge is not 43 characters of base64url");
    }
    Ok(Some(challenge.to_owned()))
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
