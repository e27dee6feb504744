//! Words that the shell changes before a command gets them, and what they may become.

use super::{Effects, of_words, reaches_everything, reading};
use crate::observation::Observation;
use crate::path::Directory;
use crate::shell::{Expands, Simple, Word};

/// What takes the place of a variable or a substitution when a command is looked at without it.
const STAND_INS: [&str; 2] = ["1", ""];

/// Returns what a command does whose words are not all plain, if that hardly depends on them: whatever options of the
/// line they become, it changes nothing. `None` if it may.
///
/// A search, a test or a listing stays one whatever it is told to look at. Only an option could make it something else,
/// and an option that the line does not have would have to come from outside of it.
pub(super) fn whatever_they_are(command: &Simple, directory: &Directory) -> Option<Effects> {
    if !command.arguments().iter().any(|word| word.plain().is_none()) {
        return None;
    }
    let are_values = are_values(command.arguments());
    if let Some(effects) = same_whatever_they_are(command, directory).filter(|_| are_values) {
        return Some(effects);
    }
    for stand_in in STAND_INS {
        let plain = with_stand_ins(command, stand_in)?;
        if !is_harmless(&of_words(&plain, directory)) {
            return None;
        }
        for option in command.loose.iter().filter(|_| !are_values) {
            let mut told = plain.clone();
            told.words.push(Word { text: option.clone(), ..Word::default() });
            told.words.push(Word { text: "x".to_owned(), ..Word::default() });
            if !is_harmless(&of_words(&told, directory)) {
                return None;
            }
        }
    }
    if are_values && reading(command).is_none() {
        return Some(Effects::presumed());
    }
    // What only reads does so whatever it is given, but for options that nobody wrote.
    let is_certain = reading(command).is_some()
        || command.arguments().iter().all(|word| match word.expands {
            Expands::Never => true,
            // Names of files that begin with what is written.
            Expands::ToNames => !word.text.starts_with(['*', '?', '[', '-']),
            Expands::ToAnything => false,
        });
    let own = of_words(&with_stand_ins(command, STAND_INS[0])?, directory);
    Some(if is_certain { own } else { Effects::presumed() })
}

/// What a command changes whatever is put in, if that is only what it names elsewhere.
fn same_whatever_they_are(command: &Simple, directory: &Directory) -> Option<Effects> {
    let [one, other] = STAND_INS.map(|stand_in| Some(of_words(&with_stand_ins(command, stand_in)?, directory)));
    let (one, other) = (one?, other?);
    let is_named = |told: &Observation| !reaches_everything(told);
    let is_limited = one.changes.is_empty() && !one.doubts.is_empty() && one.doubts.iter().all(is_named);
    (one == other && is_limited && !one.is_guess).then(|| one.and(Effects::presumed()))
}

/// Whether all that the shell puts in is within quotes, after an option or after other text, so that none of it becomes
/// an option: `--body "$(cat notes)"`.
fn are_values(arguments: &[Word]) -> bool {
    (0..arguments.len()).filter(|at| arguments[*at].expands == Expands::ToAnything).all(|at| {
        let is_after_option = at > 0 && arguments[at - 1].plain().is_some_and(|word| word.starts_with('-'));
        let begins = arguments[at].text.starts_with(['$', '`', '-']);
        arguments[at].is_quoted && !arguments[at].has_braces && (is_after_option || !begins)
    })
}

fn is_harmless(effects: &Effects) -> bool {
    effects.changes.is_empty() && effects.doubts.is_empty() && !effects.is_guess
}

/// A command with something plain in the place of all that the shell would put in. `None` if that may be options which
/// are written in the line itself, in braces or with escapes.
fn with_stand_ins(command: &Simple, stand_in: &str) -> Option<Simple> {
    let mut plain = command.clone();
    for word in plain.words.iter_mut().skip(1).filter(|word| word.expands != Expands::Never) {
        if word.expands == Expands::ToAnything {
            // A text with escapes is one word, and no option if it does not begin like one.
            let is_text =
                word.text.starts_with("$'") && !word.text.starts_with("$'-") && !word.text.starts_with("$'\\");
            if word.has_braces || (word.text.contains("$'") && !is_text) {
                return None;
            }
            word.text = replaced(&word.text, stand_in);
        }
        word.expands = Expands::Never;
    }
    plain.loose.clear();
    plain.words.first()?.plain()?;
    Some(plain)
}

/// A text in which variables and substitutions are replaced.
fn replaced(text: &str, stand_in: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '$' if rest.starts_with("$()") => 3,
            '$' if rest.starts_with("${") => rest.find('}').map_or(rest.len(), |end| end + 1),
            '$' => match name_length(&rest[1..]) {
                0 => {
                    plain.push('$');
                    rest = &rest[1..];
                    continue;
                }
                name => 1 + name,
            },
            '`' if rest.starts_with("``") => 2,
            other => {
                plain.push(other);
                rest = &rest[other.len_utf8()..];
                continue;
            }
        };
        plain.push_str(stand_in);
        rest = rest.get(taken..).unwrap_or_default();
    }
    plain
}

/// How many bytes after a dollar sign name a variable.
fn name_length(text: &str) -> usize {
    let name = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
    if name == 0 && text.starts_with(['@', '*', '#', '?', '$', '!', '-']) { 1 } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_substitutions_are_replaced() {
        assert_eq!(replaced("--out${x}put=$y", "1"), "--out1put=1");
        assert_eq!(replaced("a$()b", "1"), "a1b");
        assert_eq!(replaced("${x%.txt}.rs", "1"), "1.rs");
        assert_eq!(replaced("$a_1/$b", "1"), "1/1");
        assert_eq!(replaced("cost: 5$", "1"), "cost: 5$");
        assert_eq!(replaced("$é $? $", "1"), "$é 1 $");
    }
}
