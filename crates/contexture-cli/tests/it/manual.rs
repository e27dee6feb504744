//! `contexture manual`: a page for each command.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

fn contexture() -> Command {
    Command::new(env!("CARGO_BIN_EXE_contexture"))
}

/// The commands that the help lists.
fn listed() -> BTreeSet<String> {
    let help = contexture().arg("help").output().expect("it runs");
    let help = String::from_utf8(help.stdout).expect("text");
    let commands = help.lines().skip_while(|line| !line.starts_with("Usage:")).take_while(|line| *line != "Options:");
    // Lines that go on with a description are further to the right.
    let names = commands.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_command_of_the_help_has_a_page() {
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path().join("made/here");
    let output = contexture().arg("manual").arg(&directory).output().expect("it runs");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let commands = listed();
    assert!(commands.len() > 15 && commands.contains("serve"), "{commands:?}");
    for command in commands.iter().filter(|command| *command != "help") {
        let page = fs::read_to_string(directory.join(format!("contexture-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(page.contains(".TH") && page.contains(".SH NAME") && page.contains(".SH OPTIONS"), "{command}: {page}");
    }
    let first = fs::read_to_string(directory.join("contexture.1")).expect("the page of the program");
    assert!(first.contains("serve") && !first.contains("manual"), "{first}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("file");
    fs::write(&file, "").expect("a file");
    let output = contexture().arg("manual").arg(file.join("below")).output().expect("it runs");
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1));
    assert!(told.starts_with("error: write manual pages into `") && told.contains("file/below"), "{told}");
}

/// What `contexture help` prints of a command.
fn help(words: &[&str]) -> String {
    let output = contexture().arg("help").args(words).env("COLUMNS", "100").output().expect("it runs");
    assert!(output.status.success(), "help {words:?}");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// The commands beneath a command, as its help lists them.
fn beneath(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
    let mut page =
        "# Commands\n\nThis page is what `contexture help` prints; `UPDATE_DOCS=1 cargo test -p contexture-cli \
                    --test it manual` makes it again.\n"
            .to_owned();
    for command in listed().iter().filter(|command| *command != "help") {
        let text = help(&[command.as_str()]);
        page.push_str(&format!("\n## {command}\n\n```text\n{text}\n```\n"));
        for name in beneath(&text) {
            let text = help(&[command.as_str(), name.as_str()]);
            page.push_str(&format!("\n### {command} {name}\n\n```text\n{text}\n```\n"));
        }
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(PATH, &page).expect("the page can be written");
    }
    let written = fs::read_to_string(PATH).unwrap_or_default();
    assert!(written == page, "docs/reference/commands.md is not what help prints; UPDATE_DOCS=1 makes it again");
}
