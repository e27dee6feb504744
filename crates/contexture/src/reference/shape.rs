//! What a path without quotes looks like.

use super::LineRange;

/// Directories at the top of a Unix system: `#/etc/passwd` is meant as a file, `#/components/schemas/Pet` is not.
const TOP_DIRECTORIES: [&str; 16] = [
    "Users", "bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "srv", "sys", "tmp",
    "var",
];

/// The path at the start of `text`, if it looks like a file.
pub(super) fn file_path<'t>(text: &'t str, is_file_name: &impl Fn(&str) -> bool) -> Option<&'t str> {
    let mut path = balanced(text);
    loop {
        path = path.trim_end_matches('.');
        let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
        let name = &path[name_at..];
        match judge(name, is_file_name) {
            LastComponent::Cut(length) => path = &path[..name_at + length],
            LastComponent::File if !(name_at == 0 && is_version(name)) => return Some(path),
            _ => return is_system_path(path).then_some(path),
        }
    }
}

/// The longest start of `text` that is made of the characters of paths and whose brackets are in pairs.
fn balanced(text: &str) -> &str {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        let belongs = match c {
            '(' | '[' => {
                open.push((at, if c == '(' { ')' } else { ']' }));
                continue;
            }
            ')' | ']' => open.pop_if(|(_, close)| *close == c).is_some(),
            '_' | '.' | '-' | '+' | '@' | '~' | '/' => true,
            _ => is_letter_or_digit(c),
        };
        if !belongs {
            end = at;
            break;
        }
    }
    let end = open.first().map_or(end, |(at, _)| *at);
    &text[..end]
}

/// Letters and digits of any script, with the marks that belong to letters.
fn is_letter_or_digit(c: char) -> bool {
    let is_mark = matches!(c,
        '\u{300}'..='\u{36f}' | '\u{591}'..='\u{5bd}' | '\u{64b}'..='\u{65f}' | '\u{900}'..='\u{963}'
        | '\u{966}'..='\u{df3}' | '\u{e31}'..='\u{e3a}' | '\u{e47}'..='\u{e4e}' | '\u{200c}' | '\u{200d}'
        | '\u{3099}' | '\u{309a}');
    c.is_alphanumeric() || is_mark
}

/// What the last component of a path is.
enum LastComponent {
    File,
    NoFile,
    /// Only this many bytes of it can be part of a file name; look again.
    Cut(usize),
}

fn judge(name: &str, is_file_name: &impl Fn(&str) -> bool) -> LastComponent {
    if is_file_name(name) {
        return LastComponent::File;
    }
    let Some(dot) = last_dot(name) else {
        // `#Makefile()` is a Makefile followed by something else.
        return match name.find(['(', '[']) {
            Some(bracket) if bracket > 0 && name.ends_with([')', ']']) => LastComponent::Cut(bracket),
            _ => LastComponent::NoFile,
        };
    };
    let extension = &name[dot + 1..];
    if let Some(bracket) = extension.find(['(', '[']) {
        return LastComponent::Cut(dot + 1 + bracket);
    }
    // In scripts without spaces, text continues right after an extension: `#a.mdを見て`.
    if extension.starts_with(|c: char| c.is_ascii())
        && let Some(foreign) = extension.find(|c: char| !c.is_ascii())
    {
        return LastComponent::Cut(dot + 1 + foreign);
    }
    match extension.contains(char::is_alphabetic) {
        true => LastComponent::File,
        false => LastComponent::NoFile,
    }
}

/// The last dot that is not in brackets.
fn last_dot(name: &str) -> Option<usize> {
    let mut depth = 0;
    let mut dot = None;
    for (at, c) in name.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '.' if depth == 0 => dot = Some(at),
            _ => {}
        }
    }
    dot
}

/// Whether a name is a version: `v1.2.x`, `2.0.0-beta.1`.
fn is_version(name: &str) -> bool {
    let numbers = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let core = numbers.split(['-', '+']).next().unwrap_or_default();
    let mut parts = core.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let starts = parts.next().is_some_and(is_number);
    let mut rest = parts.peekable();
    starts && rest.peek().is_some() && rest.all(|part| is_number(part) || part.eq_ignore_ascii_case("x"))
}

/// Whether a path is one of the operating system, such as `/etc/passwd`.
fn is_system_path(path: &str) -> bool {
    let mut components = path.split('/');
    let absolute = components.next() == Some("");
    absolute && components.next().is_some_and(|top| TOP_DIRECTORIES.contains(&top)) && components.next().is_some()
}

/// The line range at the start of `text` and its length in bytes: `:10`, `:10-40`, `:10:5`, `#L10`, `#L10-L40`.
pub(super) fn line_range(text: &str) -> (Option<LineRange>, usize) {
    let found = colon_range(text).or_else(|| anchor_range(text));
    match found {
        Some((range, length)) if !text[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
            (Some(range), length)
        }
        _ => (None, 0),
    }
}

fn colon_range(text: &str) -> Option<(LineRange, usize)> {
    let (first, mut rest) = number(text.strip_prefix(':')?)?;
    let mut last = first;
    if let Some((other, after)) = rest.strip_prefix(['-', '–']).and_then(number) {
        (last, rest) = (other, after);
    } else if let Some((_column, after)) = rest.strip_prefix(':').and_then(number) {
        rest = after;
    }
    Some((LineRange::new(first, last), text.len() - rest.len()))
}

fn anchor_range(text: &str) -> Option<(LineRange, usize)> {
    let (first, mut rest) = number(text.strip_prefix("#L")?)?;
    let mut last = first;
    if let Some(end) = rest.strip_prefix(['-', '–'])
        && let Some((other, after)) = number(end.strip_prefix('L').unwrap_or(end))
    {
        (last, rest) = (other, after);
    }
    Some((LineRange::new(first, last), text.len() - rest.len()))
}

/// The number at the start of `text`, limited to the greatest `u32`, and what follows it.
fn number(text: &str) -> Option<(u32, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = text.get(..length).filter(|digits| !digits.is_empty())?;
    Some((digits.parse().unwrap_or(u32::MAX), &text[length..]))
}
