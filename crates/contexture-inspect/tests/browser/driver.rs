//! A browser, driven over the WebDriver protocol.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long something may take to show up.
const PATIENCE: Duration = Duration::from_secs(40);

/// Finds where to press an element: once it is at the same place in two frames, and what is seen there is part of it.
/// Gives up after some frames, so that the caller can look at its own clock. Notes what the pointer presses: an empty
/// text if it is the element.
const RESTING: &str = r#"
    const [selector, text, done] = arguments;
    const find = () => [...document.querySelectorAll(selector)].find((one) => one.innerText.includes(text) && one.getClientRects().length);
    const look = (frames, last) => {
        if (frames === 0) return done(null);
        const found = find();
        if (!found) return requestAnimationFrame(() => look(frames - 1));
        if (!last) found.scrollIntoView({block: 'nearest', behavior: 'instant'});
        const box = found.getClientRects()[0];
        const [x, y] = [Math.floor(box.x + box.width / 2), Math.floor(box.y + box.height / 2)];
        const isSame = last && last.found === found && last.x === x && last.y === y;
        if (!isSame) return requestAnimationFrame(() => look(frames - 1, {found, x, y}));
        if (!found.contains(document.elementFromPoint(x, y))) {
            found.scrollIntoView({block: 'center', behavior: 'instant'});
            return requestAnimationFrame(() => look(frames - 1));
        }
        window.pressed = 'nothing';
        const press = (event) => { window.pressed = found.contains(event.target) ? '' : event.target.outerHTML.slice(0, 200); };
        addEventListener('pointerdown', press, {capture: true, once: true});
        done([x, y]);
    };
    look(60);
"#;

/// Keys that have no letter.
pub const ENTER: &str = "\u{E007}";
pub const ESCAPE: &str = "\u{E00C}";
pub const TAB: &str = "\u{E004}";
pub const DOWN: &str = "\u{E015}";
pub const END: &str = "\u{E010}";
pub const HOME: &str = "\u{E011}";

