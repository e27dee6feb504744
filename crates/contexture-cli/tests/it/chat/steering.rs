//! Rules of a person's configuration act wherever tools run.

use std::fs;

use serde_json::json;

use super::configured::{configure, configured};
use super::line_mode::place;
use super::provider::{Provider, Reply};
use super::terminal::Terminal;
use crate::program::{bare_program, run};

const RULE: &str = "[[layers.steering.rule]]\nname = \"made\"\naction = \"deny\"\ncommand = \"touch made*\"\n\
                    message = \"Nothing is made here.\"\n";

/// A server of one tool that runs a command.
const SERVER: &str = r#"
import json, subprocess, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    elif method == "tools/list":
        result = {"tools": [{"name": "run", "description": "Runs.", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        arguments = message["params"]["arguments"]
        command = arguments["command"]
        subprocess.run(command if isinstance(command, list) else command.split())
        result = {"content": [{"type": "text", "text": "ran"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;

#[test]
fn what_a_rule_denies_is_not_run_whatever_it_is_wrapped_in() {
    let commands = [
        "touch made",
        "env X=1 touch made",
        "command touch made",
        "bash -c 'touch made'",
        "sh <<< 'touch made'",
        "echo touch made | sh",
        "f() { touch made; }; f",
        "$(echo touch) made",
        "echo made | xargs touch",
        "echo touch made > x.sh; sh x.sh",
        "eval \"$(echo touch made)\"",
    ];
    for command in commands {
        let place = place();
        configure(place.path(), RULE);
        let provider =
            Provider::start(vec![Reply::Calls("execute_bash", json!({ "command": command })), Reply::Says("So.")]);
        let said =
            run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{command}: {}", said.stderr);
        assert!(!place.path().join("project/made").exists(), "{command}");
        assert!(provider.last().contains("Nothing is made here."), "{command}: {}", provider.last());
    }
}

/// Files of the project that say what is run.
fn with_programs(project: &std::path::Path) {
    let files = [
        ("Makefile", "test:\n\techo fine > ran\n"),
        ("it.sh", "#!/bin/sh\ntouch made\n"),
        ("unclear.sh", "#!/bin/sh\n$TOUCH made\n"),
    ];
    for (name, text) in files {
        fs::write(project.join(name), text).expect("a file");
    }
    for name in ["it.sh", "unclear.sh"] {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(project.join(name), fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
}

#[test]
fn a_shell_that_is_given_a_file_is_denied() {
    let commands = ["sh it.sh", "bash ./it.sh", ". ./it.sh", "TOUCH=touch sh unclear.sh", "sh < it.sh"];
    for command in commands {
        let place = place();
        configure(place.path(), RULE);
        with_programs(&place.path().join("project"));
        let provider =
            Provider::start(vec![Reply::Calls("execute_bash", json!({ "command": command })), Reply::Says("So.")]);
        let said =
            run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{command}: {}", said.stderr);
        assert!(!place.path().join("project/made").exists(), "{command}");
        assert!(provider.last().contains("Nothing is made here."), "{command}: {}", provider.last());
    }
}

#[test]
fn what_no_rule_names_is_run_and_a_rule_by_name_settles_doubt() {
    let allow = "[[layers.steering.rule]]\nname = \"own\"\naction = \"allow\"\ncommand = \"sh unclear.sh*\"\n";
    let cases = [
        ("make test", RULE.to_owned(), "ran"),
        ("./it.sh", RULE.to_owned(), "made"),
        ("sh unclear.sh", format!("{RULE}{allow}"), "made"),
    ];
    for (command, rules, made) in cases {
        let place = place();
        configure(place.path(), &rules);
        let project = place.path().join("project");
        with_programs(&project);
        fs::write(project.join("unclear.sh"), "#!/bin/sh\nT=$(printf touch)\n$T made\n").expect("a file");
        let provider =
            Provider::start(vec![Reply::Calls("execute_bash", json!({ "command": command })), Reply::Says("So.")]);
        let said =
            run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{command}: {}", said.stderr);
        assert!(project.join(made).exists(), "{command}: {}", provider.last());
    }
}

#[test]
fn a_search_over_everything_leaves_out_what_is_denied() {
    let rule = "[[layers.steering.rule]]\nname = \"own\"\naction = \"deny\"\npath = \"secrets/**\"\nmessage = \"Not these.\"\n";
    let place = place();
    configure(place.path(), rule);
    fs::create_dir(place.path().join("project/secrets")).expect("a directory");
    fs::write(place.path().join("project/secrets/key.txt"), "walrus is the word\n").expect("a file");
    fs::write(place.path().join("project/notes.txt"), "a walrus\n").expect("a file");
    let provider = Provider::start(vec![
        Reply::Calls("search_files", json!({ "pattern": "walrus" })),
        Reply::Calls("list_files", json!({})),
        Reply::Says("So."),
    ]);
    let said = run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
    assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{}", said.stderr);
    let last = provider.last();
    assert!(last.contains("notes.txt:1:a walrus") && !last.contains("is the word"), "{last}");
    assert!(!last.contains("secrets/key.txt"), "{last}");
}

#[test]
fn what_only_names_it_runs_and_rules_are_told_to_the_model() {
    let place = place();
    configure(place.path(), RULE);
    let command = "echo 'touch made' > note; grep -c 'touch made' note";
    let provider =
        Provider::start(vec![Reply::Calls("execute_bash", json!({ "command": command })), Reply::Says("So.")]);
    let said = run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
    assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{}", said.stderr);
    assert!(place.path().join("project/note").exists(), "{}", provider.last());
    assert!(provider.received()[0].to_string().contains("command `touch made*` is not allowed"));
}

#[test]
fn deny_by_default_denies_everything_that_no_rule_allows() {
    let allow = "[layers.steering]\ndeny_by_default = true\n[[layers.steering.rule]]\nname = \"echo\"\naction = \"allow\"\n\
                 command = \"echo *\"\n";
    for (command, runs) in [("touch made", false), ("echo made > made", false), ("echo made", true)] {
        let place = place();
        configure(place.path(), allow);
        let provider = Provider::start(vec![
            Reply::Calls("execute_bash", json!({ "command": command })),
            Reply::Calls("write_file", json!({ "path": "made", "content": "x" })),
            Reply::Calls("read_file", json!({ "path": "src/lib.rs" })),
            Reply::Says("So."),
        ]);
        let said =
            run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{command}: {}", said.stderr);
        assert!(!place.path().join("project/made").exists(), "{command}");
        let denied = provider.last().matches("no rule allows this call").count();
        assert_eq!(denied, if runs { 2 } else { 3 }, "{command}: {}", provider.last());
        assert!(!provider.last().contains("pub fn one"), "{}", provider.last());
    }
}

#[test]
fn rules_hold_for_tools_of_mcp_servers() {
    for command in [json!("touch made"), json!(["touch", "made"]), json!(["bash", "-c", "touch made"])] {
        let place = place();
        let server = place.path().join("server.py");
        fs::write(&server, SERVER).expect("a file");
        configure(place.path(), &format!("{RULE}[[mcp]]\nname = \"s\"\ncommand = \"python3\"\nargs = [{server:?}]\n"));
        let provider = Provider::start(vec![Reply::Calls("s__run", json!({ "command": command })), Reply::Says("So.")]);
        let said =
            run(configured(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "go"]), "");
        assert_eq!((said.code, said.stdout.as_str()), (0, "So.\n"), "{command}: {}", said.stderr);
        assert!(!place.path().join("project/made").exists(), "{command}");
        assert!(provider.last().contains("Nothing is made here."), "{command}: {}", provider.last());
    }
}

/// A project may come from somebody else.
#[test]
fn a_project_does_not_lift_rules() {
    for text in ["[layers.steering]\ndeny_by_default = false\n", RULE] {
        let place = place();
        fs::write(place.path().join("project/contexture.toml"), text).expect("a file");
        let mut command = bare_program(&place.path().join("project"));
        command.env("HOME", place.path().join("home")).args(["chat", "--print", "hi"]);
        let refused = run(command, "");
        assert!(refused.code == 2 && refused.stderr.contains("cannot be set by a project"), "{}", refused.stderr);
    }
}

#[test]
fn a_person_is_asked_about_what_is_not_understood_every_time() {
    let place = place();
    configure(place.path(), RULE);
    fs::write(place.path().join("project/x.sh"), "${RUN:-echo} ran >> ran\n").expect("a file");
    let provider = Provider::start(vec![
        Reply::Calls("execute_bash", json!({ "command": "sh x.sh" })),
        Reply::Calls("execute_bash", json!({ "command": "sh x.sh # again" })),
        Reply::Calls("execute_bash", json!({ "command": "touch made" })),
        Reply::Says("Done."),
    ]);
    let mut terminal = Terminal::start(place.path(), &provider, 100, &[]);
    terminal.expect("› ");
    terminal.press("go\r");
    let question = terminal.expect("[n]o: ");
    assert!(question.contains("may be what your rule `made` is about"), "{question:?}");
    // All of this kind are allowed, but not what is not understood.
    terminal.press("a");
    let question = terminal.expect("[n]o: ");
    assert!(question.contains("$ sh x.sh # again"), "{question:?}");
    terminal.press("n");
    terminal.expect("Done.");
    assert_eq!(fs::read_to_string(place.path().join("project/ran")).expect("it ran once"), "ran\n");
    assert!(!place.path().join("project/made").exists());
    assert!(provider.last().contains("Nothing is made here."), "{}", provider.last());
}
