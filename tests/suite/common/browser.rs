//! A real browser, driven over WebDriver.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use reqwest::blocking::Client;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{WAIT_TIMEOUT, is_before_release, oracle, pause};

/// Window sizes of a desktop and a phone, pixels.
pub const DESKTOP: (u32, u32) = (1280, 900);
pub const PHONE: (u32, u32) = (390, 844);

/// A headless browser window, closed on drop.
pub struct Browser {
    driver: Child,
    client: Client,
    session: String,
    profile: TempDir,
}

/// Starts the driver of a browser and gives its port.
///
/// The driver picks a port and needs it in two address families. When another program has it in one of them, the
/// driver exits, and the next one picks another port.
fn start_driver() -> (Child, u16) {
    for _ in 0..5 {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().expect("./test installs it");
        let output = BufReader::new(driver.stdout.take().expect("piped"));
        let port = output.lines().map_while(Result::ok).find_map(|line| {
            line.strip_suffix('.')?.split_once("successfully on port ")?.1.parse::<u16>().ok()
        });
        if let Some(port) = port {
            return (driver, port);
        }
        driver.wait().expect("the driver ends");
    }
    panic!("chromedriver found no port five times");
}

impl Browser {
    /// Opens a window of this size. It belongs to a guest: without a profile to set up, a start takes half as much of a
    /// processor.
    pub fn open(window: (u32, u32)) -> Self {
        Self::start(window, &["--guest"])
    }

    /// Opens a window of this size with a profile, which the clipboard needs.
    pub fn open_with_profile(window: (u32, u32)) -> Self {
        Self::start(window, &[])
    }

