//! Keys without collisions: every segment is escaped.

use crate::percent::push_encoded;

/// Builds a key out of segments, each escaped, joined by `/`.
///
/// ```
/// use contexture_core::store::Key;
/// assert_eq!(Key::new("layers").then("a/b").then("50%").into_string(), "layers/a%2Fb/50%25");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Creates a key of one segment.
    pub fn new(segment: &str) -> Self {
        Key(escape_segment(segment))
    }

    /// Appends a segment.
    pub fn then(mut self, segment: &str) -> Self {
        self.0.push('/');
        self.0.push_str(&escape_segment(segment));
        self
    }

    /// The key as text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// The prefix of all keys below this one.
    pub fn into_prefix(mut self) -> String {
        self.0.push('/');
        self.0
    }
}

/// Escapes a segment. The result has no `/`, is never empty, and is different for every input.
///
/// Letters of any script, digits and `- _ . : @ +` are kept; every other byte becomes `%XX`.
/// The empty text becomes a single `%`.
pub fn escape_segment(segment: &str) -> String {
    if segment.is_empty() {
        return "%".to_owned();
    }
    let mut escaped = String::with_capacity(segment.len());
    for character in segment.chars() {
        if character.is_alphanumeric() || "-_.:@+".contains(character) {
            escaped.push(character);
        } else {
            let mut bytes = [0; 4];
            character.encode_utf8(&mut bytes).bytes().for_each(|byte| push_encoded(&mut escaped, byte));
        }
    }
    escaped
}

/// The prefix of all keys of one layer in one scope.
pub fn layer_prefix(layer_id: &str, scope_kind: &str, scope_id: &str) -> String {
    Key::new("layers").then(layer_id).then(scope_kind).then(scope_id).into_prefix()
}
