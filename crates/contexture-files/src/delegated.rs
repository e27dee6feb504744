//! The tasks that other agents are told: whether they are only to look.

/// Phrases with which an agent is told to change nothing, in lower case.
const LOOK_ONLY: &[&str] = &[
    "do not make changes",
    "do not make any changes",
    "don't make changes",
    "do not modify",
    "do not edit",
    "do not change",
    "do not write or edit",
    "do not write/edit",
    "do not write any code",
    "don't modify",
    "don't edit",
    "make no changes",
    "no code changes",
    "without making changes",
    "without changing",
    "read-only",
    "read only",
    "analysis-only",
    "analysis only",
    "research only",
    "findings only",
];

/// Verbs with which a task begins that only looks, in lower case.
pub(crate) const LOOKING_VERBS: &[&str] = &[
    "analyze",
    "analyse",
    "answer",
    "audit",
    "check",
    "compare",
    "count",
    "describe",
    "evaluate",
    "examine",
    "explain",
    "explore",
    "find",
    "identify",
    "inspect",
    "investigate",
    "list",
    "locate",
    "look",
    "read",
    "report",
    "research",
    "review",
    "scan",
    "search",
    "summarize",
    "trace",
    "understand",
    "verify",
];

/// Words of a task that changes something, in lower case.
const CHANGING_VERBS: &[&str] = &[
    "add",
    "apply",
    "build",
    "change",
    "commit",
    "create",
    "delete",
    "edit",
    "execute",
    "fix",
    "format",
    "generate",
    "implement",
    "install",
    "make",
    "merge",
    "migrate",
    "modify",
    "move",
    "patch",
    "push",
    "rebase",
    "refactor",
    "remove",
    "rename",
    "replace",
    "rewrite",
    "run",
    "save",
    "update",
    "write",
];

/// Words after which another one is the name of something: `the fix`, `a rewrite`.
const ARTICLES: &[&str] =
    &["a", "an", "any", "each", "every", "its", "no", "our", "that", "the", "these", "this", "those", "your"];

/// Whether an agent is told in its task only to look: in so many words, or because it begins with a verb that only
/// looks and has none that changes something.
pub(crate) fn only_looks(task: &str) -> bool {
    let task = task.to_lowercase();
    // Names of files, and words that are joined, are no verbs.
    let is_name = |word: &&str| word.trim_matches(|c: char| !c.is_alphanumeric()).contains(['.', '-', '_']);
    let parts = task
        .split_whitespace()
        .filter(|word| !is_name(word))
        .flat_map(|word| word.split(|c: char| !c.is_alphanumeric()));
    let words: Vec<&str> = parts.filter(|word| !word.is_empty()).collect();
    let begins = words.iter().take(2).any(|word| LOOKING_VERBS.contains(word));
    let is_deed = |at: usize| CHANGING_VERBS.contains(&words[at]) && !(at > 0 && ARTICLES.contains(&words[at - 1]));
    LOOK_ONLY.iter().any(|phrase| task.contains(phrase)) || (begins && !(0..words.len()).any(is_deed))
}
