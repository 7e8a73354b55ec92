//! The site for integrators: operations are tried out in the documentation, and can be copied as code that runs.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use reqwest::blocking::Response;
use serde_json::{Value, json};

use crate::{
    clients,
    common::{
        DEMO_KEY, Server,
        browser::{Browser, DESKTOP},
    },
};

/// Text that tries to break out of every context that shows it.
const HOSTILE: &str = "\"'><img src=x onerror=alert(1)></textarea><script>alert(2)</script>\\${x}";

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Logs a demo user in and returns the session cookie.
fn session(server: &Server, user: &str) -> String {
    let cookie = |response: &Response| {
        let set = response.headers()["set-cookie"].to_str().expect("ASCII");
        set.split(';').next().unwrap_or_default().to_owned()
    };
    let page = server.get("/o/login");
    let form_cookie = cookie(&page);
    let page = text(page);
    let token =
        page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let (csrf, password) = (token.expect("a form"), format!("{user}-password"));
    let form = [("csrf", csrf), ("username", user), ("password", &password)];
    let request = server.client.post(format!("{}/o/login", server.url)).form(&form);
    // Password hashing has low priority, which may take a while.
    let request = request.header("cookie", form_cookie).timeout(Duration::from_secs(300));
    let response = request.send().expect("answer");
    assert_eq!(response.status(), 303);
    cookie(&response)
}

fn text(response: Response) -> String {
    response.text().expect("text")
}

/// Runs the displayed `code` of `program` with a real key, and returns its output.
fn run(program: &str, code: &str) -> String {
    let folder = tempfile::tempdir().expect("folder");
    let code = code.replace("YOUR_KEY", DEMO_KEY);
    let name = if program == "node" { "call.mjs" } else { "call" };
    fs::write(folder.path().join(name), code).expect("written");
    let mut command = clients::client(Path::new(program));
    let output =
        command.arg(name).current_dir(folder.path()).output().expect("./test installs it");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {said}");
    let mut shown = String::from_utf8(output.stdout).expect("UTF-8");
    for entry in fs::read_dir(folder.path()).expect("folder").flatten() {
        let path = entry.path();
        if !path.ends_with(name) {
            let bytes = fs::read(&path).expect("a file");
            shown = format!("{} {} bytes", path.file_name().unwrap().display(), bytes.len());
        }
    }
    shown.trim_end_matches('\n').to_owned()
}

/// The three code samples below the element that `selector` matches, each with its program.
fn code(browser: &Browser, selector: &str) -> [(&'static str, String); 3] {
    [("bash", "curl"), ("node", "javascript"), ("python3", "python")].map(|(program, language)| {
        let pre = format!("{selector} pre[data-language={language}]");
        (program, browser.text(&format!("document.querySelector({}).textContent", json!(pre))))
    })
}

/// Waits for the response to the request that was just sent from the form in `trial`, and returns its status line.
fn answer(browser: &Browser, trial: &str) -> String {
    browser.wait(trial, &format!("!document.querySelector('{trial} .result').hidden"));
    browser.text(&format!("document.querySelector('{trial} .sent').innerText"))
}

fn body(browser: &Browser, trial: &str) -> String {
    browser.text(&format!("document.querySelector('{trial} .answer').textContent"))
}

/// Opens the form of an operation in the documentation.
fn open_form(browser: &Browser, id: &str) {
    browser.click(&format!("#{id} .try > summary"));
    browser
        .wait(id, &format!("document.querySelector('#{id} .trial [data-send] .button') != null"));
}

#[test]
fn a_member_tries_operations_out_in_the_documentation() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.log_in(&server.url, "demo-editor", "/docs");
    assert_eq!(browser.address(), format!("{}/docs", server.url));

    open_form(&browser, "getUser");
    let who = browser.text("document.querySelector('#getUser .as').innerText");
    assert!(who.contains("(demo-editor)"), "{who}");
    browser.click("#getUser .trial .button");
    let status = answer(&browser, "#getUser");
    assert!(status.starts_with("200") && status.ends_with("as demo-editor"), "{status}");
    let user = body(&browser, "#getUser");
    assert!(user.contains("\n  \"userName\": \"demo-editor\""), "{user}");
    let headers = browser.text("document.querySelector('#getUser .headers').textContent");
    assert!(headers.contains("content-type: application/json"), "{headers}");

    // A notification is created and removed.
    open_form(&browser, "addMobileNotification");
    let title = "[name='query.title']";
    browser.fill(&format!("#addMobileNotification {title}"), HOSTILE);
    browser.click("#addMobileNotification .trial .button");
    assert!(answer(&browser, "#addMobileNotification").starts_with("200"));
    let made: Value = serde_json::from_str(&body(&browser, "#addMobileNotification")).unwrap();
    assert_eq!(made["title"], HOSTILE);
    open_form(&browser, "removeNotification");
    let id = made["id"].as_str().expect("an id");
    browser.fill("#removeNotification [name='path.id']", id);
    browser.click("#removeNotification .trial .button");
    assert!(answer(&browser, "#removeNotification").starts_with("200"));
    browser.click("#removeNotification .trial .button");
    browser.wait(
        "gone",
        "document.querySelector('#removeNotification .sent').innerText.startsWith('404')",
    );

    // The API reports the errors.
    open_form(&browser, "getOrder");
    browser.fill("#getOrder [name='query.size']", "many");
    browser.click("#getOrder .trial .button");
    assert!(answer(&browser, "#getOrder").starts_with("400"));
    assert!(body(&browser, "#getOrder").contains("\"path\": \"size\""));

    let alerted = browser.eval("document.querySelectorAll('img[src=x], main script').length");
    assert_eq!(alerted, 0);
    // The expected refusals; nothing else was logged.
    for line in browser.console_messages() {
        assert!(line.contains("status of 40"), "{line}");
    }
    // The page shows every operation: to look at it in each size and scheme would take a minute.
    for (width, scheme) in [(360, "light"), (1600, "dark")] {
        browser.set_viewport(width, scheme);
        browser.check_layout(&format!("docs, {width}, {scheme}"));
    }
    browser.check_accessible("docs");
}

