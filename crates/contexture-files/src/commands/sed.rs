//! Scripts of `sed`: which lines they print, what they do to a file in place, and whether they do anything else.

use super::{Effects, changed, command_label};
use crate::numbering::line_number;
use crate::path::Directory;
use crate::shell::{Simple, Word};

/// Ranges of lines, each as its first line and its greatest length.
pub(crate) type Ranges = Vec<(usize, Option<usize>)>;

/// A `sed` command whose options are understood.
pub(crate) struct Sed<'a> {
    pub(crate) scripts: Vec<&'a str>,
    pub(crate) files: Vec<&'a Word>,
    /// The suffix that `-i` gives to the backup.
    in_place: Option<&'a str>,
    is_quiet: bool,
}

impl<'a> Sed<'a> {
    /// Reads the words of a command; `None` if a script or an option is not understood.
    fn read(command: &'a Simple) -> Option<Self> {
        let mut sed = Sed { scripts: vec![], files: vec![], in_place: None, is_quiet: false };
        let mut words = command.arguments().iter().peekable();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "-n" | "--quiet" | "--silent" => sed.is_quiet = true,
                "-E" | "-r" | "--regexp-extended" => {}
                "-ne" | "-en" => {
                    sed.is_quiet = true;
                    sed.scripts.push(words.next()?.plain()?);
                }
                "-e" | "--expression" => sed.scripts.push(words.next()?.plain()?),
                "-i" | "--in-place" => {
                    sed.in_place = Some("");
                    // On some systems the suffix is a separate word, here an empty one.
                    if words.peek().is_some_and(|next| next.text.is_empty() && next.is_quoted) {
                        words.next();
                    }
                }
                "-Ei" | "-ri" => sed.in_place = Some(""),
                text if text.starts_with("-i") && !text.contains('*') => sed.in_place = Some(&word.plain()?[2..]),
                text if text.starts_with('-') => return None,
                _ if sed.scripts.is_empty() => sed.scripts.push(word.plain()?),
                _ => sed.files.push(word),
            }
        }
        Some(sed)
    }

    /// Whether a command changes files in place and prints nothing.
    pub(crate) fn is_silent(command: &Simple) -> bool {
        let is_plain = |sed: Sed<'_>| sed.in_place.is_some() && sed.scripts.iter().all(|script| is_harmless(script));
        Sed::read(command).is_some_and(is_plain)
    }

    /// The only file and the ranges of it that a `sed -n` prints; no file if it is a filter.
    pub(crate) fn printed(command: &'a Simple) -> Option<(Option<&'a str>, Ranges)> {
        let sed = Sed::read(command)?;
        if !sed.is_quiet || sed.in_place.is_some() {
            return None;
        }
        let [script] = sed.scripts.as_slice() else { return None };
        let file = match sed.files.as_slice() {
            [] => None,
            [file] => Some(file.plain().filter(|file| *file != "-")?),
            _ => return None,
        };
        Some((file, ranges(script)?))
    }
}

/// What a `sed` command does to files.
pub(super) fn effects(command: &Simple, directory: &Directory) -> Effects {
    let Some(sed) = Sed::read(command).filter(|sed| sed.scripts.iter().all(|script| is_harmless(script))) else {
        return Effects::any(command);
    };
    let Some(suffix) = sed.in_place else { return Effects::none() };
    let by = command_label(command);
    let changed = Effects::changes(sed.files.iter().map(|file| changed(file, directory, &by)).collect());
    // With a suffix, the files are kept under other names.
    if suffix.is_empty() { changed } else { Effects::could_write(command).and(changed) }
}

/// The ranges of a `sed -n` script that only prints: `1,20p`, `5p`, `7,$p`, `1,5p;9,12p`.
///
/// Each is a first line and a count. They must rise, so that lines are printed in order.
fn ranges(script: &str) -> Option<Ranges> {
    let mut ranges = Ranges::new();
    for part in script.split([';', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = range(part)?;
        let rises = ranges.last().is_none_or(|(before, count)| count.is_some_and(|count| before + count <= first));
        if !rises || first == 0 {
            return None;
        }
        ranges.push((first, last.map(|last| last.saturating_sub(first) + 1)));
    }
    (!ranges.is_empty()).then_some(ranges)
}

fn range(part: &str) -> Option<(usize, Option<usize>)> {
    let range = part.strip_suffix('p')?;
    let Some((first, last)) = range.split_once(',') else {
        let line = line_number(range)?;
        return Some((line, Some(line)));
    };
    let first = line_number(first)?;
    match last.trim_start() {
        "$" => Some((first, None)),
        last => match last.strip_prefix('+') {
            Some(more) => Some((first, Some(first + line_number(more)?))),
            None => Some((first, Some(line_number(last)?))),
        },
    }
}

/// Whether a script only reads and changes lines, and neither writes another file nor runs a command.
fn is_harmless(script: &str) -> bool {
    let mut rest = script;
    while let Some(next) = rest.chars().next() {
        rest = match next {
            c if c.is_ascii_digit() || " \t\n;,!$~+{}".contains(c) => &rest[1..],
            '/' => match delimited(&rest[1..], '/') {
                Some((_, after)) => after.strip_prefix('I').unwrap_or(after),
                None => return false,
            },
            'p' | 'P' | 'd' | 'D' | 'q' | 'Q' | '=' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' => &rest[1..],
            // The inserted text extends to the end of the line.
            'a' | 'i' | 'c' => return !rest.contains('\n'),
            's' | 'y' => match replaced(&rest[1..]) {
                Some((flags, after)) if flags.chars().all(|c| c.is_ascii_digit() || "gpiIm".contains(c)) => after,
                _ => return false,
            },
            _ => return false,
        };
    }
    true
}

/// The flags of a substitution, and what follows them.
fn replaced(rest: &str) -> Option<(&str, &str)> {
    let delimiter = rest.chars().next().filter(|c| !c.is_alphanumeric() && !"\\\n ".contains(*c))?;
    let (_, rest) = delimited(&rest[delimiter.len_utf8()..], delimiter)?;
    let (_, rest) = delimited(rest, delimiter)?;
    Some(rest.split_at(rest.find([' ', '\t', '\n', ';', '}']).unwrap_or(rest.len())))
}

/// What precedes the next delimiter that is not escaped, and what follows it.
fn delimited(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let (mut is_escaped, mut in_brackets) = (false, false);
    for (index, c) in text.char_indices() {
        match c {
            // Within brackets a delimiter may be an ordinary character, so nothing is certain.
            c if c == delimiter && !is_escaped => {
                return (!in_brackets).then(|| (&text[..index], &text[index + c.len_utf8()..]));
            }
            '[' if !is_escaped => in_brackets = true,
            ']' if !text[..index].ends_with(['[', '^']) => in_brackets = false,
            _ => {}
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    None
}
