//! What people say that they did to files, and what an agent asks them to do.

use super::{CHANGED, MOST_WORDS, changed_by, languages, sentences, words_of};
use crate::commands::everything;
use crate::model::named_places;
use crate::observation::Observation;

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
    "converted",
    "copied",
    "corrected",
    "created",
    "deleted",
    "discarded",
    "dropped",
    "edited",
    "edits",
    "extracted",
    "fixed",
    "formatted",
    "implemented",
    "inserted",
    "merged",
    "migrated",
    "modified",
    "moved",
    "overwritten",
    "overwrote",
    "pasted",
    "patched",
    "pulled",
    "ran",
    "rebased",
    "redid",
    "redo",
    "refactored",
    "regenerated",
    "removed",
    "renamed",
    "reordered",
    "replaced",
    "reset",
    "resolved",
    "restored",
    "restructured",
    "reverted",
    "rewritten",
    "rewrote",
    "rolled",
    "saved",
    "split",
    "squashed",
    "stashed",
    "swapped",
    "switched",
    "synced",
    "tidied",
    "tweaked",
    "undid",
    "updated",
    "upgraded",
    "wrote",
];

/// Words of these lists that do not end in `ed`: most sentences have none of either, which is found out quickly.
const IRREGULAR: &[&str] = &[
    "away",
    "back",
    "care",
    "change",
    "changes",
    "changing",
    "cherry",
    "did",
    "different",
    "done",
    "editing",
    "edits",
    "made",
    "overwritten",
    "overwrote",
    "put",
    "ran",
    "redid",
    "redo",
    "reset",
    "rewriting",
    "rewritten",
    "rewrote",
    "run",
    "split",
    "undid",
    "wrote",
];

/// Words that say who did it.
const DOERS: &[&str] = &["i", "i'm", "i've", "ive", "we", "we've", "someone", "somebody", "colleague", "teammate"];

/// Programs that change files beside the agent. What else they do is no change.
const PROGRAMS: &[&str] = &["editor", "formatter", "hook", "hooks", "ide", "linter", "prettier"];

/// Words that say that something is wished for, asked or supposed.
const WISHES: &[&str] = &[
    "can", "could", "i'd", "if", "may", "might", "must", "need", "needs", "should", "want", "when", "whether", "will",
    "would",
];

/// Words with which people say, beside the deeds, that a file which they name is not as it was.
const TOUCHED: &[&str] =
    &["care", "changing", "committed", "different", "editing", "pushed", "reformatted", "rewriting", "touched"];

/// Words with which a sentence begins that tells the agent what to do, or asks something.
const ORDERS: &[&str] = &[
    "are",
    "did",
    "does",
    "has",
    "how",
    "is",
    "what",
    "where",
    "which",
    "who",
    "why",
    "check",
    "compare",
    "describe",
    "do",
    "document",
    "don't",
    "ensure",
    "explain",
    "find",
    "implement",
    "keep",
    "let",
    "let's",
    "list",
    "look",
    "make",
    "never",
    "note",
    "please",
    "read",
    "refactor",
    "review",
    "rewrite",
    "see",
    "show",
    "test",
    "try",
    "use",
    "verify",
    "write",
];

/// Most words between the person and the deed.
const MOST_BETWEEN: usize = 4;

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
        let is_foreign = is_short && languages::tell_of_deed(&words);
        if !is_foreign && !words.iter().any(|word| word.ends_with("ed") || IRREGULAR.contains(word)) {
            continue;
        }
        let is_named = named_places(sentence).count() > 0;
        let says = is_foreign
            || tells_who_did(&words)
            || clauses(&lower).any(|words| tells_of_deed(&words))
            || tells_of_change(&words)
            || (is_short && is_named && tells_of_named(&words));
        if says && (is_short || is_named) {
            told.extend(changed_by(sentence, "a change by the user"));
        }
    }
    told
}

/// Whether words say that a person did something: `I just edited`, `we did a rebase`. What may have been no change of a
/// file is taken for one.
fn tells_who_did(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let after = &words[at + 1..(at + 1 + MOST_BETWEEN).min(words.len())];
        let is_wish =
            after.iter().any(|word| matches!(*word, "want" | "would" | "will" | "could" | "need" | "if" | "when"));
        let did = |deed: usize| {
            let rest = &words[at + 1 + deed..];
            let is_denied = matches!(rest, ["did", denial, ..] if NEGATIONS.contains(denial));
            !is_denied && !matches!(rest, ["changed", _, "mind", ..]) && (DEEDS.contains(&rest[0]) || is_deed(rest))
        };
        // What is denied after it is something else.
        let denies = |pair: &[&str]| NEGATIONS.contains(&pair[0]) && !matches!(pair[1..], ["only" | "just"]);
        let denied = (0..after.len()).find(|at| denies(&after[*at..after.len().min(at + 2)])).unwrap_or(after.len());
        let by_tool = |deed: usize| CHANGED.contains(&words[at + 1 + deed]) || words[at + 1 + deed] == "saved";
        let is_tool = PROGRAMS.contains(word) && (0..denied.min(2)).any(by_tool);
        !is_wish && (DOERS.contains(word) && (0..denied).any(did) || is_tool)
    })
}

