//! Reads a schema.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Number, Value};

use super::check::{is_within_depth, size};
use super::compare::{float, whole};
use super::mismatch::show;
use super::{Bound, Limit, MAX_SCHEMA_DEPTH, MAX_SCHEMA_PARTS, MAX_VALUE_DEPTH, Measure, Part, PartId, Rule, Type};
use crate::percent;

/// The keywords that are checked, in this order: those with the most helpful messages come first.
const ASSERTIONS: &[&str] = &[
    "type",
    "const",
    "enum",
    "$ref",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "minItems",
    "maxItems",
    "prefixItems",
    "items",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
];

/// The keywords that contain schemas for a `$ref` to point to.
const DEFINITIONS: &[&str] = &["$defs", "definitions"];

/// The keywords that assert nothing.
const ANNOTATIONS: &[&str] = &[
    "$schema",
    "$id",
    "$anchor",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
];

/// The keywords that assert something that is not supported.
const UNCHECKED: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "contentSchema",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "pattern",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Reads a schema; the error says what cannot be read or checked.
pub(super) fn strictly(schema: &Value) -> Result<Vec<Part>, String> {
    let mut reader = SchemaReader::new(Mode::Strict);
    reader.read(schema, "#".into(), 0)?;
    reader.resolve()?;
    reader.refuse_circles()?;
    Ok(reader.parts)
}

/// Reads the part of a schema that can be checked.
pub(super) fn leniently(schema: &Value) -> Vec<Part> {
    let mut reader = SchemaReader::new(Mode::Lenient);
    if reader.read(schema, "#".into(), 0).and_then(|_| reader.resolve()).is_err() {
        return vec![Part::new()];
    }
    if reader.has_left_out {
        reader.drop_negations();
    }
    reader.parts
}

#[derive(Clone, Copy)]
enum Mode {
    Strict,
    Lenient,
}

struct SchemaReader {
    mode: Mode,
    parts: Vec<Part>,
    /// Where each part is: `#` and a JSON pointer.
    places: HashMap<String, PartId>,
    references: Vec<SchemaReference>,
    has_left_out: bool,
}

/// A `$ref`, until all parts are read and it can be resolved.
struct SchemaReference {
    part: PartId,
    place: String,
    target: String,
}

/// A keyword within the schema that is being read.
struct Keyword<'a> {
    name: &'a str,
    value: &'a Value,
    /// The schema that it is in, with its siblings.
    map: &'a Map<String, Value>,
    part: PartId,
    place: String,
    depth: usize,
}

impl SchemaReader {
    fn new(mode: Mode) -> Self {
        Self { mode, parts: Vec::new(), places: HashMap::new(), references: Vec::new(), has_left_out: false }
    }

