//! Checks a value against a schema.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value};

use super::compare::{compare, compare_numbers, float, whole};
use super::mismatch::{Mismatch, list, show};
use super::{Bound, Limit, MAX_CHECK_DEPTH, MAX_CHECK_STEPS, MAX_VALUE_DEPTH, Measure, Part, PartId, Rule, Type};

/// Checks a value against the first of the parts.
pub(super) fn check(parts: &[Part], value: &Value) -> Result<(), String> {
    // Comparing values recurses without a depth limit, so the depth is checked first.
    if !is_within_depth(value, MAX_VALUE_DEPTH) {
        return Err(format!("the value is nested more than {MAX_VALUE_DEPTH} deep"));
    }
    let mut checker = Checker { parts, steps_left: MAX_CHECK_STEPS };
    checker.apply(0, value, 0).map_err(|stop| match stop {
        Stop::Mismatch(mismatch) => mismatch.sentence(),
        Stop::TooDeep => format!("checking the value goes more than {MAX_CHECK_DEPTH} schemas deep"),
        Stop::TooMuch => format!("checking the value takes more than {MAX_CHECK_STEPS} steps"),
    })
}

/// Whether arrays and objects are nested at most so deep.
pub(super) fn is_within_depth(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_within_depth(item, depth - 1)),
        Value::Object(map) => depth > 0 && map.values().all(|item| is_within_depth(item, depth - 1)),
        _ => true,
    }
}

/// Why checking ends. After a mismatch another alternative may still match; other errors are final.
///
/// Boxed to be small, since recursive functions return it.
enum Stop {
    Mismatch(Box<Mismatch>),
    TooDeep,
    TooMuch,
}

impl From<Mismatch> for Stop {
    fn from(mismatch: Mismatch) -> Self {
        Stop::Mismatch(Box::new(mismatch))
    }
}

impl Stop {
    /// Extends the path of a mismatch by the containing value.
    fn seen(self, from_outside: impl FnOnce(Mismatch) -> Mismatch) -> Self {
        match self {
            Stop::Mismatch(mismatch) => from_outside(*mismatch).into(),
            other => other,
        }
    }
}

struct Checker<'a> {
    parts: &'a [Part],
    steps_left: usize,
}

