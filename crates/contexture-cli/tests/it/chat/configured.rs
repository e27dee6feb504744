//! `[chat]` and `[[mcp]]` of a person's configuration, and keys that are found nowhere.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::line_mode::{chat, place};
use super::provider::{Provider, Reply};
use crate::program::{bare_program, run};

const KEY: &str = "sk-made-up-and-never-to-be-seen-7725";

/// A server of one tool, which says what it was called with and which variable it has.
const SERVER: &str = r#"
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        text = "hello " + message["params"]["arguments"]["name"] + " in " + os.environ["GREETING_CITY"]
        result = {"content": [{"type": "text", "text": text}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

/// Writes the person's own configuration.
pub fn configure(place: &Path, text: &str) {
    let directory = place.join("home/.config/contexture");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("config.toml"), text).expect("a file");
}

/// The program with the configuration of the place's home.
pub fn configured(place: &Path, arguments: &[&str]) -> Command {
    let mut command = chat(place, arguments);
    command.env_remove("XDG_CONFIG_HOME");
    command
}

/// The files beneath a directory in which a text is.
pub fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            found.extend(files_with(&entry, text));
        } else if fs::read(&entry).expect("a file").windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(entry.file_name().expect("a name").to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn the_configuration_names_the_server_the_model_and_the_key() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("hello")]));
    let text = format!("[chat]\nurl = \"{}\"\nmodel = \"mine\"\nformat = \"chat\"\nkey_env = \"MINE\"\n", provider.url);
    configure(place.path(), &text);
    let mut command = configured(place.path(), &["--print", "hi"]);
    command.env("MINE", KEY).env("OPENAI_API_KEY", "sk-of-another");
    let said = run(command, "");
    assert_eq!((said.code, said.stdout.as_str()), (0, "hello\n"), "{}", said.stderr);
    assert_eq!(provider.received()[0]["model"], "mine");
    assert!(provider.heads()[0].contains(KEY) && !provider.heads()[0].contains("sk-of-another"));
    // A flag names another server, which gets no key of the configured one.
    let other = Provider::start(vec![Reply::Says("there")]);
    let mut command = configured(place.path(), &["--print", "--url", &other.url, "--model", "m", "hi"]);
    command.env("MINE", KEY);
    assert_eq!(run(command, "").stdout, "there\n");
    assert!(!other.heads()[0].contains(KEY), "{}", other.heads()[0]);
    // A project may not say where what is said goes.
    fs::write(place.path().join("project/contexture.toml"), text).expect("a file");
    let mut command = bare_program(&place.path().join("project"));
    command.env("HOME", place.path().join("home")).args(["chat", "--print", "hi"]);
    let refused = run(command, "");
    assert!(refused.code == 2 && refused.stderr.contains("cannot be set by a project"), "{}", refused.stderr);
}

#[test]
fn a_key_alone_does_not_say_whose_it_is() {
    let place = place();
    configure(place.path(), &format!("[chat]\nkey = \"{KEY}\"\n"));
    let said = run(configured(place.path(), &["--print", "hi"]), "");
    assert_eq!((said.code, said.stdout.as_str()), (2, ""));
    assert!(said.stderr.contains("whose key") && !said.stderr.contains(KEY), "{}", said.stderr);
}

#[test]
fn tools_of_a_configured_mcp_server_are_called_if_they_may() {
    for (is_allowed, expected) in [(true, "hello Ada in Oslo"), (false, "not started with --yes")] {
        let place = place();
        let greet = Reply::Calls("greetings__greet", json!({"name": "Ada"}));
        let provider = Provider::start(vec![greet, Reply::Says("Greeted.")]);
        let server = place.path().join("server.py");
        fs::write(&server, SERVER).expect("a file");
        let text = format!(
            "[[mcp]]\nname = \"greetings\"\ncommand = \"python3\"\nargs = [{server:?}]\nenv = [\"GREETING_CITY=Oslo\"]\n"
        );
        configure(place.path(), &text);
        let mut arguments = vec!["--print", "--url", &provider.url, "--model", "m", "greet Ada"];
        arguments.extend(is_allowed.then_some("--yes"));
        let said = run(configured(place.path(), &arguments), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "Greeted.\n"), "{}", said.stderr);
        assert!(provider.last().contains(expected), "{}", provider.last());
    }
}

/// The key is in the configuration, then in a variable; the model prints its environment, and the provider repeats the
/// key in its refusal.
#[test]
fn a_key_is_found_nowhere() {
    for is_in_environment in [false, true] {
        let place = place();
        let printed = Reply::Calls("execute_bash", json!({"command": "env; cat /proc/$PPID/cmdline"}));
        let provider = Provider::start(vec![printed, Reply::Refuses]);
        let key = if is_in_environment { "key_env = \"MINE\"".to_owned() } else { format!("key = \"{KEY}\"") };
        let secret = "token-of-a-server-3141";
        let text = format!(
            "[chat]\nurl = \"{}\"\nmodel = \"m\"\n{key}\n[[mcp]]\nname = \"s\"\ncommand = \"python3\"\nargs = [\"-c\", {SERVER:?}]\nenv = [\"TOKEN={secret}\"]\n",
            provider.url
        );
        configure(place.path(), &text);
        let mut shown = String::new();
        let commands: [&[&str]; 6] = [
            &["chat", "--print", "--yes", "print your environment"],
            &["chat", "--print", "--continue"],
            &["chat", "--threads"],
            &["config"],
            &["config", "--json"],
            &["chat", "--print", "--url", "http://127.0.0.1:1/v1", "--model", "m", "--key-env", "MINE", "hi"],
        ];
        for arguments in commands {
            let mut command = bare_program(&place.path().join("project"));
            command
                .env("HOME", place.path().join("home"))
                .env("OLLAMA_HOST", "127.0.0.1:1")
                .env_remove("XDG_STATE_HOME");
            if is_in_environment {
                command.env("MINE", KEY).env("CONTEXTURE_CHAT_KEY", KEY);
            }
            command.args(arguments);
            let said = run(command, "");
            shown.push_str(&format!("{arguments:?} {}\n{}\n{}\n", said.code, said.stdout, said.stderr));
        }
        assert!(provider.heads().iter().all(|head| head.contains(KEY)), "the key was sent");
        assert!(provider.last().contains("PATH="), "{}", provider.last());
        assert!(
            shown.contains("not with these") && shown.contains("[key]") && shown.contains("(not shown)"),
            "{shown}"
        );
        for secret in [KEY, secret] {
            assert!(!shown.contains(secret), "{shown}");
            assert_eq!(
                files_with(place.path(), secret),
                if secret == KEY && is_in_environment { vec![] } else { vec!["config.toml"] }
            );
            assert!(provider.received().iter().all(|body| !body.to_string().contains(secret)));
        }
        assert!(!files_with(place.path(), "print your environment").is_empty(), "the turn is stored");
    }
}

