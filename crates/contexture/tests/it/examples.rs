//! The examples run, and say what they should.

use std::path::PathBuf;
use std::process::Command;

/// Where `cargo test` puts the examples, which it builds together with this test.
pub fn path_of(example: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this program");
    let profile = test.ancestors().nth(2).expect("tests lie in `deps`, beneath the profile's directory");
    let path = profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX));
    assert!(path.exists(), "`{example}` is not built; `cargo test -p contexture` builds the examples first");
    path
}

fn output_of(example: &str) -> String {
    let output = Command::new(path_of(example)).output().expect("start the example");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`{example}` failed: {stderr}");
    String::from_utf8(output.stdout).expect("examples print text")
}

/// The example prints these, in this order, with anything between them.
#[track_caller]
fn check(example: &str, expected: &[&str]) {
    let output = output_of(example);
    let mut rest = output.as_str();
    for line in expected {
        let Some(at) = rest.find(line) else { panic!("`{line}` is missing, or too early, in:\n{output}") };
        rest = &rest[at + line.len()..];
    }
}

#[test]
fn hello_tells_the_model_how_often_it_answered() {
    check("hello", &["answered 0 times", "Hello!", "answered 0 times", "Hello again!", "answered 1 times"]);
}

#[test]
fn the_guide_shows_the_hello_example() {
    let guide = include_str!("../../../../docs/library.md");
    let example = include_str!("../../examples/hello.rs");
    let (_, program) = example.split_once('\n').expect("more than one line");
    assert!(guide.contains(program), "the program in docs/library.md is not examples/hello.rs");
}

#[test]
fn the_guide_shows_the_coding_agent() {
    let guide = include_str!("../../../../docs/library.md");
    let example = include_str!("../../examples/coding_agent.rs");
    let (_, program) = example.split_once("#[tokio::main]\n").expect("a program");
    assert!(guide.contains(program), "the agent in docs/library.md is not that of examples/coding_agent.rs");
}

#[test]
fn a_closure_layer_answers_the_question_at_hand() {
    let output = output_of("closure_layer");
    let turns: Vec<&str> = output.split("--- a turn").collect();
    assert!(turns[1].contains("epoch: a run of requests"), "{output}");
    assert!(!turns[2].contains("epoch: a run of requests"), "{output}");
}

#[test]
fn a_function_is_called_by_the_model_and_by_the_program() {
    let expected =
        ["known here as `facts/remember`", "that makes 1.", "added one: 2", "likes tea", "in London", "refused: "];
    check("function_tool", &expected);
}

#[cfg(feature = "sqlite")]
#[test]
fn a_killed_turn_is_resumed_without_running_its_tool_again() {
    let expected = ["\"paying 5\" and was killed", "unfinished turn: true", "was not run again", "4 items"];
    check("resume_after_kill", &expected);
}

#[cfg(feature = "sqlite")]
#[test]
fn an_agent_remembers_a_person_across_two_runs() {
    let expected = [
        "-- Friday",
        "Ada lives in Lisbon. (user, ",
        "We chose SQLite for the app, since one machine is enough. (user, ",
        "entity in resource:ada: Ada lives in Lisbon. (said by user)",
        "observations in resource:ada: We chose SQLite",
    ];
    check("remembers", &expected);
}

#[test]
fn budgets_add_up() {
    let output = output_of("budgets");
    let row = |name: &str| -> Vec<u64> {
        let line = output.lines().find(|line| line.starts_with(name)).expect("a row of that name");
        line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect()
    };
    for (name, most) in [("notes", 1_500), ("gossip", 300), ("documents", 6_000)] {
        let cells = row(name);
        assert!(cells[0] <= most && cells[1] <= cells[0] && cells[2] == cells[0] - cells[1], "{output}");
    }
    assert!(row("all")[1] <= row("all")[0], "{output}");
}

#[test]
fn a_child_works_in_its_own_log_and_reports() {
    let expected = ["sees 1 messages", "sees 2 messages", "parent's log has 2 items", "(depth 0)", "(depth 1)"];
    check("child_execution", &expected);
}

#[test]
fn a_failing_hook_is_seen_and_the_turn_goes_on() {
    check("spans", &["looked_up", "the index is gone", "answer   Yes."]);
}

#[test]
fn a_plan_is_carried_out_once_the_user_approves_it() {
    let expected = [
        "Shall I?",
        "too early: ",
        "only tools that read",
        "-- a file is written",
        "The page is written.",
        "Next: step 2, Link it",
    ];
    check("plan", &expected);
}

#[test]
fn rules_deny_and_guide_and_are_kept_in_a_ledger() {
    let expected = [
        "git status: ran",
        "Ask the user before",
        "cargo test: Run one test by its name.",
        "nothing runs as root",
        "ledger: call Bash by `push`",
    ];
    check("steering", &expected);
}
