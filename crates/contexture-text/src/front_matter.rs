//! The lines between `---` at the top of a Markdown file, as files in the wild have them.
//!
//! What is read is the part of YAML that such files use: `key: value`, quotes, lists in brackets or lines, and text in
//! lines below `|` or `>`. A value with a colon in it, which YAML refuses and people write, is taken as it is. Values of
//! other forms are passed over.

use std::collections::BTreeMap;

/// How many lines the front matter may have.
const MAX_LINES: usize = 200;

/// A file in two: what is said about it, and the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    values: BTreeMap<String, FrontMatterValue>,
    /// What follows the front matter; the whole text if there is none.
    pub body: &'a str,
    /// Whether there is front matter at all.
    pub is_there: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FrontMatterValue {
    Text(String),
    List(Vec<String>),
}

impl<'a> FrontMatter<'a> {
    /// Reads the front matter of a text.
    pub fn read(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let none = Self { body: text, ..Self::default() };
        let Some(rest) =
            text.strip_prefix("---").and_then(|rest| rest.trim_start_matches([' ', '\t', '\r']).strip_prefix('\n'))
        else {
            return none;
        };
        let mut lines = Vec::new();
        let mut at = 0;
        for line in rest.split_inclusive('\n').take(MAX_LINES) {
            at += line.len();
            if matches!(line.trim_end(), "---" | "...") {
                return Self { values: values(&lines), body: &rest[at..], is_there: true };
            }
            lines.push(line.trim_end());
        }
        none
    }

    /// The text of a key; a list is joined by commas.
    pub fn text(&self, key: &str) -> Option<String> {
        match self.values.get(key)? {
            FrontMatterValue::Text(text) => Some(text.clone()).filter(|text| !text.is_empty()),
            FrontMatterValue::List(list) => Some(list.join(", ")).filter(|text| !text.is_empty()),
        }
    }

    /// The list of a key; a text is split at commas.
    pub fn list(&self, key: &str) -> Option<Vec<String>> {
        match self.values.get(key)? {
            FrontMatterValue::List(list) => Some(list.clone()),
            FrontMatterValue::Text(text) => Some(split_list(text)),
        }
    }
}

fn values(lines: &[&str]) -> BTreeMap<String, FrontMatterValue> {
    let mut values = BTreeMap::new();
    let mut rest = lines;
    while let Some((line, after)) = rest.split_first() {
        rest = after;
        let is_nested = line.starts_with([' ', '\t', '-', '#']);
        let Some((key, value)) = line.split_once(':').filter(|_| !is_nested) else { continue };
        // What belongs to the key is indented, or a list in lines of its own.
        let belongs = |line: &&&str| line.is_empty() || line.starts_with([' ', '\t', '-']);
        let own = rest.iter().take_while(belongs).count();
        let found = value_of(value.trim(), &rest[..own]);
        rest = &rest[own..];
        if let Some(found) = found {
            values.insert(unquoted(key.trim()), found);
        }
    }
    values
}

fn value_of(value: &str, below: &[&str]) -> Option<FrontMatterValue> {
    let value = without_comment(value);
    if let Some(style) = value.chars().next().filter(|c| matches!(c, '|' | '>')) {
        let lines: Vec<&str> = below.iter().map(|line| line.trim()).collect();
        let text = if style == '|' { lines.join("\n") } else { folded(&lines) };
        return Some(FrontMatterValue::Text(text.trim().to_owned()));
    }
    if let Some(list) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(FrontMatterValue::List(split_list(list)));
    }
    let items: Vec<String> = below
        .iter()
        .filter_map(|line| Some(unquoted(without_comment(line.trim().strip_prefix("- ")?.trim()))))
        .collect();
    match (value, items.is_empty()) {
        ("", false) => Some(FrontMatterValue::List(items)),
        ("", true) => None,
        // A plain value may go on in the lines below.
        _ if value.starts_with(['"', '\'']) => Some(FrontMatterValue::Text(unquoted(value))),
        _ => {
            let lines: Vec<&str> = std::iter::once(value).chain(below.iter().map(|line| line.trim())).collect();
            Some(FrontMatterValue::Text(folded(&lines).trim().to_owned()))
        }
    }
}

