//! Commands that remove, copy, move and link files.

use super::{Effects, any_link, command_label, everything, makes_links, operands, operands_of, reach, reach_all};
use crate::observation::Observation;
use crate::path::{Directory, join, last_part};
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
    let by = command_label(command);
    let removed: Option<Vec<Observation>> = plain_operands(arguments).and_then(|operands| {
        let one = |path| Some(Observation::Delete { path: directory.place(path).filter(|_| !leads_back(path))? });
        operands.into_iter().map(one).collect()
    });
    match removed {
        Some(removed) => Effects::changes(removed),
        None => Effects::doubts(arguments.iter().map(|word| reach_all(word, directory, &by)).collect()),
    }
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
    let by = command_label(command);
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
    let options = arguments.iter().filter(|word| word.text.starts_with('-'));
    match changes {
        Some(changes) => Effects::changes(changes),
        // Backups may be kept under other names, or two names may lead to one file.
        None if options.clone().any(|word| {
            let text = word.text.as_str();
            // The name of a directory may follow `t` directly.
            let names_directory = text.find('t').is_some_and(|at| at + 1 < text.len());
            text.starts_with("--") || text.contains(['b', 'S', 'l', 's']) || names_directory
        }) =>
        {
            let mut effects = Effects::all(command);
            effects.doubts.extend(links_of(arguments, directory));
            let names_directory = |word: &Word| word.text.contains('t');
            let is_elsewhere =
                options.clone().any(|word| makes_links(&word.text)) && options.clone().any(names_directory);
            effects.doubts.extend(is_elsewhere.then(any_link));
            effects
        }
        None => Effects::doubts(arguments.iter().map(|word| reach_all(word, directory, &by)).collect()),
    }
}

/// Links from all but the last operand to the last one, relative to the current directory or to that of the link.
fn links_of(arguments: &[Word], directory: &Directory) -> Vec<Observation> {
    let operands: Vec<&Word> = operands(arguments).collect();
    let place = |word: &Word| word.plain().and_then(|path| directory.place(path));
    let (sources, last) = match operands.as_slice() {
        // A single operand creates a link of the same name in the current directory.
        [only] => (vec![*only], directory.place(last_part(&only.text))),
        [sources @ .., last] => (sources.to_vec(), place(last)),
        [] => return Vec::new(),
    };
    // A link that cannot be named may be any file.
    let to = last.unwrap_or_default();
    let parent = to.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
    let one = |from: &Word| {
        let here = Observation::Linked { from: place(from).unwrap_or_default(), to: to.clone() };
        let there = from.plain().map(|path| Observation::Linked { from: join(parent, path), to: to.clone() });
        [Some(here), there]
    };
    sources.into_iter().flat_map(one).flatten().collect()
}

/// What `ln` does: from then on two names may refer to one file.
pub(super) fn linked(command: &Simple, directory: &Directory) -> Effects {
    let by = command_label(command);
    let is_plain = command.arguments().iter().all(|word| {
        word.plain().is_some_and(|text| !text.starts_with('-') || text[1..].chars().all(|c| "sfnrv".contains(c)))
    });
    let operands: Vec<&Word> = operands_of(command).collect();
    let mut effects = match operands.as_slice() {
        // A file with the name of the link is gone, or the link is in the directory of that name.
        [_, to] if is_plain => Effects::doubts(vec![reach(to, directory, &by)]),
        _ => Effects::doubts(vec![everything(by)]),
    };
    effects.doubts.extend(links_of(command.arguments(), directory));
    // An option may name the directory of the links.
    effects.doubts.extend((!is_plain).then(any_link));
    effects
}