    /// Reads the schema at `place` and everything within.
    fn read(&mut self, schema: &Value, place: String, depth: usize) -> Result<PartId, String> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(format!("`{place}` is nested more than {MAX_SCHEMA_DEPTH} deep"));
        }
        if self.parts.len() == MAX_SCHEMA_PARTS {
            return Err(format!("`{place}` is one schema too many; at most {MAX_SCHEMA_PARTS} may be in one"));
        }
        let part = self.parts.len();
        self.parts.push(Part::new());
        self.parts[part] = match schema {
            Value::Bool(true) => Part::new(),
            Value::Bool(false) => vec![Rule::Never],
            Value::Object(map) => self.read_object(map, part, &place, depth)?,
            other => return Err(misfit(&place, other, "a schema")),
        };
        self.places.insert(place, part);
        Ok(part)
    }

    fn read_object(
        &mut self,
        map: &Map<String, Value>,
        part: PartId,
        place: &str,
        depth: usize,
    ) -> Result<Vec<Rule>, String> {
        let mut rules = Vec::new();
        for name in DEFINITIONS.iter().chain(ASSERTIONS) {
            let Some(value) = map.get(*name) else { continue };
            let keyword = Keyword { name, value, map, part, place: format!("{place}/{name}"), depth: depth + 1 };
            match self.read_keyword(&keyword) {
                Ok(rule) => rules.extend(rule),
                Err(problem) => self.leave_out(problem)?,
            }
        }
        if let Some(problem) = map.keys().find_map(|name| refuse_keyword(name, place)) {
            self.leave_out(problem)?;
        }
        Ok(rules)
    }

    /// Ignores something that cannot be read or checked, or returns an error for it.
    fn leave_out(&mut self, problem: String) -> Result<(), String> {
        self.has_left_out = true;
        match self.mode {
            Mode::Strict => Err(problem),
            Mode::Lenient => Ok(()),
        }
    }

    fn read_keyword(&mut self, keyword: &Keyword<'_>) -> Result<Option<Rule>, String> {
        Ok(Some(match keyword.name {
            "$defs" | "definitions" => {
                self.read_map(keyword)?;
                return Ok(None);
            }
            "$ref" => {
                self.references.push(keyword.reference()?);
                return Ok(None);
            }
            "type" => Rule::Type(keyword.types()?),
            "const" => keyword.constants(std::slice::from_ref(keyword.value))?,
            "enum" => keyword.constants(keyword.filled_array("values")?)?,
            "properties" => Rule::Properties(self.read_map(keyword)?),
            "required" => Rule::Required(keyword.strings()?),
            "additionalProperties" => return self.read_additional(keyword),
            "minProperties" => Rule::Size(Measure::Properties, Limit::AtLeast, keyword.count()?),
            "maxProperties" => Rule::Size(Measure::Properties, Limit::AtMost, keyword.count()?),
            "minItems" => Rule::Size(Measure::Items, Limit::AtLeast, keyword.count()?),
            "maxItems" => Rule::Size(Measure::Items, Limit::AtMost, keyword.count()?),
            "prefixItems" => Rule::PrefixItems(self.read_list(keyword)?),
            "items" => Rule::Items { skip: keyword.prefix_len(), part: self.read_one(keyword)? },
            "uniqueItems" => return Ok(keyword.boolean()?.then_some(Rule::UniqueItems)),
            "minimum" => Rule::Bound(Bound::Minimum, keyword.number()?),
            "maximum" => Rule::Bound(Bound::Maximum, keyword.number()?),
            "exclusiveMinimum" => Rule::Bound(Bound::ExclusiveMinimum, keyword.number()?),
            "exclusiveMaximum" => Rule::Bound(Bound::ExclusiveMaximum, keyword.number()?),
            "multipleOf" => Rule::MultipleOf(keyword.positive()?),
            "minLength" => Rule::Size(Measure::Characters, Limit::AtLeast, keyword.count()?),
            "maxLength" => Rule::Size(Measure::Characters, Limit::AtMost, keyword.count()?),
            "allOf" => Rule::AllOf(self.read_list(keyword)?),
            "anyOf" => Rule::AnyOf(self.read_list(keyword)?),
            "oneOf" => Rule::OneOf(self.read_list(keyword)?),
            "not" => Rule::Not(self.read_one(keyword)?),
            other => unreachable!("`{other}` is in the list of assertions"),
        }))
    }

    fn read_one(&mut self, keyword: &Keyword<'_>) -> Result<PartId, String> {
        self.read(keyword.value, keyword.place.clone(), keyword.depth)
    }

    fn read_list(&mut self, keyword: &Keyword<'_>) -> Result<Vec<PartId>, String> {
        let schemas = keyword.filled_array("schemas")?.iter().enumerate();
        schemas.map(|(n, schema)| self.read(schema, format!("{}/{n}", keyword.place), keyword.depth)).collect()
    }

    fn read_map(&mut self, keyword: &Keyword<'_>) -> Result<BTreeMap<String, PartId>, String> {
        let Value::Object(schemas) = keyword.value else { return Err(keyword.misfit("an object of schemas")) };
        let mut parts = BTreeMap::new();
        for (name, schema) in schemas {
            let place = format!("{}/{}", keyword.place, escape(name));
            parts.insert(name.clone(), self.read(schema, place, keyword.depth)?);
        }
        Ok(parts)
    }

    fn read_additional(&mut self, keyword: &Keyword<'_>) -> Result<Option<Rule>, String> {
        let part = self.read_one(keyword)?;
        // Then it is not known which properties are additional.
        if keyword.map.contains_key("patternProperties") {
            return Ok(None);
        }
        let known = keyword.map.get("properties").and_then(Value::as_object);
        let known: BTreeSet<String> = known.into_iter().flat_map(Map::keys).cloned().collect();
        Ok(Some(Rule::AdditionalProperties { known, part }))
    }

    fn resolve(&mut self) -> Result<(), String> {
        for reference in std::mem::take(&mut self.references) {
            match self.places.get(&reference.target) {
                Some(part) => self.parts[reference.part].push(Rule::Ref(*part)),
                None => self.leave_out(format!(
                    "`{}` points to `{}`, where this schema holds no schema",
                    reference.place, reference.target
                ))?,
            }
        }
        Ok(())
    }

    /// Rejects schemas that apply themselves to the same value without end.
    fn refuse_circles(&self) -> Result<(), String> {
        let mut ends = vec![false; self.parts.len()];
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            // Backwards, because but for references a schema comes before those within it.
            for part in (0..self.parts.len()).rev().filter(|part| !ends[*part]).collect::<Vec<_>>() {
                ends[part] = self.parts[part].iter().flat_map(Rule::in_place).all(|next| ends[*next]);
                has_changed |= ends[part];
            }
        }
        let endless = self.places.iter().filter(|(_, part)| !ends[**part]).map(|(place, _)| place).min();
        endless.map_or(Ok(()), |place| Err(format!("`{place}` refers to itself without end")))
    }

    /// Makes sure that the part that is read accepts everything that the whole schema accepts: without some assertions, a
    /// schema matches more values, and its negation fewer.
    fn drop_negations(&mut self) {
        for part in &mut self.parts {
            part.retain(|rule| !matches!(rule, Rule::Not(_)));
            for rule in part {
                if let Rule::OneOf(parts) = rule {
                    *rule = Rule::AnyOf(std::mem::take(parts));
                }
            }
        }
    }
}