/// Lines as one, where an empty line is a line break.
fn folded(lines: &[&str]) -> String {
    lines
        .iter()
        .map(|line| if line.is_empty() { "\n" } else { *line })
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" \n ", "\n")
}

/// The items between commas; those within braces, as in `*.{ts,tsx}`, are part of one.
fn split_list(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_end = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    text.split(is_end).map(|item| unquoted(item.trim())).filter(|item| !item.is_empty()).collect()
}

/// A value without a comment after it.
fn without_comment(value: &str) -> &str {
    match value.starts_with(['"', '\'']) {
        true => value,
        false => value.split_once(" #").map_or(value, |(value, _)| value.trim_end()),
    }
}

fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return if quote == '"' {
                inner.replace("\\\"", "\"").replace("\\n", "\n")
            } else {
                inner.replace("''", "'")
            };
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(yaml: &str, key: &str, text: Option<&str>, list: &[&str]) {
        let file = format!("---\n{yaml}\n---\nbody\n");
        let read = FrontMatter::read(&file);
        assert_eq!((read.body, read.is_there), ("body\n", true));
        assert_eq!(read.text(key).as_deref(), text, "{yaml}");
        assert_eq!(read.list(key).unwrap_or_default(), list, "{yaml}");
    }

    #[test]
    fn what_people_write_is_read() {
        check("name: pdf", "name", Some("pdf"), &["pdf"]);
        check("name: \"pdf: all\" ", "name", Some("pdf: all"), &["pdf: all"]);
        check(
            "description: Use when: a colon is here",
            "description",
            Some("Use when: a colon is here"),
            &["Use when: a colon is here"],
        );
        check(
            "description: >-\n  one\n  two\n\n  three\nname: x",
            "description",
            Some("one two\nthree"),
            &["one two\nthree"],
        );
        check("description: |\n  one\n  two", "description", Some("one\ntwo"), &["one\ntwo"]);
        check("description: goes on\n  below", "description", Some("goes on below"), &["goes on below"]);
        check("paths: [\"src/**\", 'a, b']", "paths", Some("src/**, 'a, b'"), &["src/**", "'a", "b'"]);
        check("paths:\n  - src/**  # why\n  - \"*.rs\"", "paths", Some("src/**, *.rs"), &["src/**", "*.rs"]);
        check("paths: \"**/*.{ts,tsx}, lib/**\"", "paths", Some("**/*.{ts,tsx}, lib/**"), &["**/*.{ts,tsx}", "lib/**"]);
        check("paths: src/**, lib/**", "paths", Some("src/**, lib/**"), &["src/**", "lib/**"]);
        check("metadata:\n  name: inner\nname: outer", "name", Some("outer"), &["outer"]);
        check("name:", "name", None, &[]);
        check("\tname: x\n: y\nno colon", "name", None, &[]);
    }

    #[test]
    fn a_text_without_front_matter_is_all_body() {
        for text in ["", "body", "---\nname: x\nno end", "----\nname: x\n---\n", " ---\nname: x\n---\n"] {
            assert_eq!(FrontMatter::read(text), FrontMatter { body: text, ..FrontMatter::default() });
        }
        assert_eq!(FrontMatter::read("\u{feff}---\r\nname: x\r\n---\r\nbody").text("name").as_deref(), Some("x"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(---\n)?([a-z:>|\\[\\]\"'# \n,-]|\\PC){0,120}(\n---\n)?.{0,9}") {
            let read = FrontMatter::read(&text);
            prop_assert!(text.ends_with(read.body));
        }
    }
}
