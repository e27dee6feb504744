//! The page about what commands do is made from the tables.

use std::fmt::Write as _;

use contexture_files::change_words::{CHANGERS, CHANGING, CHANGING_TASKS, CHANGING_WORDS, PROJECT_CHANGING};
use contexture_files::commands::options::{RISKY_PREFIXES, RISKY_VARIABLES, WRITES, WRITES_WHOLE};
use contexture_files::commands::table::{Action, ActionEffect, Changes, Program, Runs, rows};
use contexture_files::commands::tasks::{LOOKING_TASKS, QUESTIONS};
use contexture_files::dialect::guess::{CHANGE_NAMES, FILE_WORDS, OTHER_THINGS, READING, RUNNING};

const PAGE: &str = include_str!("../../../../docs/what-commands-do.md");

fn code(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The programs of the table, by name.
fn programs() -> Vec<&'static Program> {
    let mut programs: Vec<&Program> = rows().collect();
    programs.sort_by_key(|program| program.name);
    programs
}

/// The actions of the table, each with the command that it is.
fn actions() -> Vec<(String, &'static Action)> {
    let of = |program: &'static Program| {
        program
            .actions
            .iter()
            .map(|action| (format!("{} {}", program.name, action.words).trim_end().to_owned(), action))
    };
    programs().into_iter().flat_map(of).collect()
}

/// The names of the programs that do something with what they are given.
fn that_run(runs: Runs) -> String {
    let names: Vec<&str> =
        programs().into_iter().filter(|program| program.runs == runs).map(|program| program.name).collect();
    code(&names)
}

/// The actions of `git` that do something.
fn of_git(does: ActionEffect) -> String {
    let git = rows().find(|program| program.name == "git").unwrap();
    let words: Vec<&str> = git.actions.iter().filter(|action| action.does == does).map(|action| action.words).collect();
    code(&words)
}

/// The targets with which `make` is presumed to leave sources alone.
fn make_targets() -> String {
    let make = rows().find(|program| program.name == "make").unwrap();
    let Changes::Make { targets } = make.changes else { panic!("make has targets") };
    code(targets)
}

/// The tables as the page shows them.
fn tables() -> String {
    let mut text = String::from("## Commands that change no file\n\n| command | unless |\n| --- | --- |\n");
    for program in programs() {
        let Some(reading) = program.reading() else { continue };
        let names: Vec<&str> = [program.name].into_iter().chain(program.others.iter().copied()).collect();
        let operands = reading.most_operands.map(|most| format!("more than {most} operand"));
        let unless: Vec<String> =
            [code(reading.unless)].into_iter().filter(|text| !text.is_empty()).chain(operands).collect();
        let _ = writeln!(text, "| {} | {} |", code(&names), unless.join(", "));
    }
    let _ = writeln!(text, "\nAnd these actions of `git`: {}.", of_git(ActionEffect::Reads));
    let _ = writeln!(
        text,
        "These change the repository, but no file of the work tree: {}.",
        of_git(ActionEffect::ChangesRepository)
    );
    text.push_str(
        "\nThese run nothing of the project and write no source; with another option they are presumed to:\n\n",
    );
    text.push_str("| command | only with | unless |\n| --- | --- | --- |\n");
    for (command, action) in actions().iter().filter(|(_, action)| action.does == ActionEffect::StaysApart) {
        let _ = writeln!(text, "| `{command}` | {} | {} |", code(action.needs), code(action.unless));
    }
    let made: Vec<String> = actions()
        .into_iter()
        .filter(|(_, action)| action.does == ActionEffect::Makes)
        .map(|(command, _)| command)
        .collect();
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let _ = writeln!(text, "\nOnly the file that is named next is in doubt after {}.", code(&made));
    text.push_str("\n## Commands that are presumed to leave sources alone\n\n| command | only with |\n| --- | --- |\n");
    for (command, action) in actions().iter().filter(|(_, action)| action.does == ActionEffect::LeavesSources) {
        let _ = writeln!(text, "| `{command}` | {} |", code(action.needs));
    }
    let _ = writeln!(text, "\nAnd `make` alone or with these targets: {}.", make_targets());
    let _ = writeln!(
        text,
        "Nothing is presumed with an option of which a part begins with {}, or is {}.",
        code(WRITES),
        code(WRITES_WHOLE)
    );
    let _ = writeln!(
        text,
        "\nTasks of a project, run by {}, are presumed to leave sources alone if a word of their name is {} and none is {}.",
        that_run(Runs::Tasks),
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
        that_run(Runs::Agent),
        code(CHANGERS),
        code(CHANGING_WORDS)
    );
    text.push_str("\n## Installing packages\n\n| command | kinds of files in doubt |\n| --- | --- |\n");
    for (command, action) in actions() {
        let ActionEffect::Installs(extensions) = action.does else { continue };
        let _ = writeln!(text, "| `{command}` | {} |", code(extensions));
    }
    text.push_str("\n## Formatters\n\nThey rewrite the files and directories that they are told to and are presumed to leave others alone; told none, they rewrite all files of these kinds. What a formatter has formatted before, and nobody edited since it was seen, is presumed to stay; so are the lines far from later edits, with one that only lays out the text. The first time a file is formatted all of it is in doubt, unless its lines show that somebody formats it (for Go). One that says that it changed nothing changed nothing. Patterns and options that may name files put all of these kinds, or all files, in doubt.\n\n");
    text.push_str("| command | only with | kinds of files | only what it is told | only lays out |\n| --- | --- | --- | --- | --- |\n");
    for (command, action) in actions() {
        let ActionEffect::Formats(formatting) = action.does else { continue };
        let (needs, kinds) = (code(action.needs), code(formatting.extensions));
        let kinds = if kinds.is_empty() { "all".to_owned() } else { kinds };
        let yes = |is_so: bool| if is_so { "yes" } else { "no" };
        let (named, local) = (yes(formatting.only_named), yes(formatting.is_local));
        let _ = writeln!(text, "| `{command}` | {needs} | {kinds} | {named} | {local} |");
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
fn the_table_has_one_row_for_a_program() {
    let mut names: Vec<&str> =
        rows().flat_map(|program| [program.name].into_iter().chain(program.others.iter().copied())).collect();
    names.sort_unstable();
    let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:?}");
    for program in rows() {
        let reads = program.reading().is_some_and(|reading| reading.unless.is_empty());
        let is_presumed = program.actions.iter().any(|action| action.does == ActionEffect::LeavesSources);
        assert!(!(reads && is_presumed), "{} only reads, and is presumed to leave sources alone", program.name);
    }
}
