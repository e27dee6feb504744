//! The page about what commands do is made from the tables.

use std::fmt::Write as _;

use contexture::files::commands::formatters::FORMATTERS;
use contexture::files::commands::tables::{
    GIT_READ_ONLY, MAKE_TARGETS, PRESUMED, READ_ONLY, RISKY_PREFIXES, RISKY_VARIABLES, WRITES, WRITES_WHOLE,
};
use contexture::files::dialect::guess::{CHANGING, FILE_WORDS, READING, RUNNING};

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
    text.push_str("\n## Formatters\n\nThey rewrite the files and directories that they are told to and are presumed to leave others alone; told none, they rewrite all files of these kinds. Patterns and options that may name files put all of these kinds, or all files, in doubt.\n\n");
    text.push_str("| command | only with | kinds of files | only what it is told |\n| --- | --- | --- | --- |\n");
    for entry in FORMATTERS {
        let (words, needs, kinds) = (entry.words.join(" "), code(entry.needs), code(entry.extensions));
        let kinds = if kinds.is_empty() { "all".to_owned() } else { kinds };
        let _ = writeln!(text, "| `{words}` | {needs} | {kinds} | {} |", if entry.only_named { "yes" } else { "no" });
    }
    let _ = writeln!(
        text,
        "\n## Variables\n\nA command line that sets one of {}, or one that begins with {}, is not understood.",
        code(RISKY_VARIABLES),
        code(RISKY_PREFIXES)
    );
    let _ = writeln!(
        text,
        "\n## Tools that are not known\n\nTools of known agents are in a table of their own; any other is judged by the words of its name and by its arguments.\n\n- After one that names a file, that file is in doubt, unless its name has one of {3} and none of {0}.\n- After one that names none, all files are in doubt if its name has one of the latter and also one of {1}.\n- It runs code if its name has one of {2} and none of the first list; all files are in doubt after it.\n- Any other changes nothing.",
        code(CHANGING),
        code(FILE_WORDS),
        code(RUNNING),
        code(READING)
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
