//! The same work as a program has it, as it is sent to a provider, and as an agent records it: in each form the same is
//! known of a file.

use std::collections::HashMap;

use contexture_core::Item;
use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::FileModel;
use contexture_files::observer::Observer;
use contexture_wire::transcript::Transcript;
use contexture_wire::{Format, Request, read};
use serde_json::{Value, json};

use crate::told::{Told, told};

const PATH: &str = "/p/a.txt";

/// One thing that happens after the file was read.
enum Step {
    /// A call, its arguments, and what the tool says.
    Call(&'static str, Value, &'static str),
    /// What a person or a harness says.
    Say(&'static str),
}
use Step::{Call, Say};

fn bash(line: &str) -> Step {
    Call("Bash", json!({"command": line}), "")
}

fn look() -> Step {
    Call("Read", json!({"file_path": PATH}), "     1→one\n     2→two\n     3→three\n")
}

/// The items of a program that runs the calls itself.
fn plain(steps: &[Step]) -> Vec<Item> {
    let item = |(at, step): (usize, &Step)| match step {
        Call(tool, arguments, output) => {
            let id = format!("c{at}");
            let call = FunctionCall::new(&id, tool, arguments.to_string());
            vec![call.into(), FunctionCallOutput::new(&id, *output, Outcome::Unknown).into()]
        }
        Say(text) => vec![Item::user(*text)],
    };
    steps.iter().enumerate().flat_map(item).collect()
}

/// The messages of a request.
fn messages(steps: &[Step]) -> Vec<Value> {
    let message = |(at, step): (usize, &Step)| match step {
        Call(tool, arguments, output) => {
            let id = format!("t{at}");
            let call = json!({"type": "tool_use", "id": id, "name": tool, "input": arguments});
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
            vec![
                json!({"role": "assistant", "id": format!("m{at}"), "content": [call]}),
                json!({"role": "user", "content": [result]}),
            ]
        }
        Say(text) => vec![json!({"role": "user", "content": [{"type": "text", "text": text}]})],
    };
    steps.iter().enumerate().flat_map(message).collect()
}

/// The items of a request as it is sent.
fn sent(steps: &[Step]) -> Vec<Item> {
    let mut messages = messages(steps);
    for message in &mut messages {
        message.as_object_mut().unwrap().remove("id");
    }
    let body = json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string();
    let request = Request::parse(Format::Messages, &body).unwrap();
    let units = request.messages().iter().flat_map(|message| read(Format::Messages, message, None).unwrap());
    units.map(|unit| unit.item).collect()
}

/// The items of a recording.
fn recorded(steps: &[Step]) -> Vec<Item> {
    let line = |(at, message): (usize, Value)| {
        let kind = message["role"].clone();
        json!({"type": kind, "uuid": format!("u{at}"), "cwd": "/p", "message": message}).to_string() + "\n"
    };
    let lines: String = messages(steps).into_iter().enumerate().map(line).collect();
    let (transcript, _) = Transcript::read(lines.as_bytes()).unwrap();
    transcript.records.iter().flat_map(|record| record.items().to_vec()).collect()
}

/// What is said of the file after items.
fn told_after(items: &[Item]) -> Told {
    let (mut observer, mut model) = (Observer::default(), FileModel::new());
    let mut calls: HashMap<String, FunctionCall> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        let told = match item {
            Item::Message(message) => observer.hear(message),
            Item::FunctionCall(call) => {
                observer.expect(call);
                calls.insert(call.call_id.to_string(), call.clone());
                Vec::new()
            }
            Item::FunctionCallOutput(output) => {
                observer.observe(&calls.remove(&*output.call_id).unwrap(), output).observations
            }
            _ => Vec::new(),
        };
        told.iter().for_each(|observation| model.apply(at as u32, observation));
    }
    told(&model, PATH)
}

/// What is said after steps that follow a read of the file, which is the same in every form.
#[track_caller]
fn check(steps: Vec<Step>, what: &str, expected: Told) {
    let steps: Vec<Step> = [bash("cd /p"), look()].into_iter().chain(steps).collect();
    for (form, items) in [("plain", plain(&steps)), ("sent", sent(&steps)), ("recorded", recorded(&steps))] {
        assert_eq!(told_after(&items), expected, "{form}, after {what}");
    }
}

#[test]
fn what_is_said_counts_in_every_form() {
    let note = "<system-reminder>\nNote: /p/a.txt was modified, either by the user or by a linter. This change was intentional.\n</system-reminder>";
    check(vec![Say(note)], note, Told::Changed);
    let recently = "<environment_details>\n# Recently Modified Files\nThese files have been modified since you last accessed them (file was just edited so you may need to re-read it before editing):\na.txt\n</environment_details>";
    for text in [
        recently,
        "<system-reminder>\nPostToolUse:Edit hook additional context: prettier --write ran on a.txt\n</system-reminder>",
        "<user_shell_command>\n<command>\ngit checkout main\n</command>\n<result>\nExit code: 0\n</result>\n</user_shell_command>",
        "[TASK RESUMPTION] This task was interrupted 5 minutes ago.",
        "i just fixed the typo in a.txt myself",
        "hab a.txt angepasst",
        "he modificado a.txt",
        "can you change two to TWO in a.txt?",
    ] {
        check(vec![Say(text)], text, Told::Seen);
    }
    check(vec![Say("<bash-input>sed -i s/two/2/ a.txt</bash-input>")], "a command of a person", Told::Seen);
    for text in
        ["<bash-input>ls</bash-input>", "why is line two there?", "What does `git reset --hard` do?", "ok, go on"]
    {
        check(vec![Say(text)], text, Told::Whole);
    }
}

#[test]
fn what_goes_on_counts_in_every_form() {
    let behind = |line: &str| {
        let arguments = json!({"command": line, "run_in_background": true});
        Call("Bash", arguments, "Command running in background with ID: b1")
    };
    let ended = "<status>completed</status>\n\n<exit_code>0</exit_code>";
    let ended = || Call("BashOutput", json!({"bash_id": "b1"}), ended);
    let loops = "while true; do sh gen.sh; sleep 1; done";
    check(vec![behind(loops), look()], loops, Told::Seen);
    check(vec![behind(loops), ended(), look()], "its end", Told::Whole);
    for line in [
        "(sleep 5; sed -i s/two/2/ a.txt) &",
        "nohup ./gen.sh > /tmp/log 2>&1 &\necho started $!",
        "(crontab -l; echo '* * * * * cd /p && ./gen.sh') | crontab -",
        "systemd-run --user ./gen.sh",
    ] {
        check(vec![bash(line), look()], line, Told::Seen);
    }
}

#[test]
fn what_tools_of_others_do_counts_in_every_form() {
    for (tool, arguments, output, expected) in [
        ("mcp__git__git_status", json!({"repo_path": "/p"}), "On branch main", Told::Seen),
        ("get_diagnostics", json!({"path": PATH}), "none", Told::Whole),
        ("list_pages", json!({"id": "1"}), "1", Told::Whole),
        ("eslint", json!({"fix": true, "paths": ["a.txt"]}), "ok", Told::Seen),
        ("mcp__lsp__rename_symbol", json!({"file": PATH, "line": 2, "new_name": "x"}), "Renamed", Told::Seen),
        ("terminal", json!({"input": "git reset --hard\n"}), "HEAD is now at 1", Told::Seen),
    ] {
        check(vec![Call(tool, arguments, output)], tool, expected);
    }
}
