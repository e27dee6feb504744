//! The page about what commands do is made from the tables.

use std::fmt::Write as _;

use contexture::files::commands::formatters::FORMATTERS;
use contexture::files::commands::tables::{
    APART, GIT_APART, GIT_READ_ONLY, INSTALLERS, MAKE_TARGETS, PRESUMED, READ_ONLY, RISKY_PREFIXES, RISKY_VARIABLES,
    WRITES, WRITES_WHOLE,
};
use contexture::files::commands::tasks::{CHANGING_TASKS, LOOKING_TASKS, QUESTIONS, RUNNERS};
use contexture::files::commands::unknown::{AGENTS, CHANGERS, CHANGING_WORDS};
use contexture::files::dialect::guess::{
    CHANGE_NAMES, CHANGING, FILE_WORDS, OTHER_THINGS, PROJECT_CHANGING, READING, RUNNING,
};

const PAGE: &str = include_str!("../../../../docs/what-commands-do.md");

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The tables as the page shows them.
fn tables() -> String {
    let mut text = String::from("## Commands that change no file\n\n| command | unless |\n| --- | --- |\n");
    for entry in READ_ONLY {
        let operands = entry.most_operands.map(|most| format!("more than {most} operand"));
        let unless: Vec<String> =
            [code(entry.unless)].into_iter().filter(|text| !text.is_empty()).chain(operands).collect();
        let _ = writeln!(text, "| `{}` | {} |", entry.name, unless.join(", "));
    }
    let _ = writeln!(text, "\nAnd these actions of `git`: {}.", code(GIT_READ_ONLY));
    let apart: Vec<String> = GIT_APART.iter().map(|words| words.join(" ")).collect();
    let apart: Vec<&str> = apart.iter().map(String::as_str).collect();
    let _ = writeln!(text, "These change the repository, but no file of the work tree: {}.", code(&apart));
    text.push_str("\nThese run nothing of the project and write no source:\n\n");
    text.push_str("| command | only with | unless |\n| --- | --- | --- |\n");
    for entry in APART {
        let (words, needs, unless) = (entry.words.join(" "), code(entry.needs), code(entry.unless));
        let _ = writeln!(text, "| `{words}` | {needs} | {unless} |");
    }
    text.push_str("\n## Commands that are presumed to leave sources alone\n\n| command | only with |\n| --- | --- |\n");
    for entry in PRESUMED {
        let _ = writeln!(text, "| `{}` | {} |", entry.words.join(" "), code(entry.needs));
    }
    let _ = writeln!(text, "\nAnd `make` alone or with these targets: {}.", code(MAKE_TARGETS));
    let _ = writeln!(
        text,
        "Nothing is presumed with an option of which a part begins with {}, or is {}.",
        code(WRITES),
        code(WRITES_WHOLE)
    );
    let _ = writeln!(
        text,
        "\nTasks of a project, run by {}, are presumed to leave sources alone if a word of their name is {} and none is {}.",
        code(RUNNERS),
        code(LOOKING_TASKS),
        code(CHANGING_TASKS)
    );
    let _ = writeln!(
        text,
        "So is a program that is asked for something: its first or second word is {}, or its last one `--help` or `--version`.",
        code(QUESTIONS)
    );
    text.push_str("\nA word that the shell changes (a variable, a pattern, a substitution) does not change this, unless an option that the line has anywhere would.\nPrograms on the command line (`python3 -c`, `node -e`, `perl -ne`) are presumed to read only if none of their words writes, runs or hides something; if they name all files that they write, only these are in doubt.\n");
    let _ = writeln!(
        text,
        "\n## Programs that are in no table\n\nWhat they name is in doubt, and the rest is presumed to be as it was. All files are in doubt after a script or a program of the project (`./x`, `bash x.sh`, `python3 x.py`), after a program that runs what it is given, after an agent ({}), after a program whose name has one of {}, and if one of its words is {}, or one of the words of tasks and tools that change something. `go run` and `cargo run` are judged by the words of the program that they run.",
        code(AGENTS),
        code(CHANGERS),
        code(CHANGING_WORDS)
    );
    text.push_str("\n## Installing packages\n\n| command | kinds of files in doubt |\n| --- | --- |\n");
    for (words, extensions) in INSTALLERS {
        let _ = writeln!(text, "| `{}` | {} |", words.join(" "), code(extensions));
    }
    text.push_str("\n## Formatters\n\nThey rewrite the files and directories that they are told to and are presumed to leave others alone; told none, they rewrite all files of these kinds. What a formatter has formatted before, and nobody edited since it was seen, is presumed to stay; so are the lines far from later edits, with one that only lays out the text. The first time a file is formatted all of it is in doubt, unless its lines show that somebody formats it (for Go). One that says that it changed nothing changed nothing. Patterns and options that may name files put all of these kinds, or all files, in doubt.\n\n");
    text.push_str("| command | only with | kinds of files | only what it is told | only lays out |\n| --- | --- | --- | --- | --- |\n");
    for entry in FORMATTERS {
        let (words, needs, kinds) = (entry.words.join(" "), code(entry.needs), code(entry.extensions));
        let kinds = if kinds.is_empty() { "all".to_owned() } else { kinds };
        let yes = |is_so: bool| if is_so { "yes" } else { "no" };
        let (named, local) = (yes(entry.only_named), yes(entry.is_local));
        let _ = writeln!(text, "| `{words}` | {needs} | {kinds} | {named} | {local} |");
    }
    let _ = writeln!(
        text,
        "\n## Variables\n\nA command line that sets one of {}, or one that begins with {}, is not understood.",
        code(RISKY_VARIABLES),
        code(RISKY_PREFIXES)
    );
    text.push_str("\n## Tools that are not known\n\nTools of known agents are in a table of their own; any other is judged by the words of its name and by its arguments.\n\n");
    let _ = writeln!(
        text,
        "- One whose name has one of {} and none of the next list changes nothing.\n- After one whose name has one of {}, or that is told {}, what it names is in doubt; if it names nothing, all files are if its name has one of {}.\n- All files are in doubt after one whose name has one of {}, unless it also has one of {}.\n- It runs code if its name has one of {}; all files are in doubt after it.\n- After any other, what it names is in doubt, and the rest is presumed to be as it was.",
        code(READING),
        code(CHANGING),
        code(CHANGE_NAMES),
        code(FILE_WORDS),
        code(PROJECT_CHANGING),
        code(OTHER_THINGS),
        code(RUNNING)
    );
    text
}

#[test]
fn the_page_shows_the_tables_as_they_are() {
    let tables = tables();
    if std::env::var_os("CONTEXTURE_WRITE_DOCS").is_some() {
        let head = PAGE.split("## Commands that change no file").next().unwrap_or_default();
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/what-commands-do.md"),
            format!("{head}{tables}"),
        )
        .unwrap();
        return;
    }
    assert!(PAGE.ends_with(&tables), "run the test with CONTEXTURE_WRITE_DOCS=1 to write the page again");
}

#[test]
fn the_tables_are_in_order_and_name_nothing_twice() {
    let names: Vec<&str> = READ_ONLY.iter().map(|entry| entry.name).collect();
    assert!(names.is_sorted_by(|one, next| one < next));
    for entry in PRESUMED {
        assert!(!names.contains(&entry.words[0]), "{:?} is read-only and presumed", entry.words);
    }
}