/// A real browser with one page.
pub struct Browser {
    driver: Child,
    session: String,
    client: reqwest::Client,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser with a profile of its own.
    pub async fn start(width: u32, height: u32) -> Self {
        contexture_gateway::prepare_tls();
        // Nobody else takes a port that was free just now.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let driver = Command::new("chromedriver")
            .args([format!("--port={port}"), "--log-level=OFF".to_owned()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is there: `apt-get install chromium chromium-driver`");
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE * 10).build().unwrap();
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--disable-lcd-text".to_owned(),
            "--force-device-scale-factor=1".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
            format!("--window-size={width},{height}"),
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "timeouts": {"script": 300_000},
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        wait_for(port).await;
        let base = format!("http://127.0.0.1:{port}/session");
        let answer = value(client.post(&base).body(wanted.to_string())).await;
        let id = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {answer}"));
        let browser = Self { driver, session: format!("{base}/{id}"), client, _profile: profile };
        browser.size(width, height).await;
        browser
    }

    async fn post(&self, path: &str, body: Value) -> Result<Value, Value> {
        let answer = value(self.client.post(format!("{}/{path}", self.session)).body(body.to_string())).await;
        match answer["value"]["error"].is_string() {
            true => Err(answer["value"].clone()),
            false => Ok(answer["value"].clone()),
        }
    }

    async fn read(&self, path: &str) -> Value {
        value(self.client.get(format!("{}/{path}", self.session))).await["value"].take()
    }

    /// Asks the browser itself for something.
    pub async fn devtools(&self, name: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": name, "params": parameters})).await.unwrap()
    }

    /// Makes the page so large, to the pixel.
    pub async fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Shows the page as a system would that prefers something.
    pub async fn prefer(&self, scheme: &str, motion: &str) {
        let features = json!({"features": [
            {"name": "prefers-color-scheme", "value": scheme}, {"name": "prefers-reduced-motion", "value": motion}]});
        self.devtools("Emulation.setEmulatedMedia", features).await;
    }

    pub async fn open(&self, url: &str) {
        self.post("url", json!({"url": url})).await.unwrap();
    }

    pub async fn address(&self) -> String {
        self.read("url").await.as_str().unwrap().to_owned()
    }

    /// Runs a script in the page; `return` gives its value.
    pub async fn run(&self, script: &str) -> Value {
        self.post("execute/sync", json!({"script": script, "args": []})).await.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs a script that calls its last argument when it is done.
    pub async fn run_later(&self, script: &str, arguments: Value) -> Value {
        let answer = self.post("execute/async", json!({"script": script, "args": arguments})).await;
        answer.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until a script returns something.
    pub async fn until(&self, what: &str, script: &str) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let value = self.run(&format!("return ({script})")).await;
            if !matches!(value, Value::Null | Value::Bool(false)) && value != json!("") && value != json!(0) {
                return value;
            }
            if Instant::now() > end {
                let page = self.run("return document.body.innerText.slice(0, 3000)").await;
                panic!("{what} is not there after {PATIENCE:?}; the page says:\n{}", page.as_str().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a text is seen.
    pub async fn sees(&self, text: &str) {
        let script = format!("document.body.innerText.includes({})", json!(text));
        self.until(&format!("`{text}`"), &script).await;
    }

    /// Clicks what a person would: the middle of the first element of a selector that has a text. Waits until it rests
    /// and nothing covers it, and fails if something else was under the pointer when it came down.
    pub async fn click(&self, selector: &str, text: &str) {
        let end = Instant::now() + PATIENCE;
        let place = loop {
            let place = self.run_later(RESTING, json!([selector, text])).await;
            if !place.is_null() {
                break place;
            }
            if Instant::now() > end {
                let page = self.run("return document.body.innerText.slice(0, 3000)").await;
                let page = page.as_str().unwrap_or_default();
                panic!("no {selector} with `{text}` rests in view after {PATIENCE:?}; the page says:\n{page}");
            }
        };
        let (x, y) = (place[0].as_f64().unwrap() as i64, place[1].as_f64().unwrap() as i64);
        let actions = json!({"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": x, "y": y}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}]});
        self.post("actions", actions).await.unwrap();
        let hit = self.run("return window.pressed").await;
        assert_eq!(hit, "", "{selector} with `{text}` moved away from under the pointer, which pressed this");
    }

    /// Presses keys, one after the other.
    pub async fn keys(&self, keys: &str) {
        let pressed: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})])
            .collect();
        self.post("actions", json!({"actions": [{"type": "key", "id": "keys", "actions": pressed}]})).await.unwrap();
    }

    /// What the page complained of.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.post("se/log", json!({"type": "browser"})).await.unwrap_or_default();
        let texts = log.as_array().cloned().unwrap_or_default();
        let is_bad = |entry: &&Value| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        texts.iter().filter(is_bad).map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// A picture of the page, as PNG.
    pub async fn picture(&self, name: &str) {
        let Ok(directory) = std::env::var("INSPECTOR_PICTURES") else { return };
        let picture =
            self.devtools("Page.captureScreenshot", json!({"format": "png", "optimizeForSpeed": false})).await;
        let bytes = base64(picture["data"].as_str().unwrap());
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(format!("{directory}/{name}.png"), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser when it is asked to; a thread of its own may wait for that.
        let (client, session) = (self.client.clone(), self.session.clone());
        let quit = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let _ = runtime.block_on(async { client.delete(&session).send().await });
        });
        let _ = quit.join();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Waits until the driver listens.
async fn wait_for(port: u16) {
    let end = Instant::now() + PATIENCE;
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(Instant::now() < end, "chromedriver does not listen after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the driver answers.
async fn value(request: reqwest::RequestBuilder) -> Value {
    serde_json::from_str(&request.send().await.unwrap().text().await.unwrap()).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let text: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').collect();
    for part in text.chunks(4) {
        let bits = part.iter().fold(0, |bits, byte| bits << 6 | value(*byte)) << (6 * (4 - part.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..part.len()]);
    }
    bytes
}
