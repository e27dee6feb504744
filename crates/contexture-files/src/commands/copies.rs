//! Commands that remove, copy and move files.

use super::Effects;
use crate::observation::Observation;
use crate::path::Directory;
use crate::shell::{Simple, Word};

/// Options of `rm`, `cp` and `mv` that change neither what is done nor what is printed.
const PLAIN_OPTIONS: [&str; 14] =
    ["-f", "-r", "-R", "-rf", "-fr", "-Rf", "-fR", "-p", "-a", "-pr", "-rp", "--", "--force", "--recursive"];

/// The operands of a command if all its words and options are plain.
fn plain_operands(arguments: &[Word]) -> Option<Vec<&str>> {
    let words: Vec<&str> = arguments.iter().map(Word::plain).collect::<Option<_>>()?;
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (before, after) = (&words[..end], words.get(end + 1..).unwrap_or_default());
    let (options, mut operands): (Vec<&str>, Vec<&str>) = before.iter().partition(|word| word.starts_with('-'));
    operands.extend(after);
    let is_plain = options.iter().all(|option| PLAIN_OPTIONS.contains(option));
    (is_plain && operands.iter().all(|operand| !operand.is_empty())).then_some(operands)
}

/// What `rm` does.
pub(super) fn removed(command: &Simple, arguments: &[Word], directory: &Directory) -> Effects {
    let removed: Option<Vec<Observation>> = plain_operands(arguments).and_then(|operands| {
        let one = |path| Some(Observation::Delete { path: directory.place(path).filter(|_| !leads_back(path))? });
        operands.into_iter().map(one).collect()
    });
    removed.map_or_else(|| Effects::could_write(command), Effects::changes)
}

/// Whether a path leaves what may be a file again, so that it leads nowhere and `rm -f` says nothing.
fn leads_back(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    parts.windows(2).any(|pair| !matches!(pair[0], "." | "..") && matches!(pair[1], "." | ".."))
}

/// Whether files are copied or moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Copy,
    Move,
}

/// What `cp` and `mv` do.
pub(super) fn copied(command: &Simple, arguments: &[Word], directory: &Directory, way: Way) -> Effects {
    let one = |from: &str, to: &str| {
        let (from, to) = (directory.place(from)?, directory.place(to)?);
        Some(match way {
            Way::Copy => Observation::Copy { from, to, into: true },
            Way::Move => Observation::Move { from, to },
        })
    };
    let changes: Option<Vec<Observation>> = plain_operands(arguments).and_then(|operands| match operands.as_slice() {
        [from, to] => Some(vec![one(from, to)?]),
        // More than one file can only go into a directory.
        [from @ .., to] if from.len() > 1 => from.iter().map(|from| one(from, &format!("{to}/"))).collect(),
        _ => None,
    });
    // Two names may lead to one file.
    let makes_links = |word: &Word| word.text.starts_with('-') && word.text.contains(['l', 's']);
    let other = || if arguments.iter().any(makes_links) { Effects::links(command) } else { Effects::any(command) };
    changes.map_or_else(other, Effects::changes)
}
