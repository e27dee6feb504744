//! The user's memory searched by meaning, with an embedder over a real socket.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::own_memory::{Home, claude_lines};
use crate::program::{Run, program, run};

/// Words that mean the same, a line for each meaning. No vector is made of the words themselves.
const MEANINGS: &[&[&str]] = &[
    &["postgres", "schema", "migration"],
    &["outage", "locked", "stuck"],
    &["colour", "paint", "crimson"],
    &["invoice", "billing", "customer"],
];

/// What all texts have in common, as with real models: unrelated texts are not at right angles.
const IN_COMMON: f32 = 1.5;

fn vector(text: &str) -> Vec<f32> {
    let lower = text.to_lowercase();
    let about = |words: &&[&str]| if words.iter().any(|word| lower.contains(word)) { 2.0 } else { 0.0 };
    std::iter::once(IN_COMMON).chain(MEANINGS.iter().map(about)).chain([0.1 * (text.len() % 7) as f32]).collect()
}

/// A server with `/v1/embeddings`, and what it was asked.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), asked: Arc::default() };
        let asked = server.asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &asked);
            }
        });
        server
    }

    /// All that was sent to it, as text.
    fn got(&self) -> String {
        self.asked.lock().unwrap().iter().map(|(head, body)| format!("{head}\n{body}\n")).collect()
    }

    fn texts(&self) -> Vec<usize> {
        self.asked.lock().unwrap().iter().map(|(_, body)| body["input"].as_array().unwrap().len()).collect()
    }
}

fn answer(stream: TcpStream, asked: &Mutex<Vec<(String, Value)>>) {
    let mut reader = BufReader::new(&stream);
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).unwrap() > 2 {
        head.push_str(&line);
        line.clear();
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let rows: Vec<Value> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .map(|(at, text)| json!({ "object": "embedding", "index": at, "embedding": vector(text.as_str().unwrap()) }))
        .collect();
    let answer = json!({ "object": "list", "data": rows, "model": body["model"] }).to_string();
    let head_line = head.lines().next().unwrap().to_owned();
    assert_eq!(head_line, "POST /v1/embeddings HTTP/1.1");
    asked.lock().unwrap().push((head, body));
    let sent = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
    (&stream).write_all(sent.as_bytes()).unwrap();
}

const CONFIG: &str = ".config/contexture/config.toml";

/// A home whose memory has a passage, and an embedder.
fn home(model: &str, port: u16) -> Home {
    let home = Home::new();
    let app = home.project("app");
    let said = [
        ("user", "Our schema migration locked everything for an hour, token ghp_aZ9bY8cX7daZ9bY8cX7daZ9bY8cX7daZ9bY8"),
        ("assistant", "Crimson was chosen."),
    ];
    home.write(".claude/projects/-app/s1.jsonl", &claude_lines(&app, &said));
    let others: Vec<(String, String)> =
        (0..150).map(|at| ("user".to_owned(), format!("Row {at} was counted"))).collect();
    let others: Vec<(&str, &str)> = others.iter().map(|(role, text)| (role.as_str(), text.as_str())).collect();
    home.write(".claude/projects/-app/s2.jsonl", &claude_lines(&app, &others));
    configure(&home, model, port);
    home
}

fn configure(home: &Home, model: &str, port: u16) {
    let text = format!("[memory.embedder]\nurl = \"http://127.0.0.1:{port}/v1\"\nmodel = \"{model}\"\n");
    home.write(CONFIG, &text);
}

/// Shares no word with the passage that it is about, not even a related one.
const QUESTION: &str = "Postgres outage cause";

fn count(home: &Home, sql: &str) -> i64 {
    let path = home.path().join(".local/state/contexture/memory.db");
    Connection::open(path).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn what_shares_no_word_is_found_once_there_is_an_embedder() {
    let server = Server::start();
    let home = home("small", server.port);
    home.write(CONFIG, "");
    home.good("app", &["memory", "import"]);
    assert!(home.run("app", &["memory", "search", QUESTION]).stdout.starts_with("nothing was found"), "by words alone");
    assert!(server.got().is_empty(), "off by default");
    configure(&home, "small", server.port);
    let told = home.good("app", &["memory", "import"]);
    assert!(told.contains("nothing is new") && told.contains("looked at 152 passages for vectors"), "{told}");
    assert!(server.texts().iter().all(|count| *count <= 64) && server.texts().len() == 3, "{:?}", server.texts());
    let found = home.json("app", &["memory", "search", QUESTION, "--json", "--limit", "1"]);
    assert!(found["items"][0]["text"].as_str().unwrap().starts_with("Our schema migration locked"), "{found:#}");
    let asked = home.good("app", &["memory", "search", "ghp_aZ9bY8cX7daZ9bY8cX7daZ9bY8cX7daZ9bY8 outage"]);
    assert!(asked.contains("schema"), "{asked}");
    assert!(!server.got().contains("ghp_aZ9b"), "no secret leaves, of passages or of questions");
    assert!(!server.got().contains("authorization"), "no key was named");
    // The same over MCP.
    let mut command = program(&home.path().join("app"));
    command.env_remove("XDG_STATE_HOME").env("HOME", home.path()).arg("mcp");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "search_past", "arguments": { "text": QUESTION } } });
    let run = run(command, &format!("{call}\n"));
    assert!(run.stdout.contains("schema migration"), "{run:?}");
}

