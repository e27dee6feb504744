//! `contexture replay`.

use std::fs;
use std::path::Path;

use contexture::files::numbering::numbered;
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::program::{Run, check, run_in};

/// A recording in which files are read one after the other, and the first is edited at the end.
pub fn recording(files: usize) -> String {
    let mut lines = vec![json!({"role": "user", "text": "fix it"})];
    for n in 0..files {
        let call = json!({"id": format!("r{n}"), "name": "Read", "arguments": {"file_path": format!("{n}.rs")}});
        lines.push(json!({"role": "assistant", "text": "", "tool_calls": [call]}));
        let text: String = (1..=40).map(|line| format!("{line:6}→// line {line} of file {n}\n")).collect();
        lines.push(json!({"role": "tool", "text": text, "tool_call_id": format!("r{n}"), "name": "Read"}));
    }
    let arguments = json!({"file_path": "0.rs", "old_string": "// line 7 of file 0", "new_string": "// seven"});
    let call = json!({"id": "e", "name": "Edit", "arguments": arguments});
    lines.push(json!({"role": "assistant", "text": "", "tool_calls": [call]}));
    lines.push(json!({"role": "tool", "text": "done", "tool_call_id": "e", "name": "Edit"}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Plays a recording from standard input and gives what is printed, once nothing was complained about.
#[track_caller]
fn replayed(arguments: &[&str], recording: &str) -> String {
    let arguments: Vec<&str> = ["replay", "-"].into_iter().chain(arguments.iter().copied()).collect();
    let run = run_in(Path::new("."), &arguments, recording);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    run.stdout
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
}

#[test]
fn without_a_file_the_recording_of_the_program_is_played() {
    let run = run_in(Path::new("."), &["replay"], "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.starts_with("No file was named, so this is the session of `contexture demo`"), "{}", run.stdout);
    for part in [
        "the built-in session: Claude Code, 1217 messages, budget 112k tokens\n",
        "598 steps\n█ contexture, tokens sent at each step  ░ pass-through: everything, every time\n",
        " 598 requests, 1",
        "\nfolded ",
    ] {
        assert!(run.stdout.contains(part), "no {part:?} in\n{}", run.stdout);
    }
}

#[test]
fn the_recording_of_the_program_is_at_least_twice_the_default_budget() {
    let output = run_in(Path::new("."), &["replay", "--json"], "").stdout;
    let summary: Value = serde_json::from_str(&output).expect("JSON");
    let whole = &summary["recordings"][0]["passed_through_tokens"];
    let largest = whole.as_array().expect("a list").iter().filter_map(Value::as_u64).max().expect("requests");
    assert!(largest >= 2 * 112_000, "{largest}");
}

#[test]
fn windows_are_one_line_for_every_assistant_message() {
    let recording = recording(20);
    let windows = json_lines(&replayed(&["--budget", "2000", "--emit", "windows"], &recording));
    let before: Vec<u64> = windows.iter().map(|window| window["before"].as_u64().unwrap()).collect();
    assert_eq!(before, (0..=20).map(|step| 2 * step + 1).collect::<Vec<_>>());
    let mut window: Vec<Value> = Vec::new();
    let mut folds = 0;
    for line in &windows {
        let keep = line["keep"].as_u64().unwrap() as usize;
        assert!(keep <= window.len(), "{keep} of {} messages", window.len());
        folds += usize::from(keep < window.len());
        window.truncate(keep);
        window.extend(line["messages"].as_array().unwrap().iter().cloned());
        let bytes: usize = window.iter().map(|message| message["text"].as_str().unwrap().len()).sum();
        assert!(bytes / 4 <= 2000, "{bytes} bytes are sent");
    }
    assert!(folds > 0, "20 files do not fit, so something is folded");
    assert!(window.last().unwrap()["text"].as_str().unwrap().contains("line 40 of file 19"));
}

/// A text without the numbers that its lines can do without.
fn compact(text: &Value) -> Value {
    let text = text.as_str().expect("a text is a string");
    let blocks = numbered(text).unwrap_or_default();
    contexture_fold::compact::compact(text, &blocks.iter().collect::<Vec<_>>()).map_or(json!(text), Value::String)
}

#[test]
fn windows_of_a_recording_that_fits_are_its_messages() {
    let recording = recording(3);
    let messages = json_lines(&recording);
    let windows = json_lines(&replayed(&["--emit", "windows"], &recording));
    let mut sent = 0;
    for window in windows {
        assert_eq!(window["keep"], json!(sent));
        let before = window["before"].as_u64().unwrap() as usize;
        let texts = |messages: &[Value]| messages.iter().map(|message| message["text"].clone()).collect::<Vec<_>>();
        let expected: Vec<Value> = texts(&messages[sent..before]).iter().map(compact).collect();
        assert_eq!(texts(window["messages"].as_array().unwrap()), expected);
        sent = before;
    }
}

#[test]
fn decisions_are_json_lines() {
    let decisions = json_lines(&replayed(&["--budget", "2000", "--emit", "decisions"], &recording(20)));
    let folds: Vec<&Value> = decisions.iter().filter(|decision| decision["decision"] == "fold").collect();
    assert!(!folds.is_empty());
    for fold in folds {
        assert!(fold["after_tokens"].as_u64() < fold["before_tokens"].as_u64(), "{fold}");
        assert!(fold["reason"].is_string() && fold["cost"].is_number(), "{fold}");
    }
}

/// A budget of which only the least part is left beside the agent's own prompt.
const SMALL: &str = "16000";

#[test]
fn the_summary_is_there_as_json_too() {
    let summary: Value = serde_json::from_str(&replayed(&["--budget", SMALL, "--json"], &recording(40))).unwrap();
    assert_eq!((&summary["budget"], &summary["skipped"]), (&json!(16_000), &json!(0)));
    let recording = &summary["recordings"][0];
    assert_eq!((&recording["file"], &recording["receipt"]["requests"]), (&json!("-"), &json!(41)));
    let (sent, came) = (&recording["window_tokens"], &recording["passed_through_tokens"]);
    let sum = |tokens: &Value| tokens.as_array().unwrap().iter().map(|tokens| tokens.as_u64().unwrap()).sum::<u64>();
    assert_eq!(
        (sum(sent), sum(came)),
        (recording["receipt"]["sent"].as_u64().unwrap(), recording["receipt"]["came"].as_u64().unwrap())
    );
    assert_eq!(summary["sum"], recording["receipt"], "the sum of one recording is its own");
    assert_eq!(recording["folds"].as_array().unwrap().len(), recording["receipt"]["folds"].as_array().unwrap().len());
}

#[test]
fn a_fold_is_told_at_the_step_whose_window_it_made() {
    let summary: Value = serde_json::from_str(&replayed(&["--budget", SMALL, "--json"], &recording(40))).unwrap();
    let recording = &summary["recordings"][0];
    let window = |step: u64| recording["window_tokens"][step as usize - 1].as_u64().unwrap();
    let folds = recording["folds"].as_array().unwrap();
    assert!(!folds.is_empty());
    for fold in folds {
        let step = fold["step"].as_u64().unwrap();
        assert!(window(step) < window(step - 1), "{fold}");
    }
}

#[test]
fn several_recordings_have_a_line_each_and_a_sum() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.jsonl"), recording(2)).unwrap();
    let chat = r#"[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]"#;
    fs::write(directory.path().join("b.json"), chat).unwrap();
    fs::write(directory.path().join("notes.md"), "# notes\n").unwrap();
    let run = run_in(directory.path(), &["replay", "."], "");
    let expected = "\
2 recordings, budget 112k tokens; 1 other file skipped
peak: the largest request, and what it would be if everything were sent every
  time; unchanged: what would have been paid then

recording  requests  folds  peak  unfolded     paid  unchanged
all               4      0   13k       13k    $0.10      $0.10
a.jsonl           3      0   13k       13k  $0.0557    $0.0565
b.json            1      0   12k       12k  $0.0453    $0.0453

$0.10 instead of $0.10 (1 % less), by guessed prices, 4 requests, 2
  conversations
sent 48 858 of 49 149 tokens; simulated: the provider's cache, and at least 12k
  tokens of the agent's own prompt in every request
2 times: the same in fewer words
the median recording: 1 % less

next: `contexture replay` with one of these files shows its details
";
    assert_eq!(run, Run { code: 0, stdout: expected.to_owned(), stderr: String::new() });
}

#[test]
fn broken_lines_are_told_and_the_rest_is_used() {
    let recording = recording(2);
    for emit in ["summary", "windows", "decisions"] {
        let run = run_in(Path::new("."), &["replay", "-", "--emit", emit], &format!("{recording}{{\"role\":\n"));
        assert_eq!((run.code, run.stderr.as_str()), (0, "-:8: skipped, EOF while parsing a value (column 8)\n"));
        assert_eq!(run.stdout, replayed(&["--emit", emit], &recording));
    }
}

#[test]
fn what_cannot_be_played_is_one_sentence_and_a_hint() {
    check(
        &["replay", "no/such/file"],
        1,
        "",
        "error: open `no/such/file`: No such file or directory (os error 2)\n\
         hint: name a file, a directory with recordings, or - for standard input; `contexture demo` has one of its own\n",
    );
    for emit in ["summary", "windows"] {
        let run = run_in(Path::new("."), &["replay", "-", "--emit", emit], "name,size\n");
        let stderr = "-: skipped, it is in no known format\n\
                      error: none of the files is a recording in a known format\n\
                      hint: name recordings of Claude Code, Codex, OpenCode, Copilot CLI, Gemini CLI or pi, \
                      chat messages as JSON, or what `contexture replay --emit plain` writes\n";
        assert_eq!(run, Run { code: 1, stdout: String::new(), stderr: stderr.to_owned() });
    }
    let run = run_in(Path::new("."), &["replay", "--counter", "bytes"], "");
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("error: invalid value 'bytes' for '--counter <COUNTER>'"), "{}", run.stderr);
}

/// Reads of forty files as Claude Code writes them down, with an hour between the thirtieth answer and the next request.
fn timed_recording(pause_minutes: u64) -> String {
    let line = |kind: &str, minute: u64, message: Value| {
        let time = format!("2025-01-01T{:02}:{:02}:00.000Z", minute / 60, minute % 60);
        json!({"type": kind, "timestamp": time, "message": message}).to_string() + "\n"
    };
    let mut recording = line("user", 0, json!({"role": "user", "content": "fix it"}));
    for n in 0..40_u64 {
        let minute = if n < 30 { n } else { n + pause_minutes };
        let call = json!({"type": "tool_use", "id": format!("r{n}"), "name": "Read", "input": {"file_path": format!("{}.rs", n % 7)}});
        recording.push_str(&line("assistant", minute, json!({"id": format!("m{n}"), "content": [call]})));
        let text: String = (1..=40).map(|line| format!("{line:6}→// line {line} of version {n}\n")).collect();
        let answer = json!({"type": "tool_result", "tool_use_id": format!("r{n}"), "content": text});
        let minute = if n < 29 { minute } else { n + pause_minutes };
        recording.push_str(&line("user", minute, json!({"role": "user", "content": [answer]})));
    }
    recording
        + &line("assistant", 60 + pause_minutes, json!({"id": "last", "content": [{"type": "text", "text": "done"}]}))
}

#[test]
fn a_long_pause_makes_a_fold_free() {
    let decisions = |pause: u64, provider: &str| {
        let arguments = ["--budget", "15000", "--emit", "decisions", "--provider", provider];
        json_lines(&replayed(&arguments, &timed_recording(pause)))
    };
    let is_cold = |decision: &&Value| decision["decision"] == "cold";
    let paused = decisions(60, "anthropic");
    let cold: Vec<&Value> = paused.iter().filter(is_cold).collect();
    assert_eq!(cold, [&json!({"decision": "cold", "at": 61})]);
    let fold = paused.iter().find(|decision| decision["at"] == 61 && decision["decision"] == "fold").expect("a fold");
    assert_eq!((&fold["reason"], &fold["cost"]), (&json!("the cache is cold, so rewriting is free"), &json!(0.0)));
    assert_eq!(decisions(4, "anthropic").iter().filter(is_cold).count(), 0, "four minutes are within its life");
    assert_eq!(decisions(60, "none").iter().filter(is_cold).count(), 0, "there is no cache that could expire");
}

/// A recording of an agent that writes twenty files.
fn own_changes() -> String {
    let mut lines = vec![json!({"role": "user", "text": "write it"})];
    for n in 0..20 {
        let content: String = (0..60).map(|line| format!("let own_{n}_{line} = compute({line});\n")).collect();
        let arguments = json!({"file_path": format!("own_{n}.rs"), "content": content});
        lines.push(json!({"role": "assistant", "text": "", "tool_calls": [{"id": format!("w{n}"), "name": "Write", "arguments": arguments}]}));
        lines.push(json!({"role": "tool", "text": "File created successfully.", "tool_call_id": format!("w{n}"), "name": "Write"}));
    }
    lines.push(json!({"role": "assistant", "text": "done"}));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn own_changes_that_do_not_fit_are_a_warning() {
    let recording = own_changes();
    let summary = replayed(&["--budget", SMALL], &recording);
    assert!(summary.contains("\nWARNING: the agent's own changes in "), "{summary}");
    let decisions = replayed(&["--budget", "2000", "--emit", "decisions"], &recording);
    assert!(decisions.contains("the window is full; the agent's own changes in "), "{decisions}");
    let fitting = replayed(&["--budget", "60000"], &recording);
    assert!(!fitting.contains("WARNING"), "{fitting}");
}

#[test]
fn a_capped_output_promises_no_tool_that_is_not_there() {
    let text: String = (1..=3_000).map(|line| format!("{line} compiled one more unit\n")).collect();
    let call = json!({"id": "b", "name": "Bash", "arguments": {"command": "make"}});
    let lines = [
        json!({"role": "user", "text": "build it"}),
        json!({"role": "assistant", "text": "", "tool_calls": [call]}),
        json!({"role": "tool", "text": text, "tool_call_id": "b", "name": "Bash"}),
        json!({"role": "assistant", "text": "done"}),
    ];
    let recording: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let windows = replayed(&["--emit", "windows"], &recording);
    assert!(windows.contains(" bytes) left out …]") && !windows.contains("shows them"), "{windows}");
}

/// A recording of an agent with a tool that nobody knows.
fn strange_recording() -> String {
    let call = json!({"id": "r", "name": "fetch_text", "arguments": {"target": "strange.rs"}});
    let lines = [
        json!({"role": "user", "text": "look"}),
        json!({"role": "assistant", "text": "", "tool_calls": [call]}),
        json!({"role": "tool", "text": "fn strange() {}\n", "tool_call_id": "r", "name": "fetch_text"}),
        json!({"role": "assistant", "text": "done"}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_configuration_says_what_a_strange_tool_does() {
    let directory = tempdir().expect("a temporary directory");
    fs::write(directory.path().join("recording.jsonl"), strange_recording()).expect("files can be written");
    let entry = "[[tool]]\nname = \"fetch_text\"\ndoes = \"read\"\npath = \"target\"\n";
    fs::write(directory.path().join("tools.toml"), entry).expect("files can be written");
    let many = recording(20).replace("\"Read\"", "\"fetch_text\"").replace("\"file_path\"", "\"target\"");
    fs::write(directory.path().join("many.jsonl"), many).expect("files can be written");
    let arguments = ["replay", "many.jsonl", "--emit", "windows", "--budget", "2000"];
    let plain = run_in(directory.path(), &arguments, "");
    let taught = run_in(directory.path(), &[&arguments[..], &["--config", "tools.toml"]].concat(), "");
    assert_eq!((plain.code, taught.code, taught.stderr.as_str()), (0, 0, ""));
    let heading = "## `10.rs`";
    assert!(!plain.stdout.contains(heading), "{}", plain.stdout);
    assert!(taught.stdout.contains(heading), "{}", taught.stdout);
    let compared = run_in(directory.path(), &["replay", "--compare", "recording.jsonl", "--config", "tools.toml"], "");
    assert_eq!((compared.code, compared.stderr.as_str()), (0, ""));
}

#[test]
fn a_tool_that_is_not_understood_is_said_in_one_sentence() {
    let directory = tempdir().expect("a temporary directory");
    fs::write(directory.path().join("recording.jsonl"), strange_recording()).expect("files can be written");
    let cases = [
        ("[[tool]]\nname = \"x\"\n", "line 1: [[tool]] has no `does`\nhint: `does` must be `read`, "),
        (
            "[[tool]]\nname = \"x\"\ndoes = \"reads\"\n",
            "line 3: `does` of [[tool]] is `\"reads\"`, but must be `read`, ",
        ),
        (
            "[[tool]]\nname = \"x\"\ndoes = \"read\"\npaht = \"y\"\n",
            "line 4: unknown key `paht` in [[tool]]\nhint: did you mean `path`?\n",
        ),
        ("[[tool]]\nname = \"\"\ndoes = \"read\"\n", "line 2: `name` of [[tool]] is `\"\"`, but must be a text"),
        (
            "[[tool]]\nname = \"x\"\ndoes = \"read\"\n[[tool]]\nname = \"x\"\ndoes = \"run\"\n",
            "line 4: [[tool]] describes \"x\" twice\nhint: the other one is on line 1",
        ),
    ];
    for (text, sentence) in cases {
        fs::write(directory.path().join("tools.toml"), text).expect("files can be written");
        for command in [&["replay"][..], &["replay", "--compare"]] {
            let run = run_in(directory.path(), &[command, &["recording.jsonl", "--config", "tools.toml"]].concat(), "");
            assert_eq!(run.code, 2, "{}", run.stderr);
            assert!(run.stderr.starts_with(&format!("error: `tools.toml`, {sentence}")), "{}", run.stderr);
            assert!(run.stderr.contains("\nhint: "), "{}", run.stderr);
            assert_eq!(run.stderr.lines().count(), 2, "{}", run.stderr);
        }
    }
}

/// The same recording as a chat, with a system prompt before it and a word of the system in its middle.
fn chat(files: usize, prompt: &str) -> String {
    let mut messages = vec![json!({"role": "system", "content": prompt})];
    for (index, line) in json_lines(&recording(files)).into_iter().enumerate() {
        let calls = line["tool_calls"].as_array().into_iter().flatten().map(|call| {
            let function = json!({"name": call["name"], "arguments": call["arguments"].to_string()});
            json!({"id": call["id"], "type": "function", "function": function})
        });
        let mut message = json!({"role": line["role"], "content": line["text"], "tool_call_id": line["tool_call_id"]});
        if line["role"] == "assistant" {
            message["tool_calls"] = calls.collect();
        }
        messages.push(message);
        if index == 2 {
            messages.push(json!({"role": "system", "content": "be brief"}));
        }
    }
    json!({"messages": messages}).to_string()
}

/// All windows of a recording, whole.
fn whole_windows(budget: &str, recording: &str) -> Vec<Vec<Value>> {
    let mut window: Vec<Value> = Vec::new();
    let mut windows = Vec::new();
    for line in json_lines(&replayed(&["--budget", budget, "--emit", "windows"], recording)) {
        window.truncate(line["keep"].as_u64().expect("a count") as usize);
        window.extend(line["messages"].as_array().expect("messages").iter().cloned());
        windows.push(window.clone());
    }
    windows
}

fn bytes(window: &[Value]) -> usize {
    window.iter().map(|message| message["text"].as_str().expect("a text").len()).sum()
}

#[test]
fn what_the_system_says_first_stands_first_in_every_window() {
    let prompt = "Keep to the rules. ".repeat(50);
    let windows = whole_windows("2000", &chat(20, &prompt));
    assert_eq!(windows.len(), 21);
    for window in &windows {
        assert_eq!((&window[0]["meta"]["origin"], &window[0]["text"]), (&json!("system"), &json!(prompt)));
        assert!(bytes(window) / 4 <= 2000, "{} bytes are sent", bytes(window));
    }
    assert!(windows[20].len() < 30, "20 files do not fit, so something is folded");
    let told = windows[2].iter().find(|message| message["text"] == "be brief").expect("it is told once it was said");
    assert_eq!(
        (&told["role"], &told["meta"]["origin"]),
        (&json!("user"), &json!("system")),
        "as the plain form has it"
    );
}

#[test]
fn a_system_prompt_that_leaves_no_room_is_cut_in_its_middle() {
    let prompt = format!("first {} last", "word ".repeat(4_000));
    for window in whole_windows("2000", &chat(5, &prompt)) {
        let text = window[0]["text"].as_str().unwrap();
        assert!(
            text.starts_with("first word") && text.ends_with("word  last") && text.contains(" bytes cut "),
            "{text}"
        );
        assert!(window.len() > 1 && bytes(&window) / 4 <= 2000, "{} bytes are sent", bytes(&window));
    }
}

#[test]
fn the_system_prompt_is_counted_and_billed() {
    let summary = |prompt: &str| -> Value { serde_json::from_str(&replayed(&["--json"], &chat(3, prompt))).unwrap() };
    // The agent's own prompt counts as 12 000 tokens at least.
    let (short, long) = (summary(""), summary(&"rule".repeat(13_000)));
    let first = |summary: &Value, key: &str| summary["recordings"][0][key][0].as_u64().unwrap();
    for key in ["window_tokens", "passed_through_tokens"] {
        assert_eq!(first(&long, key) - first(&short, key), 1_000, "{key}");
    }
    let billed = |summary: &Value, key: &str| summary["sum"][key].as_f64().unwrap();
    for key in ["billed", "passed_through"] {
        // Written once, then read from the cache at each of the other three requests.
        let more = billed(&long, key) - billed(&short, key);
        assert!((more - 1_550.0).abs() < 0.01, "{key}: {more}");
    }
}

#[test]
fn decisions_and_windows_count_messages_as_the_recording_does() {
    let recording = chat(20, "rules");
    let windows = json_lines(&replayed(&["--budget", "2000", "--emit", "windows"], &recording));
    let decisions = json_lines(&replayed(&["--budget", "2000", "--emit", "decisions"], &recording));
    let before: Vec<&Value> = windows.iter().map(|window| &window["before"]).collect();
    let folds: Vec<&Value> = decisions.iter().filter(|decision| decision["decision"] == "fold").collect();
    assert!(!folds.is_empty());
    for fold in folds {
        assert!(before.contains(&&fold["at"]), "{} is no request of {before:?}", fold["at"]);
        assert!(fold["keep"].as_u64() >= Some(1), "the system prompt stays");
    }
}

#[test]
fn what_the_program_says_in_the_plain_form_is_the_user_s() {
    let line = |role: &str, text: &str| json!({"role": role, "text": text, "meta": {"origin": "system"}});
    let recording = format!("{}\n{}\n{}\n", line("user", "rules"), line("user", "go"), line("assistant", "ok"));
    let windows = whole_windows("2000", &recording);
    let roles: Vec<&Value> = windows[0].iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, [&json!("user"), &json!("user")]);
}

#[test]
fn the_table_of_folds_has_short_reasons_and_json_has_them_whole() {
    let summary = replayed(&["--budget", SMALL], &own_changes());
    let note = "* more had to go than usual: `--json` says what\n";
    assert!(summary.contains("  the window is full *\n") && summary.contains(note), "{summary}");
    assert!(summary.lines().all(|line| line.chars().count() <= 100), "{summary}");
    let json = replayed(&["--budget", SMALL, "--json"], &own_changes());
    assert!(json.contains("the window is full; the agent's own changes in "), "{json}");
}

#[test]
fn every_way_to_name_nothing_is_told_apart() {
    let directory = tempdir().unwrap();
    fs::create_dir(directory.path().join("empty")).unwrap();
    fs::write(directory.path().join("empty.jsonl"), "").unwrap();
    fs::write(directory.path().join("bytes.bin"), [0, 159, 146, 150, 255, 10, 13]).unwrap();
    // A text with a line of JSON is no recording that is broken nearly everywhere.
    fs::create_dir(directory.path().join("texts")).unwrap();
    let text = include_str!("../../../../docs/reference/on-disk-format.md");
    fs::write(directory.path().join("texts/format.md"), text).unwrap();
    for command in [&["replay"][..], &["replay", "--compare"]] {
        let said = |arguments: &[&str]| {
            let arguments: Vec<&str> = command.iter().chain(arguments).copied().collect();
            let run = run_in(directory.path(), &arguments, "");
            assert_eq!(run.stdout, "");
            (run.code, run.stderr.lines().next().unwrap_or_default().to_owned(), run.stderr.contains("\nhint: "))
        };
        let told = |code: i32, sentence: &str| (code, sentence.to_owned(), true);
        assert_eq!(said(&["empty"]), told(1, "error: the named directories have no files"));
        assert_eq!(said(&["empty.jsonl"]), told(1, "empty.jsonl: skipped, it is empty"));
        assert_eq!(said(&["-"]), told(1, "-: skipped, it is empty"));
        assert_eq!(said(&["texts"]), told(1, "error: none of the files is a recording in a known format"));
        assert_eq!(said(&["bytes.bin"]), told(1, "bytes.bin: skipped, it is in no known format"));
        let zero =
            "error: invalid value '0' for '--budget <N>': it must be a whole number of tokens from 1 to 1099511627776";
        assert_eq!(said(&["-", "--budget", "0"]), told(2, zero));
    }
}

#[test]
fn windows_keep_to_the_smallest_budgets() {
    for (budget, tokens) in [("1", 1), ("10", 10), ("100", 100), ("8000", 8_000)] {
        for window in whole_windows(budget, &recording(20)) {
            assert!(bytes(&window) / 4 <= tokens, "{} bytes in {budget} tokens", bytes(&window));
        }
    }
}

#[test]
fn windows_of_several_recordings_say_which_they_are_of() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("a.jsonl"), recording(2)).unwrap();
    fs::write(directory.path().join("b.jsonl"), recording(1)).unwrap();
    for emit in ["windows", "decisions"] {
        let emitted = |paths: &[&str]| {
            let arguments: Vec<&str> =
                ["replay", "--budget", "100", "--emit", emit].iter().chain(paths).copied().collect();
            json_lines(&run_in(directory.path(), &arguments, "").stdout)
        };
        let (mut both, one) = (emitted(&["."]), emitted(&["a.jsonl"]));
        let of = |name: &str| both.iter().filter(|line| line["recording"] == name).count();
        assert_eq!((of("./a.jsonl"), of("./a.jsonl") + of("./b.jsonl")), (one.len(), both.len()));
        assert!(one.iter().all(|line| line.get("recording").is_none()), "one recording needs no name");
        both.truncate(one.len());
        both.iter_mut().for_each(|line| drop(line.as_object_mut().unwrap().remove("recording")));
        assert_eq!(both, one);
    }
    let windows = json_lines(&run_in(directory.path(), &["replay", "--emit", "windows", "a.jsonl"], "").stdout);
    let keys: Vec<&String> = windows[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["before", "keep", "messages"]);
}

/// Anthropic looks for what it has cached at most 20 blocks back, so sending much at once is billed whole, in both columns.
#[test]
fn what_a_provider_does_not_find_again_is_billed_again() {
    let recording = |calls: usize| {
        let mut lines = vec![json!({"role": "user", "text": "look at them"})];
        let mut step = |ids: Vec<String>| {
            let call = |id: &String| json!({"id": id, "name": "Read", "arguments": {"file_path": format!("{id}.rs")}});
            let calls: Vec<Value> = ids.iter().map(call).collect();
            lines.push(json!({"role": "assistant", "text": "", "tool_calls": calls}));
            let text = |id: &String| format!("     1→// all of {id}: {}\n", "something ".repeat(800 / ids.len()));
            lines.extend(ids.iter().map(|id| json!({"role": "tool", "text": text(id), "tool_call_id": id})));
        };
        (0..6).for_each(|n| step(vec![format!("a{n}")]));
        step((0..calls).map(|n| format!("b{n}")).collect());
        lines.push(json!({"role": "assistant", "text": "done"}));
        lines.iter().map(|line| format!("{line}\n")).collect::<String>()
    };
    let billed = |calls: usize| {
        let summary: Value = serde_json::from_str(&replayed(&["--json"], &recording(calls))).expect("JSON");
        ["billed", "passed_through"].map(|name| summary["sum"][name].as_f64().expect("a number"))
    };
    let [few, many] = [billed(9), billed(11)];
    for at in [0, 1] {
        assert!(many[at] > few[at] + 10_000.0, "{few:?} and {many:?}");
    }
}
