//! Programs in other languages: where their code is, and whether it can run programs.

use crate::files::shell::Word;

/// Where the code of an interpreter is.
pub(super) enum Code {
    /// In a file, or there is none.
    File,
    /// Among the arguments.
    Texts(Vec<Word>),
    /// In what it reads.
    Input,
}

/// Where the code of an interpreter is, by its arguments.
pub(super) fn code(name: &str, arguments: &[Word]) -> Code {
    let is_stream = name.ends_with("awk") || name.ends_with("sed");
    let mut texts = Vec::new();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        let text = word.text.as_str();
        let is_short = text.starts_with('-') && !text.starts_with("--");
        if is_stream && (text == "-f" || text.starts_with("--file")) {
            return if texts.is_empty() { Code::File } else { Code::Texts(texts) };
        }
        if is_stream && matches!(text, "-F" | "-v" | "-l" | "-i" | "--expression" | "-e") {
            if matches!(text, "-e" | "--expression") {
                texts.extend(arguments.get(at + 1).cloned());
            }
            // `sed -i` takes no next word.
            at += if text == "-i" { 1 } else { 2 };
            continue;
        }
        if !is_stream && text == "-m" || matches!(text, "--version" | "-V" | "--help" | "-h") {
            return Code::File;
        }
        let is_code = !is_stream
            && ((is_short && text.ends_with(['c', 'e', 'E', 'r', 'p']))
                || matches!(text, "--eval" | "--print" | "eval"));
        if is_code {
            texts.extend(arguments.get(at + 1).cloned());
            at += 2;
            continue;
        }
        if !text.starts_with('-') {
            if is_stream && texts.is_empty() {
                texts.push(word.clone());
            }
            return if texts.is_empty() { Code::File } else { Code::Texts(texts) };
        }
        at += 1;
    }
    match (texts.is_empty(), is_stream) {
        (false, _) => Code::Texts(texts),
        (true, true) => Code::File,
        (true, false) => Code::Input,
    }
}

/// Options of interpreters that load a file before the code.
const LOADS: [&str; 6] = ["-r", "--require", "--import", "--loader", "--experimental-loader", "--preload"];

/// What an option loads: `None` if it loads nothing, and an empty text if that is the next word.
pub(super) fn loaded(option: &str) -> Option<&str> {
    let (name, rest) = LOADS.iter().find_map(|name| Some((*name, option.strip_prefix(*name)?)))?;
    match rest.strip_prefix('=') {
        Some(file) => Some(file),
        // `-r./file`
        None => (rest.is_empty() || name == "-r").then_some(rest),
    }
}

/// Whether the code of an interpreter is in a file, or loads one, that only the shell knows, or at an address.
pub(super) fn loads_unknown(name: &str, arguments: &[Word]) -> bool {
    let is_stream = name.ends_with("awk") || name.ends_with("sed");
    let mut is_value = false;
    for word in arguments {
        let own = loaded(&word.text).filter(|_| !is_stream);
        if is_value || own.is_some_and(|own| !own.is_empty()) {
            if word.plain().is_none_or(|text| text.contains("data:") || text.contains("://")) {
                return true;
            }
        } else if !word.text.starts_with('-') {
            return !is_stream && word.plain().is_none();
        }
        is_value = own == Some("");
    }
    false
}

/// Words by which programs in other languages run programs.
const RUNNING: [&str; 15] = [
    "system",
    "popen",
    "subprocess",
    "exec",
    "spawn",
    "child_process",
    "`",
    "%x",
    "qx",
    "eval",
    "pty",
    "__import__",
    "getattr",
    "Open3",
    "do shell script",
];

/// Whether code can run a program.
pub(super) fn can_run(name: &str, code: &str) -> bool {
    if name.ends_with("sed") {
        let flags = code.rsplit(['/', '|', '#', ',']).next().unwrap_or_default();
        let is_flag = code.starts_with('s')
            && flags.len() < 6
            && flags.contains('e')
            && flags.chars().all(|c| c.is_ascii_alphanumeric());
        let command = code.trim_start_matches(|c: char| c.is_ascii_digit() || "$,! ".contains(c));
        let is_later = [";e ", "; e ", "\ne ", "{e "].iter().any(|start| code.contains(start))
            || (!code.starts_with('s') && (code.contains("/e ") || code.ends_with("/e")));
        return is_flag || is_later || command == "e" || command.starts_with("e ");
    }
    if name.ends_with("awk") {
        return ["system", "getline", "| \"", "|\"", "|&"].iter().any(|word| code.contains(word));
    }
    RUNNING.iter().any(|word| code.contains(word))
}
