//! What harnesses and people say about changes that no call of the agent made.

use super::commands::everything;
use super::model::named_places;
use super::observation::Observation;

/// How a harness names a file that someone else changed: what is before its path, and what is after it.
const MODIFIED: &[(&str, &str)] = &[
    ("Note: ", " was modified, either by the user or by a linter"),
    ("Note: ", " was modified by the user"),
    ("The file ", " has been modified since"),
    ("The file ", " was modified externally"),
    ("File ", " was changed on disk"),
];

/// Each of them has one of these words.
const MODIFIED_WORDS: [&str; 2] = [" modified", " changed on disk"];

/// The files of which a text of a harness says that someone else changed them.
pub(crate) fn modified(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Most texts say none of it, which is found out much faster by words than by sentences.
    if !MODIFIED_WORDS.iter().any(|word| text.contains(word)) {
        return found;
    }
    for (before, after) in MODIFIED {
        for (at, _) in text.match_indices(after) {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            let Some((_, path)) = line.rsplit_once(before) else { continue };
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
    for line in lines(text) {
        let lower = line.to_lowercase();
        is_restored |= RESTORED.iter().any(|phrase| lower.contains(phrase));
        let words: Vec<&str> = words_of(&lower).collect();
        let is_hook = words.iter().any(|word| matches!(*word, "hook" | "hooks"));
        let named = named_places(line).count() > 0;
        // Without a name, only what formats files is taken for a change of any of them.
        let deeds = if named { HOOK_DEEDS } else { FORMATTING };
        if is_hook && words.iter().any(|word| deeds.contains(word)) {
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
pub(crate) const NOTICES: [&str; 4] =
    ["<subagent_notification>", "<task-notification>", "<bash-notification>", "<agent-notification>"];

/// Whether a message is nothing but such a notice.
fn is_notice(text: &str) -> bool {
    let text = text.trim();
    let closes = |tag: &&str| text.ends_with(&tag.replace('<', "</"));
    NOTICES.iter().any(|tag| text.starts_with(tag) && text.matches(tag).count() == 1 && closes(tag))
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

/// Phrases with which a harness says that files were put back, or that a session went on after a while.
const RESTORED: &[&str] = &[
    "<command-name>/rewind</command-name>",
    "<command-name>/undo</command-name>",
    "<command-name>/restore</command-name>",
    "<command-name>/checkpoint</command-name>",
    "<command-name>/restore-checkpoint</command-name>",
    "was reset to",
    "were reset to",
    "checkpoint restored",
    "restored the code",
    "code was restored",
    "files were restored",
    "restored to checkpoint",
    "rewound to",
    "<command-name>/resume</command-name>",
    "<command-name>/exit</command-name>",
    "session resumed",
    "conversation resumed",
    "resumed session",
];

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
    let (_, rest) = text.split_once("<bash-input>")?;
    rest.split_once("</bash-input>").map(|(line, _)| line)
}

/// Words with which people say that they changed something.
const DEEDS: &[&str] = &[
    "added",
    "adjusted",
    "amended",
    "applied",
    "bumped",
    "changed",
    "checked",
    "cherry",
    "cleaned",
    "corrected",
    "created",
    "deleted",
    "edited",
    "edits",
    "extracted",
    "fixed",
    "formatted",
    "inserted",
    "merged",
    "migrated",
    "modified",
    "moved",
    "overwrote",
    "patched",
    "pulled",
    "ran",
    "rebased",
    "refactored",
    "removed",
    "renamed",
    "regenerated",
    "reordered",
    "replaced",
    "reset",
    "resolved",
    "restored",
    "restructured",
    "reverted",
    "rewrote",
    "rolled",
    "saved",
    "split",
    "squashed",
    "stashed",
    "swapped",
    "switched",
    "synced",
    "tweaked",
    "undid",
    "updated",
    "upgraded",
    "wrote",
];

/// Words that say who did it.
const DOERS: &[&str] = &["i", "i've", "ive", "we", "we've", "someone", "somebody", "colleague", "teammate"];

/// Most words between the person and the deed.
const MOST_BETWEEN: usize = 4;

/// Most words of a message that tells of a change without a name.
const MOST_WORDS: usize = 60;

/// What a person says that was changed by hand.
pub(crate) fn of_person(text: &str, was_asked: bool) -> Vec<Observation> {
    if is_done(text) && was_asked {
        return vec![everything("what the user was asked to do".to_owned())];
    }
    let mut told = Vec::new();
    // A long text is a task, or was pasted: only what it names is taken from it.
    let is_short = text.split_whitespace().take(MOST_WORDS + 1).count() <= MOST_WORDS;
    for sentence in sentences(text) {
        let lower = sentence.to_lowercase();
        let words: Vec<&str> = words_of(&lower).collect();
        let says = words.iter().enumerate().any(|(at, word)| {
            let after = &words[at + 1..(at + 1 + MOST_BETWEEN).min(words.len())];
            let is_wish =
                after.iter().any(|word| matches!(*word, "want" | "would" | "will" | "could" | "need" | "if" | "when"));
            DOERS.contains(word) && !is_wish && after.iter().any(|word| DEEDS.contains(word))
        });
        let says = says || clauses(&lower).any(|words| tells_of_deed(&words)) || tells_of_change(&words);
        if says && (is_short || named_places(sentence).count() > 0) {
            told.extend(changed_by(sentence, "a change by the user"));
        }
    }
    told
}

/// The words of the parts of a sentence.
fn clauses(lower: &str) -> impl Iterator<Item = Vec<&str>> {
    lower.split(['(', ')', ',', ':', '—', '^']).map(|clause| words_of(clause).collect())
}

/// Whether a clause begins with what was done, without saying who did it: `pulled the latest main`, `did some work`.
fn tells_of_deed(words: &[&str]) -> bool {
    const LEADS: &[&str] = &["ok", "okay", "and", "also", "so", "just", "already", "now", "meanwhile", "manually"];
    const WORK: &[&str] = &[
        "change",
        "changes",
        "checkout",
        "cleanup",
        "development",
        "edits",
        "merge",
        "pop",
        "pull",
        "rebase",
        "refactoring",
        "reset",
        "revert",
        "stash",
        "work",
    ];
    let rest = &words[words.iter().take_while(|word| LEADS.contains(word)).count()..];
    match rest {
        // These are said of wishes too, or ask for something.
        ["reset" | "ran" | "checked" | "wrote" | "fixed" | "added" | "removed" | "updated", ..] if words == rest => {
            false
        }
        ["did" | "made", more @ ..] => more.iter().take(MOST_BETWEEN + 2).any(|word| WORK.contains(word)),
        [first, _, ..] => DEEDS.contains(first),
        _ => false,
    }
}

/// Whether words tell that something was changed, without saying that the agent is to do it: `has been reformatted`,
/// `was updated by the generator`.
fn tells_of_change(words: &[&str]) -> bool {
    let is_changed = |at: usize| {
        let rest = &words[at..];
        let deed = rest.iter().take(2).position(|word| CHANGED.contains(word) || *word == "not")?;
        (rest[deed] != "not").then(|| &rest[deed + 1..])
    };
    (1..words.len()).any(|at| match (words[at - 1], words[at]) {
        ("has" | "have", "been") => is_changed(at + 1).is_some(),
        (_, "was" | "were" | "got") => is_changed(at + 1).is_some_and(|rest| rest.first() == Some(&"by")),
        _ => false,
    })
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

/// Most words of a message that only says that something is done.
const MOST_DONE_WORDS: usize = 8;

/// Whether a message says that what was asked for is done.
fn is_done(text: &str) -> bool {
    const DONE: &[&str] = &["done", "did", "finished", "ready", "rebased", "pulled", "ok"];
    let says = |word: &&str| DONE.iter().any(|done| word.eq_ignore_ascii_case(done));
    words_of(text).nth(MOST_DONE_WORDS).is_none() && words_of(text).any(|word| says(&word))
}

/// Verbs of things that an agent asks a person to do.
const ASKED: &[&str] = &[
    "add", "apply", "change", "checkout", "commit", "create", "delete", "edit", "execute", "fix", "install", "merge",
    "move", "pull", "rebase", "remove", "rename", "replace", "reset", "resolve", "restore", "revert", "run", "save",
    "stash", "switch", "sync", "undo", "update",
];

/// Whether the agent asks a person to do something to files.
pub(crate) fn asks_person(text: &str) -> bool {
    sentences(text).any(|sentence| {
        let lower = sentence.to_lowercase();
        let words: Vec<&str> = words_of(&lower).collect();
        // `I can do it if you like` is an offer.
        let asks = |at: usize| {
            matches!(
                (words[at], words.get(at + 1).copied()),
                ("please", _)
                    | ("could" | "can" | "will" | "would" | "need" | "want", Some("you"))
                    | ("you", Some("need" | "should" | "must" | "have"))
            )
        };
        (0..words.len()).any(|at| asks(at) && words[at..].iter().any(|word| ASKED.contains(word)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(told: Vec<Observation>) -> Vec<Option<String>> {
        let one = |observation| match observation {
            Observation::Swept { under, .. } => under,
            _ => None,
        };
        told.into_iter().map(one).collect()
    }

    #[test]
    fn words_are_in_every_sentence() {
        for (before, after) in MODIFIED {
            let text = format!("x\n{before}src/a.rs{after}.\n");
            assert_eq!(modified(&text), ["src/a.rs"], "{text}");
        }
    }

    #[test]
    fn people_say_what_they_changed() {
        let named = |text: &str| under(of_person(text, false));
        assert_eq!(named("I changed a.txt, please go on"), [Some("a.txt".to_owned())]);
        assert_eq!(
            named("I've just edited src/x.rs and src/y.rs."),
            [Some("src/x.rs".into()), Some("src/y.rs".into())]
        );
        assert_eq!(named("I rebased the branch. Now fix the test."), [None]);
        assert_eq!(named("A colleague has reverted the commit"), [None]);
        assert_eq!(named("src/a.py has been reformatted by black"), [Some("src/a.py".to_owned())]);
        assert_eq!(named("a.py was rewritten by the generator"), [Some("a.py".to_owned())]);
        assert_eq!(named("just did a git stash pop, carry on"), [None]);
        let harmless = [
            "Change a.txt",
            "I want a.txt changed",
            "What did you change in a.txt?",
            "The test failed",
            "ok",
            "a.txt was updated in the last release",
            "has a.txt been changed",
            "make sure that a.txt was not changed by the formatter",
        ];
        for text in harmless {
            assert_eq!(named(text), Vec::<Option<String>>::new(), "{text}");
        }
        assert!(asks_person("Please rebase the branch onto main, then tell me."));
        assert!(asks_person("Could you run the migration? I need you to update the lock file."));
        for text in ["The tests pass now.", "If you want, I can commit this and update the branch.", "I need to fix x."]
        {
            assert!(!asks_person(text), "{text}");
        }
        assert_eq!(under(of_person("Done, continue", true)), [None]);
        assert_eq!(under(of_person("done with 1 2 3 4 5 6 7", true)), Vec::<Option<String>>::new());
        let data = format!("I changed a.txt {}", "and b ".repeat(4_000));
        assert_eq!(named(&data), Vec::<Option<String>>::new(), "nobody writes such a line");
        assert_eq!(under(of_person("done, continue", false)), Vec::<Option<String>>::new());
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
