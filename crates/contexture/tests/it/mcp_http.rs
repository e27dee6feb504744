//! MCP servers over HTTP, good and hostile ones.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use contexture::BoxFuture;
use contexture::prelude::*;
use contexture::testing::{ScriptedModel, engine};
use contexture::tools::{McpAddress, McpHost, McpProgress, McpQuestion, McpReply, McpServer};
use serde_json::json;

/// A server of the path that is asked for, from the published rules of streamable HTTP. It prints its port, and then
/// every message that it gets with the headers of the protocol.
const SERVER: &str = r#"
import http.server, json, sys, threading
replied, apart = {}, []
waiting = threading.Condition()
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def say(self, status, body=b"", kind="application/json", headers=()):
        self.send_response(status)
        for name, value in headers: self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def tell(self, id, result=None, error=None, headers=(), status=200):
        message = {"jsonrpc": "2.0", "id": id}
        message.update({"error": error} if error else {"result": result})
        self.say(status, json.dumps(message).encode(), headers=headers)
    def events(self):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
    def event(self, message):
        self.wfile.write(("event: message\r\ndata: " + json.dumps(message) + "\r\n\r\n").encode())
        self.wfile.flush()
    def do_GET(self):
        if self.path != "/old" or self.headers.get("mcp-session-id") != "s-1":
            return self.say(405)
        self.events()
        with waiting:
            while waiting.wait_for(lambda: apart, 10):
                self.event(apart.pop())
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, id, params = message.get("method"), message.get("id"), message.get("params", {})
        names = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "authorization", "accept"]
        print(json.dumps([self.path, message, {name: self.headers.get(name) for name in names}]), flush=True)
        kind = self.path.strip("/")
        if kind == "moved":
            return self.say(307, headers=[("location", f"http://127.0.0.1:{self.server.server_port}/stolen")])
        if kind == "locked":
            return self.say(401, b'{"error": "who are you?"}')
        if kind == "old":
            if method == "initialize":
                result = {"protocolVersion": "2025-06-18", "capabilities": {}}
                return self.tell(id, result, headers=[("mcp-session-id", "s-1")])
            if self.headers.get("mcp-session-id") != "s-1":
                return self.tell(None, error={"code": -32000, "message": "not initialized"}, status=400)
            if self.headers.get("mcp-protocol-version") != "2025-06-18":
                return self.say(400, b"no version")
        elif method == "server/discover":
            return self.tell(id, {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}})
        if method is None:
            with waiting:
                replied[id] = message.get("result")
                waiting.notify_all()
            return self.say(202)
        if id is None:
            return self.say(202)
        if method == "tools/list":
            tools = ["add", "ask", "ask_apart", "slow", "huge", "huge_event", "silent", "text", "stranger", "refused"]
            return self.tell(id, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]})
        name, text = params["name"], lambda text: {"content": [{"type": "text", "text": text}]}
        if name == "add":
            self.events()
            token = params["_meta"]["progressToken"]
            self.wfile.write(b": a comment\n\nid: 1\ndata:\n\n")
            progress = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            progress["progressToken"] = 4711
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            self.event({"jsonrpc": "2.0", "id": id, "result": text("3")})
        elif name == "ask":
            self.events()
            form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
            ask = {"message": "How many?", "requestedSchema": form}
            self.event({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": ask})
            self.event({"jsonrpc": "2.0", "id": "q-2", "method": "sampling/createMessage", "params": {}})
            with waiting:
                waiting.wait_for(lambda: "q-1" in replied, 10)
            self.event({"jsonrpc": "2.0", "id": id, "result": text(json.dumps(replied["q-1"]))})
        elif name == "ask_apart":
            form = {"type": "object", "properties": {"n": {"type": "integer"}}}
            ask = {"message": "How many?", "requestedSchema": form}
            with waiting:
                apart.append({"jsonrpc": "2.0", "id": "q-3", "method": "elicitation/create", "params": ask})
                waiting.notify_all()
                waiting.wait_for(lambda: "q-3" in replied, 10)
            self.tell(id, text("apart " + replied.get("q-3", {}).get("action", "nothing")))
        elif name == "slow":
            self.events()
            try:
                while True:
                    self.wfile.write(b": still here\n\n")
                    self.wfile.flush()
                    threading.Event().wait(0.02)
            except OSError:
                print(json.dumps(["closed", {}, {}]), flush=True)
        elif name == "huge":
            self.tell(id, text("x" * (9 << 20)))
        elif name == "huge_event":
            self.events()
            self.event({"jsonrpc": "2.0", "id": id, "result": text("x" * (9 << 20))})
        elif name == "silent":
            self.events()
        elif name == "text":
            self.say(200, b"<html>", "text/html")
        elif name == "stranger":
            self.tell(999, text("for somebody else"))
        else:
            self.tell(None, error={"code": -32001, "message": "not\u202e today " + "x" * 9000}, status=503)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// A running server, with what it got.
struct Rig {
    child: Child,
    port: u16,
    got: Arc<Mutex<Vec<Value>>>,
}

type Value = serde_json::Value;

impl Rig {
    fn start() -> Self {
        let mut child = Command::new("python3").args(["-c", SERVER]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.next().unwrap().parse().unwrap();
        let got = Arc::<Mutex<Vec<Value>>>::default();
        let kept = got.clone();
        std::thread::spawn(move || {
            lines.for_each(|line| kept.lock().unwrap().push(serde_json::from_str(&line).unwrap()));
        });
        Self { child, port, got }
    }

    fn address(&self, path: &str) -> McpAddress {
        let headers = vec![("Authorization".to_owned(), "Bearer secret-4711".to_owned())];
        McpAddress { url: format!("http://127.0.0.1:{}/{path}", self.port), headers }
    }

    /// Waits until it got something.
    async fn wait(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let found = self.got.lock().unwrap().iter().find(|got| is_it(got)).cloned();
            match found {
                Some(found) => return found,
                None => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Says three to every question, and keeps what it is told.
#[derive(Default)]
struct Says(Mutex<Vec<McpProgress>>);

impl McpHost for Says {
    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&self, question: McpQuestion) -> BoxFuture<'_, McpReply> {
        assert_eq!((question.server.as_str(), question.message.as_str()), ("far", "How many?"));
        let said = json!({ "n": 3 }).as_object().unwrap().clone();
        Box::pin(std::future::ready(McpReply::Accept(said)))
    }

    fn progress(&self, progress: McpProgress) {
        self.0.lock().unwrap().push(progress);
    }
}

/// What calls of tools return.
async fn outputs(server: &McpServer, calls: &[&str]) -> Vec<String> {
    let model = calls.iter().fold(ScriptedModel::new(), |model, call| model.calls(&format!("far/{call}"), "{}"));
    let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    execution.log().iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_is_asked_without_a_handshake_and_told_what_each_request_is() {
    let (rig, host) = (Rig::start(), Arc::new(Says::default()));
    let server = McpServer::connect("far", &rig.address("new"), host.clone()).await.unwrap();
    assert!(server.is_stateless());
    assert_eq!(outputs(&server, &["add"]).await, ["3"]);
    let told = host.0.lock().unwrap().len();
    assert_eq!(told, 1, "progress of a call that was not made is not told");
    for got in rig.got.lock().unwrap().iter() {
        let (message, headers) = (&got[1], &got[2]);
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(
            (&headers["mcp-method"], &headers["authorization"]),
            (&message["method"], &json!("Bearer secret-4711"))
        );
        assert_eq!(headers["mcp-name"], message["params"].get("name").cloned().unwrap_or_default());
        assert_eq!(
            (&headers["mcp-session-id"], &headers["accept"]),
            (&Value::Null, &json!("application/json, text/event-stream"))
        );
    }
    assert!(!format!("{:?}", rig.address("new")).contains("4711"), "keys are not shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_sessions_is_told_its_session_and_may_ask() {
    let (rig, host) = (Rig::start(), Arc::new(Says::default()));
    let server = McpServer::connect("far", &rig.address("old"), host.clone()).await.unwrap();
    assert!(!server.is_stateless());
    let expected = ["3", r#"{"action": "accept", "content": {"n": 3}}"#, "apart accept"];
    assert_eq!(outputs(&server, &["add", "ask", "ask_apart"]).await, expected);
    // What is not offered is refused, on a request of its own.
    let refused = rig.wait(|got| got[1]["id"] == "q-2").await;
    assert_eq!(refused[1]["error"]["code"], -32601);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_responses_end_a_call_and_nothing_else() {
    let rig = Rig::start();
    let server = McpServer::connect("far", &rig.address("new"), Arc::new(Says::default())).await.unwrap();
    let calls = ["huge", "huge_event", "silent", "text", "stranger", "refused", "add"];
    let outputs = outputs(&server, &calls).await;
    let refused = |why: &str| format!("the MCP server `far` refused `tools/call`: {why}");
    assert_eq!(outputs[0], refused("it sent more than 8 MB in one message"));
    assert_eq!(outputs[1], refused("it sent more than 8 MB in one message"));
    for silent in &outputs[2..5] {
        assert_eq!(*silent, refused("it sent no response"));
    }
    assert!(outputs[5].starts_with(&refused("status 503: not")) && outputs[5].len() < 400, "{}", outputs[5]);
    assert_eq!(outputs[6], "3", "the server is still used");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_closes_its_connection_and_older_servers_are_told() {
    for kind in ["new", "old"] {
        let rig = Rig::start();
        let server = McpServer::connect("far", &rig.address(kind), Arc::new(Says::default())).await.unwrap();
        let model = ScriptedModel::new().calls("far/slow", "{}");
        let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
        let mut execution = engine.execution("t").start().await.unwrap();
        let abort = execution.abort_handle();
        let turn = tokio::spawn(async move { execution.turn("go").await.map(drop) });
        let called = rig.wait(|got| got[1]["params"]["name"] == "slow").await;
        abort.abort();
        assert!(turn.await.unwrap().is_err());
        rig.wait(|got| got[0] == "closed").await;
        if kind == "old" {
            let told = rig.wait(|got| got[1]["method"] == "notifications/cancelled").await;
            assert_eq!(told[1]["params"]["requestId"], called[1]["id"]);
        }
        let is_told = |got: &Value| got[1]["method"] == "notifications/cancelled";
        assert_eq!(rig.got.lock().unwrap().iter().any(is_told), kind == "old");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_is_named_and_no_key_goes_elsewhere() {
    let rig = Rig::start();
    let connect = async |address: McpAddress| {
        McpServer::connect("far", &address, Arc::new(Says::default())).await.unwrap_err().to_string()
    };
    let moved = connect(rig.address("moved")).await;
    assert!(moved.contains("it is elsewhere (status 307), which is not followed"), "{moved}");
    assert!(rig.got.lock().unwrap().iter().all(|got| got[0] == "/moved"));
    let locked = connect(rig.address("locked")).await;
    assert!(locked.contains("it asks for another key, or for one (status 401)"), "{locked}");
    let gone = connect(McpAddress { url: "http://127.0.0.1:1/".to_owned(), headers: Vec::new() }).await;
    assert!(gone.contains("it cannot be reached"), "{gone}");
    for (url, why) in [("file:///etc/passwd", "must begin with"), ("mine", "relative URL"), ("", "relative URL")] {
        let said = connect(McpAddress { url: url.to_owned(), headers: Vec::new() }).await;
        assert!(said.starts_with("the address of the MCP server `far`: ") && said.contains(why), "{said}");
    }
    let headers = vec![("x".to_owned(), "two\nlines of a key".to_owned())];
    let said = connect(McpAddress { headers, ..rig.address("new") }).await;
    assert!(said.contains("characters that are not allowed") && !said.contains("two"), "{said}");
}
