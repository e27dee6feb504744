//! What harnesses and people say about changes that no call of the agent made.

mod languages;
mod people;

use contexture_agents::every;

use super::commands::everything;
use super::model::named_places;
use super::observation::Observation;
pub(crate) use people::{asks_person, of_person};

/// The files of which a text of a harness says that someone else changed them.
pub(crate) fn modified(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Most texts say none of it, which is found out much faster by words than by sentences.
    if !every(|agent| agent.notes().modified_words()).any(|word| text.contains(word)) {
        return found;
    }
    for around in every(|agent| agent.notes().modified()) {
        for (at, _) in text.match_indices(around.after()) {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            let Some((_, path)) = line.rsplit_once(around.before()) else { continue };
            let path = path.trim().trim_matches(['`', '"', '\'']);
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// What a note of a harness tells: files that were changed, a state that was restored, hooks that changed files.
pub(crate) fn of_harness(text: &str) -> Vec<Observation> {
    let mut told: Vec<Observation> = modified(text).into_iter().map(|path| doubted(path, SOMEONE)).collect();
    // What an agent reports of its own work is not said by the harness.
    if !is_notice(text) {
        told.extend(of_tagged(text));
    }
    let mut is_restored = false;
    // What follows the name of an event is what its hook says.
    let bare = text.trim_start();
    let bare = bare.strip_prefix("<system-reminder>").unwrap_or(bare).trim_start();
    let is_of_hook = every(|agent| agent.notes().hooked()).any(|event| bare.starts_with(event));
    for line in lines(text) {
        let lower = line.to_lowercase();
        is_restored |= every(|agent| agent.notes().restored()).any(|phrase| lower.contains(phrase));
        let words: Vec<&str> = words_of(&lower).collect();
        let is_hook = is_of_hook || words.iter().any(|word| matches!(*word, "hook" | "hooks"));
        let named = named_places(line).count() > 0;
        // Without a name, only what formats files is taken for a change of any of them.
        let deeds = if named { HOOK_DEEDS } else { FORMATTING };
        let is_told_to = is_of_hook && named && lower.contains("--write");
        if is_hook && (is_told_to || words.iter().any(|word| deeds.contains(word))) {
            told.extend(changed_by(line, "a hook"));
        }
    }
    if is_restored {
        told.push(everything("a change of the session".to_owned()));
    } else if is_another_day(text) {
        // Anybody may have worked on the files meanwhile, and mostly nobody did.
        told.push(Observation::Presumed { by: "a night between two messages".to_owned() });
    }
    told
}

/// Most words of a message that tells of a change without a name.
const MOST_WORDS: usize = 60;

/// Words with which harnesses say that a file changed.
const CHANGED: &[&str] = &[
    "change",
    "changed",
    "changes",
    "edited",
    "edits",
    "fixed",
    "formatted",
    "modified",
    "overwritten",
    "reformatted",
    "replaced",
    "reset",
    "restored",
    "reverted",
    "rewritten",
    "updated",
];

/// Words that say that it was not the agent.
const NOT_THE_AGENT: &[&str] = &[
    "disk",
    "editor",
    "elsewhere",
    "external",
    "externally",
    "formatter",
    "linter",
    "outside",
    "save",
    "since",
    "someone",
    "user",
    "user's",
    "user_edits",
    "file_change",
];

/// The files that a message of a harness, or a part of one between tags or brackets, says someone else changed. Those
/// that are listed below such a line count too.
fn of_tagged(text: &str) -> Vec<Observation> {
    let mut told = Vec::new();
    let mut is_list = false;
    for line in lines(text) {
        // In a long line, the words of one sentence have nothing to do with the names of another one.
        let is_long = line.split_whitespace().nth(MOST_WORDS).is_some();
        let parts: Vec<&str> = if is_long { sentences(line).collect() } else { vec![line] };
        let saying: Vec<&str> = parts.into_iter().filter(|part| says_changed(part)).collect();
        let is_listed = is_list && line.trim_start().starts_with(['-', '*', '/']);
        let read = if is_listed { vec![line] } else { saying.clone() };
        told.extend(read.into_iter().flat_map(named_places).map(|place| doubted(place.path, SOMEONE)));
        is_list = (!saying.is_empty() && line.trim_end().ends_with(':')) || is_listed;
    }
    told
}

/// Whether a part of a note says that something was changed, and that the agent did not do it.
fn says_changed(part: &str) -> bool {
    let lower = part.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !(c.is_alphanumeric() || "'_".contains(c))).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    (has(CHANGED) && has(NOT_THE_AGENT) || has(&["user_edits", "file_change"])) && modified(part).is_empty()
}

/// Tags of messages in which a harness says how a command or an agent fares.
pub(crate) fn notices() -> impl Iterator<Item = &'static str> {
    every(|agent| agent.notes().notices()).copied()
}

/// Whether a message is nothing but such a notice.
fn is_notice(text: &str) -> bool {
    let text = text.trim();
    let closes = |tag: &str| text.ends_with(&tag.replace('<', "</"));
    notices().any(|tag| text.starts_with(tag) && text.matches(tag).count() == 1 && closes(tag))
}

/// Whether a harness says that it is another day: it tells what has changed of the surroundings, and names no directory.
fn is_another_day(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<environment_context>") && text.contains("<current_date>") && !text.contains("<cwd>")
}

const SOMEONE: &str = "a change by someone else";

/// Words with which a note says that a hook changed files.
const HOOK_DEEDS: &[&str] =
    &["changed", "fixed", "formatted", "modified", "reformatted", "rewrote", "updated", "wrote"];

/// Those of them that are said of formatters.
const FORMATTING: &[&str] = &["fixed", "formatted", "reformatted"];

/// The commits that a text names: `commit 1a2b3c4`.
pub(crate) fn named_commits(text: &str) -> impl Iterator<Item = &str> {
    let words = || text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let pairs = words().zip(words().skip(1));
    pairs.filter(|(word, hash)| word.eq_ignore_ascii_case("commit") && is_hash(hash)).map(|(_, hash)| hash)
}

/// Whether a word may be the name of a commit.
fn is_hash(word: &str) -> bool {
    (7..=40).contains(&word.len())
        && word.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words of a text that may be the names of commits.
pub(crate) fn named_hashes(text: &str) -> impl Iterator<Item = &str> {
    // The parts of a name with dashes are none.
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "-_".contains(c))).filter(|word| is_hash(word))
}