/// Words that say that something was not done.
const NEGATIONS: &[&str] = &["didn't", "haven't", "never", "not"];

/// Whether words begin with `did` or `made` and what changes a project.
fn did_work(words: &[&str]) -> bool {
    let is_question = matches!(words, ["did", "you" | "it" | "that" | "this", ..]);
    !is_question
        && matches!(words, ["did" | "made", rest @ ..] if rest.iter().take(MOST_BETWEEN + 2).any(|word| WORK.contains(word)))
}

/// Whether words begin with a deed that changes a file: what is run need not, and what is checked does not.
fn is_deed(words: &[&str]) -> bool {
    match words {
        ["ran", rest @ ..] => rest.iter().any(|word| CHANGING_PROGRAMS.contains(word)),
        ["checked", rest @ ..] => rest.first() == Some(&"out"),
        ["run" | "executed", rest @ ..] => rest.iter().any(|word| CHANGING_PROGRAMS.contains(word)),
        ["threw", rest @ ..] => rest.contains(&"away"),
        ["put", rest @ ..] => rest.contains(&"back") || matches!(rest, [_, "in" | "into" | "there", ..]),
        ["went", rest @ ..] => rest.first() == Some(&"back"),
        [first, ..] => DEEDS.contains(first) || did_work(words),
        [] => false,
    }
}

/// Words for what changes files when it is run.
const CHANGING_PROGRAMS: &[&str] = &[
    "black",
    "build",
    "codegen",
    "codemod",
    "command",
    "commands",
    "fix",
    "fixer",
    "fmt",
    "format",
    "formatter",
    "generate",
    "generator",
    "git",
    "install",
    "lint",
    "linter",
    "migration",
    "migrations",
    "prettier",
    "script",
    "scripts",
    "sync",
    "update",
    "upgrade",
];

/// Words for what people do to a project.
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

/// Whether a sentence that names a file says that it is not as it was, whoever did it.
fn tells_of_named(words: &[&str]) -> bool {
    let is_order = words.first().is_some_and(|first| ORDERS.contains(first) || ASKED.contains(first));
    let is_wish = words.iter().any(|word| WISHES.contains(word) || *word == "not");
    let deed = (0..words.len()).find(|at| is_deed(&words[*at..]) || TOUCHED.contains(&words[*at]));
    let is_of_agent = |deed: usize| words[..deed].iter().any(|word| matches!(*word, "you" | "you've" | "your"));
    !is_order && !is_wish && deed.is_some_and(|deed| !is_of_agent(deed))
}

/// The words of the parts of a sentence.
fn clauses(lower: &str) -> impl Iterator<Item = Vec<&str>> {
    lower
        .split(['(', ')', ',', ':', '—', '–', '^'])
        .flat_map(|part| part.split(" - "))
        .map(|clause| words_of(clause).collect())
}

/// Whether a clause begins with what was done, without saying who did it: `pulled the latest main`, `did some work`.
fn tells_of_deed(words: &[&str]) -> bool {
    const LEADS: &[&str] =
        &["ok", "okay", "and", "also", "so", "just", "already", "now", "meanwhile", "manually", "done"];
    let rest = &words[words.iter().take_while(|word| LEADS.contains(word)).count()..];
    match rest {
        ["ran", ..] if words == rest => is_deed(rest),
        ["fixed" | "changed" | "updated", .., "manually" | "myself"] => true,
        ["went", "back", "to", ..] => true,
        // These are said of wishes too, or ask for something.
        ["reset" | "checked" | "wrote" | "fixed" | "added" | "removed" | "updated", ..] if words == rest => false,
        [work @ .., "done"] if work.len() <= MOST_BETWEEN => work.iter().any(|word| WORK.contains(word)),
        ["merged" | "rebased" | "pulled" | "reverted"] | ["branch", "rebased" | "merged"] | ["it", "changed"] => true,
        [first, _, ..] => DEEDS.contains(first) || did_work(rest),
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
    use super::super::tests::under;
    use super::*;

    #[test]
    fn words_that_tell_of_deeds_are_found_quickly() {
        for word in DEEDS.iter().chain(TOUCHED).chain(CHANGED) {
            assert!(word.ends_with("ed") || IRREGULAR.contains(word), "{word}");
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
        for text in ["just did a git stash pop, carry on", "git reset done", "I did a rebase onto main", "ok merged"] {
            assert_eq!(named(text), [None], "{text}");
        }
        for text in
            ["Anna pushed a fix to src/a.py", "Is it ok? The formatter touched src/a.py", "I'm editing src/a.py"]
        {
            assert_eq!(named(text), [Some("src/a.py".to_owned())], "{text}");
        }
        let harmless = [
            "Change a.txt",
            "I want a.txt changed",
            "What did you change in a.txt?",
            "The test failed",
            "ok",
            "has a.txt been changed",
            "make sure that a.txt was not changed by the formatter",
            "You renamed it in a.txt",
            "Update the callers of the renamed function in a.txt",
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
}
