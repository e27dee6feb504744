//! Compares a program and its arguments with a pattern.

use super::programs::is_option_with_value;
use super::{Likeness, LineScope, greatest};
use crate::files::shell::Word;
use contexture_text::pattern::name_matches;

/// Most ways to skip options that are looked at.
const MAX_WAYS: usize = 256;

/// What a pattern names: a program, subcommands, and what follows.
pub(in super::super) struct NamedProgram<'a> {
    pattern: &'a str,
    /// The program, which may have a `*`.
    program: &'a str,
    /// How many plain words follow the program.
    subcommands: usize,
}

impl<'a> NamedProgram<'a> {
    pub(in super::super) fn new(pattern: &'a str) -> Self {
        let mut words = pattern.split_whitespace();
        let program = words.next().unwrap_or_default();
        let subcommands = words.take_while(|word| !word.starts_with(['-', '*', '?'])).count();
        Self { pattern, program, subcommands }
    }

    /// Whether it may name a program.
    pub(super) fn may_be(&self, name: &str) -> bool {
        name_matches(self.program, name)
    }

    /// Whether it names exactly this program.
    pub(super) fn is_exactly(&self, name: &str) -> bool {
        let program = self.program.trim_end_matches('*');
        !program.is_empty() && program == name
    }

    /// Whether a text has the program's name anywhere.
    pub(super) fn is_within(&self, text: &str) -> bool {
        text.contains(self.program.trim_end_matches('*'))
    }

    /// Whether a text has the program's name as a word.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        let program = self.program.trim_end_matches('*');
        text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)))
            .any(|word| program.is_empty() || word == program)
    }
}

/// Whether a program with arguments is what a pattern names.
pub(super) fn likeness(wanted: &NamedProgram<'_>, name: &str, arguments: &[Word], scope: &LineScope) -> Likeness {
    if !wanted.may_be(name) {
        // `*push*` begins with no program.
        let is_any = wanted.program.starts_with(['*', '?']);
        return if is_any { text_likeness(wanted, name, &plain(arguments)) } else { Likeness::No };
    }
    let mut ways = Ways { name, arguments, scope, wanted: wanted.subcommands, all: Vec::new(), is_split: false };
    ways.find(0, Vec::new(), 0);
    let presumed = ways.is_split || ways.all.len() >= MAX_WAYS;
    let found = greatest(ways.all.iter().map(|way| text_likeness(wanted, name, way).max(loosely(wanted, name, way))));
    let found = found.max(text_likeness(wanted, name, &plain(arguments)));
    if presumed { found.max(Likeness::Unclear) } else { found }
}

fn plain(arguments: &[Word]) -> Vec<Option<&str>> {
    arguments.iter().map(Word::plain).collect()
}

/// The ways to skip the options before subcommands: which of them take a value is not always known.
struct Ways<'a> {
    name: &'a str,
    arguments: &'a [Word],
    scope: &'a LineScope,
    /// How many subcommands are looked for.
    wanted: usize,
    all: Vec<Vec<Option<&'a str>>>,
    /// Whether a word that was skipped may be several.
    is_split: bool,
}

impl<'a> Ways<'a> {
    fn find(&mut self, at: usize, mut kept: Vec<Option<&'a str>>, found: usize) {
        if self.all.len() >= MAX_WAYS {
            return;
        }
        let Some(word) = self.arguments.get(at).filter(|_| found < self.wanted) else {
            kept.extend(self.arguments[at.min(self.arguments.len())..].iter().map(Word::plain));
            return self.all.push(kept);
        };
        let is_option =
            word.text.len() > 1 && (word.text.starts_with('-') || (self.name == "cargo" && word.text.starts_with('+')));
        if !is_option {
            self.is_split |= self.scope.may_split(word);
            kept.push(word.plain());
            return self.find(at + 1, kept, found + 1);
        }
        let takes_value = is_option_with_value(self.name, &word.text);
        if takes_value != Some(true) {
            self.find(at + 1, kept.clone(), found);
        }
        if takes_value != Some(false) && at + 1 < self.arguments.len() {
            self.is_split |= self.scope.may_split(&self.arguments[at + 1]);
            self.find(at + 2, kept, found);
        }
    }
}

