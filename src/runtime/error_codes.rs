//! Lists the error codes of the APIs, with their meanings and remedies.
//!
//! [`ERROR_CODES`] is the table behind `docs/reference/errors.md`. A test scans the sources. It fails for a
//! code that is sent but not listed here, and for a listed code that is never sent.

use super::error::ErrorKind;

/// One value of `errorCode` in an error body.
#[derive(Clone, Copy, Debug)]
pub struct ErrorCode {
    /// The value that clients compare.
    pub code: &'static str,
    /// The kind of error with this code, which determines the status.
    pub kind: ErrorKind,
    /// The event or condition that causes the error.
    pub meaning: &'static str,
    /// The remedy for the caller or the operator.
    pub remedy: &'static str,
}

const RETRY: &str = "Retry after the seconds that `Retry-After` names.";

/// Defines the list of all codes: the kind, the code, the meaning and the remedy of each.
macro_rules! error_code_table {
    ($($kind:ident $code:literal: $meaning:literal, $remedy:expr;)*) => {
        /// The codes that are not validation rules, in the order of their statuses.
        pub const ERROR_CODES: &[ErrorCode] = &[$(ErrorCode {
            code: $code,
            kind: ErrorKind::$kind,
            meaning: $meaning,
            remedy: $remedy,
        },)*];
    };
}

