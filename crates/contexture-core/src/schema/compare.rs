//! An order of JSON values in which equal means equal to JSON Schema: 1 equals 1.0, and the order of an object's
//! properties does not matter.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first_difference = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
            first_difference.unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_objects(a: &Map<String, Value>, b: &Map<String, Value>) -> Ordering {
    // Sorted here because the map may keep the order of insertion, depending on a feature of `serde_json` that
    // any crate of the build can switch on.
    let sorted = |map: &Map<String, Value>| {
        let mut names: Vec<String> = map.keys().cloned().collect();
        names.sort_unstable();
        names
    };
    let names = match a.len().cmp(&b.len()) {
        Ordering::Equal => sorted(a),
        unequal => return unequal,
    };
    let values = || names.iter().map(|name| compare(&a[name], &b[name])).find(|order| order.is_ne());
    names.cmp(&sorted(b)).then_with(|| values().unwrap_or(Ordering::Equal))
}

/// Compares by value, exactly, also where an integer has no exact float.
pub(super) fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        // At least one has a fraction, and is then below 2^53, or is beyond any integer. Rounding the other to a
        // float cannot change on which side of it it lies.
        _ => float(a).total_cmp(&float(b)),
    }
}

/// The number as an integer, if it is one and not beyond 2^100.
pub(super) fn whole(number: &Number) -> Option<i128> {
    const LIMIT: f64 = (1_u128 << 100) as f64;
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < LIMIT).then_some(float as i128)
}

pub(super) fn float(number: &Number) -> f64 {
    number.as_f64().expect("without arbitrary precision every number has a float")
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}