/// Whether the text of a command matches; a word that is not plain may be anything.
fn text_likeness(wanted: &NamedProgram<'_>, name: &str, words: &[Option<&str>]) -> Likeness {
    let known: Vec<&str> = std::iter::once(name).chain(words.iter().map_while(|word| *word)).collect();
    let text = known.join(" ");
    let pattern = wanted.pattern;
    if known.len() == words.len() + 1 {
        // `git push *` also matches `git push`.
        let is_match = name_matches(pattern, &text) || name_matches(pattern, &format!("{text} "));
        return if is_match { Likeness::Yes } else { Likeness::No };
    }
    let fixed = pattern.split(['*', '?']).next().unwrap_or(pattern);
    let is_open = pattern[fixed.len()..].chars().all(|c| c == '*');
    if fixed.is_empty() && !is_open {
        // `*push*` over a line with unknown words: what is known decides.
        return if name_matches(pattern, &text) { Likeness::Yes } else { Likeness::No };
    }
    if text.starts_with(fixed.trim_end()) {
        let goes_on = text[fixed.trim_end().len()..].is_empty() || fixed.ends_with(' ') || is_open;
        return if is_open && goes_on { Likeness::Yes } else { Likeness::Unclear };
    }
    if fixed.starts_with(&format!("{text} ")) { Likeness::Unclear } else { Likeness::No }
}

/// Whether a command has the options of a pattern in another order or form: `rm -rf *` and `rm -r --force a`.
fn loosely(wanted: &NamedProgram<'_>, name: &str, words: &[Option<&str>]) -> Likeness {
    let is_option = |word: &&str| word.len() > 1 && word.starts_with('-');
    let options: Vec<&str> = wanted.pattern.split_whitespace().filter(is_option).collect();
    if options.is_empty() {
        return Likeness::No;
    }
    let known: Vec<&str> = words.iter().flatten().copied().collect();
    // `+main` says `--force` for one branch.
    let is_forced = name == "git" && known.contains(&"push") && known.iter().any(|word| word.starts_with('+'));
    let given: Vec<&str> = known.iter().copied().chain(is_forced.then_some("--force")).collect();
    let has_all = options.iter().all(|option| has_option(option, &given));
    let positional = |all: Vec<&str>| all.into_iter().filter(|word| !is_option(word)).collect::<Vec<_>>().join(" ");
    let pattern = positional(wanted.pattern.split_whitespace().collect());
    let text = positional(std::iter::once(name).chain(known.iter().copied()).collect());
    let is_like = name_matches(&pattern, &text)
        || name_matches(&pattern, &format!("{text} "))
        || options.last().is_some_and(|last| last.ends_with('*') && text.starts_with(&pattern));
    match (has_all && is_like, known.len() == words.len()) {
        (true, true) => Likeness::Yes,
        (true, false) => Likeness::Unclear,
        (false, _) => Likeness::No,
    }
}

/// Long names of common short options.
const LONG: [(char, &str); 4] = [('f', "--force"), ('r', "--recursive"), ('R', "--recursive"), ('y', "--yes")];

/// Whether an option is among words, alone, among others, or by its other name.
fn has_option(option: &str, words: &[&str]) -> bool {
    // `-f*` is a letter, whatever follows it.
    let letters = option.trim_end_matches('*');
    let option = if letters.len() > 1 && !letters.starts_with("--") { letters } else { option };
    let is_long = option.starts_with("--") || option.contains(['*', '?']);
    let short = |word: &&&str| word.starts_with('-') && !word.starts_with("--");
    if is_long {
        let letters = LONG.iter().filter(|(_, long)| name_matches(option, long)).map(|(letter, _)| *letter);
        let is_short = letters.into_iter().any(|letter| words.iter().filter(short).any(|word| word.contains(letter)));
        return is_short
            || words.iter().any(|word| {
                name_matches(option, word) || name_matches(option, word.split('=').next().unwrap_or(word))
            });
    }
    option.chars().skip(1).all(|letter| {
        let long = LONG.iter().find(|(other, _)| *other == letter).map(|(_, long)| *long);
        let is_same =
            |other: char| other == letter || LONG.iter().any(|(known, name)| *known == other && Some(*name) == long);
        words.iter().filter(short).any(|word| word.contains(is_same)) || words.iter().any(|word| Some(*word) == long)
    })
}
