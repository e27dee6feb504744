//! Where a value does not match its schema, and the message about it.

use std::fmt::Write;

use serde_json::Value;

use super::Type;

/// How many characters of a string or a name are quoted.
const MAX_QUOTED_CHARS: usize = 60;

/// How many expectations are listed.
const MAX_LISTED: usize = 12;

/// One mismatch.
#[derive(Debug)]
pub(super) struct Mismatch {
    /// The path from the checked value to the one that does not match, innermost first.
    path: Vec<PathSegment>,
    problem: Problem,
    /// How many alternatives there were, if this is the nearest of several.
    alternatives: usize,
}

#[derive(Debug)]
enum PathSegment {
    Property(String),
    Item(usize),
}

#[derive(Debug)]
enum Problem {
    /// The value is not one of those that are expected.
    Expected {
        found: String,
        expected: Vec<String>,
        /// Whether a constant was expected. In a list of alternatives that is most often a tag.
        constant: bool,
    },
    /// Anything else; the message follows the place.
    Other(String),
}

impl Mismatch {
    pub(super) fn of_type(found: &Value, expected: &[Type]) -> Self {
        let expected = expected.iter().map(|one| one.words().to_owned()).collect();
        let found = match found {
            // "is a number, expected an integer" would be confusing.
            Value::Number(number) if number.is_f64() => number.to_string(),
            _ => kind(found).to_owned(),
        };
        Self::from(Problem::Expected { found, expected, constant: false })
    }

    pub(super) fn of_constant(found: &Value, constants: &[Value]) -> Self {
        // One more than is listed, so that the list shows that it is cut.
        let expected = constants.iter().take(MAX_LISTED + 1).map(show).collect();
        Self::from(Problem::Expected { found: show(found), expected, constant: true })
    }

    pub(super) fn other(problem: impl Into<String>) -> Self {
        Self::from(Problem::Other(problem.into()))
    }

    pub(super) fn missing(name: &str) -> Self {
        Self::other("is missing").in_property(name)
    }

    /// Extends the path by the containing object.
    pub(super) fn in_property(mut self, name: &str) -> Self {
        self.path.push(PathSegment::Property(shorten(name)));
        self
    }

    /// Extends the path by the containing array.
    pub(super) fn in_item(mut self, index: usize) -> Self {
        self.path.push(PathSegment::Item(index));
        self
    }

    /// The mismatch to report when none of several alternatives matches.
    ///
    /// If all of them expect something else instead of the value itself, it lists everything that was expected.
    /// Otherwise it is that of the alternative that got deepest into the value, preferring one that did not fail at a
    /// constant: with tagged alternatives, that one has the right tag.
    pub(super) fn of_alternatives(mismatches: Vec<Mismatch>) -> Self {
        let count = mismatches.len();
        if mismatches.iter().all(Mismatch::is_expectation_of_value) {
            return Self::united(mismatches);
        }
        let nearest = mismatches.into_iter().reduce(|best, next| if next.depth() > best.depth() { next } else { best });
        let mut nearest = nearest.unwrap_or_else(|| Self::other("fits none of no alternatives"));
        if count > 1 {
            nearest.alternatives = count;
        }
        nearest
    }

    fn is_expectation_of_value(&self) -> bool {
        self.path.is_empty() && matches!(self.problem, Problem::Expected { .. })
    }

    fn united(mismatches: Vec<Mismatch>) -> Self {
        let (mut all_found, mut all_expected) = (None, Vec::new());
        for mismatch in mismatches {
            let Problem::Expected { found, expected, .. } = mismatch.problem else { continue };
            all_found.get_or_insert(found);
            all_expected.extend(expected.into_iter().take(MAX_LISTED + 1));
        }
        all_expected.dedup();
        let found = all_found.unwrap_or_default();
        Self::from(Problem::Expected { found, expected: all_expected, constant: true })
    }

    fn depth(&self) -> (usize, bool) {
        (self.path.len(), !matches!(self.problem, Problem::Expected { constant: true, .. }))
    }

    /// The whole message.
    pub(super) fn sentence(&self) -> String {
        let mut sentence = self.place();
        match &self.problem {
            Problem::Other(problem) => _ = write!(sentence, " {problem}"),
            Problem::Expected { found, expected, .. } => {
                _ = write!(sentence, " is {found}, expected {}", list(expected))
            }
        }
        if self.alternatives > 0 {
            _ = write!(sentence, " (the nearest of {} alternatives)", self.alternatives);
        }
        sentence
    }

    fn place(&self) -> String {
        if self.path.is_empty() {
            return "the value".into();
        }
        let mut place = String::from("`");
        for step in self.path.iter().rev() {
            match step {
                PathSegment::Item(index) => _ = write!(place, "[{index}]"),
                PathSegment::Property(name) if !is_plain(name) => _ = write!(place, "[{name:?}]"),
                PathSegment::Property(name) if place.len() == 1 => place.push_str(name),
                PathSegment::Property(name) => _ = write!(place, ".{name}"),
            }
        }
        place.push('`');
        place
    }
}

impl From<Problem> for Mismatch {
    fn from(problem: Problem) -> Self {
        Self { path: Vec::new(), problem, alternatives: 0 }
    }
}

impl Type {
    fn words(self) -> &'static str {
        match self {
            Type::Null => "null",
            Type::Boolean => "a boolean",
            Type::Integer => "an integer",
            Type::Number => "a number",
            Type::String => "a string",
            Type::Array => "an array",
            Type::Object => "an object",
        }
    }
}

/// The kind of the value, with its article.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The value itself if it is short, or else its kind.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::String(text) => Value::from(shorten(text)).to_string(),
        Value::Array(items) if !items.is_empty() => "an array".into(),
        Value::Object(map) if !map.is_empty() => "an object".into(),
        short => short.to_string(),
    }
}

/// "a", "a or b", "a, b or c"; a long list is cut.
pub(super) fn list(words: &[String]) -> String {
    let listed = &words[..words.len().min(MAX_LISTED)];
    match listed.split_last() {
        None => "nothing".into(),
        Some((only, [])) => only.clone(),
        Some(_) if listed.len() < words.len() => format!("{}, …", listed.join(", ")),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '…'))
}