impl Rule {
    /// The schemas that this rule applies to the same value.
    fn in_place(&self) -> &[PartId] {
        match self {
            Rule::Ref(part) | Rule::Not(part) => std::slice::from_ref(part),
            Rule::AllOf(parts) | Rule::AnyOf(parts) | Rule::OneOf(parts) => parts,
            _ => &[],
        }
    }
}

impl Keyword<'_> {
    fn misfit(&self, expected: &str) -> String {
        misfit(&self.place, self.value, expected)
    }

    fn boolean(&self) -> Result<bool, String> {
        self.value.as_bool().ok_or_else(|| self.misfit("a boolean"))
    }

    fn number(&self) -> Result<Number, String> {
        self.value.as_number().cloned().ok_or_else(|| self.misfit("a number"))
    }

    fn positive(&self) -> Result<Number, String> {
        let number = self.number()?;
        if float(&number) > 0.0 { Ok(number) } else { Err(self.misfit("a number above 0")) }
    }

    fn count(&self) -> Result<u64, String> {
        let count = self.value.as_number().and_then(whole).and_then(|count| u64::try_from(count).ok());
        count.ok_or_else(|| self.misfit("a whole number, not negative"))
    }

    fn filled_array(&self, of: &str) -> Result<&[Value], String> {
        match self.value {
            Value::Array(values) if !values.is_empty() => Ok(values),
            _ => Err(self.misfit(&format!("an array of {of}, not empty"))),
        }
    }

    fn strings(&self) -> Result<Vec<String>, String> {
        let strings =
            self.value.as_array().and_then(|values| values.iter().map(|value| Some(value.as_str()?.into())).collect());
        strings.ok_or_else(|| self.misfit("an array of strings"))
    }

    fn types(&self) -> Result<Vec<Type>, String> {
        let names = match self.value {
            Value::Array(names) if !names.is_empty() => names,
            one => std::slice::from_ref(one),
        };
        let types = names.iter().map(|name| type_named(name.as_str()?)).collect::<Option<_>>();
        types.ok_or_else(|| self.misfit("the name of a type, or an array of such names"))
    }

    fn constants(&self, constants: &[Value]) -> Result<Rule, String> {
        if !constants.iter().all(|constant| is_within_depth(constant, MAX_VALUE_DEPTH)) {
            return Err(format!("`{}` is nested more than {MAX_VALUE_DEPTH} deep", self.place));
        }
        Ok(Rule::Enum { constants: constants.to_vec(), size: constants.iter().map(size).sum() })
    }

    /// The number of items in the `prefixItems` next to this keyword.
    fn prefix_len(&self) -> usize {
        self.map.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len)
    }

    fn reference(&self) -> Result<SchemaReference, String> {
        let target = self.value.as_str().ok_or_else(|| self.misfit("a string"))?;
        if !target.starts_with('#') {
            return Err(format!("`{}` points outside of the schema, to {}", self.place, show(self.value)));
        }
        let target = percent::decoded(target).ok_or_else(|| self.misfit("a place within the schema"))?;
        Ok(SchemaReference { part: self.part, place: self.place.clone(), target })
    }
}

fn misfit(place: &str, found: &Value, expected: &str) -> String {
    format!("`{place}` is {}, expected {expected}", show(found))
}

/// What is wrong with a keyword that is not read, if anything.
fn refuse_keyword(name: &str, place: &str) -> Option<String> {
    let is_known = ASSERTIONS.contains(&name) || DEFINITIONS.contains(&name) || ANNOTATIONS.contains(&name);
    if is_known || name.starts_with("x-") {
        return None;
    }
    let place = format!("{place}/{}", escape(name));
    Some(match UNCHECKED.contains(&name) {
        true => format!("`{place}` asserts something that cannot be checked here"),
        false => format!("`{place}` is not a known keyword; an annotation of your own begins with `x-`"),
    })
}

fn type_named(name: &str) -> Option<Type> {
    Some(match name {
        "null" => Type::Null,
        "boolean" => Type::Boolean,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "string" => Type::String,
        "array" => Type::Array,
        "object" => Type::Object,
        _ => return None,
    })
}

/// A name escaped for a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
