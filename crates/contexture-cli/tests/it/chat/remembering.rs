//! What `chat` remembers from one thread to the next, and what a person sees and changes of it.

use std::path::Path;

use serde_json::Value;

use super::configured::{configure, configured};
use super::line_mode::place;
use super::provider::{Provider, Reply};
use super::terminal::Terminal;
use crate::program::run;

const ENABLED: &str = "[memory]\nenabled = true\n";

#[track_caller]
fn said(place: &Path, provider: &Provider, text: &str) {
    let run = run(configured(place, &["--print", "--url", &provider.url, "--model", "m", text]), "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

/// Whether the last request offered a tool of a layer.
fn has_tool(provider: &Provider, layer: &str) -> bool {
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap_or_default().to_owned();
    let tools =
        |body: &Value| body["tools"].as_array().is_some_and(|all| all.iter().any(|tool| name(tool).starts_with(layer)));
    provider.received().last().is_some_and(tools)
}

#[test]
fn what_was_said_in_one_thread_is_recalled_in_the_next_only_with_memory() {
    for (config, is_recalled) in [(ENABLED, true), ("", false)] {
        let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
        configure(place.path(), config);
        said(place.path(), &provider, "The heron exporter broke because of the umlaut in its path.");
        said(place.path(), &provider, "Why did the heron exporter break?");
        assert_eq!(provider.last().contains("umlaut"), is_recalled, "{}", provider.last());
        assert_eq!(has_tool(&provider, "entity"), is_recalled, "the tools of the layers");
        assert!(has_tool(&provider, "task-state"), "a default layer of chat");
    }
}

#[test]
fn a_layer_that_is_switched_off_is_not_there() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    configure(place.path(), "[layers.task-state]\nenabled = false\n");
    said(place.path(), &provider, "hello");
    assert!(!has_tool(&provider, "task-state"));
    let remembering = ["entity", "observations", "episodic", "semantic-recall"];
    for off in remembering {
        configure(place.path(), &format!("{ENABLED}[layers.{off}]\nenabled = false\n"));
        said(place.path(), &provider, "hello");
        let there: Vec<&str> = remembering.into_iter().filter(|layer| has_tool(&provider, layer)).collect();
        let expected: Vec<&str> = remembering.into_iter().filter(|layer| *layer != off).collect();
        assert_eq!(there, expected);
    }
    std::fs::write(place.path().join("project/AGENTS.md"), "Write haikus.\n").expect("a file");
    for (files, is_told) in [("true", true), ("false", false)] {
        configure(place.path(), &format!("[layers.instructions]\nfiles = {files}\n"));
        said(place.path(), &provider, "hello");
        assert_eq!(provider.last().contains("Write haikus."), is_told, "{}", provider.last());
    }
    configure(place.path(), "[layers.instructions]\nfils = true\n");
    let wrong = crate::program::run(configured(place.path(), &["--print", "hello"]), "");
    assert!(wrong.code == 2 && wrong.stderr.contains("fils"), "{wrong:?}");
}

#[test]
fn a_person_sees_adds_and_forgets_facts() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    configure(place.path(), ENABLED);
    let mut terminal = Terminal::start(place.path(), &provider, 100, &[]);
    terminal.expect("lists commands");
    terminal.press("/memory add The staging host is omega\r");
    let told = terminal.expect("Remembered as ");
    assert!(!told.is_empty());
    let id = terminal.expect(".").trim_end_matches('.').to_owned();
    terminal.press("/memory\r");
    terminal.expect("The staging host is omega (user, ");
    terminal.press("What is the staging host?\r");
    terminal.expect("Noted.");
    terminal.press(&format!("/memory forget {id}\r"));
    terminal.expect("Forgotten.");
    terminal.press("/memory forget nothing\r");
    terminal.expect("there is no fact `nothing`");
    terminal.press("/quit\r");
    said(place.path(), &provider, "What is the host called?");
    assert!(!provider.last().contains("The staging host is omega (user"), "{}", provider.last());
}

#[test]
fn a_model_that_was_named_learns_facts_and_no_other_does() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    let fact =
        r#"{"facts":[{"text":"The user's cat is called Momo.","entity":"user","quote":"my cat is called Momo"}]}"#;
    let learner = Provider::start(vec![Reply::Says(fact)]);
    let long = format!("By the way, my cat is called Momo. {}", "And here is some log line of a build. ".repeat(150));
    configure(place.path(), ENABLED);
    said(place.path(), &provider, &long);
    assert_eq!(provider.received().len(), 1, "without a named model nothing is learned");
    configure(place.path(), &format!("{ENABLED}[memory.model]\nurl = \"{}\"\nname = \"small\"\n", learner.url));
    said(place.path(), &provider, &long);
    assert!(!learner.received().is_empty(), "it was asked at the end");
    said(place.path(), &provider, "How is my pet?");
    assert!(provider.last().contains("The user's cat is called Momo."), "{}", provider.last());
    configure(place.path(), &format!("{ENABLED}[memory.model]\nname = \"small\"\n"));
    let wrong = run(configured(place.path(), &["--print", "--url", &provider.url, "--model", "m", "hi"]), "");
    assert!(wrong.code == 2 && wrong.stderr.contains("not whose model it is"), "{wrong:?}");
}

