//! JSON schemas for the inputs and outputs of functions.

mod check;
mod compare;
mod mismatch;
mod read;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Number, Value};

/// How deep schemas may be nested.
const MAX_SCHEMA_DEPTH: usize = 64;

/// How many schemas one schema may contain, including itself.
const MAX_SCHEMA_PARTS: usize = 10_000;

/// How deep a checked value may be nested; `serde_json` never reads a deeper one.
const MAX_VALUE_DEPTH: usize = 128;

/// How many schemas may be applied inside one another while a value is checked.
///
/// Stepping into a property counts, and so does following a `$ref` or trying an alternative.
const MAX_CHECK_DEPTH: usize = 256;

/// How many steps one check may take: a schema applied to a value is one, and so is every name, item or constant
/// that is compared. Nested alternatives can need exponentially many.
const MAX_CHECK_STEPS: usize = 2_000_000;

/// A JSON schema that values can be checked against.
///
/// It supports this part of draft 2020-12:
///
/// - any value: `true`, `false`, `type`, `enum`, `const`, `allOf`, `anyOf`, `oneOf`, `not`, and `$ref` to any
///   place within the schema itself, such as `#/$defs/name` or `#/definitions/name`;
/// - numbers: `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`;
/// - strings: `minLength`, `maxLength`, in characters;
/// - arrays: `prefixItems`, `items`, `minItems`, `maxItems`, `uniqueItems`;
/// - objects: `properties`, `required`, `additionalProperties`, `minProperties`, `maxProperties`.
///
/// `format`, `title`, `description`, `default`, `examples` and the like do not affect validity, and neither
/// does a keyword that begins with `x-`. As in the draft, 1 and 1.0 are the same number and both are integers.
///
/// ```
/// use contexture_core::schema::Schema;
/// use serde_json::json;
///
/// let schema = Schema::new(&json!({
///     "type": "object",
///     "properties": { "items": { "type": "array", "items": { "properties": { "name": { "type": "string" } } } } },
///     "required": ["items"],
/// }))?;
/// assert_eq!(schema.check(&json!({ "items": [{ "name": "a" }] })), Ok(()));
/// assert_eq!(
///     schema.check(&json!({ "items": [{}, {}, { "name": 1 }] })),
///     Err("`items[2].name` is a number, expected a string".into())
/// );
/// assert_eq!(schema.check(&json!({})), Err("`items` is missing".into()));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    /// Every schema within this one; the first is the whole.
    parts: Vec<Part>,
}

/// One schema: a value matches it if it matches all rules. `true` has none.
type Part = Vec<Rule>;

/// The index of a [`Part`].
type PartId = usize;

/// One assertion of a schema, with everything that is needed to check it.
#[derive(Clone, Debug)]
enum Rule {
    /// The schema `false`.
    Never,
    Type(Vec<Type>),
    /// `enum` and `const`; `size` is the number of values in all constants together.
    Enum {
        constants: Vec<Value>,
        size: usize,
    },
    Bound(Bound, Number),
    MultipleOf(Number),
    Size(Measure, Limit, u64),
    UniqueItems,
    PrefixItems(Vec<PartId>),
    /// `items`: all items after the first `skip`.
    Items {
        skip: usize,
        part: PartId,
    },
    Properties(BTreeMap<String, PartId>),
    /// `additionalProperties`: all properties but the `known`.
    AdditionalProperties {
        known: BTreeSet<String>,
        part: PartId,
    },
    Required(Vec<String>),
    Ref(PartId),
    AllOf(Vec<PartId>),
    AnyOf(Vec<PartId>),
    OneOf(Vec<PartId>),
    Not(PartId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

#[derive(Clone, Copy, Debug)]
enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

/// What is counted in a value.
#[derive(Clone, Copy, Debug)]
enum Measure {
    Characters,
    Items,
    Properties,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    AtLeast,
    AtMost,
}

impl Schema {
    /// Reads a schema that can be checked completely.
    ///
    /// # Errors
    /// A message that names the place: an invalid schema, a `$ref` that points nowhere or in a circle, or a keyword that
    /// asserts something beyond the part listed above, such as `pattern` or `if`. Unknown keywords are errors too, since
    /// they are more often typing errors than annotations.
    pub fn new(schema: &Value) -> Result<Self, String> {
        read::strictly(schema).map(|parts| Self { parts })
    }

    /// Reads the supported part of a schema and ignores the rest.
    ///
    /// For schemas derived from Rust types: these are well formed, may assert more than is checked here, and the types
    /// themselves check everything once more. Every value that matches the schema also matches the part that is read.
    pub(crate) fn lenient(schema: &Value) -> Self {
        Self { parts: read::leniently(schema) }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// A message that says where the value does not match and what was expected there; also if checking would
    /// exceed what values may be nested, schemas applied inside one another, or steps taken.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        check::check(&self.parts, value)
    }
}
