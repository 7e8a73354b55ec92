//! What `http/api/logins.rs` serves: sessions, applications and links to set a password.

use serde_json::Value;

use super::{
    operation::{Access, Operation, Tag, delete, get, path, post, put},
    schemas::{
        Part, array, boolean, closed, described, integer, object, one_of, reference, string, time,
    },
};

/// Statuses of refusals that every operation of a caller has.
const REFUSED: [u16; 4] = [400, 401, 403, 503];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = Vec::from(own());
    all.extend(of_users());
    all
}

fn own() -> [Operation; 4] {
    let id = |text: &str| path("id", text, string());
    let sessions = get("/user/v1/session", "getSessions")
        .says("The caller's sessions in browsers", "The one used last first.")
        .gives("The sessions.", array(reference("Session")));
    let end_session = delete("/user/v1/session/{id}", "endSession")
        .says("End a session", "The browser has to log in again.")
        .takes(id("The session's id, as it is listed."))
        .gives_text("It has ended.")
        .refuses(&[404]);
    let applications = get("/user/v1/application", "getApplications")
        .says(
            "The applications that may act for the caller",
            "Those that the caller agreed to, and those that hold tokens.",
        )
        .gives("The applications.", array(reference("Application")));
    let end_application = delete("/user/v1/application/{id}", "endApplication")
        .says("Take back what an application may do", "Its tokens end, and it has to ask again.")
        .takes(id("The client's id."))
        .gives_text("It may do nothing any more.")
        .refuses(&[404]);
    [sessions, end_session, applications, end_application]
        .map(|operation| operation.belongs(Tag::User, Access::Whole).refuses(&REFUSED))
}

fn of_users() -> [Operation; 7] {
    let id = || path("id", "The user's number.", integer());
    let pending = get("/user/v1/organization/pending-user", "getPendingUsers")
        .says("People without a password", "They cannot log in before they set one.")
        .gives("Their numbers, and whether they are invited.", array(reference("PendingUser")));
    let access = get("/user/v1/organization/user/{id}/access", "getOrganizationUserAccess")
        .says("How a user gets in", "Password, link, sessions, applications and keys.")
        .takes(id())
        .gives("How the user gets in.", reference("UserAccess"))
        .refuses(&[404]);
    let change = put("/user/v1/organization/user/{id}/access", "updateOrganizationUserAccess")
        .says(
            "Deactivate or reactivate a user",
            "Deactivation ends sessions, tokens and links at once; keys count for nothing meanwhile. \
             An administrator cannot deactivate itself: 409.",
        )
        .takes(id())
        .json_body("Whether the user may use the service.", reference("UserAccessUpdate"))
        .gives_text("It is done.")
        .refuses(&[404, 409, 413]);
    let send = post("/user/v1/organization/user/{id}/password-link", "sendPasswordLink")
        .says(
            "Send a link to set a password",
            "An invitation, valid for 7 days, for a user without a password; else a link that is \
             valid for a day. It is mailed (`mailedTo`); without a mail server, or for a user without \
             an address, `url` is told once to be passed on. Links of before end. 409 for a user that \
             may not log in.",
        )
        .takes(id())
        .gives("The link.", reference("PasswordLink"))
        .refuses(&[404, 409]);
    let withdraw = delete("/user/v1/organization/user/{id}/password-link", "withdrawPasswordLink")
        .says("Take back the links of a user", "They set no password any more.")
        .takes(id())
        .gives_text("They are taken back.")
        .refuses(&[404]);
    let end = delete("/user/v1/organization/user/{id}/session", "endOrganizationUserSessions")
        .says("End the sessions of a user", "Those in browsers, and the tokens of applications.")
        .takes(id())
        .gives_text("They have ended.")
        .refuses(&[404]);
    let revoke = delete("/user/v1/organization/user/{id}/key", "revokeOrganizationUserKeys")
        .says("Revoke the keys of a user", "All of them, for good.")
        .takes(id())
        .gives_text("They are revoked.")
        .refuses(&[404]);
    [pending, access, change, send, withdraw, end, revoke]
        .map(|operation| operation.belongs(Tag::Organization, Access::Admin).refuses(&REFUSED))
}

pub(super) fn schemas() -> Part {
    let used = || described(time(), "When it was used last, to some minutes.");
    let session = object(
        &["id", "created", "used", "expires"],
        &[
            ("id", described(string(), "A name that opens nothing.")),
            ("browser", described(string(), "The browser and its system.")),
            ("address", described(string(), "The network address that logged in.")),
            ("created", time()),
            ("used", used()),
            ("expires", time()),
        ],
    );
    let application = object(
        &["clientId", "name", "scopes", "since"],
        &[
            ("clientId", string()),
            ("name", string()),
            ("scopes", array(string())),
            (
                "since",
                described(time(), "When the caller agreed, or when it got its first token."),
            ),
            ("used", used()),
        ],
    );
    let link = object(
        &["kind", "created", "expires"],
        &[
            ("kind", one_of(&["invitation", "reset"])),
            ("created", time()),
            ("expires", time()),
            ("mailedTo", described(string(), "Where it was mailed to.")),
            ("url", described(string(), "What is to be passed on. It is not told again.")),
        ],
    );
    let count = |text: &str| -> Value { described(integer(), text) };
    let pending = object(
        &["id", "invited"],
        &[
            ("id", integer()),
            ("invited", described(boolean(), "Whether a valid invitation waits.")),
        ],
    );
    let access = object(
        &["active", "program", "hasPassword", "sessions", "applications", "keys"],
        &[
            ("active", boolean()),
            ("program", described(boolean(), "Whether it logs in with a key alone.")),
            ("hasPassword", boolean()),
            ("link", reference("PasswordLink")),
            ("sessions", count("Sessions in browsers.")),
            ("applications", count("Applications with a token.")),
            ("keys", count("Keys that were not revoked.")),
        ],
    );
    let update = closed(object(&["active"], &[("active", boolean())]));
    vec![
        ("Session", session),
        ("Application", application),
        ("PasswordLink", link),
        ("PendingUser", pending),
        ("UserAccess", access),
        ("UserAccessUpdate", update),
    ]
}
