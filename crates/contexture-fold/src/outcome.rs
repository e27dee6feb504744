//! How a call ended, in few words: exit status, counts of tests, the first error with its place, what was found where.
//!
//! The rules go by what programs print, since the same test runner is started in many ways.

use std::collections::HashSet;

use super::cap::says_error;
use contexture_files::observation::{Kind, Seen};

/// Longest output, in bytes, that is told as it is if it has one line.
const MAX_WHOLE_BYTES: usize = 80;

/// Longest place of an error, in bytes.
const MAX_PLACE_BYTES: usize = 100;

/// Most files that the outcome of a search names.
const MAX_NAMED_FILES: usize = 3;

/// How many lines after an error may name its place.
const PLACE_LINES: usize = 2;

/// How a call ended; empty if there is nothing to tell.
pub(super) fn outcome(seen: &Seen, result: &str) -> String {
    match seen.kind {
        Kind::Run => of_command(seen, result),
        _ if seen.failed => format!("failed: {}", first_line(result)),
        Kind::Search => found(result),
        Kind::Read | Kind::Write | Kind::Edit | Kind::Answer | Kind::Other => String::new(),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output")
}

/// How a command ended.
fn of_command(seen: &Seen, result: &str) -> String {
    let status = exit_status(result).filter(|status| *status != 0);
    let tests = tests(result);
    let names_failure = tests.as_ref().is_some_and(|tests| tests.first.is_some() && tests.failed > 0);
    let has_passed = tests.as_ref().is_some_and(|tests| tests.failed == 0) && status.is_none();
    let mut told: Vec<String> = status.map(|status| format!("exit {status}")).into_iter().collect();
    told.extend(tests.map(|tests| tests.tell()));
    if !names_failure && !has_passed {
        told.extend(first_error(result));
    }
    if told.is_empty() && seen.failed {
        return format!("failed: {}", first_line(result));
    }
    if told.is_empty() {
        told.extend(git_commit(result).or_else(|| hits(seen, result)).or_else(|| whole(result)));
    }
    told.join("; ")
}

/// The exit status that an agent's shell tool names.
fn exit_status(result: &str) -> Option<i64> {
    const NAMES: [&str; 5] = ["exit code: ", "exit code ", "exited with code ", "exit status ", "exit_code: "];
    // It is named in the first or the last few lines.
    let ends = result.lines().take(6).chain(result.lines().rev().take(4));
    ends.map(str::to_ascii_lowercase).find_map(|line| {
        let after = NAMES.iter().find_map(|name| line.split_once(name)).map(|(_, after)| after)?;
        let digits = after.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(after.len());
        after[..digits].parse().ok()
    })
}

/// What a test runner counted.
#[derive(Default)]
struct Tests {
    passed: u64,
    failed: u64,
    first: Option<String>,
}

impl Tests {
    fn tell(&self) -> String {
        match (self.failed, &self.first) {
            (0, _) => format!("{} passed", self.passed),
            (failed, None) => format!("{failed} failed, {} passed", self.passed),
            (failed, Some(first)) => format!("{failed} failed, {} passed, first {first}", self.passed),
        }
    }
}

/// Reads the counts of cargo, pytest, jest, vitest, go and others that count alike.
fn tests(result: &str) -> Option<Tests> {
    let mut tests = Tests::default();
    let mut is_counted = false;
    for line in result.lines() {
        let trimmed = line.trim().trim_matches('=').trim();
        if tests.first.is_none() {
            tests.first = failed_test(trimmed);
        }
        if is_summary(trimmed) {
            let (passed, failed) = (count_before(trimmed, "passed"), count_before(trimmed, "failed"));
            is_counted |= passed.or(failed).is_some();
            tests.passed += passed.unwrap_or(0);
            tests.failed += failed.unwrap_or(0);
        }
    }
    if !is_counted {
        let verdicts = |prefix: &str| result.lines().filter(|line| line.starts_with(prefix)).count() as u64;
        (tests.passed, tests.failed) = (verdicts("--- PASS: "), verdicts("--- FAIL: "));
        is_counted = tests.failed > 0 || tests.passed > 0;
    }
    is_counted.then_some(tests)
}

/// Whether a line sums up tests.
fn is_summary(line: &str) -> bool {
    let is_pytest = (line.contains(" passed") || line.contains(" failed")) && line.contains(" in ");
    line.starts_with("test result: ") || line.starts_with("Tests:") || line.starts_with("Tests ") || is_pytest
}

/// The number before a word: `3 failed`.
fn count_before(line: &str, word: &str) -> Option<u64> {
    let before = line[..line.find(word)?].trim_end();
    let start = before.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    before[start..].parse().ok()
}

/// The name of a test, if a line says that it failed.
fn failed_test(line: &str) -> Option<String> {
    let named = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("--- FAIL: "));
    let named = named.or_else(|| line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")));
    let name = named?.split(" - ").next()?.split(" (").next()?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// The first error with its place.
fn first_error(result: &str) -> Option<String> {
    let lines: Vec<&str> = result.lines().collect();
    let at = lines.iter().position(|line| says_error(line))?;
    let error = lines[at].trim();
    let place = lines[at + 1..].iter().take(PLACE_LINES).find_map(|line| line.trim().strip_prefix("--> "));
    match place.filter(|place| place.len() <= MAX_PLACE_BYTES) {
        Some(place) => Some(format!("{error} at {place}")),
        None => Some(error.to_owned()),
    }
}

/// The line with which git tells of a commit: `[main 1a2b3c4] message`.
fn git_commit(result: &str) -> Option<String> {
    let line = result.lines().map(str::trim).find(|line| line.starts_with('['))?;
    let (inside, _) = line[1..].split_once(']')?;
    let hash = inside.split(' ').next_back()?;
    let is_hash = hash.len() >= 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| line.to_owned())
}

/// What a command that searches has found.
fn hits(seen: &Seen, result: &str) -> Option<String> {
    const SEARCHES: [&str; 4] = ["rg ", "grep ", "git grep ", "ag "];
    let command = seen.command.as_deref()?.trim_start();
    let is_piped = command.contains('|');
    let searches = SEARCHES.iter().any(|search| command.starts_with(search)) && !is_piped;
    searches.then(|| found(result)).filter(|found| !found.is_empty())
}

/// How many hits a search has, and in how many files.
fn found(result: &str) -> String {
    let lines: Vec<&str> = result.lines().filter(|line| !line.trim().is_empty() && *line != "--").collect();
    let mut met = HashSet::new();
    let files: Vec<&str> = lines.iter().filter_map(|line| file_of(line)).filter(|path| met.insert(*path)).collect();
    let named = files[..files.len().min(MAX_NAMED_FILES)].join(", ");
    match (lines.len(), files.len()) {
        (0, _) => "nothing found".to_owned(),
        (_, 0) => String::new(),
        (1, _) => format!("1 match in {named}"),
        (count, 1) => format!("{count} matches in {named}"),
        (count, files) => format!("{count} matches in {files} files: {named}{}", more(files)),
    }
}

/// The file of a hit: `src/a.rs:12:text`.
fn file_of(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(':')?;
    rest.starts_with(|c: char| c.is_ascii_digit()).then_some(path)
}

fn more(files: usize) -> &'static str {
    if files > MAX_NAMED_FILES { ", …" } else { "" }
}

