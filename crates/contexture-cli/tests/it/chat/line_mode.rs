//! One turn in a pipe.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::provider::{Provider, Reply};
use crate::program::{Run, program, run};

/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many commands a conversation has that is killed at any time.
const COMMANDS: usize = 6;

/// A directory with a project and a home.
pub fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a directory");
    fs::create_dir_all(place.path().join("project/src")).expect("a directory");
    fs::write(place.path().join("project/src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n").expect("a file");
    fs::write(place.path().join("project/check.sh"), "grep -q '    1' src/lib.rs || { echo wrong; exit 1; }\n")
        .expect("a file");
    place
}

/// The program in the project, without keys and without an Ollama.
pub fn chat(place: &Path, arguments: &[&str]) -> Command {
    let mut command = program(&place.join("project"));
    command.env("HOME", place.join("home")).env("OLLAMA_HOST", "127.0.0.1:1");
    for name in ["XDG_STATE_HOME", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        command.env_remove(name);
    }
    command.arg("chat").args(arguments);
    command
}

fn said(place: &Path, provider: &Provider, arguments: &[&str], input: &str) -> Run {
    let all = [&["--print", "--url", &provider.url, "--model", "m"], arguments].concat();
    run(chat(place, &all), input)
}

#[test]
fn a_reference_in_a_pipe_is_shown_to_the_model_and_its_answer_is_printed() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("It returns\ntwo.")]));
    let run = said(place.path(), &provider, &[], "explain #src/lib.rs");
    assert_eq!(run, Run { code: 0, stdout: "It returns\ntwo.\n".to_owned(), stderr: String::new() });
    assert!(provider.last().contains("pub fn one()"), "{}", provider.last());
    let store = place.path().join("home/.local/state/contexture/chat.db");
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&store), mode(store.parent().expect("a directory"))), (0o600, 0o700));
}

#[test]
fn a_small_task_is_done_end_to_end() {
    let place = place();
    let edit = json!({"path": "src/lib.rs", "old_string": "    2", "new_string": "    1"});
    let provider = Provider::start(vec![
        Reply::Calls("execute_bash", json!({"command": "sh check.sh"})),
        Reply::Calls("read_file", json!({"path": "src/lib.rs"})),
        Reply::Calls("edit_file", edit),
        Reply::Calls("execute_bash", json!({"command": "sh check.sh"})),
        Reply::Says("Fixed."),
    ]);
    let run = said(place.path(), &provider, &["--yes", "fix it"], "");
    let bodies: Vec<String> = provider.received().iter().map(|body| body["messages"].to_string()).collect();
    assert_eq!((run.code, run.stdout.as_str()), (0, "Fixed.\n"), "{}\n{}", run.stderr, bodies.join("\n"));
    let text = fs::read_to_string(place.path().join("project/src/lib.rs")).expect("a file");
    assert_eq!(text, "pub fn one() -> u32 {\n    1\n}\n", "{}", run.stderr);
    let expected = "execute_bash sh check.sh\n  failed: [The command completed with exit code 1.]\nread_file src/lib.rs\n\
                    edit_file src/lib.rs\n  src/lib.rs +1 -1\nexecute_bash sh check.sh\n";
    assert_eq!(run.stderr, expected);
}

#[test]
fn nothing_is_changed_or_run_without_permission_and_the_model_is_told() {
    for (name, arguments) in
        [("execute_bash", json!({"command": "touch made"})), ("write_file", json!({"path": "made", "content": "x"}))]
    {
        let place = place();
        let provider = Provider::start(vec![Reply::Calls(name, arguments), Reply::Says("As you wish.")]);
        let run = said(place.path(), &provider, &["do it"], "");
        assert_eq!((run.code, run.stdout.as_str()), (0, "As you wish.\n"), "{name}: {}", run.stderr);
        assert!(!place.path().join("project/made").exists(), "{name}");
        assert!(provider.last().contains("not started with --yes"), "{name}: {}", provider.last());
    }
}

