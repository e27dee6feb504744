//! Patterns over command lines.

use crate::files::shell::{Redirect, Simple, Word, parse};
use contexture_text::pattern::name_matches;

/// Programs whose arguments are command lines.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "eval", "su", "ssh", "watch"];
/// How deep nested command lines are parsed.
const MAX_DEPTH: usize = 4;

/// Whether a pattern may match a command of a line. A line that cannot be parsed may match.
pub(super) fn may_have(pattern: &str, line: &str) -> bool {
    may_have_at(pattern, line, 0)
}

fn may_have_at(pattern: &str, line: &str, depth: usize) -> bool {
    if name_matches(pattern, line.trim()) || depth > MAX_DEPTH {
        return true;
    }
    match parse(line) {
        Some(script) => script.commands().any(|command| command_may(pattern, command, depth)),
        None => true,
    }
}

fn command_may(pattern: &str, command: &Simple, depth: usize) -> bool {
    let words: Vec<Option<&str>> = command.words.iter().map(Word::plain).collect();
    // A program name that only the shell can expand may be anything.
    if words.first().is_some_and(Option::is_none) {
        return true;
    }
    // After `sudo`, `env`, `timeout` and the like, another command may begin at any word.
    let starts = (0..words.len()).any(|start| words_may(pattern, &words[start..]));
    let is_shell = words.iter().flatten().any(|word| SHELLS.contains(&base_name(word)));
    let inner = words.iter().skip(1).flatten().filter(|word| is_shell && word.contains(char::is_whitespace));
    starts || inner.into_iter().any(|line| may_have_at(pattern, line, depth + 1))
}

/// Whether a pattern may match these words; a word that is not literal may be anything.
fn words_may(pattern: &str, words: &[Option<&str>]) -> bool {
    let Some(Some(program)) = words.first() else { return false };
    let rest = words[1..].iter().map_while(|word| *word);
    let plain: Vec<&str> = std::iter::once(base_name(program)).chain(rest).collect();
    let text = plain.join(" ");
    match plain.len() == words.len() {
        // `git push *` also matches `git push`.
        true => name_matches(pattern, &text) || name_matches(pattern, &format!("{text} ")),
        false => may_begin(pattern, &text),
    }
}

/// Whether a text with an unknown continuation may match.
fn may_begin(pattern: &str, start: &str) -> bool {
    let fixed = pattern.split(['*', '?']).next().unwrap_or(pattern);
    start.starts_with(fixed) || fixed.starts_with(start)
}

/// Whether a pattern matches every command of a line, and the line consists only of commands.
pub(super) fn is_all(pattern: &str, line: &str) -> bool {
    let Some(script) = parse(line).filter(|script| script.is_straight) else { return false };
    let mut commands = script.commands().peekable();
    commands.peek().is_some() && commands.all(|command| command_is(pattern, command))
}

fn command_is(pattern: &str, command: &Simple) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().map(Word::plain).collect();
    let only_reads = command.redirects.iter().all(|redirect| {
        matches!(redirect, Redirect::Read(_) | Redirect::Document { .. } | Redirect::ErrorsToOutput | Redirect::Copy)
    });
    let Some(words) = words.filter(|words| !words.is_empty() && only_reads && command.assigns.is_empty()) else {
        return false;
    };
    let text = words.join(" ");
    name_matches(pattern, &text) || name_matches(pattern, &format!("{text} "))
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}