/// A short output of one line.
fn whole(result: &str) -> Option<String> {
    let line = result.trim();
    (!line.is_empty() && line.len() <= MAX_WHOLE_BYTES && !line.contains('\n')).then(|| line.to_owned())
}

#[cfg(test)]
mod tests_of_outcomes {
    use super::*;

    #[track_caller]
    fn check(kind: Kind, command: &str, failed: bool, result: &str, expected: &str) {
        let command = (!command.is_empty()).then(|| command.to_owned());
        let seen = Seen { kind, paths: Vec::new(), command, observations: Vec::new(), failed, is_mixed: false };
        assert_eq!(outcome(&seen, result), expected);
    }

    #[test]
    fn test_runners_are_counted() {
        let cargo = "running 3 tests\ntest a ... ok\ntest parser::deep ... FAILED\n\ntest result: FAILED. 12 passed; 3 failed; 0 ignored\n";
        check(Kind::Run, "cargo test", false, cargo, "3 failed, 12 passed, first parser::deep");
        let ok = "test result: ok. 12 passed; 0 failed\n\ntest result: ok. 5 passed; 0 failed\n";
        check(Kind::Run, "cargo test", false, ok, "17 passed");
        let pytest =
            "FAILED tests/test_a.py::test_b - assert 1 == 2\n==== 1 failed, 20 passed in 1.20s ====\nExit code: 1";
        check(Kind::Run, "pytest", true, pytest, "exit 1; 1 failed, 20 passed, first tests/test_a.py::test_b");
        check(Kind::Run, "npx jest", false, "Tests:       2 failed, 10 passed, 12 total\n", "2 failed, 10 passed");
        check(Kind::Run, "go test ./...", false, "--- PASS: TestA (0.00s)\n--- PASS: TestB (0.01s)\nok\n", "2 passed");
    }

    #[test]
    fn the_first_error_is_told_with_its_place() {
        let rustc = "   Compiling x\nerror[E0308]: mismatched types\n  --> src/a.rs:3:5\n   |\nerror: aborting\n";
        check(Kind::Run, "cargo build", true, rustc, "error[E0308]: mismatched types at src/a.rs:3:5");
        check(
            Kind::Run,
            "make",
            true,
            "make: *** No rule to make target 'x'.  Stop.\n",
            "failed: make: *** No rule to make target 'x'.  Stop.",
        );
        check(Kind::Run, "false", true, "Process exited with code 2\n", "exit 2");
    }

    #[test]
    fn searches_are_counted_and_other_calls_end_silently() {
        check(
            Kind::Search,
            "",
            false,
            "src/a.rs:3:x\nsrc/a.rs:9:x\nsrc/b.rs:1:x\n",
            "3 matches in 2 files: src/a.rs, src/b.rs",
        );
        check(Kind::Search, "", false, "\n", "nothing found");
        check(Kind::Search, "", false, "src/a.rs\nsrc/b.rs\n", "");
        check(Kind::Run, "rg -n x src", false, "src/a.rs:3:x\n", "1 match in src/a.rs");
        check(Kind::Run, "rg -n x src | head", false, "src/a.rs:3:x\nsrc/a.rs:4:x\n", "");
        check(Kind::Run, "git commit -m x", false, "[main 1a2b3c4] fix it\n 1 file changed\n", "[main 1a2b3c4] fix it");
        check(Kind::Run, "git rev-parse HEAD", false, "1a2b3c4\n", "1a2b3c4");
        check(Kind::Read, "", false, "text", "");
        check(Kind::Edit, "", true, "\nold_string not found\n", "failed: old_string not found");
    }
}