#[test]
fn a_thread_goes_on_and_is_listed() {
    let (place, provider) =
        (place(), Provider::start(vec![Reply::Says("one"), Reply::Says("two"), Reply::Says("three")]));
    assert_eq!(said(place.path(), &provider, &["first question"], "").stdout, "one\n");
    assert_eq!(said(place.path(), &provider, &["--continue", "second question"], "").stdout, "two\n");
    assert!(provider.last().contains("first question") && provider.last().contains("one"));
    let listed = run(chat(place.path(), &["--threads"]), "").stdout;
    let id = listed.lines().nth(1).and_then(|line| line.split_whitespace().next()).expect("a thread").to_owned();
    assert!(listed.contains("first question") && !listed.contains("second"), "{listed}");
    assert_eq!(said(place.path(), &provider, &["--thread", &id[..4], "third"], "").stdout, "three\n");
    assert!(provider.last().contains("second question"));
    // Another directory has its own threads.
    let elsewhere = run(chat(place.path(), &["--threads", "--base", "src"]), "").stdout;
    assert_eq!(elsewhere, "There is no thread of this directory yet.\n");
}

/// Starts a turn, waits until something is true, and kills the program.
fn kill_when(place: &Path, provider: &Provider, is_time: impl Fn() -> bool) {
    let mut command = chat(place, &["--print", "--yes", "--url", &provider.url, "--model", "m", "do it"]);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the program starts");
    let start = Instant::now();
    while !is_time() {
        assert!(start.elapsed() < PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn a_tool_that_ran_when_the_program_was_killed_is_not_run_again() {
    let place = place();
    let command = json!({"command": "echo ran >> runs; sleep 5"});
    let provider = Provider::start(vec![Reply::Calls("execute_bash", command), Reply::Says("I see.")]);
    let runs = place.path().join("project/runs");
    kill_when(place.path(), &provider, || runs.exists());
    let run = said(place.path(), &provider, &["--continue", "--yes"], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, "I see.\n"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&runs).expect("it ran"), "ran\n");
    assert!(
        provider.last().contains("do it") && provider.last().contains("it was not run again"),
        "{}",
        provider.last()
    );
    assert_eq!(provider.received().len(), 2);
}

#[test]
fn an_answer_that_was_cut_off_is_asked_for_again() {
    let place = place();
    let provider = Provider::start(vec![Reply::Stalls("half of"), Reply::Says("all of it")]);
    kill_when(place.path(), &provider, || provider.received().len() == 1);
    let run = said(place.path(), &provider, &["--continue"], "");
    assert_eq!((run.code, run.stdout.as_str()), (0, "all of it\n"), "{}", run.stderr);
    let asked = provider.received().iter().map(|body| body["messages"].to_string()).collect::<Vec<_>>();
    assert_eq!(asked[1].matches("do it").count(), 1, "{}", asked[1]);
    let again = said(place.path(), &provider, &["--continue"], "");
    assert_eq!((again.code, provider.received().len()), (2, 2), "nothing is left to go on with: {}", again.stderr);
}

/// Asks for two commands at a time until all have an output.
fn two_at_a_time(body: &serde_json::Value) -> Reply {
    let messages = body["messages"].as_array().expect("messages");
    let done = messages.iter().filter(|message| message["role"] == "tool").count();
    if done >= COMMANDS {
        return Reply::Says("all of them");
    }
    let call = |number: usize| {
        let id = format!("c{number}");
        (id.clone(), "execute_bash", json!({"command": format!("echo {id} >> runs")}))
    };
    Reply::CallsAll(vec![call(done), call(done + 1)])
}

#[test]
fn kills_at_any_time_repeat_and_lose_nothing() {
    for round in 0..4_u64 {
        let (place, provider) = (place(), Provider::answering(|_, body| two_at_a_time(body)));
        let all = ["--print", "--yes", "--url", &provider.url, "--model", "m"];
        let mut arguments = vec!["do it"];
        for kill in 0..4_u64 {
            let mut command = chat(place.path(), &[&all[..], &arguments[..]].concat());
            let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("the program starts");
            // Between the start of the program and the end of the turn, at a moment that is another one every time.
            std::thread::sleep(Duration::from_millis(40 + (round * 97 + kill * 61) % 260));
            child.kill().expect("it was started");
            child.wait().expect("it ends");
            // What was asked of a model is durable. Before that there may be nothing to go on with.
            arguments = if provider.received().is_empty() { vec!["do it"] } else { vec!["--continue"] };
        }
        let last = said(place.path(), &provider, &[&["--yes"], &arguments[..]].concat(), "");
        let is_over_already = last.code == 2 && last.stderr.contains("no unfinished turn");
        assert!(last.stdout.ends_with("all of them\n") || is_over_already, "{} {}", last.stdout, last.stderr);
        let runs = fs::read_to_string(place.path().join("project/runs")).unwrap_or_default();
        let outputs: Vec<serde_json::Value> = provider.received().last().expect("a request")["messages"]
            .as_array()
            .expect("messages")
            .iter()
            .filter(|message| message["role"] == "tool")
            .cloned()
            .collect();
        assert_eq!(outputs.len(), COMMANDS, "{outputs:?}");
        for (number, output) in outputs.iter().enumerate() {
            let count = runs.lines().filter(|line| *line == format!("c{number}")).count();
            let is_unknown = output["content"].as_str().is_some_and(|text| text.contains("it was not run again"));
            assert!(count == 1 || (count == 0 && is_unknown), "c{number} ran {count} times: {output}");
        }
        assert_eq!(provider.last().matches("do it").count(), 1, "{}", provider.last());
    }
}

#[test]
fn a_command_ends_with_the_program() {
    let place = place();
    let command = json!({"command": "echo $$ > pid; sleep 300"});
    let provider = Provider::start(vec![Reply::Calls("execute_bash", command), Reply::Says("I see.")]);
    let mut chat = chat(place.path(), &["--print", "--yes", "--url", &provider.url, "--model", "m", "wait"]);
    let mut child = chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let (file, start) = (place.path().join("project/pid"), Instant::now());
    let pid = loop {
        match fs::read_to_string(&file).ok().and_then(|text| text.trim().parse::<i32>().ok()) {
            Some(pid) => break pid,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
        assert!(start.elapsed() < PATIENCE, "the command does not start");
    };
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).expect("an id")).expect("an id");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("it ends").code(), Some(1), "the turn was interrupted");
    while fs::exists(format!("/proc/{pid}/cwd")).expect("a file system")
        && fs::read_link(format!("/proc/{pid}/exe")).is_ok()
    {
        assert!(start.elapsed() < PATIENCE, "the command goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn ollama_is_found_and_its_first_model_is_used() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("hello")]));
    let host = provider.url.trim_end_matches("/v1").to_owned();
    for (arguments, model) in
        [(&["--print", "hi"][..], "small-model"), (&["--print", "--model", "other", "hi"], "other")]
    {
        let mut command = chat(place.path(), arguments);
        command.env("OLLAMA_HOST", &host);
        let run = run(command, "");
        assert_eq!((run.code, run.stdout.as_str()), (0, "hello\n"), "{}", run.stderr);
        assert_eq!(provider.received().last().expect("a request")["model"], model);
    }
}

#[test]
fn without_a_model_three_lines_say_how_to_get_one() {
    let place = place();
    let run = run(chat(place.path(), &["--print", "hi"]), "");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.lines().count()), (2, "", 3), "{}", run.stderr);
    for word in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ollama pull", "--url"] {
        assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
    }
}