/// Whether a commit is one of some, each of which may be shortened.
pub(crate) fn is_one_of(hash: &str, commits: &[String]) -> bool {
    commits.iter().any(|known| known.starts_with(hash) || hash.starts_with(known.as_str()))
}

/// The commits that an output of `git commit` says were made: `[main 1a2b3c4] Fix it`.
pub(crate) fn made_commits(output: &str) -> impl Iterator<Item = &str> {
    output.lines().filter_map(made_commit)
}

/// The commits that an output of `git log` or `git show` begins its lines with.
pub(crate) fn shown_commits(output: &str) -> impl Iterator<Item = &str> {
    let first = |line: &str| -> Option<(usize, usize)> {
        let bare = line.strip_prefix("commit ").unwrap_or(line).trim_start_matches(['*', '|', ' ']);
        let hash = bare.split_whitespace().next()?;
        let start = line.len() - bare.len();
        let is_hash =
            (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_hash.then_some((start, start + hash.len()))
    };
    output.lines().filter_map(move |line| first(line).map(|(start, end)| &line[start..end]))
}

fn made_commit(line: &str) -> Option<&str> {
    let (head, _) = line.strip_prefix('[')?.split_once(']')?;
    head.rsplit(' ').next().filter(|hash| hash.len() >= 7 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The command line that a person ran beside the agent.
pub(crate) fn own_command(text: &str) -> Option<&str> {
    every(|agent| agent.notes().own_commands()).find_map(|around| {
        let (_, rest) = text.split_once(around.before())?;
        rest.split_once(around.after()).map(|(line, _)| line.trim())
    })
}

/// Whether a tool says that somebody else changed the file that it was to change.
pub(crate) fn is_stale(output: &str) -> bool {
    let head = &output[..output.floor_char_boundary(STALE_BYTES)];
    every(|agent| agent.output().stale()).any(|phrase| head.contains(phrase))
}

/// How many bytes at the start of an output are examined for that.
const STALE_BYTES: usize = 400;

/// Whether an output of `git commit` says that a hook changed files.
pub(crate) fn says_hook_changed(output: &str) -> bool {
    output.contains("files were modified by this hook")
}

/// The files that a text names, or every file if it names none.
fn changed_by(text: &str, by: &str) -> Vec<Observation> {
    let named: Vec<Observation> = named_places(text).map(|place| doubted(place.path, by)).collect();
    if named.is_empty() { vec![everything(by.to_owned())] } else { named }
}

fn doubted(path: &str, by: &str) -> Observation {
    Observation::Swept { under: Some(path.to_owned()), extensions: Vec::new(), by: by.to_owned() }
}

/// Parts of a text that end where a sentence ends. A dot inside a name does not end one.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '!', '?', ';']).flat_map(|line| line.split(". ")).filter(is_read)
}

/// The lines of a text that somebody may have written.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(is_read)
}

/// The longest line or sentence that is read: longer ones are data.
const MOST_READ_BYTES: usize = 16 << 10;

fn is_read(part: &&str) -> bool {
    part.len() <= MOST_READ_BYTES
}

fn words_of(lower: &str) -> impl Iterator<Item = &str> {
    lower.split(|c: char| !(c.is_alphanumeric() || c == '\'')).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn under(told: Vec<Observation>) -> Vec<Option<String>> {
        let one = |observation| match observation {
            Observation::Swept { under, .. } => under,
            _ => None,
        };
        told.into_iter().map(one).collect()
    }

    #[test]
    fn words_are_in_every_sentence() {
        for (before, after) in every(|agent| agent.notes().modified()).map(|around| (around.before(), around.after())) {
            let text = format!("x\n{before}src/a.rs{after}.\n");
            assert_eq!(modified(&text), ["src/a.rs"], "{text}");
        }
    }

    #[test]
    fn harnesses_name_files_that_changed() {
        let note = "<system-reminder>\nNote: /p/a b.rs was modified, either by the user or by a linter. This change was intentional.\n</system-reminder>";
        assert_eq!(modified(note), ["/p/a b.rs"]);
        assert_eq!(under(of_harness(note)), [Some("/p/a b.rs".to_owned())]);
        assert_eq!(under(of_harness("PostToolUse hook: prettier formatted src/a.ts")), [Some("src/a.ts".to_owned())]);
        assert_eq!(under(of_harness("<command-name>/rewind</command-name>")), [None]);
        assert_eq!(under(of_harness("The hook ran.")), Vec::<Option<String>>::new());
        assert_eq!(named_commits("Review commit 1a2b3c4, not commit messages.").collect::<Vec<_>>(), ["1a2b3c4"]);
        assert_eq!(made_commits("[main 1a2b3c4] Fix\n 1 file changed\n").collect::<Vec<_>>(), ["1a2b3c4"]);
        assert_eq!(own_command("<bash-input>git pull</bash-input>"), Some("git pull"));
    }
}