/// Another command in a directory of the same person.
#[track_caller]
fn other(place: &Path, directory: &str, arguments: &[&str]) -> String {
    let mut command = crate::program::program(&place.join(directory));
    command.env("HOME", place.join("home")).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").args(arguments);
    let run = run(command, "");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    run.stdout
}

/// Says something in another directory.
fn said_in(place: &Path, directory: &str, provider: &Provider, text: &str) {
    other(place, directory, &["chat", "--print", "--url", &provider.url, "--model", "m", text]);
}

#[test]
fn the_memory_is_the_one_of_the_other_commands_and_of_one_project() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    std::fs::create_dir(place.path().join("elsewhere")).expect("a directory");
    configure(place.path(), ENABLED);
    said(place.path(), &provider, "The heron exporter broke because of the umlaut in its path.");
    let found = other(place.path(), "project", &["memory", "search", "heron exporter", "--json"]);
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert!(found["items"].to_string().contains("umlaut") && found["items"][0]["agent"] == "chat", "{found}");

    other(place.path(), "project", &["memory", "add", "The staging host of the heron is omega"]);
    other(place.path(), "elsewhere", &["memory", "add", "Ada likes short answers", "--everywhere"]);
    said(place.path(), &provider, "What made the heron exporter break?");
    let passages = provider.last();
    assert!(passages.contains("semantic-recall") && passages.contains("umlaut in its path"), "{passages}");
    said(place.path(), &provider, "Where is the staging host?");
    assert!(provider.last().contains("is omega") && provider.last().contains("short answers"), "{}", provider.last());

    said_in(place.path(), "elsewhere", &provider, "Why did the heron exporter break, and where is its staging host?");
    let sent = provider.last();
    assert!(sent.contains("short answers"), "what was told for all projects: {sent}");
    assert!(!sent.contains("umlaut") && !sent.contains("omega"), "another project: {sent}");
    let found = other(place.path(), "elsewhere", &["memory", "search", "staging host of the heron"]);
    assert!(!found.contains("omega"), "{found}");
}

#[test]
fn what_is_forgotten_by_a_command_is_gone_from_the_memory_of_chat() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    configure(place.path(), ENABLED);
    said(place.path(), &provider, "The zebra gateway is painted violet.");
    other(place.path(), "project", &["memory", "add", "The zebra gateway is painted violet"]);
    other(place.path(), "project", &["memory", "forget", "--containing", "painted violet"]);
    said(place.path(), &provider, "What colour has the zebra gateway?");
    assert!(!provider.last().contains("violet"), "{}", provider.last());
    let state = place.path().join("home/.local/state/contexture");
    let with_it = super::configured::files_with(&state, "violet");
    assert!(!with_it.iter().any(|name| name.starts_with("memory.db")), "{with_it:?}");
}

#[test]
fn the_layers_that_learn_share_one_limit_of_the_day() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    let learner = Provider::start(vec![Reply::Says(r#"{"facts":[]}"#)]);
    let limited = |tokens: u64| {
        let model = format!("[memory.model]\nurl = \"{}\"\nname = \"small\"\n", learner.url);
        configure(place.path(), &format!("{ENABLED}{model}daily_tokens = {tokens}\n"));
    };
    let long = format!("By the way, my cat is called Momo. {}", "And here is some log line of a build. ".repeat(150));
    limited(4_000);
    said(place.path(), &provider, &long);
    assert_eq!(learner.received().len(), 1, "the second one would not fit");
    limited(40_000);
    said(place.path(), &provider, &long);
    assert_eq!(learner.received().len(), 3);
}

/// The texts of messages, in order, without the marks that providers without such a role get around those of a developer.
fn texts(messages: &Value) -> Vec<String> {
    let text = |message: &Value| {
        let text: String = match &message["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            content => content.as_str().unwrap_or_default().to_owned(),
        };
        text.trim_start_matches("<developer>\n").trim_end_matches("\n</developer>").to_owned()
    };
    messages.as_array().expect("a list").iter().map(text).collect()
}

#[test]
fn the_window_is_what_a_conversation_begins_with() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Noted.")]));
    std::fs::write(place.path().join("project/AGENTS.md"), "Write haikus.\n").expect("a file");
    for config in ["", ENABLED, "instructions = \"Be brief.\"\n[layers.task-state]\nenabled = false\n"] {
        configure(place.path(), config);
        if config == ENABLED {
            other(place.path(), "project", &["memory", "add", "The lib was written by Ada"]);
        }
        let message = "Who wrote #src/lib.rs?";
        let shown = other(place.path(), "project", &["config", "window", "--json", "-m", message]);
        let shown: Value = serde_json::from_str(&shown).expect("JSON");
        said(place.path(), &provider, message);
        let sent = provider.received().pop().expect("a request");
        let names = |tools: &Value, at: &str| -> Vec<String> {
            let name = |tool: &Value| tool.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
            tools.as_array().expect("a list").iter().map(name).collect()
        };
        assert_eq!(names(&shown["tools"], ""), names(&sent["tools"], "/function/name"), "{config}");
        assert_eq!(texts(&shown["items"]), texts(&sent["messages"])[1..], "{config}");
        assert_eq!(provider.last().contains("written by Ada"), config == ENABLED, "{config}");
    }
}