    fn start((width, height): (u32, u32), more_arguments: &[&str]) -> Self {
        let profile = tempfile::tempdir().expect("folder");
        let (driver, port) = start_driver();
        let mut arguments: Vec<String> = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.extend(more_arguments.iter().map(|argument| (*argument).to_owned()));
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        arguments.push(format!("--window-size={width},{height}"));
        let metrics = json!({ "width": width, "height": height, "pixelRatio": 1 });
        let mut options = json!({ "args": arguments });
        if width < 500 {
            options["mobileEmulation"] = json!({ "deviceMetrics": metrics });
        }
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL" },
            // The accessibility check of a page takes a while on a busy machine.
            "timeouts": { "script": 300_000, "pageLoad": 300_000 },
        } } });
        let client = Client::builder().no_proxy().timeout(None).build().expect("client");
        let base = format!("http://127.0.0.1:{port}/session");
        let mut browser = Self { driver, client, session: base, profile };
        // On a busy machine a browser may need a second attempt to start.
        let started = (0..2).find_map(|_| {
            let answer = browser.try_post("", &wanted);
            answer["value"]["sessionId"].as_str().map(str::to_owned)
        });
        let id = started.unwrap_or_else(|| {
            browser.post("", &wanted)["sessionId"].as_str().expect("a session").to_owned()
        });
        browser.session = format!("{}/{id}", browser.session);
        browser
    }

    fn try_post(&self, command: &str, body: &Value) -> Value {
        let request = self.client.post(format!("{}{command}", self.session));
        let response = request.body(body.to_string()).send().expect("chromedriver answers");
        response.json().expect("JSON")
    }

    pub fn post(&self, command: &str, body: &Value) -> Value {
        let answer = self.try_post(command, body);
        assert!(answer["value"].get("error").is_none(), "{command}: {answer:#}");
        answer["value"].clone()
    }

    /// Opens a page and waits until it and all of its images are loaded.
    pub fn visit(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
        self.wait_until_loaded();
    }

    /// Waits until the images and fonts of the page are loaded.
    pub fn wait_until_loaded(&self) {
        let script = "
            const done = arguments[arguments.length - 1];
            for (const image of document.images) image.loading = 'eager';
            const loaded = image => image.decode().catch(() => null);
            // The source of an image is selected a moment after a size change.
            requestAnimationFrame(() => requestAnimationFrame(() => Promise
                .all([...document.images].map(loaded).concat(document.fonts.ready))
                .then(() => done(null))));
        ";
        self.post("/execute/async", &json!({ "script": script, "args": [] }));
    }

    /// Types `text` into the field that `selector` finds.
    pub fn fill(&self, selector: &str, text: &str) {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|one| one.values().next()).expect("an element");
        let id = id.as_str().expect("an id");
        self.post(&format!("/element/{id}/clear"), &json!({}));
        self.post(&format!("/element/{id}/value"), &json!({ "text": text }));
    }

    /// Clicks the element that `selector` finds.
    pub fn click(&self, selector: &str) {
        let found = self.post("/element", &json!({ "using": "css selector", "value": selector }));
        let id = found.as_object().and_then(|one| one.values().next()).expect("an element");
        let command = format!("/element/{}/click", id.as_str().expect("an id"));
        self.post(&command, &json!({}));
    }

    /// Clicks the element that `selector` finds and waits for the page that it leads to.
    pub fn follow(&self, selector: &str) {
        self.eval("window.seenBefore = true");
        self.click(selector);
        let script = "return document.readyState === 'complete' && !window.seenBefore;";
        let body = json!({ "script": script, "args": [] }).to_string();
        let start = std::time::Instant::now();
        loop {
            // No script can run between two pages.
            let request = self.client.post(format!("{}/execute/sync", self.session));
            let answer = request.body(body.clone()).send().expect("chromedriver answers");
            let answer: Value = answer.json().expect("JSON");
            if answer["value"] == true {
                return self.wait_until_loaded();
            }
            assert!(start.elapsed() < WAIT_TIMEOUT, "{selector} leads to no page: {answer}");
            pause();
        }
    }

    /// The tabs of the browser, in the order of their opening.
    pub fn windows(&self) -> Vec<String> {
        let request = self.client.get(format!("{}/window/handles", self.session));
        let answer: Value = request.send().expect("answer").json().expect("JSON");
        serde_json::from_value(answer["value"].clone()).expect("handles")
    }

    /// Turns to one of the tabs.
    pub fn switch_to(&self, window: &str) {
        self.post("/window", &json!({ "handle": window }));
    }

    /// The URL of the current page.
    pub fn address(&self) -> String {
        let response = self.client.get(format!("{}/url", self.session)).send().expect("answer");
        let answer: Value = response.json().expect("JSON");
        answer["value"].as_str().expect("an address").to_owned()
    }

    /// Saves downloads to a folder of this browser; returns its path.
    pub fn save_downloads(&self) -> PathBuf {
        let folder = self.profile.path().join("downloads");
        fs::create_dir_all(&folder).expect("folder");
        let params = json!({ "behavior": "allow", "downloadPath": folder });
        // The command of the page: that of the browser does not reach the pages of a guest.
        let command = json!({ "cmd": "Page.setDownloadBehavior", "params": params });
        self.post("/goog/cdp/execute", &command);
        folder
    }

    /// Makes the image that `selector` finds load nothing, in any format; returns its height while it still loads,
    /// before a browser shows its text instead.
    pub fn break_picture(&self, selector: &str) -> Value {
        self.eval(&format!(
            "(image => {{
                image.closest('picture')?.querySelectorAll('source').forEach(one => one.remove());
                image.removeAttribute('srcset');
                image.src = 'data:,';
                return image.getBoundingClientRect().height;
            }})(document.querySelector('{selector}'))"
        ))
    }

    /// Evaluates an expression in the page.
    pub fn eval(&self, expression: &str) -> Value {
        let script = format!("return {expression};");
        self.post("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    pub fn text(&self, expression: &str) -> String {
        self.eval(expression).as_str().expect("text").to_owned()
    }

    /// Browser console messages since the previous call.
    pub fn console_messages(&self) -> Vec<String> {
        let lines = self.post("/se/log", &json!({ "type": "browser" }));
        lines.as_array().expect("lines").iter().map(Value::to_string).collect()
    }

    /// Saves a screenshot of the page as a PNG, up to a height of seven windows, in the folder that the variable
    /// `TEST_SCREENSHOTS` names. Without it nothing is drawn: nothing compares the pictures, and hundreds of
    /// them take minutes.
    pub fn screenshot(&self, name: &str) {
        let Some(folder) = std::env::var_os("TEST_SCREENSHOTS").map(PathBuf::from) else { return };
        // Drawing pages that are much longer takes most of a test, and shows nothing new.
        let size = "[innerWidth, Math.min(document.documentElement.scrollHeight, 6300)]";
        let size = self.eval(size);
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1 });
        let params = json!({ "captureBeyondViewport": true, "clip": clip, "format": "png" });
        let command = json!({ "cmd": "Page.captureScreenshot", "params": params });
        let answer = self.post("/goog/cdp/execute", &command);
        let text = answer["data"].as_str().expect("a picture");
        let script =
            "import base64, sys; sys.stdout.buffer.write(base64.b64decode(sys.stdin.read()))";
        let png = oracle::python(script, &[], text.as_bytes());
        fs::create_dir_all(&folder).expect("folder");
        fs::write(folder.join(name), png).expect("written");
    }

    /// Checks that all images are loaded, that the console has no errors, and that the page is not wider than the
    /// window.
    pub fn check_layout(&self, what: &str) {
        let broken =
            self.eval("[...document.images].filter(i => !i.naturalWidth).map(i => i.src)");
        assert_eq!(
            (broken, self.console_messages()),
            (json!([]), Vec::new()),
            "{what}: broken pictures"
        );
        let width = self.eval("[document.documentElement.scrollWidth, innerWidth]");
        let [page, window] = [&width[0], &width[1]].map(|value| value.as_u64().expect("pixels"));
        assert!(page <= window, "{what}: {page} pixels wide in a window of {window}");
    }
}