#[test]
fn an_anonymous_visitor_tries_open_operations_and_sees_how_to_log_in() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    browser.visit(&format!("{}/docs", server.url));
    open_form(&browser, "search");
    let who = browser.text("document.querySelector('#search .as').innerText");
    assert!(who.contains("not logged in"), "{who}");
    browser.fill("#search [name='query.q']", "sunset");
    browser.fill("#search [name='query.facets']", "product.code");
    browser.click("#search .trial .button");
    let status = answer(&browser, "#search");
    assert!(status.starts_with("200") && status.ends_with("without credentials"), "{status}");
    let shown: Value = serde_json::from_str(&body(&browser, "#search")).expect("JSON");
    let target = "/content/v1/image/search?q=sunset&facets=product.code";
    let asked: Value = server.get(target).json().expect("JSON");
    assert_eq!(shown, asked);
    assert_ne!(shown["total"], 0);

    // Binary responses are not shown, but linked.
    browser.visit(&format!("{}/docs/try/getRendition", server.url));
    browser.fill("[name='path.id']", "demo-solnedgang-over-bergen");
    browser.click(".trial .button");
    assert!(answer(&browser, ".trial").starts_with("200"));
    let about = browser.text("document.querySelector('.result .about').innerText");
    assert!(about.starts_with("Not shown here: image/jpeg, "), "{about}");
    let link = browser.text("document.querySelector('.result .about a').href");
    assert_eq!(
        link,
        format!("{}/media/image/demo-solnedgang-over-bergen_NormalPreview.jpg", server.url)
    );
    assert_eq!(browser.text("document.querySelector('.answer-link').href"), link);
    browser.check_appearance("try");
}

#[test]
fn the_displayed_code_sends_the_same_request() {
    let server = Server::demo();
    let browser = Browser::open(DESKTOP);
    let with_key = [("authorization", format!("ApiKey {DEMO_KEY}"))];
    let with_key: Vec<_> = with_key.iter().map(|(name, value)| (*name, value.as_str())).collect();
    browser.visit(&format!("{}/docs/try/search", server.url));
    let query = "sol OR \"it's\" OR `x` OR $HOME OR 100%";
    browser.fill("[name='query.q']", query);
    browser.fill("[name='query.s']", "3");
    let target = format!("/content/v1/image/search?q={}&s=3", encoded(query));
    let expected = text(server.get_with(&target, &with_key));
    for (program, code) in code(&browser, ".trial") {
        assert!(code.contains(&target), "{code}");
        assert_eq!(run(program, &code), expected, "{code}");
    }
    // A body arrives exactly as typed.
    browser.visit(&format!("{}/docs/try/updateProfile", server.url));
    for (at, (program, _)) in code(&browser, ".trial").into_iter().enumerate() {
        let profile = json!({ "a": format!("{HOSTILE}\n'å🖼\u{202e}!!$(id)`id`\u{1b}"), "at": at });
        let text = json!(profile.to_string());
        browser.eval(&format!(
            "(field => {{ field.value = {text}; \
             field.dispatchEvent(new Event('input', {{ bubbles: true }})); }})\
             (document.querySelector('[name=body]'))"
        ));
        let (_, code) = &code(&browser, ".trial")[at];
        assert!(!code.contains('\u{202e}'), "{code}");
        run(program, code);
        let kept: Value = server.get_with("/user/v1/profile", &with_key).json().expect("JSON");
        assert_eq!(kept, profile, "{code}");
    }
    // Binary responses go into a file.
    let picture = "demo-solnedgang-over-bergen_NormalThumbnail.jpg";
    browser.visit(&format!("{}/docs/try/getRendition?path.id=demo-solnedgang-over-bergen&path.rendition=NormalThumbnail", server.url));
    let size = server.bytes(&format!("/media/image/{picture}")).len();
    for (program, code) in code(&browser, ".trial") {
        assert_eq!(run(program, &code), format!("{picture} {size} bytes"), "{code}");
    }
}

