//! What commands say that they changed: nothing, or the files that they name.

use crate::commands::command_label;
use crate::observation::Observation;
use crate::shell::{Script, Simple};

/// What one command of a script said of itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CommandReport {
    /// The command, in short.
    by: String,
    /// What it changed, as written; nothing if that is empty.
    changed: Vec<String>,
}

impl CommandReport {
    /// Replaces what the command might have changed by what it said.
    pub(super) fn settle(self, observations: &mut Vec<Observation>) {
        let is_its_own = |told: &Observation| match told {
            Observation::Swept { by, .. } | Observation::Formatted { by, .. } => *by == self.by,
            _ => false,
        };
        let Some(at) = observations.iter().position(is_its_own) else { return };
        observations.retain(|told| !is_its_own(told));
        let swept = |path: &String| Observation::Swept {
            under: Some(path.clone()),
            extensions: Vec::new(),
            by: self.by.clone(),
        };
        let presumed = Observation::Presumed { by: self.by.clone() };
        let named: Vec<Observation> = self.changed.iter().map(swept).chain([presumed]).collect();
        if !self.changed.is_empty() {
            observations.splice(at..at, named);
        }
    }
}

/// What the one command of a script that may change files says of itself, if no other may have said it.
pub(super) fn said(script: &Script, output: &str) -> Option<CommandReport> {
    idle(script, output).map(|by| CommandReport { by, changed: Vec::new() }).or_else(|| merged(script, output))
}

/// Whether a script put changes aside and took them back, so that all files are as they were.
pub(super) fn settle_stash(script: &Script, output: &str, observations: &mut Vec<Observation>) {
    let is_stash = |command: &&Simple, words: &[&str]| {
        action(command) == Some("stash")
            && command
                .plain_arguments()
                .is_some_and(|all| all.get(1).map_or(words.is_empty(), |word| words.contains(word)))
    };
    let commands: Vec<&Simple> = script.commands().collect();
    let pushes: Vec<usize> = (0..commands.len())
        .filter(|at| {
            is_stash(&commands[*at], &[])
                || is_stash(&commands[*at], &["push", "save", "-u", "-q", "--include-untracked"])
        })
        .collect();
    let pops: Vec<usize> = (0..commands.len()).filter(|at| is_stash(&commands[*at], &["pop"])).collect();
    let ([push], [pop]) = (pushes.as_slice(), pops.as_slice()) else { return };
    let is_back = output.contains("Dropped refs/stash@{0}") && !output.contains("CONFLICT");
    let is_saved = output.contains("Saved working directory and index state");
    if push > pop || !is_back || !is_saved {
        return;
    }
    let by = [command_label(commands[*push]), command_label(commands[*pop])];
    let is_theirs = |told: &Observation| matches!(told, Observation::Swept { by: own, .. } if by.contains(own));
    // What was shown or changed in between was another state.
    let says_nothing = |told: &Observation| {
        matches!(told, Observation::Presumed { .. } | Observation::Mentioned { .. } | Observation::Old { .. })
    };
    if observations.iter().all(|told| is_theirs(told) || says_nothing(told)) {
        observations.retain(|told| !is_theirs(told));
        observations.push(Observation::Presumed { by: by[1].clone() });
    }
}

/// Actions of `git`, and how the line begins and ends with which they say that they did nothing.
const IDLE: &[(&str, &str, &str)] = &[
    ("checkout", "Already on '", "'"),
    ("merge", "Already up to date.", ""),
    ("pull", "Already up to date.", ""),
    ("pull", "Current branch ", " is up to date."),
    ("rebase", "Current branch ", " is up to date."),
    ("stash", "No local changes to save", ""),
    ("switch", "Already on '", "'"),
];

/// Actions of `git` that print none of these lines.
const QUIET: &[&str] = &["add", "branch", "fetch", "status"];

/// Actions of `git` that choose a branch.
const CHOOSING: &[&str] = &["checkout", "switch"];

/// Whether a command prints none of these lines.
fn is_quiet(command: &Simple) -> bool {
    match (command.program(), action(command)) {
        (Some("cd" | "true" | "pwd"), _) => true,
        (_, Some(action)) => QUIET.contains(&action),
        _ => false,
    }
}

/// Options with which an action changes files although it says that it did nothing.
const FORCES: &[&str] = &["-f", "--force", "--", "-m", "--merge", "--discard-changes", "-B", "-C", "--autostash"];

/// The one command of a script that says that it did nothing. No other may have printed that.
fn idle(script: &Script, output: &str) -> Option<String> {
    let is_idle_one = |command: &&Simple| {
        let is_listed = |name: &str| IDLE.iter().any(|(action, _, _)| *action == name);
        // Which branch is chosen says nothing about what is merged into it.
        !is_quiet(command) && action(command).is_none_or(|name| is_listed(name) && !CHOOSING.contains(&name))
    };
    let mut others = script.commands().filter(|command| !is_quiet(command));
    let command = match script.commands().find(is_idle_one) {
        Some(command) => {
            let is_other = |other: &Simple| !std::ptr::eq(other, command);
            let is_choice = |other: &Simple| action(other).is_some_and(|name| CHOOSING.contains(&name));
            others.all(|other| !is_other(other) || is_choice(other)).then_some(command)?
        }
        None => others.next().filter(|_| others.next().is_none())?,
    };
    let says = match action(command) {
        Some(action) => {
            let is_forced = command.arguments().iter().any(|word| FORCES.contains(&word.text.as_str()));
            let lines = IDLE.iter().filter(|(name, _, _)| *name == action && !is_forced);
            lines.into_iter().any(|(_, begin, end)| {
                output.lines().map(str::trim_end).any(|line| line.starts_with(begin) && line.ends_with(end))
            })
        }
        None => formatted_nothing(output),
    };
    says.then(|| command_label(command))
}