/// Viewport widths for screenshots, pixels: a small phone, a tablet, a large screen.
const WIDTHS: [u32; 3] = [360, 800, 1600];

impl Browser {
    /// Sets the width of the viewport in pixels, and the colour scheme, `light` or `dark`.
    pub fn set_viewport(&self, width: u32, scheme: &str) {
        let metrics =
            json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        for (cmd, params) in [
            ("Emulation.setDeviceMetricsOverride", metrics),
            ("Emulation.setEmulatedMedia", json!({ "features": features })),
        ] {
            self.post("/goog/cdp/execute", &json!({ "cmd": cmd, "params": params }));
        }
        // Another size may select other images.
        self.wait_until_loaded();
    }

    /// Checks the layout of the page at the smallest and the largest width, in the light and in the dark colour scheme,
    /// and its accessibility in both; before a release, every width in both schemes. Screenshots are called
    /// `{name}-{width}-{scheme}.png`.
    pub fn check_appearance(&self, name: &str) {
        let is_complete = is_before_release() || std::env::var_os("TEST_SCREENSHOTS").is_some();
        for width in WIDTHS {
            for scheme in ["light", "dark"] {
                let is_examined =
                    [(WIDTHS[0], "light"), (WIDTHS[2], "dark")].contains(&(width, scheme));
                if !is_examined && !is_complete {
                    continue;
                }
                self.set_viewport(width, scheme);
                self.check_layout(&format!("{name}, {width}, {scheme}"));
                // The result depends on the colours and on what a width hides.
                self.check_accessible(&format!("{name}, {width}, {scheme}"));
                self.screenshot(&format!("{name}-{width}-{scheme}.png"));
            }
        }
        self.set_viewport(1280, "light");
    }

    /// Checks that axe-core reports no violation on the page.
    pub fn check_accessible(&self, what: &str) {
        // The page keeps it until the next one is loaded.
        let axe = match self.eval("typeof axe") == "undefined" {
            true => {
                let path = "node_modules/axe-core/axe.min.js";
                fs::read_to_string(crate::clients::node_scripts().join(path)).expect("installed")
            }
            false => String::new(),
        };
        let run = "
            const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'] }).then(found => done(
                found.violations.map(v => v.id + ': ' + v.nodes.map(n => n.html).join(' | '))));
        ";
        let script = format!("{axe};{run}");
        let found = self.post("/execute/async", &json!({ "script": script, "args": [] }));
        assert_eq!(found, json!([]), "{what}");
    }

    /// Waits until an expression is true; `what` describes it in the failure.
    pub fn wait(&self, what: &str, expression: &str) {
        let start = std::time::Instant::now();
        while self.eval(expression) != true {
            assert!(start.elapsed() < WAIT_TIMEOUT, "{what} did not happen");
            pause();
        }
    }

    /// Presses keys on the focused element; keys are WebDriver's code points.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let source = json!({ "type": "key", "id": "keyboard", "actions": actions });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Drags the mouse along `points`, in pixels of the window.
    pub fn drag(&self, points: &[(i64, i64)]) {
        let to = |(x, y): &(i64, i64)| json!({ "type": "pointerMove", "duration": 50, "x": x, "y": y, "origin": "viewport" });
        let mut actions = Vec::new();
        for (at, point) in points.iter().enumerate() {
            actions.push(to(point));
            if at == 0 {
                actions.push(json!({ "type": "pointerDown", "button": 0 }));
            }
        }
        actions.push(json!({ "type": "pointerUp", "button": 0 }));
        let parameters = json!({ "pointerType": "mouse" });
        let source = json!({
            "type": "pointer", "id": "mouse", "parameters": parameters, "actions": actions,
        });
        self.post("/actions", &json!({ "actions": [source] }));
    }

    /// Logs in as a demo user from the page `path`, and returns to it.
    pub fn log_in(&self, server: &str, user: &str, path: &str) {
        let path: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
        self.visit(&format!("{server}/o/login?return_to={path}"));
        self.fill("#username", user);
        self.fill("#password", &format!("{user}-password"));
        self.follow("main button[type=submit]");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Without ending the session the browser would outlive its driver.
        drop(self.client.delete(&self.session).send());
        drop(self.driver.kill());
        drop(self.driver.wait());
    }
}