#[test]
fn without_scripts_every_form_shows_the_code_for_its_input() {
    let server = Server::demo();
    let page = text(server.get("/docs"));
    let links: BTreeSet<&str> = page
        .split("href=\"/docs/try/")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let document: Value = serde_json::from_slice(&server.bytes("/openapi.json")).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let operations: BTreeSet<&str> = paths
        .values()
        .flat_map(|item| item.as_object().expect("methods").values())
        .map(|operation| operation["operationId"].as_str().expect("an id"))
        .collect();
    assert_eq!(links, operations);
    for id in links {
        let response = server.get(&format!("/docs/try/{id}"));
        assert_eq!(response.status(), 200, "{id}");
        assert!(text(response).contains("urllib.request.urlopen"), "{id}");
    }
    let typed = format!("/docs/try/search?path.mediaType=image&query.q={}", encoded("sol & hav"));
    let page = text(server.get(&typed));
    let address = "/content/v1/image/search?q=sol+%26+hav".replace('/', "&#x2f;");
    assert!(page.contains(&address), "{page}");
    assert!(page.contains("value=\"sol &amp; hav\""), "{page}");
    // Hostile text is text in every field.
    for (name, id) in [
        ("query.q", "search"),
        ("path.id", "getHires"),
        ("body", "updateProfile"),
        ("path.mediaType", "search"),
    ] {
        let page = text(server.get(&format!("/docs/try/{id}?{name}={}", encoded(HOSTILE))));
        assert!(!page.contains("<img src=x") && !page.contains("<script>"), "{name}: {page}");
    }
    assert_eq!(server.get("/docs/try/nothing").status(), 404);
    // Operations that need client credentials or another kind of key only show code.
    for id in ["requestToken", "searchWithKey", "getMetrics", "getUserInfo"] {
        let page = text(server.get(&format!("/docs/try/{id}")));
        assert!(page.contains("not sent from here") && !page.contains("data-send"), "{id}");
    }
}

#[test]
fn the_documentation_is_cacheable_for_anonymous_visitors_and_private_for_members() {
    let server = Server::demo();
    let [one, other] = [server.get("/docs"), server.get("/docs")];
    assert_eq!(one.headers()["etag"], other.headers()["etag"]);
    let etag = one.headers()["etag"].to_str().expect("ASCII").to_owned();
    assert_eq!(one.headers()["vary"], "Cookie, Accept-Language, Accept-Encoding");
    assert_eq!(text(one), text(other));
    assert_eq!(server.get_with("/docs", &[("if-none-match", &etag)]).status(), 304);
    let swedish = server.get_with("/docs", &[("accept-language", "sv"), ("if-none-match", &etag)]);
    assert_eq!(swedish.status(), 200);
    let page = text(swedish);
    assert!(
        page.contains("<html lang=\"sv\">") && page.contains("<div class=\"docs\" lang=\"en\">")
    );
    let cookie = session(&server, "demo-editor");
    for path in ["/docs", "/docs/try/getUser"] {
        let response = server.get_with(path, &[("cookie", &cookie)]);
        assert_eq!(response.headers()["cache-control"], "no-store", "{path}");
        assert!(!response.headers().contains_key("etag"), "{path}");
    }
    // Forms are separate pages, so the documentation stays small.
    let size = server.bytes("/docs").len();
    let forms = server.bytes("/docs/try/search").len();
    assert!(size < 560_000 && forms < 40_000, "{size} {forms}");
}
