//! What `chat` remembers from one thread to the next, and what a person sees and changes of it.

use std::path::Path;

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
    provider.received().last().is_some_and(|body| body["tools"].to_string().contains(layer))
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
    configure(place.path(), "[layers.instructions]\nfiles = true\n");
    let run = run(configured(place.path(), &["--print", "--url", &provider.url, "--model", "m", "hello"]), "");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.starts_with("contexture: `chat` does not use `layers.instructions.files` ("), "{run:?}");
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