impl Checker<'_> {
    fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Stop::TooMuch)?;
        Ok(())
    }

    fn apply(&mut self, part: PartId, value: &Value, depth: usize) -> Result<(), Stop> {
        self.spend(1)?;
        if depth > MAX_CHECK_DEPTH {
            return Err(Stop::TooDeep);
        }
        let parts = self.parts;
        parts[part].iter().try_for_each(|rule| self.apply_rule(rule, value, depth + 1))
    }

    /// Applies one rule; a rule for another kind of value always matches.
    fn apply_rule(&mut self, rule: &Rule, value: &Value, depth: usize) -> Result<(), Stop> {
        match (rule, value) {
            (Rule::Never, _) => Err(Mismatch::other("is not allowed").into()),
            (Rule::Type(types), _) => Ok(check_type(types, value)?),
            (Rule::Enum { constants, size }, _) => {
                self.spend(*size)?;
                Ok(check_enum(constants, value)?)
            }
            (Rule::Bound(bound, limit), Value::Number(number)) => Ok(check_bound(*bound, limit, number)?),
            (Rule::MultipleOf(step), Value::Number(number)) => Ok(check_multiple(step, number)?),
            (Rule::Size(measure, limit, bound), _) => self.check_size(*measure, *limit, *bound, value),
            (Rule::UniqueItems, Value::Array(items)) => self.check_unique(items),
            (Rule::PrefixItems(prefix), Value::Array(items)) => self.check_prefix(prefix, items, depth),
            (Rule::Items { skip, part }, Value::Array(items)) => self.check_items(*skip, *part, items, depth),
            (Rule::Properties(known), Value::Object(map)) => self.check_properties(known, map, depth),
            (Rule::AdditionalProperties { known, part }, Value::Object(map)) => {
                self.check_additional(known, *part, map, depth)
            }
            (Rule::Required(names), Value::Object(map)) => self.check_required(names, map),
            (Rule::Ref(part), _) => self.apply(*part, value, depth),
            (Rule::AllOf(parts), _) => parts.iter().try_for_each(|part| self.apply(*part, value, depth)),
            (Rule::AnyOf(parts), _) => self.check_any_of(parts, value, depth),
            (Rule::OneOf(parts), _) => self.check_one_of(parts, value, depth),
            (Rule::Not(part), _) => self.check_not(*part, value, depth),
            _ => Ok(()),
        }
    }

    fn check_size(&mut self, measure: Measure, limit: Limit, bound: u64, value: &Value) -> Result<(), Stop> {
        let (count, noun) = match (measure, value) {
            (Measure::Characters, Value::String(text)) => {
                self.spend(text.len() / BYTES_PER_STEP)?;
                (text.chars().count(), "character")
            }
            (Measure::Items, Value::Array(items)) => (items.len(), "item"),
            (Measure::Properties, Value::Object(map)) => (map.len(), "property"),
            _ => return Ok(()),
        };
        let (fits, words) = match limit {
            Limit::AtLeast => (count as u64 >= bound, "at least"),
            Limit::AtMost => (count as u64 <= bound, "at most"),
        };
        if fits {
            return Ok(());
        }
        Err(Mismatch::other(format!("has {}, expected {words} {bound}", counted(count, noun))).into())
    }

    fn check_unique(&mut self, items: &[Value]) -> Result<(), Stop> {
        self.spend(items.iter().map(size).sum())?;
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by(|&a, &b| compare(&items[a], &items[b]));
        let twins = order.windows(2).filter(|pair| compare(&items[pair[0]], &items[pair[1]]).is_eq());
        // The sort is stable, so the smaller index of equal items is first.
        match twins.min_by_key(|pair| pair[1]) {
            Some(pair) => Err(Mismatch::other(format!("repeats item {}", pair[0])).in_item(pair[1]).into()),
            None => Ok(()),
        }
    }

    fn check_prefix(&mut self, prefix: &[PartId], items: &[Value], depth: usize) -> Result<(), Stop> {
        for (index, (part, item)) in prefix.iter().zip(items).enumerate() {
            self.apply(*part, item, depth).map_err(|stop| stop.seen(|mismatch| mismatch.in_item(index)))?;
        }
        Ok(())
    }

    fn check_items(&mut self, skip: usize, part: PartId, items: &[Value], depth: usize) -> Result<(), Stop> {
        for (index, item) in items.iter().enumerate().skip(skip) {
            self.apply(part, item, depth).map_err(|stop| stop.seen(|mismatch| mismatch.in_item(index)))?;
        }
        Ok(())
    }

    fn check_properties(
        &mut self,
        known: &BTreeMap<String, PartId>,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), Stop> {
        self.spend(map.len())?;
        for (name, value) in map {
            let Some(part) = known.get(name) else { continue };
            self.apply(*part, value, depth).map_err(|stop| stop.seen(|mismatch| mismatch.in_property(name)))?;
        }
        Ok(())
    }

    fn check_additional(
        &mut self,
        known: &BTreeSet<String>,
        part: PartId,
        map: &Map<String, Value>,
        depth: usize,
    ) -> Result<(), Stop> {
        self.spend(map.len())?;
        for (name, value) in map.iter().filter(|(name, _)| !known.contains(*name)) {
            if let [Rule::Never] = self.parts[part][..] {
                return Err(unknown_property(name, known).into());
            }
            self.apply(part, value, depth).map_err(|stop| stop.seen(|mismatch| mismatch.in_property(name)))?;
        }
        Ok(())
    }

    fn check_required(&mut self, names: &[String], map: &Map<String, Value>) -> Result<(), Stop> {
        self.spend(names.len())?;
        match names.iter().find(|name| !map.contains_key(*name)) {
            Some(name) => Err(Mismatch::missing(name).into()),
            None => Ok(()),
        }
    }

    fn check_any_of(&mut self, parts: &[PartId], value: &Value, depth: usize) -> Result<(), Stop> {
        let mut mismatches = Vec::new();
        for part in parts {
            match self.apply(*part, value, depth) {
                Err(Stop::Mismatch(mismatch)) => mismatches.push(*mismatch),
                fits_or_stops => return fits_or_stops,
            }
        }
        Err(Mismatch::of_alternatives(mismatches).into())
    }

    fn check_one_of(&mut self, parts: &[PartId], value: &Value, depth: usize) -> Result<(), Stop> {
        let (mut mismatches, mut fitting) = (Vec::new(), Vec::new());
        for (index, part) in parts.iter().enumerate() {
            match self.apply(*part, value, depth) {
                Ok(()) => fitting.push(index + 1),
                Err(Stop::Mismatch(mismatch)) => mismatches.push(*mismatch),
                Err(stop) => return Err(stop),
            }
        }
        match fitting[..] {
            [] => Err(Mismatch::of_alternatives(mismatches).into()),
            [_] => Ok(()),
            [first, second, ..] => {
                let problem = format!("fits alternatives {first} and {second}, expected exactly one to fit");
                Err(Mismatch::other(problem).into())
            }
        }
    }

    fn check_not(&mut self, part: PartId, value: &Value, depth: usize) -> Result<(), Stop> {
        match self.apply(part, value, depth) {
            Ok(()) => Err(Mismatch::other(format!("is {}, which is ruled out", show(value))).into()),
            Err(Stop::Mismatch(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }
}

/// How many bytes of a string count as one step.
const BYTES_PER_STEP: usize = 64;

/// The number of values in a value, including itself.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn check_type(types: &[Type], value: &Value) -> Result<(), Mismatch> {
    let fits = |one: &Type| match (one, value) {
        (Type::Integer, Value::Number(number)) => whole(number).is_some() || float(number).fract() == 0.0,
        (Type::Null, Value::Null)
        | (Type::Boolean, Value::Bool(_))
        | (Type::Number, Value::Number(_))
        | (Type::String, Value::String(_))
        | (Type::Array, Value::Array(_))
        | (Type::Object, Value::Object(_)) => true,
        _ => false,
    };
    if types.iter().any(fits) { Ok(()) } else { Err(Mismatch::of_type(value, types)) }
}

fn check_enum(constants: &[Value], value: &Value) -> Result<(), Mismatch> {
    if constants.iter().any(|constant| compare(constant, value).is_eq()) {
        return Ok(());
    }
    Err(Mismatch::of_constant(value, constants))
}

fn check_bound(bound: Bound, limit: &Number, number: &Number) -> Result<(), Mismatch> {
    let order = compare_numbers(number, limit);
    let (fits, words) = match bound {
        Bound::Minimum => (order != Ordering::Less, "at least"),
        Bound::Maximum => (order != Ordering::Greater, "at most"),
        Bound::ExclusiveMinimum => (order == Ordering::Greater, "more than"),
        Bound::ExclusiveMaximum => (order == Ordering::Less, "less than"),
    };
    if fits { Ok(()) } else { Err(Mismatch::other(format!("is {number}, expected {words} {limit}"))) }
}

fn check_multiple(step: &Number, number: &Number) -> Result<(), Mismatch> {
    let fits = match (whole(number), whole(step)) {
        (Some(number), Some(step)) => number % step == 0,
        _ => is_float_multiple(float(number), float(step)),
    };
    if fits { Ok(()) } else { Err(Mismatch::other(format!("is {number}, expected a multiple of {step}"))) }
}

/// Whether the quotient is whole, up to the rounding of decimals such as 0.1 to floats.
fn is_float_multiple(number: f64, step: f64) -> bool {
    let quotient = number / step;
    let error = (quotient - quotient.round()).abs();
    quotient.is_finite() && error <= 4.0 * f64::EPSILON * quotient.abs()
}

fn unknown_property(name: &str, known: &BTreeSet<String>) -> Mismatch {
    if known.is_empty() {
        return Mismatch::other("is not a known property; none is").in_property(name);
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    Mismatch::other(format!("is not a known property, expected {}", list(&known))).in_property(name)
}

fn counted(count: usize, noun: &str) -> String {
    match (count, noun) {
        (1, _) => format!("1 {noun}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {noun}s"),
    }
}
