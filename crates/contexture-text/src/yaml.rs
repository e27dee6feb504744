//! As much of YAML as agents write their settings in: maps and lists by indentation, texts, and empty values.
//!
//! Whatever else a file has is an error, not a guess: somebody's address may be in it.

use serde_json::{Map, Value};

/// Reads a file. All values are texts, or nothing.
///
/// # Errors
/// What the file has that is not read, with its line.
pub fn read(text: &str) -> Result<Value, String> {
    let lines = text.lines().enumerate().map(|(number, line)| YamlLine::new(number + 1, line)).collect();
    let mut reader = YamlReader { lines, at: 0 };
    if reader.peek().is_some_and(|line| line.text == "---") {
        reader.at += 1;
    }
    let Some(first) = reader.peek().copied() else { return Ok(Value::Null) };
    let value = reader.node(first)?;
    match reader.peek() {
        Some(line) => Err(line.error("what is there is not expected")),
        None => Ok(value),
    }
}

#[derive(Clone, Copy)]
struct YamlLine<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

impl<'a> YamlLine<'a> {
    fn new(number: usize, line: &'a str) -> Self {
        let text = line.trim_start_matches(' ');
        Self { number, indent: line.len() - text.len(), text: text.trim_end() }
    }

    fn error(&self, why: &str) -> String {
        format!("line {}: {why}", self.number)
    }

    fn is_blank(&self) -> bool {
        self.text.is_empty() || self.text.starts_with('#')
    }

    fn is_item(&self) -> bool {
        self.text == "-" || self.text.starts_with("- ")
    }
}

struct YamlReader<'a> {
    lines: Vec<YamlLine<'a>>,
    at: usize,
}

impl<'a> YamlReader<'a> {
    /// The next line that says something.
    fn peek(&mut self) -> Option<&mut YamlLine<'a>> {
        while self.lines.get(self.at)?.is_blank() {
            self.at += 1;
        }
        self.lines.get_mut(self.at)
    }

    /// The map, list or text that begins in a line.
    fn node(&mut self, line: YamlLine<'a>) -> Result<Value, String> {
        if line.text.starts_with('\t') {
            return Err(line.error("a tab"));
        }
        if line.is_item() {
            return self.list(line.indent);
        }
        if key_of(line.text).is_some() {
            return self.map(line.indent);
        }
        self.at += 1;
        self.scalar(line, line.text, line.indent)
    }

    fn map(&mut self, indent: usize) -> Result<Value, String> {
        let mut map = Map::new();
        while let Some(line) = self.peek().copied() {
            if line.indent < indent || (line.indent == indent && line.is_item()) {
                break;
            }
            let Some((key, rest)) = key_of(line.text).filter(|_| line.indent == indent) else {
                return Err(line.error("no name of a setting"));
            };
            if key == "<<" || key.starts_with(['?', '&', '*', '!', '{', '[']) {
                return Err(line.error("a form of YAML that is not read"));
            }
            self.at += 1;
            if line.text.starts_with('\t') {
                return Err(line.error("a tab"));
            }
            let value = self.value(line, rest, indent)?;
            if map.insert(key, value).is_some() {
                return Err(line.error("it is there twice"));
            }
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, indent: usize) -> Result<Value, String> {
        let mut list = Vec::new();
        while let Some(line) = self.peek().copied().filter(|line| line.indent == indent && line.is_item()) {
            let rest = line.text[1..].trim_start();
            let inner = YamlLine { indent: indent + line.text.len() - rest.len(), text: rest, ..line };
            if inner.is_item() || key_of(rest).is_some() {
                // A map or a list begins beside the dash.
                self.lines[self.at] = inner;
                list.push(self.node(inner)?);
            } else {
                self.at += 1;
                list.push(self.value(line, rest, indent)?);
            }
        }
        Ok(Value::Array(list))
    }

    /// What is after a name or a dash, in its line or below it.
    fn value(&mut self, line: YamlLine<'a>, rest: &'a str, indent: usize) -> Result<Value, String> {
        if !rest.is_empty() && !rest.starts_with('#') {
            return self.scalar(line, rest, indent);
        }
        let below = self.peek().copied();
        match below
            .filter(|below| below.indent > indent || (below.indent == indent && below.is_item() && !line.is_item()))
        {
            Some(below) => self.node(below),
            None => Ok(Value::Null),
        }
    }

    fn scalar(&mut self, line: YamlLine<'a>, text: &'a str, indent: usize) -> Result<Value, String> {
        match text.as_bytes()[0] {
            b'|' | b'>' => Ok(Value::String(self.block(indent))),
            b'&' | b'*' | b'!' | b'%' | b'@' | b'`' => Err(line.error("a form of YAML that is not read")),
            b'{' | b'[' => flow(text).ok_or_else(|| line.error("a list or a map in one line")),
            quote @ (b'"' | b'\'') => self.quoted(line, text, char::from(quote)),
            _ => Ok(self.plain(text, indent)),
        }
    }

    /// A text without quotes, which goes on in lines that are further in.
    fn plain(&mut self, text: &str, indent: usize) -> Value {
        let mut whole = without_comment(text).to_owned();
        while let Some(line) = self.peek().copied().filter(|line| line.indent > indent) {
            self.at += 1;
            whole = format!("{whole} {}", without_comment(line.text));
        }
        let is_nothing = matches!(whole.as_str(), "" | "~" | "null" | "Null" | "NULL");
        if is_nothing { Value::Null } else { Value::String(whole) }
    }

    fn quoted(&mut self, line: YamlLine<'a>, text: &str, quote: char) -> Result<Value, String> {
        let mut whole = text.to_owned();
        loop {
            if let Some((value, after)) = unquoted(&whole, quote) {
                let after = after.trim();
                let is_end = after.is_empty() || after.starts_with('#');
                return if is_end { Ok(Value::String(value)) } else { Err(line.error("more after a quoted text")) };
            }
            let Some(next) = self.lines.get(self.at) else { return Err(line.error("a quote that does not end")) };
            whole = format!("{whole} {}", next.text);
            self.at += 1;
        }
    }

    /// The lines that are further in, as one text.
    fn block(&mut self, indent: usize) -> String {
        let mut texts = Vec::new();
        while let Some(line) = self.lines.get(self.at).filter(|line| line.indent > indent || line.text.is_empty()) {
            texts.push(line.text);
            self.at += 1;
        }
        texts.join("\n").trim_end().to_owned()
    }
}

