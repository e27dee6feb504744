//! Scripts of `sed`: which lines they print, what they do to a file in place, and whether they do anything else.

use super::{Effects, command_label, reach};
use crate::numbering::line_number;
use crate::observation::{LineChange, Observation, Who};
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
    is_extended: bool,
}

impl<'a> Sed<'a> {
    /// Reads the words of a command; `None` if a script or an option is not understood.
    fn read(command: &'a Simple) -> Option<Self> {
        let mut sed = Sed { scripts: vec![], files: vec![], in_place: None, is_quiet: false, is_extended: false };
        let mut words = command.arguments().iter().peekable();
        while let Some(word) = words.next() {
            match word.text.as_str() {
                "-n" | "--quiet" | "--silent" => sed.is_quiet = true,
                "-E" | "-r" | "--regexp-extended" => sed.is_extended = true,
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
                "-Ei" | "-ri" => (sed.in_place, sed.is_extended) = (Some(""), true),
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
    let changes: Option<Vec<Vec<LineChange>>> =
        sed.scripts.iter().map(|script| line_changes(script, sed.is_extended)).collect();
    let mut effects = Effects::none();
    for file in &sed.files {
        let path = file.plain().and_then(|path| directory.place(path));
        let copy = path.clone().filter(|_| !suffix.is_empty()).map(|path| path + suffix);
        effects.could_write.extend(copy.map(|path| Observation::could_write(path, &by)));
        effects.changes.push(match (&changes, path) {
            (Some(changes), Some(path)) if !sed.is_quiet && suffix.is_empty() => {
                Observation::Rewrite { path, changes: changes.concat(), by: by.clone() }
            }
            (_, Some(path)) => Observation::Changed { path, by: by.clone(), who: Who::Agent },
            (_, None) => reach(file, directory, &by),
        });
    }
    effects
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

/// What a script does to a file's lines, if it only has substitutions of plain text and deletions by number or by plain
/// text.
fn line_changes(script: &str, extended: bool) -> Option<Vec<LineChange>> {
    each_command(script, |rest| line_change(rest, extended))
}

/// The change of each command of a script, if `read` understands all of them. It returns what comes after a command.
fn each_command<'a>(
    script: &'a str,
    read: impl Fn(&'a str) -> Option<(LineChange, &'a str)>,
) -> Option<Vec<LineChange>> {
    let mut changes = Vec::new();
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let (change, after) = read(rest)?;
        changes.push(change);
        let after = after.trim_start_matches(' ');
        rest = match after.chars().next() {
            None => "",
            Some(';' | '\n') => after.trim_start_matches([' ', ';', '\n']),
            Some(_) => return None,
        };
    }
    (!changes.is_empty()).then_some(changes)
}

/// One command of a script and what follows it.
fn line_change(script: &str, extended: bool) -> Option<(LineChange, &str)> {
    if let Some(inner) = script.strip_prefix('/') {
        let (pattern, rest) = delimited(inner, '/')?;
        let after = rest.strip_prefix('d')?;
        return Some((LineChange::DeleteMatching { text: plain_pattern(pattern, extended)? }, after));
    }
    let (lines, rest) = address(script)?;
    match (rest.chars().next()?, lines) {
        ('d', Some((first, last))) => Some((LineChange::Delete { first, last }, &rest[1..])),
        ('s', lines) => substitution(&rest[1..], lines, extended),
        _ => None,
    }
}

/// The lines that a command is limited to: `5`, `5,9`. Counting from the end is not plain.
fn address(script: &str) -> Option<(Option<(usize, usize)>, &str)> {
    let digits = script.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Some((None, script));
    }
    let first = line_number(&script[..digits]).filter(|first| *first > 0)?;
    let rest = &script[digits..];
    let Some(after) = rest.strip_prefix(',') else { return Some((Some((first, first)), rest)) };
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    let last = line_number(&after[..digits])?;
    Some((Some((first, last.max(first))), &after[digits..]))
}

/// A substitution from its delimiter on.
fn substitution(rest: &str, lines: Option<(usize, usize)>, extended: bool) -> Option<(LineChange, &str)> {
    let delimiter = rest.chars().next().filter(|c| "/|#,:@!%".contains(*c))?;
    let (pattern, rest) = delimited(&rest[1..], delimiter)?;
    let (replacement, rest) = delimited(rest, delimiter)?;
    let (all, rest) = match rest.strip_prefix('g') {
        Some(after) => (true, after),
        None => (false, rest),
    };
    // What an escaped delimiter means depends on which one it is.
    let escaped = format!("\\{delimiter}");
    if delimiter != '/' && (pattern.contains(&escaped) || replacement.contains(&escaped)) {
        return None;
    }
    let (old, new) = (plain_pattern(pattern, extended)?, plain_replacement(replacement)?);
    Some((LineChange::Substitute { lines, old, new, all }, rest))
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

/// The text that a pattern matches, if it matches only one.
fn plain_pattern(pattern: &str, extended: bool) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped if "./*[]^$\\".contains(escaped) => text.push(escaped),
                escaped if extended && "+?(){}|".contains(escaped) => text.push(escaped),
                _ => return None,
            },
            '.' | '*' | '[' | ']' | '^' | '$' | '\n' => return None,
            '+' | '?' | '(' | ')' | '{' | '}' | '|' if extended => return None,
            c => text.push(c),
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The text of a replacement, if it does not depend on what it replaces.
fn plain_replacement(replacement: &str) -> Option<String> {
    let mut text = String::with_capacity(replacement.len());
    let mut chars = replacement.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                escaped if "&\\/".contains(escaped) => text.push(escaped),
                _ => return None,
            },
            '&' | '\n' => return None,
            c => text.push(c),
        }
    }
    Some(text)
}