error_code_table! {
    InvalidArgument "license_not_applicable":
        "The order names a licence that its agreement does not offer.",
        "Report the order with one of the licences that the order lists.";
    InvalidArgument "mailDomain_not_allowed":
        "The user's address lies outside the mail domains of the organization.",
        "Use an address in one of the organization's domains, or ask the operator to add the domain.";
    InvalidArgument "order_already_reported":
        "The order has been reported before, and a report is final.",
        "Read the order to see what was reported; ask the operator for a correction.";
    InvalidArgument "phoneNumber_direct_invalid":
        "The direct telephone number is not a telephone number.",
        "Send digits with an optional leading `+`, spaces, hyphens or parentheses.";
    InvalidArgument "userName_in_use":
        "Another user already has this user name, which is the e-mail address.",
        "Choose another address, or change the existing user.";
    Unauthenticated "credentials_required":
        "The request has no credentials, or they are unknown, expired or revoked.",
        "Log in again, refresh the token, or check the API key; `WWW-Authenticate` lists the accepted schemes.";
    Forbidden "admin_required":
        "The operation needs the access level `admin` in the caller's organization.",
        "Ask an administrator of the organization to make the call or to grant the access level.";
    Forbidden "agreement_required":
        "No agreement of the caller that is in force covers the item, or its prepaid downloads are used up.",
        "Check `agr` if the request names an agreement; otherwise the organization needs an agreement that covers the \
         item's products.";
    Forbidden "api_key_unsupported":
        "The operation acts for a logged-in user and does not accept an API key.",
        "Call it with an access token.";
    Forbidden "insufficient_scope":
        "The access token lacks a scope that the operation needs; `WWW-Authenticate` names it.",
        "Authorize again and request that scope.";
    Forbidden "operator_channel":
        "The channel belongs to the operator, so its user cannot change it.",
        "Ask the operator, or create a channel under another name.";
    Forbidden "operator_required":
        "Only accounts with the role `ROLE_OPERATOR` see how the service runs, and end the logins of users with that \
         role.",
        "Use an account with that role, which `wirephoto user role` gives.";
    Forbidden "order_required":
        "The agreement sells item by item, and no order for this item has been approved. The request has placed one.",
        "Have an administrator of the organization approve the order, then repeat the request.";
    Forbidden "organization_required":
        "The user belongs to no organization, and the operation acts on one. `GET /user/v1/organization` is a 404 \
         instead.",
        "Ask the operator to assign the user to an organization.";
    Forbidden "provider_required":
        "Only accounts with the role `ROLE_PROVIDER` may send, change or withdraw items, and administer users with \
         that role.",
        "Use an account with that role.";
    Forbidden "read_only":
        "The API key or the client may only read, and the request would change something, record an order, start a \
         delivery or read from a stream.",
        "Use a key or a client without `readOnly`.";
    Forbidden "read_only_node":
        "This node serves media and never writes to the database.",
        "Send the request to a node whose `server.role` is `all` or `web`; check the routing rules of the load \
         balancer.";
    Forbidden "second_person_required":
        "The caller ordered the item itself, and the agreement has `approver` `admin`: a second person approves its \
         orders.",
        "Ask another administrator of the organization to approve the order.";
    Forbidden "service_account_unsupported":
        "The operation acts for a person and does not accept a service account.",
        "Call it with the token of a user.";
    Forbidden "template_owner_required":
        "The metadata template is shared by another organization, whose providers alone change and remove it.",
        "Create a template of your own with the changes, or ask a provider of that organization.";
    NotFound "stream_not_found":
        "The user has no such stream, or no client has read it for five minutes.",
        "Create a stream again, and search for what was stored since the last item that you received.";
    Conflict "item_exists":
        "The uploaded file would replace an item that exists, which the request does not ask for.",
        "Repeat the request with `existing` set to `replace`, or to `new` for an item of its own.";
    Conflict "last_administrator":
        "The organization would have no active administrator.",
        "Make another user an administrator first.";
    Conflict "upload_incomplete":
        "The upload lacks bytes of its file, so it cannot be read or published.",
        "Continue the upload from the offset that `HEAD` reports.";
    Conflict "upload_offset":
        "`Upload-Offset` is not the number of bytes that the service has received.",
        "Read the offset with `HEAD` and continue from there.";
    Stale "tus_version":
        "`Tus-Resumable` names a version of the protocol that the service does not support.",
        "Use the version that `Tus-Version` lists.";
    Stale "version_conflict":
        "The item or template changed since the version that `If-Match` names, or while an upload replaced it.",
        "Read it again, compare its values with yours, and repeat the change with the new `ETag`.";
    InvalidArgument "checksum_mismatch":
        "The bytes do not have the checksum that `Upload-Checksum` names; the status is 460.",
        "Send the bytes again from the same offset.";
    TooLarge "upload_quota":
        "The user has as many unpublished uploads, or bytes in them, as are allowed (`ingest.upload_user_bytes`).",
        "Publish or discard uploads.";
    Overloaded "archives":
        "As many zip archives as `media.archives` allows are being assembled.", RETRY;
    Overloaded "channel_keys":
        "Too many private keys of channels are being decrypted at the same time.", RETRY;
    Overloaded "channel_tests":
        "Too many channel tests are running, or the user has started too many within a minute.", RETRY;
    Overloaded "client_archives":
        "The client is already downloading as many zip archives as `media.client_archives` allows.",
        "Finish a download before starting the next one.";
    Overloaded "client_logins":
        "Too many logins from the same network are waiting (`auth.login_queue_per_address`).", RETRY;
    Overloaded "client_megapixels":
        "The client has used up its render budget (`media.client_megapixels_s`).",
        "Retry after the seconds that `Retry-After` names, and spread the requests; cached renditions cost nothing.";
    Overloaded "client_render_queue":
        "As many renders of this client are waiting as `media.client_queue_share` allows.", RETRY;
    Overloaded "client_polls":
        "The client already holds as many waiting polls as `search.client_polls` allows.",
        "Use one poll at a time for each stream.";
    Overloaded "client_upload_parts":
        "The user is already sending as many parts of uploads as one user may send at a time.",
        "Send fewer files at the same time.";
    Overloaded "client_stream_polls":
        "The user already holds as many waiting polls as `notifications.client_polls` allows.",
        "Use one poll at a time for each stream.";
    Overloaded "database_queue": "Too many calls are waiting for the database.", RETRY;
    Overloaded "deliveries":
        "The organization has as many waiting deliveries as `delivery.queue_max` allows.",
        "Wait until some are delivered. If the queue does not shrink, check the receiving systems under \
         `/user/v1/delivery?state=failed`.";
    Overloaded "failed_logins":
        "Too many logins have failed for this user name or from this network, so logins are refused for a while, \
         correct ones as well.",
        "Wait the seconds that `Retry-After` names, and fix the client that sends wrong credentials.";
    Overloaded "logins": "As many logins as `auth.login_queue` allows are waiting.", RETRY;
    Overloaded "made_users":
        "The organization has created as many users as it may within a period.", RETRY;
    Overloaded "notifications":
        "The user has as many notifications as are allowed.",
        "Remove notifications that are no longer used.";
    Overloaded "password_resets":
        "Too many password resets have been requested for this account or from this network.", RETRY;
    Overloaded "polls":
        "As many polls of the deprecated stream as `search.polls` allows are waiting.",
        "Retry later, or use a notification stream instead.";
    Overloaded "render_queue": "The render queue is full (`media.queue`).", RETRY;
    Overloaded "searches": "Too many searches are waiting for a search thread.", RETRY;
    Overloaded "stream_asks":
        "Too many reads of notification streams are waiting for the database.", RETRY;
    Overloaded "stream_polls":
        "As many polls of notification streams as `notifications.polls` allows are waiting.", RETRY;
    Overloaded "upload_parts":
        "As many parts of uploads as this node receives at a time are being sent.", RETRY;
    Overloaded "upload_space":
        "The unpublished uploads of all users take as much space as `ingest.upload_total_bytes` allows.",
        "Publish or discard uploads, or retry when others have expired.";
    Overloaded "uploads": "As many uploads as this node accepts at a time are in progress.", RETRY;
    Unavailable "search_disabled":
        "This node does not search (`search.enabled`).",
        "Send searches to another node; check the routing rules of the load balancer.";
    Unavailable "search_index":
        "The search index is being built or cannot be read.",
        "Retry later. The operator finds the progress in the message, in the log and in \
         `wirephoto_search_index_built_items`.";
    Timeout "search_time":
        "The search took longer than one search may.",
        "Narrow the query: fewer wildcards, a media type, a date range.";
}

