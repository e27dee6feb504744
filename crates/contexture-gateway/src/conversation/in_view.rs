//! Whether a fold shows the files that the agent works on, by what its calls and their outputs say themselves.
//!
//! It knows nothing of tools: a file is in use if several of the newest calls name it, and what was last read of it is
//! the newest long output of such a call. So it also finds what is lost because a tool is not understood.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use contexture::item::Item;

/// How many of the newest calls are looked at.
const NEWEST_CALLS: usize = 16;

/// How many of them name a file that is in use.
const LEAST_CALLS: usize = 2;

/// An output with fewer lines is not what was read of a file.
const LEAST_LINES: usize = 20;

/// Longest extension of a file's name.
const MOST_EXTENSION: usize = 5;

/// What a window shows of the files in use.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FilesInView {
    /// Of the lines that were last read of them, the share that the window has.
    pub share: Option<f64>,
    /// Those of which it has none.
    pub unseen: Vec<String>,
}

/// What texts of a window show of the files in use, by the items before it.
pub(crate) fn files_in_view<'a>(log: &[(Arc<Item>, u64)], window: impl IntoIterator<Item = &'a str>) -> FilesInView {
    let read = last_read(log);
    if read.is_empty() {
        return FilesInView::default();
    }
    let shown: HashSet<&str> = window.into_iter().flat_map(str::lines).map(bare).collect();
    let mut view = FilesInView::default();
    let (mut seen, mut all) = (0, 0);
    for (path, output) in read {
        let lines: Vec<&str> = output.lines().map(bare).filter(|line| line.len() > 3).collect();
        let found = lines.iter().filter(|line| shown.contains(**line)).count();
        (seen, all) = (seen + found, all + lines.len());
        if found == 0 && !lines.is_empty() {
            view.unseen.push(path);
        }
    }
    view.share = (all > 0).then(|| seen as f64 / all as f64);
    view
}

/// The newest long output of each file that several of the newest calls name.
fn last_read(log: &[(Arc<Item>, u64)]) -> BTreeMap<String, &str> {
    let calls = log.iter().rev().filter_map(|(item, _)| item.as_call()).take(NEWEST_CALLS);
    let outputs = || log.iter().rev().filter_map(|(item, _)| item.as_output());
    let mut named: BTreeMap<String, (usize, Option<&str>)> = BTreeMap::new();
    for call in calls {
        let output = outputs().find(|output| output.call_id == call.call_id).map(|output| output.output.as_str());
        let output = output.filter(|output| output.lines().nth(LEAST_LINES).is_some());
        for path in paths(&call.arguments) {
            let entry = named.entry(path).or_default();
            entry.0 += 1;
            entry.1 = entry.1.or(output);
        }
    }
    let in_use = named.into_iter().filter(|(_, (count, _))| *count >= LEAST_CALLS);
    in_use.filter_map(|(path, (_, output))| Some((path, output?))).collect()
}

/// Words of arguments that look like the path of a source file: one for each file.
fn paths(arguments: &str) -> HashSet<String> {
    let is_sign = |sign: char| sign.is_whitespace() || "\"'`\\,;:(){}[]<>|&=".contains(sign);
    let is_path = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or_default();
        let extension = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, extension)| extension);
        word.contains('/')
            && extension.is_some_and(|extension| {
                (1..=MOST_EXTENSION).contains(&extension.len())
                    && extension.starts_with(|sign: char| sign.is_ascii_alphabetic())
                    && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            })
    };
    // What logs say is not worked on.
    let words = arguments.split(is_sign).filter(is_path).filter(|word| !word.ends_with(".log"));
    words.map(str::to_owned).collect()
}

/// A line without blanks around it, and without the number that a tool puts before it.
fn bare(line: &str) -> &str {
    let line = line.trim();
    let rest = line.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let numbered = rest.len() < line.len();
    let rest = ["→", ":", "|", "\t", " |"].iter().find_map(|sign| rest.strip_prefix(sign)).filter(|_| numbered);
    rest.unwrap_or(line).trim()
}

#[cfg(test)]
mod tests {
    use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};

    use super::*;

    #[test]
    fn what_is_in_use_and_not_shown_is_named() {
        let text = |of: &str| (0..30).map(|n| format!("    let {of}_{n} = {n};\n")).collect::<String>();
        let mut log: Vec<(Arc<Item>, u64)> = Vec::new();
        let mut call = |id: &str, command: &str, output: &str| {
            let arguments = serde_json::json!({"command": command}).to_string();
            log.push((Arc::new(FunctionCall::new(id, "unheard_of", arguments).into()), 1));
            log.push((Arc::new(FunctionCallOutput::new(id, output, Outcome::Done).into()), 1));
        };
        call("1", "show src/a.rs", &text("a"));
        call("2", "show src/b.rs", &text("b"));
        call("3", "check src/b.rs && check src/a.rs", "done");
        call("4", "show src/once.rs", &text("once"));
        call("5", "show a/build.log a/build.log", &text("log"));
        let numbered: String =
            text("b").lines().enumerate().map(|(n, line)| format!("{:>6}→{line}\n", n + 1)).collect();
        let view = files_in_view(&log, [numbered.as_str(), "let a_31 = 31;"]);
        assert_eq!(view.unseen, ["src/a.rs"]);
        assert_eq!(view.share, Some(0.5));
        assert_eq!(files_in_view(&[], ["x"]), FilesInView::default());
    }
}
