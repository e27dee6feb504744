//! What a person sees while a turn runs, and after it.

use std::fs;

use serde_json::json;

use super::line_mode::place;
use super::provider::{Provider, Reply};
use super::screen::Screen;
use super::terminal::Terminal;

/// The rows on the screen.
fn rows(terminal: &Terminal, columns: usize) -> Vec<String> {
    let text = |row: &Vec<super::screen::Cell>| row.iter().map(|cell| cell.text.as_str()).collect::<String>();
    Screen::after(&terminal.all(), columns).rows().iter().map(text).collect()
}

#[test]
fn a_command_shows_its_last_lines_while_it_runs_and_then_its_exit_code() {
    let place = place();
    let command = "for n in 1 2 3 4 5 6 7 8; do echo line $n; done; while [ ! -e go ]; do sleep 0.02; done; exit 3";
    let provider =
        Provider::start(vec![Reply::Calls("execute_bash", json!({"command": command})), Reply::Says("Done.")]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &["--yes"]);
    terminal.expect("› ");
    terminal.press("run it\r");
    terminal.expect("│ line 8");
    assert!(rows(&terminal, 80).iter().all(|row| !row.contains("│ line 3")), "only the last lines are shown");
    fs::write(place.path().join("project/go"), "").expect("a file");
    terminal.expect("└ exit code 3");
    terminal.expect("Done.");
    terminal.expect("› ");
    let rows = rows(&terminal, 80);
    let at = rows.iter().position(|row| row == "  └ exit code 3").unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(rows[at - 2..at], ["  │ line 7", "  │ line 8"]);
    assert!(rows.iter().all(|row| !row.contains("Ctrl-C interrupts")), "{rows:?}");
}

#[test]
fn what_is_said_while_the_model_works_is_said_after_it() {
    let place = place();
    let wait = json!({"command": "while [ ! -e go ]; do sleep 0.02; done"});
    let provider =
        Provider::start(vec![Reply::Calls("execute_bash", wait), Reply::Says("First."), Reply::Says("Second.")]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &["--yes"]);
    terminal.expect("› ");
    terminal.press("begin\r");
    terminal.expect("● execute_bash");
    terminal.press("and then?\rhalf a");
    terminal.expect("(said next)");
    terminal.expect("half a");
    fs::write(place.path().join("project/go"), "").expect("a file");
    terminal.expect("First.");
    terminal.expect("› and then?");
    terminal.expect("Second.");
    terminal.expect("› half a");
    assert!(provider.last().contains("and then?") && !provider.last().contains("half a"));
}

#[test]
fn an_interrupt_gives_back_what_was_to_be_said_next() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Stalls("half of")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("begin\r");
    terminal.expect("half of");
    terminal.press("and then?\r");
    terminal.expect("(said next)");
    terminal.press("\x03");
    terminal.expect("Interrupted.");
    terminal.expect("› and then?");
    assert_eq!(provider.received().len(), 1);
}

#[test]
fn answers_are_rendered_and_no_word_is_cut() {
    let says = "# A heading\n\nSome **important** words in a paragraph that is much longer than a row.\n\n\
                - a point about `code` that needs several rows\n```rust\nlet x = 1; // why\n```\nthe end";
    for columns in [24, 30, 57, 120] {
        let (place, provider) = (place(), Provider::start(vec![Reply::Says(says)]));
        let mut terminal = Terminal::start(place.path(), &provider, columns, &[]);
        terminal.expect("› ");
        terminal.press("go\r");
        terminal.expect("the end");
        terminal.expect("› ");
        let rows = rows(&terminal, columns.into());
        for word in ["heading", "important", "paragraph", "several", "longer", "code"] {
            assert!(rows.iter().any(|row| row.split([' ', ',', '.']).any(|part| part == word)), "{word}: {rows:?}");
        }
        assert!(rows.iter().any(|row| row == "◆ A heading") && rows.iter().any(|row| row.starts_with("  • a point")));
        assert!(rows.iter().all(|row| !row.contains("**")), "{rows:?}");
        assert!(terminal.all().contains("\x1b[35mlet\x1b[0m x = \x1b[33m1\x1b[0m; \x1b[2m// why\x1b[0m"));
    }
}

#[test]
fn retries_and_what_a_turn_used_are_said() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Busy, Reply::Bills("Well.")]));
    let mut terminal = Terminal::start(place.path(), &provider, 200, &[]);
    terminal.expect("› ");
    terminal.press("hello\r");
    terminal.expect("come back later");
    terminal.expect("retry 1 in 1 s");
    terminal.expect("Well.");
    terminal.expect("12k tokens in (50% from the cache), 1.2k out");
}

#[test]
fn a_sign_of_life_is_there_while_nothing_comes() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Stalls("")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("hello\r");
    let shown = terminal.expect("waiting for the model · 2 s");
    assert!(shown.contains('⠋') && shown.contains('⠸'), "it turns: {shown:?}");
}