#[test]
fn keys_go_only_where_they_were_meant_to_go() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("hello")]));
    let mut command =
        chat(place.path(), &["--print", "--url", "http://127.0.0.1:1/v1", "--model", "m", "--key-env", "MINE", "hi"]);
    command.env("MINE", "sk-very-secret");
    let failed = run(command, "");
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(!failed.stderr.contains("sk-very-secret") && failed.stderr.contains("--continue"), "{}", failed.stderr);
    let missing = said(place.path(), &provider, &["--key-env", "NO_SUCH_KEY", "hi"], "");
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("`NO_SUCH_KEY` has no key"), "{}", missing.stderr);
}

#[test]
fn bad_usage_is_told_before_anything_is_sent() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("never")]));
    for (arguments, sentence) in [
        (&[][..], "nothing to say"),
        (&["--thread", "nope", "hi"], "no thread `nope`"),
        (&["--continue", "hi"], "no thread of this directory yet"),
        (&["--continue", "--thread", "a", "hi"], "cannot be used with"),
        (&["--base", "no/such/place", "hi"], "no/such/place"),
        (&["--budget", "none", "hi"], "budget"),
        (&["--format", "smoke", "hi"], "smoke"),
        (&["--url", "nonsense", "hi"], "cannot be used multiple times"),
    ] {
        let run = said(place.path(), &provider, arguments, "");
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(sentence), "{arguments:?}: {}", run.stderr);
    }
    let unusable = run(chat(place.path(), &["--print", "--url", "nonsense", "--model", "m", "hi"]), "");
    assert_eq!(unusable.code, 2, "{}", unusable.stderr);
    let nameless = run(chat(place.path(), &["--print", "--url", &provider.url, "hi"]), "");
    assert_eq!(nameless.code, 2, "{}", nameless.stderr);
    let no_store = said(place.path(), &provider, &["--store", "check.sh", "hi"], "");
    assert_eq!(no_store.code, 2, "{}", no_store.stderr);
    assert!(provider.received().is_empty());
}