/// A rule for validating requests; its code is `<rule>.openapi.requestValidation`.
#[derive(Clone, Copy, Debug)]
pub struct ValidationRule {
    /// The first part of the code, which is the keyword of the schema.
    pub rule: &'static str,
    /// The fault of the part that `location` and `path` name.
    pub meaning: &'static str,
}

const fn rule(rule: &'static str, meaning: &'static str) -> ValidationRule {
    ValidationRule { rule, meaning }
}

/// The rules that a request may break, by name.
pub const VALIDATION_RULES: &[ValidationRule] = &[
    rule(
        "additionalProperties",
        "The body has a property or part that the operation does not know.",
    ),
    rule("enum", "The value is not one of those that the operation lists."),
    rule("format", "The value cannot be parsed: a date, a UUID, a query, JSON, a media path."),
    rule("maxItems", "The list has more elements than allowed."),
    rule("maximum", "The number, the text or the rectangle is larger than allowed."),
    rule("minimum", "The number or the text is smaller than allowed."),
    rule("pattern", "The text contains characters, or has a form, that is not allowed."),
    rule("required", "The parameter, header, property or body is missing."),
    rule(
        "type",
        "The value has another type, text in place of a number for instance, or a parameter is repeated.",
    ),
];

/// Describes errors that have no specific code, by kind.
pub fn meaning(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => {
            "The request breaks the contract; `errors` lists every part that is wrong."
        }
        ErrorKind::Unauthenticated => {
            "Credentials are missing, unknown, expired or revoked. Log in again, refresh the token, or check the \
             API key; `WWW-Authenticate` lists the accepted schemes."
        }
        ErrorKind::Forbidden => "The caller is known but lacks a right.",
        ErrorKind::NotFound => {
            "Nothing exists at this address, or nothing that this caller may see: items under embargo and \
             withdrawn items look the same as absent ones."
        }
        ErrorKind::Conflict => {
            "The current state of the resource does not permit the operation. Read the resource again and decide on its new state."
        }
        ErrorKind::Stale => {
            "The resource changed since the version that `If-Match` names, or the request uses a version of the \
             upload protocol that the service does not support. Read the resource again and decide on its new \
             state."
        }
        ErrorKind::Unsupported => "The address exists but does not support this method.",
        ErrorKind::TooLarge => {
            "The body, the file or the picture exceeds a limit, which the message names."
        }
        ErrorKind::Overloaded => {
            "A queue is full or a rate limit is reached. Retry after the seconds that `Retry-After` names."
        }
        ErrorKind::Timeout => {
            "The work took longer than its time limit. Retry after the seconds that `Retry-After` names."
        }
        ErrorKind::Unavailable => {
            "The service is starting or stopping, or the database or the store does not respond. Retry after the \
             seconds that `Retry-After` names."
        }
        ErrorKind::Internal => {
            "The service failed. Retry once; if it persists, give the operator the `X-Request-Id` of the answer, \
             under which the cause is logged."
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// The source texts that precede codes, with index and count of the codes among the string literals after
    /// them.
    const MARKS: [(&str, usize, usize); 7] = [
        ("overloaded(", 0, 1),
        ("forbidden(", 0, 1),
        (".with_code(", 0, 1),
        ("Slots::new(", 0, 2),
        (".report(", 1, 1),
        ("error_code: ", 0, 1),
        ("Error::at(", 2, 1),
    ];

    fn sources(dir: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_tests = path.to_string_lossy().ends_with("tests.rs");
            if path.is_dir() {
                sources(&path, found);
            } else if !is_tests && !path.ends_with("error_codes.rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push(
                    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned(),
                );
            }
        }
    }

    /// Returns the string literals among the following arguments, up to the end of the statement.
    fn literals(rest: &str) -> Vec<&str> {
        let statement = rest.split([';', '{', '}']).next().unwrap_or_default();
        statement.split('"').skip(1).step_by(2).collect()
    }

    #[test]
    fn every_code_that_is_sent_is_listed_and_every_listed_one_is_sent() {
        let mut texts = Vec::new();
        sources(Path::new("src"), &mut texts);
        let is_code = |text: &&str| {
            text.contains('_')
                && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        };
        let listed: BTreeSet<&str> = ERROR_CODES.iter().map(|entry| entry.code).collect();
        assert_eq!(listed.len(), ERROR_CODES.len(), "a code is listed twice");
        let mut sent = BTreeSet::new();
        for text in &texts {
            for (mark, from, count) in MARKS {
                for (at, _) in text.match_indices(mark) {
                    let found = literals(&text[at + mark.len()..]);
                    sent.extend(found.into_iter().skip(from).take(count).filter(is_code));
                }
            }
        }
        let unlisted: Vec<_> = sent.difference(&listed).collect();
        assert!(unlisted.is_empty(), "not in ERROR_CODES: {unlisted:?}");
        let all = texts.concat();
        let unsent: Vec<_> =
            listed.iter().filter(|code| !all.contains(&format!("\"{code}\""))).collect();
        assert!(unsent.is_empty(), "in ERROR_CODES, sent nowhere: {unsent:?}");
    }

    #[test]
    fn every_validation_rule_that_is_sent_is_listed() {
        let mut texts = Vec::new();
        sources(Path::new("src"), &mut texts);
        let listed: Vec<&str> = VALIDATION_RULES.iter().map(|entry| entry.rule).collect();
        let places = ["path", "query", "headers", "body"];
        for text in &texts {
            for (at, _) in text.match_indices("Error::invalid(") {
                let found = literals(&text[at..]);
                // Location, path, rule: if the path is not a literal, the rule is the second text.
                let is_place = found.first().is_some_and(|first| places.contains(first));
                let known = found.iter().take(3).any(|text| listed.contains(text));
                assert!(!is_place || found.len() < 3 || known, "{found:?}");
            }
        }
    }
}
