//! Any configuration: it is read or refused with a hint, and what was read is shown the same each time.

#![no_main]

use arbitrary::Arbitrary;
use contexture::config::{Command, ConfigFile, Sources, resolve};
use libfuzzer_sys::fuzz_target;

/// Lines that are near to what a file may say.
const LINES: [&str; 20] = [
    "budget = 64000",
    "[fold]",
    "[gateway]",
    "[[tool]]",
    "name = \"x\"",
    "does = \"read\"",
    "[layers]",
    "[history]",
    "window = \"200k\"",
    "pins = [\"system\"]",
    "when = \"pays\"",
    "[pins]",
    "roles = [\"user\"]",
    "tools = [\"Skill\"]",
    "paths = [\"*.md\"]",
    "[file-reference]",
    "base = \".\"",
    "listen = \"127.0.0.1:1\"",
    "key = { a = 1 }",
    "x = 1979-05-27",
];

#[derive(Arbitrary, Debug)]
enum Line {
    Known(u8),
    Text(String),
}

fn file(name: &str, lines: &[Line]) -> ConfigFile {
    let line = |line: &Line| match line {
        Line::Known(at) => LINES[usize::from(*at) % LINES.len()].to_owned(),
        Line::Text(text) => text.clone(),
    };
    ConfigFile::new(name, lines.iter().take(64).map(line).collect::<Vec<_>>().join("\n"))
}

fuzz_target!(|input: (Vec<Line>, Vec<Line>, Vec<(String, String)>)| {
    let variables = input.2.into_iter().take(8).map(|(name, value)| (format!("CONTEXTURE_{name}"), value));
    let sources = Sources {
        user: Some(file("user.toml", &input.0)),
        project: Some(file("contexture.toml", &input.1)),
        variables: variables.collect(),
        flags: Vec::new(),
    };
    match resolve(&sources) {
        Err(error) => assert!(!error.to_string().is_empty() && !error.hint().is_empty()),
        Ok(resolved) => {
            assert_eq!(resolved.lines(), resolve(&sources).expect("as before").lines());
            assert!(resolved.to_json().is_object() || resolved.to_json().is_array());
            let config = resolved.for_command(Command::Replay);
            let _ = (config.dialects(), config.pins());
        }
    }
});