#[test]
fn vectors_of_another_model_are_not_compared_and_are_made_again() {
    let server = Server::start();
    let home = home("small", server.port);
    home.good("app", &["memory", "import"]);
    configure(&home, "large", server.port);
    assert!(home.run("app", &["memory", "search", QUESTION]).stdout.starts_with("nothing was found"));
    assert!(home.good("app", &["memory", "import"]).contains("looked at 152 passages for vectors"));
    assert!(home.good("app", &["memory", "search", QUESTION]).contains("schema migration"));
    assert_eq!(count(&home, "SELECT count(DISTINCT model) FROM search_vectors"), 1, "one vector for a passage");
    assert!(!home.good("app", &["memory", "import"]).contains("vectors"), "nothing is left to do");
}

#[test]
fn an_embedder_that_fails_is_told_once_and_words_are_searched() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let home = home("small", port);
    let warned = |run: &Run| {
        assert_eq!(run.code, 0, "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(run.stderr.starts_with("contexture: warning: the embedder failed"), "{run:?}");
    };
    let imported = home.run("app", &["memory", "import"]);
    warned(&imported);
    assert!(imported.stdout.contains("imported 2 sessions with 152 passages"), "{imported:?}");
    let found = home.run("app", &["memory", "search", "schema migration", "--all"]);
    warned(&found);
    assert!(found.stdout.contains("Our schema migration locked"), "{found:?}");
}

#[test]
fn an_embedder_gets_the_key_that_was_named_and_wrong_settings_are_told() {
    let server = Server::start();
    let home = home("small", server.port);
    let text = format!(
        "[memory.embedder]\nurl = \"http://127.0.0.1:{}/v1\"\nmodel = \"m\"\nkey_env = \"MADE_UP_KEY\"\n",
        server.port
    );
    home.write(CONFIG, &text);
    let missing = home.run("app", &["memory", "search", "row"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    assert!(missing.stderr.contains("the variable `MADE_UP_KEY` has no key for the embedder"), "{missing:?}");
    let mut command = program(&home.path().join("app"));
    command.env("HOME", home.path()).env_remove("XDG_STATE_HOME").env("MADE_UP_KEY", "made-up-word");
    command.env_remove("CLAUDE_CONFIG_DIR").args(["memory", "import"]);
    assert_eq!(run(command, "").code, 0);
    assert!(server.got().contains("authorization: Bearer made-up-word"));
    home.write(CONFIG, "[memory.embedder]\nmodel = \"m\"\n");
    let half = home.run("app", &["memory", "search", "row"]);
    assert!(half.code == 2 && half.stderr.contains("an embedder needs an address and a model"), "{half:?}");
    // Whoever wrote a project must not have what is remembered sent to him.
    home.write("app/contexture.toml", &text);
    home.write(CONFIG, "");
    let mut command = crate::program::bare_program(&home.path().join("app"));
    command.env("HOME", home.path()).args(["memory", "search", "row"]);
    let refused = run(command, "");
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn what_is_forgotten_leaves_no_vector() {
    let server = Server::start();
    let home = home("small", server.port);
    home.good("app", &["memory", "import"]);
    let of_it = "SELECT count(*) FROM search_vectors JOIN search_documents USING (scope) \
                 WHERE search_documents.id = document AND CAST(text AS TEXT) LIKE '%schema migration%'";
    assert_eq!(count(&home, of_it), 1);
    home.good("app", &["memory", "forget", "--containing", "schema migration"]);
    assert_eq!(count(&home, "SELECT count(*) FROM search_vectors"), 151);
    let without = "SELECT count(*) FROM search_vectors WHERE document NOT IN (SELECT id FROM search_documents)";
    assert_eq!(count(&home, without), 0);
    home.good("app", &["memory", "import"]);
    assert!(!home.good("app", &["memory", "search", QUESTION]).contains("schema"));
}
