//! Programs that reformat files, and the files that they may change.

use super::table::{self, Action, ActionEffect, Formatting};
use crate::path::last_part;

/// Parts of options that may name more files.
const NAMING: [&str; 4] = ["file", "out", "dir", "path"];

/// The files that a formatter may change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FormatterReach<'a> {
    /// All files with these extensions; all files if there are none.
    Kinds(&'static [&'static str]),
    /// These files, and what is in these directories, each with the extensions that it is limited to.
    Named(Vec<(&'a str, &'static [&'static str])>),
}

/// What a formatter does on a command line.
pub(super) struct Formatted<'a> {
    /// A name that is the same for all ways to start the formatter.
    pub(super) family: String,
    /// Whether what it changes is near to what it dislikes.
    pub(super) is_local: bool,
    /// The files that it may change.
    pub(super) reach: FormatterReach<'a>,
}

/// Whether a command is a formatter that writes.
pub(super) fn writes(words: &[&str]) -> bool {
    formatting(words).is_some()
}

fn formatting(words: &[&str]) -> Option<(&'static Action, Formatting)> {
    let action = table::action(words, |action| matches!(action.does, ActionEffect::Formats(_)))?;
    match action.does {
        ActionEffect::Formats(formatting) => Some((action, formatting)),
        _ => None,
    }
}

/// A name that is the same for all ways to start a formatter.
fn family(program: &str, action: &str) -> String {
    match (program, action) {
        ("go", "fmt") => "gofmt".to_owned(),
        ("cargo", "fmt") => "rustfmt".to_owned(),
        (program, "") => program.to_owned(),
        (program, action) => format!("{program} {action}"),
    }
}

/// Returns which files a command may change, if it is a formatter.
pub(super) fn formatted<'a>(words: &[&'a str]) -> Option<Formatted<'a>> {
    let (action, formatting) = formatting(words)?;
    let of = |reach| Some(Formatted { family: family(words[0], action.words), is_local: formatting.is_local, reach });
    let arguments = &words[1 + action.len()..];
    let is_option = |word: &&&str| word.starts_with('-');
    if arguments.iter().filter(is_option).any(|word| NAMING.iter().any(|part| word.contains(part))) {
        return None;
    }
    let named: Vec<&str> = arguments.iter().filter(|word| !is_option(word)).copied().collect();
    // Patterns are expanded by the formatter itself.
    let is_plain = |word: &&str| !word.contains(['*', '?', '[', '{', '!', '@', '\\']);
    if formatting.only_named && !named.is_empty() && named.iter().all(is_plain) {
        // A directory may also contain files of other kinds.
        let is_directory = |word: &str| word.ends_with('/') || matches!(last_part(word), "." | "..");
        // What is no program of the language is left as it is.
        let is_text = |word: &str| formatting.extensions == ["go"] && word.ends_with(".md");
        let limits = |word: &str| if is_directory(word) || is_text(word) { formatting.extensions } else { &[] };
        return of(FormatterReach::Named(named.into_iter().map(|word| (word, limits(word))).collect()));
    }
    of(FormatterReach::Kinds(formatting.extensions))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatter_reaches_what_it_is_told_to() {
        let of = |line: &'static str| Some(formatted(&line.split(' ').collect::<Vec<_>>())?.reach);
        let named =
            |names: &[&'static str]| Some(FormatterReach::Named(names.iter().map(|name| (*name, &[][..])).collect()));
        assert_eq!(of("gofmt -w a.go b.go"), named(&["a.go", "b.go"]));
        assert_eq!(of("prettier --write src"), named(&["src"]));
        assert_eq!(of("eslint --fix --ext .ts src"), named(&[".ts", "src"]));
        assert_eq!(of("gofmt -w ."), Some(FormatterReach::Named(vec![(".", &["go"])])));
        assert_eq!(of("gofmt -w a.md"), Some(FormatterReach::Named(vec![("a.md", &["go"])])));
        assert_eq!(of("gofmt -w a.txt"), named(&["a.txt"]), "it may be a program");
        assert_eq!(of("prettier --write a.md"), named(&["a.md"]));
        assert_eq!(of("eslint --fix"), Some(FormatterReach::Kinds(&[])));
        assert_eq!(of("prettier --write src/*.ts"), Some(FormatterReach::Kinds(&[])));
        assert_eq!(of("black"), Some(FormatterReach::Kinds(&["py", "pyi", "ipynb"])));
        assert_eq!(of("rustfmt src/main.rs"), Some(FormatterReach::Kinds(&["rs"])), "it follows modules");
        assert_eq!(of("clang-format -i --files=list"), None);
        assert_eq!(of("eslint src"), None, "it only looks");
    }
}