/// A server with two tools of one name, one with the name of a tool of the program, and one with an endless name.
#[test]
fn tools_of_one_name_do_not_end_chat() {
    let names = r#"["greet", "greet", "approve", "x" * 80]"#;
    let tools = format!(r#"[{{"name": name, "inputSchema": {{"type": "object"}}}} for name in {names}]"#);
    let server =
        SERVER.replace(r#"[{"name": "greet", "description": "Greets.", "inputSchema": {"type": "object"}}]"#, &tools);
    assert_ne!(server, SERVER);
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Still here.")]));
    configure(place.path(), &format!("[[mcp]]\nname = \"plan\"\ncommand = \"python3\"\nargs = [\"-c\", {server:?}]\n"));
    let said = run(configured(place.path(), &["--print", "--url", &provider.url, "--model", "m", "hi"]), "");
    assert_eq!((said.code, said.stdout.as_str()), (0, "Still here.\n"), "{}", said.stderr);
    let expected = [
        "the tool `plan/greet` is left out: the server has two tools of this name",
        "the tool `plan/approve` is left out: another tool has this name",
        "is left out: its name is too long for models",
    ];
    for line in expected {
        assert!(said.stderr.contains(line), "{}", said.stderr);
    }
    let offered = provider.received()[0]["tools"].to_string();
    assert_eq!(offered.matches("plan__greet").count(), 1, "{offered}");
}

/// A server over HTTP is our own, with its token; commands do not get the variable that the token is taken from.
#[test]
fn tools_of_a_server_over_http_are_called_with_its_token() {
    let place = place();
    let mut server = bare_program(place.path());
    server.args(["mcp", "--store", "m.db", "--listen", "127.0.0.1:0"]);
    let mut server = server.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let url = lines.next().expect("an address").trim_start_matches("listening on ").to_owned();
    let token = lines.next().expect("a token").trim_start_matches("token: ").to_owned();
    let create = json!({ "path": "/memories/a.md", "file_text": "x" });
    let replies = vec![
        Reply::Calls("notes__memory_create", create),
        Reply::Calls("execute_bash", json!({ "command": "echo \"it is: $TEA_POT\"; env" })),
        Reply::Says("Kept."),
    ];
    let provider = Provider::start(replies);
    configure(
        place.path(),
        &format!(
            "[chat]\nenvironment = [\"TEA_*\"]\n[[mcp]]\nname = \"notes\"\nurl = \"{url}\"\ntoken_env = \"TEA_POT\"\n"
        ),
    );
    let arguments = ["--print", "--yes", "--url", &provider.url, "--model", "m", "keep it"];
    let with = |token: &str| {
        let mut chat = configured(place.path(), &arguments);
        chat.env("TEA_POT", token);
        run(chat, "")
    };
    let (said, refused) = (with(&token), with("wrong"));
    // It may have ended by itself.
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!((said.code, said.stdout.as_str()), (0, "Kept.\n"), "{}", said.stderr);
    let told = provider.last();
    assert!(told.contains("File created successfully") && told.contains("it is: "), "{told}");
    assert!(!told.contains(&token) && !said.stderr.contains(&token), "{told}");
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("it asks for another key, or for one (status 401)"), "{}", refused.stderr);
}

#[test]
fn a_server_is_a_program_or_an_address_and_its_token_is_there() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Never.")]));
    for (entry, expected) in [
        ("", "needs a `command` or a `url`, and not both"),
        ("command = \"x\"\nurl = \"http://127.0.0.1:1\"", "needs a `command` or a `url`, and not both"),
        ("url = \"127.0.0.1:1\"", "must be an address that begins with `https://` or `http://`"),
        ("url = \"http://127.0.0.1:1\"", "the MCP server `s` refused `initialize`: it cannot be reached"),
        ("url = \"http://127.0.0.1:1\"\ntoken_env = \"NOT_SET_AT_ALL\"", "the variable `NOT_SET_AT_ALL` is not set"),
    ] {
        configure(place.path(), &format!("[[mcp]]\nname = \"s\"\n{entry}\n"));
        let said = run(configured(place.path(), &["--print", "--url", &provider.url, "--model", "m", "hi"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{entry}: {}", said.stderr);
        assert!(said.stderr.contains(expected), "{entry}: {}", said.stderr);
    }
    assert!(provider.received().is_empty());
}
