//! Short forms of old calls and outputs: an output of one line, and arguments without the middle of long strings.
//!
//! What is left out is marked the same everywhere, and the mark is explained to the model once in a window.

use contexture_files::argument_names::names;
use contexture_text::block::{flat, start_of};

/// How every mark begins and ends that says that something is left out.
pub(crate) const MARK: [&str; 2] = ["[…", "left out …]"];

/// Explains the mark to the model.
pub(crate) const MARK_NOTE: &str = "[Contexture's note: `[… left out …]` stands for old text that is not shown here. \
                                    It is part of no file or command; never write it.]\n";

/// Outputs of at most this many bytes are short enough. Chosen: two lines.
const SHORT_OUTPUT_BYTES: usize = 240;

/// Most bytes of an output's last line.
const LAST_LINE_BYTES: usize = 100;

/// A string must be longer than its limit by this many bytes to be cut: the mark takes nearly as many.
const LEAST_CUT_BYTES: usize = 60;

/// Of a string that is cut, one part in this many is its end and the rest is its start.
const END_PART: usize = 3;

/// An output as one line: how long it was, and its last line. `None` if it is short already. `name` is how it can be
/// asked for.
pub(crate) fn output(text: &str, name: Option<&str>) -> Option<String> {
    if text.len() <= SHORT_OUTPUT_BYTES {
        return None;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let (count, last) = lines.fold((0_usize, ""), |(count, _), line| (count + 1, line));
    let name = name.map(|name| format!(", #{name}")).unwrap_or_default();
    let last = flat(&start_of(last.trim(), LAST_LINE_BYTES));
    let of = if count == 1 { format!("{} bytes", text.len()) } else { format!("{count} lines") };
    let brief = match last.is_empty() {
        true => format!("{} {of}{name} {}", MARK[0], MARK[1]),
        false => format!("{} {of}{name} {} {last}", MARK[0], MARK[1]),
    };
    (brief.len() < text.len()).then_some(brief)
}

/// The arguments of a call without the middle of strings that are longer than a limit; `None` if there are none. All
/// other bytes stay, and so do paths.
pub(crate) fn arguments(json: &str, limit: usize) -> Option<String> {
    if json.len() <= limit + LEAST_CUT_BYTES {
        return None;
    }
    if !json.trim_start().starts_with('{') {
        return cut(json, limit);
    }
    let paths = names().path();
    let (mut brief, mut copied, mut name) = (String::new(), 0, String::new());
    let mut at = 0;
    while let Some(found) = json[at..].find('"') {
        let start = at + found;
        let end = end_of_string(json, start)?;
        at = end;
        let text: String = serde_json::from_str(&json[start..end]).ok()?;
        if json[end..].trim_start().starts_with(':') {
            name = text;
            continue;
        }
        let is_path = paths.contains(&name.as_str());
        if let Some(shorter) = (!is_path).then(|| cut(&text, limit)).flatten() {
            brief.push_str(&json[copied..start]);
            brief.push_str(&serde_json::to_string(&shorter).expect("a text can be written"));
            copied = end;
        }
    }
    brief.push_str(&json[copied..]);
    (copied > 0).then_some(brief)
}

/// Where a string of JSON ends that begins at a position.
fn end_of_string(json: &str, start: usize) -> Option<usize> {
    let bytes = json.as_bytes();
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A text without its middle, cut between lines where that loses little; `None` if it is not much longer than a limit.
fn cut(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit + LEAST_CUT_BYTES {
        return None;
    }
    let end = limit / END_PART;
    let first = text.floor_char_boundary(limit - end);
    let first = text[..first].rfind('\n').map(|at| at + 1).filter(|at| at * 2 > first).unwrap_or(first);
    let rest = text.ceil_char_boundary(text.len() - end);
    let line = text[rest..].find('\n').map(|at| rest + at).filter(|at| (text.len() - at) * 2 > text.len() - rest);
    let rest = line.unwrap_or(rest);
    Some(format!("{}{} {} bytes {}{}", &text[..first], MARK[0], rest - first, MARK[1], &text[rest..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_long_output_is_its_length_and_its_last_line() {
        assert_eq!(output("short", None), None);
        let long = "running 3 tests\n".repeat(30) + "\ntest result: ok.\n\n";
        assert_eq!(output(&long, None).unwrap(), "[… 31 lines left out …] test result: ok.");
        assert_eq!(output(&long, Some("0123")).unwrap(), "[… 31 lines, #0123 left out …] test result: ok.");
        let last = output(&("x".repeat(500)), None).unwrap();
        assert!(last.starts_with("[… 500 bytes left out …] xxx") && last.len() < 140, "{last}");
    }

    #[test]
    fn long_strings_of_arguments_lose_their_middle_and_everything_else_stays() {
        let long = "let a = 1;\n".repeat(100);
        let path = format!("src/{}.rs", "deep/".repeat(60));
        let json = json!({"file_path": path, "new_string": long, "n": 1.50, "all": true}).to_string();
        let brief = arguments(&json, 120).unwrap();
        let value: Value = serde_json::from_str(&brief).unwrap();
        assert_eq!(value["file_path"], path);
        assert_eq!((&value["n"], &value["all"]), (&json!(1.5), &json!(true)));
        let cut = value["new_string"].as_str().unwrap();
        assert!(cut.contains("[… ") && cut.contains(" bytes left out …]") && cut.len() < 200, "{cut}");
        assert_eq!(arguments(&json!({"command": "ls"}).to_string(), 120), None);
    }

    proptest! {
        #[test]
        fn brief_arguments_have_the_same_names_and_only_long_strings_are_cut(
            texts in prop::collection::vec(("[a-z]{1,8}", "(?s).{0,600}"), 0..5), limit in 60_usize..400,
        ) {
            let object: serde_json::Map<String, Value> =
                texts.into_iter().map(|(name, text)| (name, Value::from(text))).collect();
            let json = Value::Object(object.clone()).to_string();
            let Some(brief) = arguments(&json, limit) else { return Ok(()) };
            let brief: serde_json::Map<String, Value> = serde_json::from_str(&brief).unwrap();
            prop_assert!(object.keys().eq(brief.keys()));
            for (name, text) in &object {
                let (text, other) = (text.as_str().unwrap(), brief[name].as_str().unwrap());
                prop_assert!(text == other || (text.len() > limit && other.len() < text.len() && other.contains(MARK[1])));
            }
        }
    }
}
