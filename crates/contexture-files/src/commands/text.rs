//! Text that is known to be printed from the command line itself.

use crate::shell::{Redirect, Simple};

/// The exact text that a command prints, if it is known from the command line and the same in every shell.
pub(crate) fn printed(command: &Simple) -> Option<String> {
    if command.words.is_empty() {
        // `> file` alone prints nothing.
        return command.assigns.is_empty().then(String::new);
    }
    let arguments = command.plain_arguments()?;
    match (command.program()?, arguments.as_slice()) {
        ("cat", []) => document(command),
        ("true" | ":", []) => Some(String::new()),
        ("echo", words) => echoed(words),
        ("printf", [format, values @ ..]) => formatted(format, values),
        _ => None,
    }
}

/// The text of the only here-document of a command.
pub(crate) fn document(command: &Simple) -> Option<String> {
    let mut inputs = command
        .redirects
        .iter()
        .filter(|redirect| matches!(redirect, Redirect::Document { .. } | Redirect::Read(_) | Redirect::Copy));
    match (inputs.next(), inputs.next()) {
        (Some(Redirect::Document { text, is_plain: true }), None) => Some(text.clone()),
        _ => None,
    }
}

/// What `echo` prints. Shells differ in what they do with backslashes, and with options other than `-n`.
fn echoed(words: &[&str]) -> Option<String> {
    let (words, end) = match words {
        ["-n", rest @ ..] => (rest, ""),
        words => (words, "\n"),
    };
    let is_odd = |word: &str| word.starts_with('-') && word.len() > 1 && word[1..].chars().all(|c| "neE".contains(c));
    if words.first().is_some_and(|word| is_odd(word)) || words.iter().any(|word| word.contains('\\')) {
        return None;
    }
    Some(words.join(" ") + end)
}

/// What `printf` prints, for formats of plain text, `%s` and `%%`.
fn formatted(format: &str, values: &[&str]) -> Option<String> {
    if format.starts_with('-') {
        return None;
    }
    let mut text = String::with_capacity(format.len());
    let mut values = values.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                '\\' => '\\',
                _ => return None,
            }),
            '%' => match chars.next()? {
                's' => text.push_str(values.next()?),
                '%' => text.push('%'),
                _ => return None,
            },
            c => text.push(c),
        }
    }
    // If values are left over, the format is used again.
    values.next().is_none().then_some(text)
}
