//! The inspector's API, spoken to over real connections.

use contexture::prelude::{LayerSpec, LlmResponse, MemoryScope, ModelRequest, Slot, layer, memory};
use contexture::wire::Format;
use contexture_gateway::simulate::played::Played;
use contexture_gateway::{Gateway, Options};
use contexture_inspect::view::About;
use contexture_inspect::{Archive, InspectServer, library, playing};
use serde_json::{Value, json};

use super::agent::Agent;
use super::inspected::inspected;
use super::played::{long, play, play_some, records, small};
use super::provider::{Fault, Provider, post};

/// Asks an inspector, with its token.
pub struct Asking {
    base: String,
    token: String,
    client: reqwest::Client,
}

impl Asking {
    pub fn new(inspect_url: &str) -> Self {
        contexture_gateway::prepare_tls();
        let (base, token) = inspect_url.split_once("/inspect/#token=").unwrap();
        Self { base: base.to_owned(), token: token.to_owned(), client: reqwest::Client::new() }
    }

    pub async fn get(&self, path: &str) -> Value {
        let answer =
            self.client.get(format!("{}/api/v1/{path}", self.base)).bearer_auth(&self.token).send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// The status of an answer, and its text.
    pub async fn status(&self, path: &str) -> (u16, String) {
        let answer =
            self.client.get(format!("{}/api/v1/{path}", self.base)).bearer_auth(&self.token).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    pub async fn act(&self, method: reqwest::Method, path: &str, body: Value) -> (u16, Value) {
        let request = self.client.request(method, format!("{}/api/v1/{path}", self.base)).bearer_auth(&self.token);
        let answer = request.header("x-contexture", "1").body(body.to_string()).send().await.unwrap();
        (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
    }

    async fn only_conversation(&self) -> Value {
        let mut page = self.get("conversations").await;
        assert_eq!(page["total"], 1, "{page}");
        page["items"][0].take()
    }

    /// All blocks of a window, page by page.
    pub async fn window(&self, id: &str, n: u64, form: &str) -> Vec<Value> {
        let (mut blocks, mut from) = (Vec::new(), 0);
        loop {
            let page =
                self.get(&format!("conversations/{id}/requests/{n}/window?form={form}&from={from}&limit=7")).await;
            blocks.extend(page["blocks"].as_array().unwrap().iter().cloned());
            match page["next"].as_u64() {
                Some(next) => from = next,
                None => {
                    assert_eq!(page["total"], blocks.len());
                    return blocks;
                }
            }
        }
    }

    pub async fn text(&self, id: &str, block: &Value) -> String {
        let text = self.get(&format!("conversations/{id}/blocks/{}?limit=1000000", block["id"])).await;
        text["text"].as_str().unwrap().to_owned()
    }
}

async fn watched(options: Options, agent: &Agent) -> (Provider, Gateway, InspectServer, Vec<String>) {
    let provider = Provider::start().await;
    // A busy machine must not make the gateway give up on finding a conversation.
    let own_work = std::time::Duration::from_secs(60);
    let (gateway, server) = inspected(&provider, Options { own_work, ..options }).await;
    let sent = play(&gateway, &provider, agent).await;
    records(&gateway, agent.requests().len()).await;
    (provider, gateway, server, sent)
}

async fn all_formats(format: Format) {
    let agent = long(format, 24);
    let (_provider, gateway, server, sent) = watched(small(), &agent).await;
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    let id = conversation["id"].as_str().unwrap();
    assert_eq!(conversation["requests"], sent.len());
    assert_eq!(conversation["title"], "Please bring all modules to the newest version.");
    assert!(conversation["folds"].as_u64().unwrap() > 0);
    // Every text that a model is sent is in the window, and nothing else is.
    for n in [1, sent.len() / 2, sent.len()] {
        let body = &sent[n - 1];
        for block in asking.window(id, n as u64, "sent").await {
            let text = asking.text(id, &block).await;
            if !matches!(block["kind"].as_str(), Some("tool" | "thought" | "call")) {
                let json = serde_json::to_string(&text).unwrap();
                assert!(body.contains(&json[1..json.len() - 1]), "{format:?} {n}: {block}");
            }
        }
    }
    let lines = asking.get(&format!("conversations/{id}/requests?limit=500")).await;
    let lines = lines["items"].as_array().unwrap();
    let mut folds = lines.iter().filter(|line| line["verdicts"][0]["kind"] == "fold").peekable();
    let fold = *folds.peek().expect("something was folded");
    assert!(fold["verdicts"][0]["text"].as_str().unwrap().starts_with("folded to "));
    let (n, states) = (fold["n"].as_u64().unwrap(), |blocks: &[Value], state: &str| {
        blocks.iter().filter(|block| block["state"] == state).count()
    });
    let (made, came) = (asking.window(id, n, "sent").await, asking.window(id, n, "came").await);
    assert!(states(&made, "made") > 0 && states(&came, "shortened") > 0);
    assert_eq!(states(&made, "shortened"), states(&came, "shortened"));
    let before = asking.window(id, n, "before").await;
    assert!(states(&before, "gone") > 0 && states(&before, "new") > 0 && states(&before, "same") > 0);
    // What leaves has its place in the account, as of the first fold that has one.
    for fold in folds {
        let n = fold["n"].as_u64().unwrap();
        let (made, came) = (asking.window(id, n, "sent").await, asking.window(id, n, "came").await);
        if let Some(why) = came.iter().find(|block| block["state"] == "left_out") {
            assert!(why["reason"].as_str().unwrap().contains(&format!("request {n}: ")), "{why}");
            assert!(made.iter().any(|block| block["made"] == "account"), "{format:?} {n}");
            gateway.stop().await;
            return;
        }
    }
    panic!("{format:?}: nothing was left out");
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_what_was_sent_in_messages() {
    all_formats(Format::Messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_what_was_sent_in_chat() {
    all_formats(Format::Chat).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_what_was_sent_in_responses() {
    all_formats(Format::Responses).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_tools_bill_and_search_tell_what_happened() {
    let agent = long(Format::Messages, 10);
    let (_provider, gateway, server, sent) = watched(small(), &agent).await;
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    let id = conversation["id"].as_str().unwrap();
    let files = asking.get(&format!("conversations/{id}/files")).await;
    assert_eq!(files["items"].as_array().unwrap().len(), 7);
    let path = files["items"][0]["path"].as_str().unwrap();
    let history = asking.get(&format!("conversations/{id}/history?path={path}")).await;
    let whats: Vec<&str> =
        history["items"].as_array().unwrap().iter().map(|event| event["what"].as_str().unwrap()).collect();
    assert!(whats.starts_with(&["read", "changed"]), "{whats:?}");
    let tools = asking.get(&format!("conversations/{id}/tools")).await;
    let called = |name: &str| {
        tools["items"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap()["calls"].clone()
    };
    assert_eq!((called("Read"), called("Bash")), (json!(10), json!(10)));
    let bill = asking.get("bill?by=model").await;
    assert_eq!(bill["items"][0]["receipt"]["requests"], sent.len());
    let billed = bill["items"][0]["receipt"]["billed"].as_f64().unwrap();
    assert!((billed - conversation["billed"].as_f64().unwrap()).abs() < 1.0);
    let hits = asking.get("search?q=HANDLE_3_9").await;
    assert!(hits["items"].as_array().unwrap().iter().any(|hit| hit["found"] == "handle_3_9"), "{hits}");
    assert_eq!(asking.get("search?q=%25%25nothing").await["items"], json!([]));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pinned_is_kept() {
    let agent = long(Format::Messages, 24);
    let provider = Provider::start().await;
    let (gateway, server) = inspected(&provider, small()).await;
    let requests = agent.requests();
    play_some(&gateway, &provider, &agent, &requests[..8]).await;
    records(&gateway, 8).await;
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    let id = conversation["id"].as_str().unwrap();
    let window = asking.window(id, 8, "sent").await;
    let output = window.iter().find(|block| block["kind"] == "output" && block["name"] == "Bash").unwrap();
    let text = asking.text(id, output).await;
    let (status, _) = asking
        .act(reqwest::Method::POST, &format!("conversations/{id}/pins"), json!({"block": output["id"], "pinned": true}))
        .await;
    assert_eq!(status, 200);
    let system = window.iter().find(|block| block["source"] == "system").unwrap();
    let (status, _) = asking
        .act(reqwest::Method::POST, &format!("conversations/{id}/pins"), json!({"block": system["id"], "pinned": true}))
        .await;
    assert_eq!(status, 409);
    let sent = play_some(&gateway, &provider, &agent, &requests[8..]).await;
    let call =
        asking.get(&format!("conversations/{id}/blocks/{}", output["id"])).await["call"].as_str().unwrap().to_owned();
    let json = serde_json::to_string(&text).unwrap();
    assert!(sent.last().unwrap().contains(&call) && sent.last().unwrap().contains(&json[1..json.len() - 1]));
    let all = records(&gateway, requests.len()).await;
    assert!(all.iter().skip(8).any(|record| record.decided.iter().any(|note| note.is_fold())), "nothing was folded");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_new_folds_are_made_when_a_person_says_so_and_what_is_forgotten_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let agent = long(Format::Chat, 24);
    let provider = Provider::start().await;
    let (gateway, server) =
        inspected(&provider, Options { store: Some(directory.path().join("gateway.db")), ..small() }).await;
    let requests = agent.requests();
    play_some(&gateway, &provider, &agent, &requests[..6]).await;
    records(&gateway, 6).await;
    let asking = Asking::new(&server.inspector().url());
    let id = asking.only_conversation().await["id"].as_str().unwrap().to_owned();
    let (status, answer) =
        asking.act(reqwest::Method::POST, &format!("conversations/{id}/folding"), json!({"allowed": false})).await;
    assert_eq!(status, 200, "{answer}");
    play_some(&gateway, &provider, &agent, &requests[6..]).await;
    let all = records(&gateway, requests.len()).await;
    assert!(all.iter().skip(6).all(|record| record.decided.is_empty()));
    let (status, _) = asking.act(reqwest::Method::DELETE, &format!("conversations/{id}"), Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(asking.get("conversations").await["total"], 0);
    gateway.stop().await;
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("which concerns module"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_looks_without_the_token() {
    let agent = long(Format::Messages, 2);
    let (_provider, gateway, server, _) = watched(small(), &agent).await;
    let url = server.inspector().url();
    let asking = Asking::new(&url);
    let client = reqwest::Client::new();
    let status = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = client.get(format!("{}{path}", asking.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let bearer = format!("Bearer {}", asking.token);
    let (own, cookie) = (("authorization", bearer.as_str()), format!("contexture={0}; contexture_1={0}", asking.token));
    for path in ["/api/v1/about", "/api/v1/conversations", "/api/v1/events", "/api/v1/search?q=abc"] {
        assert_eq!(status(path, &[]).await, 401, "{path}");
        assert_eq!(status(path, &[("authorization", "Bearer wrong")]).await, 401, "{path}");
        assert_eq!(status(path, &[("cookie", &cookie)]).await, 401, "{path}");
        assert_eq!(status(&format!("{path}?token={}", asking.token), &[]).await, 401, "{path}");
        assert_eq!(status(path, &[own, ("origin", "https://evil.example")]).await, 403, "{path}");
        assert_eq!(status(path, &[own, ("host", "evil.example")]).await, 403, "{path}");
        assert_eq!(status(path, &[own, ("sec-fetch-site", "cross-site")]).await, 401, "{path}");
    }
    assert_eq!(status("/api/v1/conversations", &[own]).await, 200);
    let page = client.get(&url).send().await.unwrap();
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("script-src 'self'") && !policy.contains("unsafe")
    );
    assert!(!page.headers().contains_key("set-cookie"));
    assert!(!page.text().await.unwrap().contains(&asking.token), "the page itself says nothing");
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_being_asked_nothing_is_kept_and_nothing_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(directory.path().join("gateway.db")), ..small() }).await;
    let refused = reqwest::Client::new().get(format!("{}/inspect/", gateway.url())).send().await.unwrap();
    assert_eq!(refused.status().as_u16(), 404);
    assert!(provider.got().is_empty());
    gateway.stop().await;
    assert!(!directory.path().join("inspector.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_outlive_the_gateway_and_go_on_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let options = || Options { store: Some(directory.path().join("gateway.db")), ..small() };
    let agent = long(Format::Messages, 24);
    let provider = Provider::start().await;
    let requests = agent.requests();
    let mut sent = Vec::new();
    for part in [&requests[..30], &requests[30..]] {
        let (gateway, _server) = inspected(&provider, options()).await;
        sent.extend(play_some(&gateway, &provider, &agent, part).await);
        records(&gateway, part.len()).await;
        gateway.stop().await;
    }
    let archive = Archive::open(&directory.path().join("inspector.db")).unwrap();
    let about = About { kind: "store", ..About::default() };
    let server = InspectServer::start("127.0.0.1:0", archive, about).await.unwrap();
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    let id = conversation["id"].as_str().unwrap();
    assert_eq!(conversation["requests"], sent.len());
    let last = asking.window(id, sent.len() as u64, "sent").await;
    for block in last.iter().filter(|block| block["source"] == "made") {
        let json = serde_json::to_string(&asking.text(id, block).await).unwrap();
        assert!(sent.last().unwrap().contains(&json[1..json.len() - 1]));
    }
    let (status, answer) =
        asking.act(reqwest::Method::POST, &format!("conversations/{id}/folding"), json!({"allowed": false})).await;
    assert_eq!(status, 409, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn recordings_are_shown_as_if_they_had_passed() {
    let agent = long(Format::Chat, 40);
    let request: Value = serde_json::from_str(&agent.request(agent.steps.len(), false)).unwrap();
    let lines: String = request["messages"].as_array().unwrap().iter().map(|message| format!("{message}\n")).collect();
    let (transcript, _) = contexture::transcript::Transcript::read(lines.as_bytes()).unwrap();
    let about = About {
        version: "",
        name: String::new(),
        kind: "recordings",
        is_live: true,
        can_act: false,
        can_forget: false,
        ..About::default()
    };
    let server = InspectServer::start("127.0.0.1:0", Archive::temporary().unwrap(), about).await.unwrap();
    let count = playing::play(server.inspector(), &Played::new(Some(16_000)), "r1", &transcript.records).unwrap();
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    // The last outputs were never answered, so no request is recorded for them.
    assert_eq!((conversation["requests"].as_u64(), count), (Some(count as u64), agent.requests().len() - 1));
    assert!(
        conversation["folds"].as_u64().unwrap() > 0
            && conversation["billed"].as_f64() < conversation["passed_through"].as_f64()
    );
    // Any window can be had, also those between two that are kept whole.
    for n in [1, 63, 64, 65, count as u64] {
        let lists = asking.window("r1", n, "came").await;
        assert_eq!(lists.len() as u64, asking.get(&format!("conversations/r1/requests/{n}")).await["came_blocks"]);
    }
    assert_eq!(
        asking
            .client
            .get(format!("{}/api/v1/conversations/r1/requests/9999/window", asking.base))
            .bearer_auth(&asking.token)
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
}

/// The data inside an exported page.
fn exported(html: &str) -> String {
    let text = html.split("type=\"text/plain\">").nth(1).unwrap().split('<').next().unwrap();
    let value = |sign: char| match sign {
        'A'..='Z' => sign as u32 - 'A' as u32,
        'a'..='z' => sign as u32 - 'a' as u32 + 26,
        '0'..='9' => sign as u32 - '0' as u32 + 52,
        '+' => 62,
        _ => 63,
    };
    let signs: Vec<u32> = text.trim_end_matches('=').chars().map(value).collect();
    let bytes = signs.chunks(4).flat_map(|part| {
        let bits = part.iter().fold(0, |bits, sign| bits << 6 | sign) << (6 * (4 - part.len()));
        bits.to_be_bytes()[1..part.len()].to_vec()
    });
    let bytes: Vec<u8> = bytes.collect();
    String::from_utf8(miniz_oxide::inflate::decompress_to_vec(&bytes).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_says_what_the_page_says_however_long_it_is() {
    // More requests than the pictures of the page have columns.
    let (_server, asking) = super::story::played(&super::story::recording(160), 20_000, None).await;
    let count = asking.get("conversations/r1").await["requests"].as_u64().unwrap();
    assert!(count > 300, "{count}");
    let (status, html) = asking.status("conversations/r1/export").await;
    assert_eq!(status, 200);
    let data: Value = serde_json::from_str(&exported(&html)).unwrap();
    for n in [1, 2, count / 2, count] {
        let mut story = asking.get(&format!("conversations/r1/requests/{n}/story")).await;
        assert_eq!(data["requests"][n as usize - 1], story["line"].take(), "{n}");
        assert_eq!(data["stories"][n as usize - 1], story, "{n}");
    }
    for (path, name) in [("events", "events"), ("tools", "tools"), ("files", "files")] {
        assert_eq!(data[name], asking.get(&format!("conversations/r1/{path}")).await["items"], "{name}");
    }
    let blocks = asking.window("r1", count, "sent").await;
    let rows = data["windows"]["sent"].as_array().unwrap().iter().fold(Vec::new(), |mut rows, told| {
        rows.truncate(told["keep"].as_u64().unwrap() as usize);
        rows.extend(told["rows"].as_array().unwrap().iter().map(|row| row[0].clone()));
        rows
    });
    assert_eq!(rows, blocks.iter().map(|block| block["id"].clone()).collect::<Vec<_>>());
    // Most of a conversation is said again and again.
    assert!(html.len() < 1 << 20, "{} bytes", html.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_one_file_without_keys() {
    let mut agent = Agent::new(
        Format::Messages,
        "My key is sk-ant-api03-0123456789abcdef and </script><script>alert(1)</script>.\nmysql -uroot -phunter2 and DB_PASSWORD=correcthorse, https://x.example/?se=1&sig=0123ab45%2Fcd67ef89gh01%3D",
    );
    agent.work(0);
    let (_provider, gateway, server, _) = watched(small(), &agent).await;
    let asking = Asking::new(&server.inspector().url());
    let id = asking.only_conversation().await["id"].as_str().unwrap().to_owned();
    let address = format!("{}/api/v1/conversations/{id}/export", asking.base);
    let html = asking.client.get(address).bearer_auth(&asking.token).send().await.unwrap().text().await.unwrap();
    let data = exported(&html);
    assert!(data.contains("[redacted: Anthropic key]") && data.contains("[redacted: password]"));
    for secret in ["0123456789abcdef", "hunter2", "correcthorse", "cd67ef89gh01"] {
        assert!(!data.contains(secret) && !html.contains(secret), "{secret}");
    }
    assert!(!html.contains("<script>alert") && !html.contains(&asking.token) && !html.contains("src="));
    gateway.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_fold_is_called_refused() {
    let provider = Provider::start().await;
    let (gateway, server) = inspected(&provider, small()).await;
    let agent = long(Format::Messages, 16);
    let only_with = Some("[Contexture's note: `[… left out …]`");
    provider.set_fault(Some(Fault { status: 400, headers: Vec::new(), body: "no", only_with }));
    let (mut refused, mut taken) = (None, Vec::new());
    for (number, at) in agent.requests().into_iter().enumerate() {
        let before = provider.got().len();
        assert_eq!(post(&gateway, agent.format, agent.request(at, false)).await.0, 200);
        if provider.got().len() > before + 1 && refused.is_none() {
            refused = Some(number as u64 + 1);
        }
        taken.push(provider.last().body);
    }
    let refused = refused.expect("the provider refuses the first fold");
    records(&gateway, agent.requests().len()).await;
    let asking = Asking::new(&server.inspector().url());
    let id = asking.only_conversation().await["id"].as_str().unwrap().to_owned();
    // The one before is shown as the provider took it. Of the refused one, the fold is shown that was refused.
    let before = refused - 1;
    for block in asking.window(&id, before, "sent").await {
        if !matches!(block["kind"].as_str(), Some("tool" | "thought" | "call")) {
            let json = serde_json::to_string(&asking.text(&id, &block).await).unwrap();
            assert!(taken[before as usize - 1].contains(&json[1..json.len() - 1]), "{block}");
        }
    }
    let line = asking.get(&format!("conversations/{id}/requests/{refused}")).await;
    assert!(line["sent_tokens"].as_u64() <= line["came_tokens"].as_u64(), "{line}");
    let parts: u64 = line["parts"].as_object().unwrap().values().map(|tokens| tokens.as_u64().unwrap()).sum();
    assert_eq!(json!(parts), line["sent_tokens"], "{line}");
    let told = line["verdicts"].to_string();
    assert!(told.contains("refused"), "{told}");
    gateway.stop().await;
}

/// A model that agrees with everything.
struct Agreeing;

impl contexture::model::Model for Agreeing {
    async fn call(&self, _: ModelRequest) -> Result<LlmResponse, contexture::error::BoxError> {
        Ok(LlmResponse::text("Yes."))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_of_a_library_are_shown_with_their_layers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.db");
    let rules = layer::<u32>(LayerSpec::new("rules", Slot::WORKING_MEMORY, MemoryScope::Thread))
        .recall(|_| async move { Ok("Keep to the rules.".to_owned().into()) })
        .build();
    let engine = contexture::open(&path, memory((rules,))).unwrap().model(Agreeing).build().unwrap();
    let mut execution = engine.execution("of a person/1").start().await.unwrap();
    for text in ["Do we agree?", "Do we still agree?"] {
        execution.turn(text).await.unwrap();
    }
    execution.complete().await.unwrap();
    drop(engine);
    let about = About { kind: "store", note: Some(library::NOT_KEPT.into()), ..About::default() };
    let server = InspectServer::start("127.0.0.1:0", Archive::temporary().unwrap(), about).await.unwrap();
    let store = contexture::store::SqliteStore::open(&path).unwrap();
    assert_eq!(library::read(&store, server.inspector()).await.unwrap(), 1);
    let asking = Asking::new(&server.inspector().url());
    let conversation = asking.only_conversation().await;
    assert_eq!((&conversation["id"], &conversation["requests"]), (&json!("of a person/1"), &json!(2)));
    let about = asking.get("about").await;
    assert!(about["note"].as_str().is_some_and(|note| note.contains("spans and faults")), "{about}");
    let window = asking.window("of%20a%20person%2F1", 2, "sent").await;
    let texts: Vec<&str> = window.iter().map(|block| block["preview"].as_str().unwrap()).collect();
    assert!(texts.iter().any(|text| text.contains("Keep to the rules.")), "{texts:?}");
    assert!(texts.ends_with(&["Do we agree?", "Yes.", "Do we still agree?"]), "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn allowing_folds_again_changes_nothing_that_was_sent() {
    for format in Format::ALL {
        let provider = Provider::start().await;
        let own_work = std::time::Duration::from_secs(60);
        let (gateway, server) = inspected(&provider, Options { own_work, budget: Some(100_000), ..small() }).await;
        let agent = long(format, 6);
        let requests = agent.requests();
        let mut sent = play_some(&gateway, &provider, &agent, &requests[..3]).await;
        records(&gateway, 3).await;
        let asking = Asking::new(&server.inspector().url());
        let id = asking.only_conversation().await["id"].as_str().unwrap().to_owned();
        let path = format!("conversations/{id}/folding");
        let (post, not, again) = (reqwest::Method::POST, json!({"allowed": false}), json!({"allowed": true}));
        assert_eq!(asking.act(post.clone(), &path, not).await.0, 200);
        sent.extend(play_some(&gateway, &provider, &agent, &requests[3..9]).await);
        assert_eq!(asking.act(post, &path, again).await.0, 200);
        sent.extend(play_some(&gateway, &provider, &agent, &requests[9..]).await);
        let records = records(&gateway, requests.len()).await;
        for (n, record) in records.iter().enumerate().skip(1) {
            let has_folded = record.decided.iter().any(|note| note.is_fold());
            let digests = |n: usize| super::played::digests(format, &sent[n]);
            assert!(has_folded || digests(n).starts_with(&digests(n - 1)), "{format:?}: request {n} moved");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_has_the_tokens_of_its_request_in_all_formats() {
    let provider = Provider::start().await;
    let (gateway, server) = inspected(&provider, small()).await;
    for (n, format) in Format::ALL.into_iter().enumerate() {
        // The instructions are the same text, which each format has in another place.
        let agent = Agent::new(format, "Look at one file.");
        play(&gateway, &provider, &agent).await;
        records(&gateway, n + 1).await;
    }
    let asking = Asking::new(&server.inspector().url());
    let conversations = asking.get("conversations").await;
    for conversation in conversations["items"].as_array().unwrap() {
        let path = format!("conversations/{}/requests", conversation["id"].as_str().unwrap());
        let (lines, window) = (asking.get(&path).await, asking.get(&format!("{path}/1/window?form=sent")).await);
        assert_eq!(window["tokens"], lines["items"][0]["sent_tokens"]);
    }
}
