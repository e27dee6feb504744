//! The text of a recorded message.

use std::borrow::Cow;

use contexture::transcript::Record;
use serde_json::Value;

/// The text of a message in which an edit's old text can be found: with unix line ends, without the numbers that
/// tools put before lines, and with the texts of its calls.
pub fn plain_text(record: &Record, is_numbered: bool) -> String {
    let text = record.text();
    let text = unix_lines(&text);
    with_arguments(record, if is_numbered { without_numbers(&text) } else { text.into_owned() })
}

/// The text of a message as it is, with the texts of its calls.
pub fn whole_text(record: &Record) -> String {
    with_arguments(record, record.text().into_owned())
}

fn with_arguments(record: &Record, mut plain: String) -> String {
    for call in record.calls() {
        let mut texts = Vec::new();
        let arguments = call.parsed_arguments();
        collect_strings(&arguments, &mut texts);
        plain.push('\n');
        plain.push_str(&unix_lines(&texts.join("\n")));
    }
    plain
}

/// The text with unix line ends.
pub(crate) fn unix_lines(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// The text without the line numbers of `12→`, `12\t`, `12: `, `00012| ` and `12. `.
fn without_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        plain.push_str(&line[number_len(line)..]);
    }
    plain
}

/// How many bytes of a line are its number.
fn number_len(line: &str) -> usize {
    let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
    let rest = &line[spaces..];
    let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    if digits == 0 {
        return 0;
    }
    let marks: &[&str] = match (spaces, digits) {
        (0, 5) => &["→", "\t", ": ", "| ", ". "],
        (0, _) => &["→", "\t", ": ", ". "],
        _ => &["→", "\t"],
    };
    let mark = marks.iter().find(|mark| rest[digits..].starts_with(**mark));
    mark.map_or(0, |mark| spaces + digits + mark.len())
}

/// All texts in a value, in order.
pub(crate) fn collect_strings<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect_strings(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| collect_strings(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