#[test]
fn a_window_without_room_begins_no_turn_and_leaves_no_thread() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("never")]));
    let small = said(place.path(), &provider, &["--budget", "100", "hi"], "");
    assert_eq!((small.code, small.stdout.as_str()), (2, ""), "{}", small.stderr);
    assert!(small.stderr.contains("hint: `--budget TOKENS`"), "{}", small.stderr);
    let threads = run(chat(place.path(), &["--threads"]), "");
    assert_eq!((threads.code, threads.stdout.as_str()), (0, "There is no thread of this directory yet.\n"));
    assert!(provider.received().is_empty());
}

#[test]
fn what_a_provider_says_controls_no_terminal() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Errs("\x1b[2J\x1b]0;pwn\x07bad\nline2\u{202e}")]));
    let failed = said(place.path(), &provider, &["evil \u{202e} \x1b[2J title"], "");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("\\u{1b}[2J\\u{1b}]0;pwn\\u{7}bad"), "{:?}", failed.stderr);
    let threads = run(chat(place.path(), &["--threads"]), "");
    assert!(threads.stdout.contains("evil \\u{202e} \\u{1b}[2J title"), "{:?}", threads.stdout);
    for text in [failed.stderr, failed.stdout, threads.stdout] {
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!text.contains(harmful), "{text:?}");
    }
}

#[test]
fn an_answer_keeps_the_characters_that_join_and_no_others() {
    let says = "می\u{200c}خواهم 👩\u{200d}💻 \u{202e}abc\u{202c}\x1b[31m";
    let (place, provider) = (place(), Provider::start(vec![Reply::Says(says)]));
    let run = said(place.path(), &provider, &["hi"], "");
    assert_eq!(run.stdout, "می\u{200c}خواهم 👩\u{200d}💻 abc[31m\n");
}

#[test]
fn calls_that_could_not_be_run_are_shown() {
    let place = place();
    let provider = Provider::start(vec![
        Reply::Calls("no_such_tool", json!({"path": "a"})),
        Reply::Calls("read_file", json!({"wrong": 1})),
        Reply::Calls("read_file", json!({"path": "missing"})),
        Reply::Says("Sorry."),
    ]);
    let run = said(place.path(), &provider, &["go"], "");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [unknown, no_tool, wrong, invalid, missing, not_found] = lines.as_slice() else { panic!("{}", run.stderr) };
    assert_eq!((*unknown, *wrong, *missing), ("no_such_tool a", "read_file", "read_file missing"));
    assert_eq!(*no_tool, "  failed: There is no tool `no_such_tool`.");
    assert!(invalid.starts_with("  failed: Arguments of `read_file`"), "{invalid}");
    assert!(not_found.starts_with("  failed: ") && not_found.contains("missing"), "{not_found}");
}

/// What is larger than the window cannot be sent whole, and that is said.
#[test]
fn a_message_that_is_longer_than_the_window_is_shortened_and_that_is_told() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Long.")]));
    let text: String = (0..20_000).map(|line| format!("line {line} 漢字\n")).collect();
    let run = said(place.path(), &provider, &[], &text);
    assert_eq!((run.code, run.stdout.as_str()), (0, "Long.\n"), "{}", run.stderr);
    assert!(run.stderr.contains("longer than the window"), "{}", run.stderr);
    let whole = said(place.path(), &provider, &["--budget", "400000"], &text);
    assert_eq!((whole.code, whole.stderr.as_str()), (0, ""));
    let sent = provider.received().pop().expect("a request");
    let sent = sent["messages"].as_array().and_then(|messages| messages.last()?["content"].as_str()).expect("a text");
    assert_eq!(sent.trim(), text.trim());
}
