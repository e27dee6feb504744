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