/// The action of a `git` command.
fn action(command: &Simple) -> Option<&str> {
    let first = command.arguments().first().filter(|_| command.program() == Some("git"))?;
    first.plain()
}

/// Whether a formatter says that it changed no file.
fn formatted_nothing(output: &str) -> bool {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let Some(last) = lines.last() else { return false };
    let words: Vec<&str> = last.split_whitespace().collect();
    let counts = match words.as_slice() {
        // `2 files left unchanged`, `2 files left unchanged.`
        [count, "file" | "files", "left", "unchanged" | "unchanged."] => count.parse::<usize>().is_ok(),
        // `Checked 2 files in 12ms. No fixes applied.`
        ["Checked" | "Formatted", _, "file" | "files", "in", _, "No", "fixes", "applied."] => true,
        _ => false,
    };
    let is_unchanged = |line: &&str| line.ends_with("ms (unchanged)");
    let has_change = lines.iter().any(|line| line.starts_with("reformatted "));
    (counts && !has_change) || lines.iter().all(is_unchanged)
}

/// The files that a merge says it changed, all of them.
fn merged(script: &Script, output: &str) -> Option<CommandReport> {
    let merges = |command: &&Simple| matches!(action(command), Some("merge" | "pull"));
    let mut commands = script.commands().filter(merges);
    let command = commands.next().filter(|_| commands.next().is_none())?;
    let mut lines = output.lines();
    lines.find(|line| *line == "Fast-forward" || line.starts_with("Merge made by the '"))?;
    let mut changed = Vec::new();
    for line in lines {
        if let Some((name, _)) = line.strip_prefix(' ').and_then(|line| line.split_once(" | ")) {
            let name = name.trim_end();
            // A name that is not written as it is, or two names.
            if name.starts_with('"') || name.contains(" => ") {
                return None;
            }
            changed.push(name.strip_prefix(".../").unwrap_or(name).to_owned());
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let [count, "file" | "files", "changed," | "changed", ..] = words.as_slice() else { return None };
        let is_all = count.parse() == Ok(changed.len()) && !changed.is_empty();
        return is_all.then(|| CommandReport { by: command_label(command), changed });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::parse;

    fn of(line: &str, output: &str) -> Option<Vec<String>> {
        said(&parse(line).unwrap(), output).map(|said| said.changed)
    }

    #[test]
    fn commands_say_that_they_did_nothing() {
        for (line, output) in [
            ("git pull", "Already up to date.\n"),
            ("cd x && git fetch && git rebase origin/main", "Current branch main is up to date.\n"),
            ("git checkout main && git pull", "Switched to branch 'main'\nAlready up to date.\n"),
            ("git checkout main", "Already on 'main'\nYour branch is up to date with 'origin/main'.\n"),
            ("bunx biome check --write a.ts", "Checked 1 file in 4ms. No fixes applied.\n"),
            ("black a.py", "All done! \u{2728}\n1 file left unchanged.\n"),
            ("ruff format .", "3 files left unchanged\n"),
            ("npx prettier --write a.ts b.ts", "a.ts 12ms (unchanged)\nb.ts 3ms (unchanged)\n"),
        ] {
            assert_eq!(of(line, output), Some(vec![]), "{line}");
        }
        for (line, output) in [
            ("git checkout -f main", "Already on 'main'\n"),
            ("echo 'Already up to date.'; git pull", "Already up to date.\nUpdating a..b\n"),
            ("ruff format .", "1 file reformatted, 3 files left unchanged\n"),
            ("black .", "reformatted a.py\n1 file left unchanged.\n"),
            ("npx prettier --write a.ts b.ts", "a.ts 12ms\nb.ts 3ms (unchanged)\n"),
            ("bunx biome check --write a.ts", "Checked 1 file in 4ms. Fixed 1 file.\n"),
            ("gofmt -w a.go", ""),
        ] {
            assert_eq!(of(line, output), None, "{line}");
        }
    }

    #[test]
    fn what_was_put_aside_and_taken_back_is_as_it_was() {
        let output = "Saved working directory and index state WIP on main: 1a2 x\nok\nDropped refs/stash@{0} (1a2)\n";
        let settled = |line: &str, output: &str, more: Vec<Observation>| {
            let swept = |by: &str| crate::commands::everything(format!("`{by}`"));
            let mut told = vec![swept("git stash"), swept("git stash pop")];
            told.extend(more);
            settle_stash(&parse(line).unwrap(), output, &mut told);
            told.iter().all(|told| matches!(told, Observation::Presumed { .. }))
        };
        assert!(settled("git stash && go test ./... ; git stash pop", output, vec![]));
        assert!(!settled("git stash && go test ./... ; git stash pop", "CONFLICT (content)\n", vec![]));
        assert!(!settled("git stash pop; git stash", output, vec![]));
        let made = Observation::Made { path: "x".to_owned() };
        assert!(!settled("git stash && touch x; git stash pop", output, vec![made]));
    }

    #[test]
    fn merges_name_what_they_changed() {
        let output = "Updating 1a..2b\nFast-forward\n README.md      | 2 +-\n .../deep/x.go  | 9 ++++\n 2 files changed, 10 insertions(+)\n";
        assert_eq!(of("git pull", output), Some(vec!["README.md".to_owned(), "deep/x.go".to_owned()]));
        assert_eq!(of("git pull", &output.replace("2 files", "3 files")), None, "some are missing");
        assert_eq!(of("git pull", &output.replace("README.md", "a => b")), None, "a file was renamed");
        assert_eq!(of("git pull && git merge x", output), None, "the other one may have changed more");
    }
}