#[test]
fn who_goes_on_sees_what_was_said() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("The **first** answer.")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &["the first question"]);
    terminal.expect("answer.");
    terminal.expect("› ");
    terminal.press("\x04");
    terminal.expect("--thread");
    drop(terminal);
    let terminal = Terminal::start(place.path(), &provider, 80, &["--continue"]);
    terminal.expect("› the first question");
    terminal.expect("\x1b[1mfirst\x1b[0m answer.");
    terminal.expect("lists commands");
}

#[test]
fn what_is_cut_of_a_file_is_said_to_the_person() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Long.")]));
    let text: String = (0..4_000).map(|line| format!("line number {line} of a long file\n")).collect();
    fs::write(place.path().join("project/long.txt"), text).expect("a file");
    let mut terminal = Terminal::start(place.path(), &provider, 100, &["--budget", "16000"]);
    terminal.expect("› ");
    terminal.press("what is in #long.txt \r");
    terminal.expect("long.txt is too long for the window: lines ");
    terminal.expect("are not shown to the model");
    terminal.expect("Long.");
}

/// An editor that speaks the Agent Client Protocol; the library of the protocol itself is tried by a script.
mod acp {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdin, ChildStdout, Stdio};

    use serde_json::{Value, json};

    use super::super::line_mode::{chat, place};
    use super::super::provider::{Provider, Reply};

    struct Editor {
        child: Child,
        input: Option<ChildStdin>,
        output: BufReader<ChildStdout>,
        updates: Vec<Value>,
        /// What it says when it is asked for a file.
        open: Value,
        written: Vec<Value>,
    }

    impl Editor {
        fn start(place: &std::path::Path, provider: &Provider) -> Self {
            let mut command = chat(place, &["--acp", "--url", &provider.url, "--model", "m"]);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
            let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().expect("a pipe")));
            Self { child, input, output, updates: Vec::new(), open: Value::Null, written: Vec::new() }
        }

        fn write(&mut self, line: &str) {
            writeln!(self.input.as_mut().expect("it is open"), "{line}").expect("the program reads");
        }

        fn next(&mut self) -> Value {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the program writes");
            serde_json::from_str(&line).expect("JSON")
        }

        /// The response to a request; questions are answered with an option.
        fn ask(&mut self, id: u64, method: &str, params: Value, option: &str) -> Value {
            self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
            loop {
                let message = self.next();
                match message["method"].as_str() {
                    Some("session/update") => self.updates.push(message["params"]["update"].clone()),
                    Some(method @ ("fs/read_text_file" | "fs/write_text_file")) => {
                        if method == "fs/write_text_file" {
                            self.written.push(message["params"].clone());
                        }
                        let mut reply = self.open.clone();
                        reply["id"] = message["id"].clone();
                        self.write(&reply.to_string());
                    }
                    Some(_) => {
                        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
                        self.write(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": outcome }).to_string());
                    }
                    None if message["id"] == id => return message,
                    None => {}
                }
            }
        }
    }

    impl Drop for Editor {
        fn drop(&mut self) {
            drop(self.input.take());
            let _ = self.child.wait();
        }
    }

    #[test]
    fn an_editor_prompts_allows_and_loads() {
        let place = place();
        let write = json!({"path": "made.txt", "content": "x"});
        let provider = Provider::start(vec![
            Reply::Calls("write_file", write.clone()),
            Reply::Calls("write_file", write),
            Reply::Says("Done."),
        ]);
        let directory = place.path().join("project").canonicalize().expect("a directory");
        let mut editor = Editor::start(place.path(), &provider);
        let hello = editor.ask(1, "initialize", json!({ "protocolVersion": 1 }), "");
        assert_eq!(hello["result"]["protocolVersion"], 1);
        let opened = editor.ask(2, "session/new", json!({ "cwd": directory, "mcpServers": [] }), "");
        let session = opened["result"]["sessionId"].as_str().expect("an id").to_owned();
        let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "make it" }] });
        let done = editor.ask(3, "session/prompt", prompt, "once");
        assert_eq!(done["result"]["stopReason"], "end_turn", "{done}");
        assert!(directory.join("made.txt").exists());
        let ids: Vec<&Value> = editor
            .updates
            .iter()
            .filter(|update| update["sessionUpdate"] == "tool_call")
            .map(|u| &u["toolCallId"])
            .collect();
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        editor.updates.clear();
        let load = json!({ "sessionId": session, "cwd": directory, "mcpServers": [] });
        assert!(editor.ask(4, "session/load", load, "")["error"].is_null());
        let texts: Vec<&Value> = editor.updates.iter().map(|update| &update["content"]["text"]).collect();
        assert!(texts.contains(&&json!("make it")) && texts.contains(&&json!("Done.")), "{texts:?}");
    }

    #[test]
    fn files_of_the_editor_count_only_if_it_says_so_and_only_if_it_has_them() {
        let capable = json!({ "fs": { "readTextFile": true, "writeTextFile": true } });
        for (capabilities, open, seen, is_saved) in [
            (&capable, json!({ "result": { "content": "not saved\n" } }), "not saved", false),
            // Without the capability nobody is asked.
            (&json!({}), json!({ "result": { "content": "not saved\n" } }), "on the disk", true),
            (&json!({ "fs": { "readTextFile": "yes" } }), json!({ "result": { "content": "x" } }), "on the disk", true),
            // What is no text is none.
            (&capable, json!({ "error": { "code": -1, "message": "gone" } }), "on the disk", false),
            (&capable, json!({ "result": { "content": 7 } }), "on the disk", false),
            (&capable, json!({ "result": null }), "on the disk", false),
        ] {
            let place = place();
            let directory = place.path().join("project").canonicalize().expect("a directory");
            std::fs::write(directory.join("a.txt"), "on the disk\n").expect("it can be written");
            let provider = Provider::start(vec![
                Reply::Calls("read_file", json!({ "path": "a.txt" })),
                Reply::Calls("write_file", json!({ "path": "a.txt", "content": "new\n" })),
                Reply::Says("Done."),
            ]);
            let mut editor = Editor::start(place.path(), &provider);
            editor.open = open.clone();
            editor.ask(1, "initialize", json!({ "protocolVersion": 1, "clientCapabilities": capabilities }), "");
            let opened = editor.ask(2, "session/new", json!({ "cwd": directory, "mcpServers": [] }), "");
            let prompt =
                json!({ "sessionId": opened["result"]["sessionId"], "prompt": [{ "type": "text", "text": "go" }] });
            assert_eq!(editor.ask(3, "session/prompt", prompt, "once")["result"]["stopReason"], "end_turn");
            assert!(provider.last().contains(seen), "{capabilities} {open}: {}", provider.last());
            let saved = std::fs::read_to_string(directory.join("a.txt")).expect("it is there");
            assert_eq!(saved == "new\n", is_saved, "{capabilities} {open}");
            let written: Vec<&Value> = editor.written.iter().map(|params| &params["content"]).collect();
            assert_eq!(written.len(), usize::from(!is_saved), "{capabilities} {open}");
            assert!(written.iter().all(|text| **text == "new\n"));
        }
    }

    #[test]
    fn sessions_that_are_asked_for_at_once_are_counted_too() {
        let (place, provider) = (place(), Provider::start(Vec::new()));
        let mut editor = Editor::start(place.path(), &provider);
        let params = json!({ "cwd": place.path().join("project"), "mcpServers": [] });
        for id in 0..20 {
            editor.write(&json!({ "id": id, "method": "session/new", "params": params }).to_string());
        }
        let responses: Vec<Value> = (0..20).map(|_| editor.next()).collect();
        let opened = responses.iter().filter(|response| response["result"]["sessionId"].is_string()).count();
        assert_eq!(opened, 16, "{responses:?}");
    }

    #[test]
    fn hostile_messages_are_refused_and_nothing_ends() {
        let (place, provider) = (place(), Provider::start(vec![Reply::Says("Done.")]));
        let mut editor = Editor::start(place.path(), &provider);
        for line in ["{", "[]", "7", &"[".repeat(10_000), &format!("{{\"x\":\"{}", "x".repeat(17 << 20))] {
            editor.write(line);
            assert_eq!(editor.next()["error"]["code"], -32600);
        }
        editor.write("{\"id\":99,\"result\":{}}\n\n{\"method\":\"session/cancel\",\"params\":7}");
        for (id, (method, params)) in (1..).zip([
            ("no/such", json!({})),
            ("session/new", json!(null)),
            ("session/new", json!({ "cwd": "relative" })),
            ("session/new", json!({ "cwd": "/nowhere/at/all", "mcpServers": [] })),
            (
                "session/new",
                json!({ "cwd": "/", "mcpServers": [{ "type": "http", "name": "x", "url": "http://127.0.0.1:1/" }] }),
            ),
            ("session/new", json!({ "cwd": "/", "mcpServers": [{ "type": "http", "name": "x", "url": "file:///x" }] })),
            ("session/new", json!({ "cwd": "/", "mcpServers": [{ "type": "sse", "name": "x", "url": "http://x" }] })),
            ("session/load", json!({ "cwd": "/", "sessionId": "none" })),
            ("session/prompt", json!({ "sessionId": "none", "prompt": [{ "type": "text", "text": "x" }] })),
            ("session/prompt", json!({ "sessionId": "none" })),
        ]) {
            let response = editor.ask(id, method, params, "");
            assert!(response["error"]["code"].is_i64(), "{method}: {response}");
        }
    }
}