/// The name that a line begins with, and what is after it.
fn key_of(text: &str) -> Option<(String, &str)> {
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (key, after) = unquoted(text, quote)?;
        let rest = after.trim_start().strip_prefix(':')?;
        return (rest.is_empty() || rest.starts_with(' ')).then(|| (key, rest.trim()));
    }
    if text.starts_with(['{', '[', '#', '|', '>']) {
        return None;
    }
    let (key, rest) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
    Some((key.trim_end().to_owned(), rest.trim()))
}

/// A quoted text, and what is after it.
fn unquoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut signs = text.char_indices().skip(1).peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '\\' if quote == '"' => match signs.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                other => value.push(other),
            },
            sign if sign == quote && quote == '\'' && signs.peek().is_some_and(|(_, next)| *next == quote) => {
                value.push(quote);
                signs.next();
            }
            sign if sign == quote => return Some((value, &text[at + 1..])),
            sign => value.push(sign),
        }
    }
    None
}

fn without_comment(text: &str) -> &str {
    text.split(" #").next().unwrap_or_default().trim_end()
}

/// A list or a map in one line: as JSON, or a list of plain words.
fn flow(text: &str) -> Option<Value> {
    let text = without_comment(text);
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let words = text.strip_prefix('[')?.strip_suffix(']')?;
    let is_plain = !words.contains(['{', '}', '[', ']', '"', '\'', ':', '&', '*', '!']);
    is_plain.then(|| words.split(',').map(|word| Value::String(word.trim().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(read(text).as_ref(), Ok(&expected), "{text}");
    }

    #[test]
    fn settings_are_read_at_every_level() {
        check("# a\nOPENAI_HOST: https://h.example # here\nGOOSE_PROVIDER: 'x'\nnested:\n  OPENAI_HOST: no\n", {
            json!({"OPENAI_HOST": "https://h.example", "GOOSE_PROVIDER": "x", "nested": {"OPENAI_HOST": "no"}})
        });
        check("---\na:\n  b:\n    c: 1\n  d: \"x: y\"\ne:\n", json!({"a": {"b": {"c": "1"}, "d": "x: y"}, "e": null}));
        check("a:\n- b: 1\n  c: 2\n- d\nf: ~\n", json!({"a": [{"b": "1", "c": "2"}, "d"], "f": null}));
        check("set-env:\n  - OPENAI_API_BASE=x\n  -\n", json!({"set-env": ["OPENAI_API_BASE=x", null]}));
        check("a: {}\nb: []\nc: [x, y] # z\nd: {\"e\": \"f\"}\n", {
            json!({"a": {}, "b": [], "c": ["x", "y"], "d": {"e": "f"}})
        });
        check(
            "a: |\n  b: no\n  # no\nc: >-\n  x\n\n  y\nd: 'it''s'\n",
            json!({"a": "b: no\n# no", "c": "x\n\ny", "d": "it's"}),
        );
        check("a: one\n  two\nb: \"three\n  four\"\n", json!({"a": "one two", "b": "three four"}));
        check("'a b': 1\n\"c\": 2\n", json!({"a b": "1", "c": "2"}));
        check("url: http://a:8080/x\n", json!({"url": "http://a:8080/x"}));
        check("", Value::Null);
    }

    #[test]
    fn what_is_not_read_is_an_error_and_no_guess() {
        for text in [
            "a: &x\n  b: 1\nc: *x\n",
            "a: 1\n<<: 2\n",
            "a: {b: c}\n",
            "a: 1\na: 2\n",
            "a: !tag x\n",
            "a: 1\n---\nb: 2\n",
            "a:\n\tb: 1\n",
            "a: \"b\n",
            "a: 'b' c\n",
            "a:\n  b: 1\n c: 2\n",
            "? a\n: b\n",
        ] {
            assert!(read(text).is_err(), "{text}: {:?}", read(text));
        }
    }
}
