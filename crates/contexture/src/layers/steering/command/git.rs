//! What git runs, and the options before its subcommands.

use super::{Likeness, LineScope, Looking, greatest};
use crate::files::commands::table::row;
use crate::files::shell::{Simple, Word};

/// The subcommands of git; others are aliases or programs of their own.
const SUBCOMMANDS: &str = include_str!("subcommands.txt");

/// Subcommands that do what another one does.
const SAME: [(&str, &str); 2] = [("send-pack", "push"), ("http-push", "push")];

/// Whether git has a subcommand of this name.
pub(super) fn is_subcommand(name: &str) -> bool {
    SUBCOMMANDS.split_whitespace().any(|known| known == name)
}

impl Looking<'_> {
    /// What git runs besides what its arguments say.
    pub(super) fn git(self, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let (options, rest) = split(arguments);
        let configured = greatest(options.iter().enumerate().map(|(at, word)| match word.text.as_str() {
            "-c" => options.get(at + 1).map_or(Likeness::No, |setting| self.setting(setting)),
            text if text.starts_with("--config-env") && self.wanted.may_be("git") => Likeness::Unclear,
            text if text.starts_with("-c") && text.contains('=') => {
                self.setting(&Word { text: text[2..].to_owned(), ..word.clone() })
            }
            text if text.starts_with("--exec-path=") && self.wanted.may_be("git") => Likeness::Unclear,
            _ => Likeness::No,
        }));
        // A remote that is a command.
        if arguments.iter().any(|word| word.text.contains("ext::")) {
            return Likeness::Unclear;
        }
        let Some((subcommand, rest)) = rest.split_first() else { return configured };
        let Some(subcommand) = subcommand.plain() else { return configured };
        configured.max(self.subcommand(subcommand, rest, command, scope))
    }

    fn subcommand(self, subcommand: &str, rest: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let is_git = self.wanted.may_be("git");
        let as_git = |words: &[Word], name: &str| {
            let plain = |text: &str| Word { text: text.to_owned(), ..Word::default() };
            let words: Vec<Word> = [plain("git"), plain(name)].into_iter().chain(words.iter().cloned()).collect();
            self.deeper().words(&words, command, scope)
        };
        if !is_subcommand(subcommand) {
            // An alias, or a program of its own: what it does is not known here.
            return if is_git { Likeness::Unclear } else { Likeness::No };
        }
        if let Some((_, same)) = SAME.iter().find(|(name, _)| *name == subcommand) {
            return as_git(rest, same);
        }
        let lines = |options: &[&str]| greatest(values(rest, options).iter().map(|line| self.line_in(line)));
        match subcommand {
            "config" => self.configured(rest),
            "rebase" => lines(&["-x", "--exec"]),
            "grep" => lines(&["-O", "--open-files-in-pager"]),
            "difftool" => lines(&["-x", "--extcmd"]),
            "fetch" | "pull" | "clone" | "ls-remote" | "archive" => lines(&["--upload-pack", "-u", "--exec"]),
            "filter-branch" => {
                greatest(rest.iter().filter(|word| word.text.contains(' ')).map(|line| self.line_in(line)))
            }
            "bisect" | "hook" => match rest.split_first() {
                Some((word, words)) if word.text == "run" => self.deeper().words(words, command, scope),
                _ => Likeness::No,
            },
            "submodule" => match rest.iter().position(|word| word.text == "foreach") {
                Some(at) => {
                    let words = &rest[at + 1..];
                    let start = words.iter().position(|word| !word.text.starts_with('-')).unwrap_or(words.len());
                    self.joined(&words[start..])
                }
                None => Likeness::No,
            },
            "for-each-repo" => match rest.iter().position(|word| !word.text.starts_with('-')) {
                Some(at) => as_git(&rest[at + 1..], &rest[at].text),
                None => Likeness::No,
            },
            "subtree" | "lfs" => match rest.iter().position(|word| !word.text.starts_with('-')) {
                Some(at) if rest[at].text == "push" => as_git(&rest[at + 1..], "push"),
                _ => Likeness::No,
            },
            _ => Likeness::No,
        }
    }

    /// `git config`: an alias, or a program that git runs later.
    fn configured(self, rest: &[Word]) -> Likeness {
        let words = rest.iter().filter(|word| !word.text.starts_with('-'));
        let words: Vec<&Word> = words.filter(|word| !matches!(word.text.as_str(), "set" | "get" | "list")).collect();
        match &words[..] {
            [name, value, ..] => {
                let is_plain = name.plain().is_some() && value.plain().is_some();
                let setting = Word { text: format!("{}={}", name.text, value.text), ..Word::default() };
                if is_plain { self.setting(&setting) } else { Likeness::Unclear }
            }
            _ => Likeness::No,
        }
    }

    /// A setting of git, as `name=value`.
    fn setting(self, word: &Word) -> Likeness {
        let Some((name, value)) = word.text.split_once('=') else { return Likeness::No };
        let name = name.to_lowercase();
        let is_line = ["command", "pager", "editor", "external", "helper", "textconv", "cmd", "fsmonitor", "askpass"];
        if name.starts_with("alias.") {
            let line = match value.strip_prefix('!') {
                Some(line) => line.to_owned(),
                None => format!("git {value}"),
            };
            return if word.plain().is_some() { self.deeper().line(&line) } else { Likeness::Unclear };
        }
        if name.starts_with("include") || name == "core.hookspath" {
            return if self.wanted.may_be("git") { Likeness::Unclear } else { Likeness::No };
        }
        match is_line.iter().any(|end| name.ends_with(end)) {
            true if word.plain().is_none() => Likeness::Unclear,
            true => self.deeper().line(value.trim_start_matches('!')),
            false => Likeness::No,
        }
    }
}

/// The options before the subcommand, and the rest.
fn split(arguments: &[Word]) -> (&[Word], &[Word]) {
    let mut at = 0;
    let values = row("git").options.values;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += if values.contains(&word.text.as_str()) { 2 } else { 1 };
    }
    arguments.split_at(at.min(arguments.len()))
}

/// The values of options.
pub(super) fn values(words: &[Word], options: &[&str]) -> Vec<Word> {
    let value = |(at, word): (usize, &Word)| {
        let option = options.iter().find(|option| word.text.starts_with(**option))?;
        match word.text[option.len()..].strip_prefix('=') {
            Some(line) => Some(Word { text: line.to_owned(), ..word.clone() }),
            None if word.text == *option => words.get(at + 1).cloned(),
            // `-x'git push'`.
            None if option.len() == 2 => Some(Word { text: word.text[option.len()..].to_owned(), ..word.clone() }),
            None => None,
        }
    };
    words.iter().enumerate().filter_map(value).collect()
}
