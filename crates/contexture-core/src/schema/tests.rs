use std::cmp::Ordering;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::compare::compare;
use super::*;

/// Checks each value against the schema; an empty sentence means that it fits.
#[track_caller]
fn check(schema: Value, cases: &[(Value, &str)]) {
    let strict = Schema::new(&schema).unwrap();
    for (value, expected) in cases {
        let answer = strict.check(value).err().unwrap_or_default();
        assert_eq!(answer, *expected, "{value} against {schema}");
        let lenient = Schema::lenient(&schema).check(value).err().unwrap_or_default();
        assert_eq!(lenient, *expected, "{value} against {schema}, leniently");
    }
}

#[track_caller]
fn check_refused(schema: Value, expected: &str) {
    assert_eq!(Schema::new(&schema).err().as_deref(), Some(expected), "{schema}");
}

#[test]
fn types() {
    check(json!({"type": "string"}), &[(json!("a"), ""), (json!(1), "the value is a number, expected a string")]);
    check(
        json!({"type": ["integer", "null"]}),
        &[
            (json!(null), ""),
            (json!(-3), ""),
            (json!(3.0), ""),
            (json!(1e300), ""),
            (json!(3.5), "the value is 3.5, expected an integer or null"),
            (json!([]), "the value is an array, expected an integer or null"),
        ],
    );
    check(json!({"type": "number"}), &[(json!(3.5), ""), (json!(3), ""), (json!(u64::MAX), "")]);
    check(json!({"type": "boolean"}), &[(json!(false), ""), (json!({}), "the value is an object, expected a boolean")]);
}

#[test]
fn boolean_schemas() {
    check(json!(true), &[(json!(1), "")]);
    check(json!({}), &[(json!(1), "")]);
    check(json!(false), &[(json!(1), "the value is not allowed")]);
    check(json!({"properties": {"a": false}}), &[(json!({}), ""), (json!({"a": 1}), "`a` is not allowed")]);
}

#[test]
fn constants() {
    check(
        json!({"enum": ["a", 1, null, {"x": [1], "y": 2}]}),
        &[
            (json!("a"), ""),
            (json!(1.0), ""),
            (json!({"y": 2.0, "x": [1]}), ""),
            (json!("b"), "the value is \"b\", expected \"a\", 1, null or an object"),
            (json!({"y": 2}), "the value is an object, expected \"a\", 1, null or an object"),
        ],
    );
    check(json!({"const": 5}), &[(json!(5), ""), (json!("5"), "the value is \"5\", expected 5")]);
    check(json!({"const": []}), &[(json!([]), ""), (json!({}), "the value is {}, expected []")]);
    let long = "x".repeat(100);
    let shown = format!("the value is \"{}…\", expected 1", "x".repeat(60));
    check(json!({"const": 1}), &[(json!(long), &shown)]);
    check(
        json!({"enum": (0..20).collect::<Vec<_>>()}),
        &[(json!(20), "the value is 20, expected 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …")],
    );
}

#[test]
fn numbers() {
    check(
        json!({"minimum": 1, "maximum": 10}),
        &[
            (json!(1), ""),
            (json!(10.0), ""),
            (json!("x"), ""),
            (json!(0), "the value is 0, expected at least 1"),
            (json!(10.5), "the value is 10.5, expected at most 10"),
        ],
    );
    check(
        json!({"exclusiveMinimum": 1.5, "exclusiveMaximum": 3}),
        &[
            (json!(2), ""),
            (json!(1.5), "the value is 1.5, expected more than 1.5"),
            (json!(3.0), "the value is 3.0, expected less than 3"),
        ],
    );
    // Neither bound has an exact float.
    check(
        json!({"minimum": 9_007_199_254_740_993_u64}),
        &[
            (json!(9_007_199_254_740_993_u64), ""),
            (json!(9_007_199_254_740_992_u64), "the value is 9007199254740992, expected at least 9007199254740993"),
        ],
    );
    check(json!({"maximum": u64::MAX}), &[(json!(u64::MAX), ""), (json!(-1), "")]);
}

#[test]
fn multiples() {
    check(
        json!({"multipleOf": 3}),
        &[(json!(9), ""), (json!(-9.0), ""), (json!(0), ""), (json!(10), "the value is 10, expected a multiple of 3")],
    );
    check(
        json!({"multipleOf": 0.1}),
        &[(json!(0.3), ""), (json!(7), ""), (json!(0.35), "the value is 0.35, expected a multiple of 0.1")],
    );
    check(json!({"multipleOf": 1e-300}), &[(json!(1e300), "the value is 1e+300, expected a multiple of 1e-300")]);
}

#[test]
fn strings_are_measured_in_characters() {
    check(
        json!({"minLength": 2, "maxLength": 3}),
        &[
            (json!("日本"), ""),
            (json!(7), ""),
            (json!("é"), "the value has 1 character, expected at least 2"),
            (json!("abcd"), "the value has 4 characters, expected at most 3"),
        ],
    );
}

#[test]
fn arrays() {
    check(
        json!({"items": {"type": "string"}, "minItems": 1, "maxItems": 2}),
        &[
            (json!(["a"]), ""),
            (json!("a"), ""),
            (json!([]), "the value has 0 items, expected at least 1"),
            (json!(["a", "b", "c"]), "the value has 3 items, expected at most 2"),
            (json!(["a", 2]), "`[1]` is a number, expected a string"),
        ],
    );
    check(
        json!({"prefixItems": [{"type": "string"}, {"type": "number"}], "items": {"type": "null"}}),
        &[
            (json!(["a"]), ""),
            (json!(["a", 1, null]), ""),
            (json!(["a", "b"]), "`[1]` is a string, expected a number"),
            (json!(["a", 1, null, 2]), "`[3]` is a number, expected null"),
        ],
    );
    check(json!({"prefixItems": [true], "items": false}), &[(json!([1]), ""), (json!([1, 2]), "`[1]` is not allowed")]);
}

#[test]
fn unique_items() {
    check(
        json!({"uniqueItems": true}),
        &[
            (json!([1, "1", true, [1], {"a": 1}, null, 1.5]), ""),
            (json!([3, 1, 2, 1.0]), "`[3]` repeats item 1"),
            (json!([{"a": 1, "b": 2}, {"b": 2, "a": 1}]), "`[1]` repeats item 0"),
            (json!(["b", "a", "b", "a"]), "`[2]` repeats item 0"),
        ],
    );
    check(json!({"uniqueItems": false}), &[(json!([1, 1]), "")]);
}

#[test]
fn objects() {
    check(
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"],
               "additionalProperties": false}),
        &[
            (json!({"a": "x"}), ""),
            (json!({"a": "x", "b": null}), ""),
            (json!({"b": 1}), "`a` is missing"),
            (json!({"a": 1}), "`a` is a number, expected a string"),
            (json!({"a": "x", "c": 1}), "`c` is not a known property, expected `a` or `b`"),
        ],
    );
    check(
        json!({"additionalProperties": {"type": "integer"}}),
        &[(json!({"a": 1}), ""), (json!({"a": "x"}), "`a` is a string, expected an integer")],
    );
    check(json!({"additionalProperties": false}), &[(json!({"a": 1}), "`a` is not a known property; none is")]);
    check(
        json!({"minProperties": 1, "maxProperties": 2}),
        &[
            (json!({"a": 1}), ""),
            (json!({}), "the value has 0 properties, expected at least 1"),
            (json!({"a": 1, "b": 1, "c": 1}), "the value has 3 properties, expected at most 2"),
        ],
    );
}

#[test]
fn places_are_named_from_the_root() {
    let leaf = json!({"items": {"additionalProperties": {"type": "string"}}});
    check(
        json!({"properties": {"items": leaf, "my name": leaf}}),
        &[
            (json!({"items": [{}, {}, {"name": 1}]}), "`items[2].name` is a number, expected a string"),
            (json!({"items": [{"a b": 1}]}), "`items[0][\"a b\"]` is a number, expected a string"),
            (json!({"my name": [{"x": 1}]}), "`[\"my name\"][0].x` is a number, expected a string"),
            (json!({"items": [{"": 1}]}), "`items[0][\"\"]` is a number, expected a string"),
        ],
    );
}

#[test]
fn alternatives_that_only_differ_in_what_they_expect_are_listed() {
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        &[(json!("a"), ""), (json!(null), ""), (json!(1), "the value is a number, expected a string or null")],
    );
    check(
        json!({"oneOf": [{"const": "red", "description": "Danger."}, {"const": "green"}]}),
        &[(json!("red"), ""), (json!("blue"), "the value is \"blue\", expected \"red\" or \"green\"")],
    );
}

#[test]
fn the_nearest_alternative_is_the_one_with_the_right_tag() {
    let shape = |tag: &str, field: &str| {
        json!({"type": "object", "properties": {"kind": {"const": tag}, field: {"type": "number"}},
               "required": ["kind", field]})
    };
    check(
        json!({"properties": {"shape": {"oneOf": [shape("circle", "radius"), shape("square", "width")]}}}),
        &[
            (json!({"shape": {"kind": "square", "width": 2}}), ""),
            (json!({"shape": {"kind": "square"}}), "`shape.width` is missing (the nearest of 2 alternatives)"),
            (
                json!({"shape": {"kind": "square", "width": "2"}}),
                "`shape.width` is a string, expected a number (the nearest of 2 alternatives)",
            ),
            (json!({"shape": 3}), "`shape` is a number, expected an object"),
        ],
    );
}

#[test]
fn combinations() {
    check(
        json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}),
        &[(json!(2), ""), (json!(4), "the value is 4, expected at most 3")],
    );
    check(
        json!({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"const": 1}]}),
        &[
            (json!(4), ""),
            (json!(6), "the value fits alternatives 1 and 2, expected exactly one to fit"),
            (json!(7), "the value is 7, expected a multiple of 2 (the nearest of 3 alternatives)"),
        ],
    );
    check(
        json!({"not": {"type": "string"}}),
        &[(json!(1), ""), (json!("no"), "the value is \"no\", which is ruled out")],
    );
}

#[test]
fn references() {
    check(
        json!({"$ref": "#/$defs/node", "$defs": {"node": {
            "type": "object",
            "properties": {"value": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["value"],
        }}}),
        &[
            (json!({"value": 1, "next": {"value": 2, "next": null}}), ""),
            (json!({"value": 1, "next": {"next": null}}), "`next.value` is missing (the nearest of 2 alternatives)"),
        ],
    );
    check(
        json!({"properties": {"a": {"$ref": "#/definitions/odd~1name%20%7E0"}}, "definitions": {"odd/name ~": {"type": "null"}}}),
        &[(json!({"a": 1}), "`a` is a number, expected null")],
    );
    check(
        json!({"properties": {"children": {"items": {"$ref": "#"}}}, "additionalProperties": false}),
        &[
            (json!({"children": [{"children": []}]}), ""),
            (json!({"children": [{"x": 1}]}), "`children[0].x` is not a known property, expected `children`"),
        ],
    );
    check(
        json!({"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a", "maxLength": 1}}}),
        &[(json!({"b": "x"}), ""), (json!({"b": "xy"}), "`b` has 2 characters, expected at most 1")],
    );
}

#[test]
fn annotations_assert_nothing() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x", "$comment": "c", "title": "t",
        "description": "d", "default": 1, "examples": [1], "deprecated": true, "readOnly": true, "writeOnly": true,
        "format": "email", "x-order": 3,
    });
    check(schema, &[(json!("not an address"), "")]);
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    check_refused(json!(3), "`#` is 3, expected a schema");
    check_refused(json!({"properties": {"a/b": []}}), "`#/properties/a~1b` is [], expected a schema");
    check_refused(json!({"properties": [1]}), "`#/properties` is an array, expected an object of schemas");
    check_refused(
        json!({"type": "strin"}),
        "`#/type` is \"strin\", expected the name of a type, or an array of such names",
    );
    check_refused(json!({"type": []}), "`#/type` is [], expected the name of a type, or an array of such names");
    check_refused(json!({"items": {"minimum": "1"}}), "`#/items/minimum` is \"1\", expected a number");
    check_refused(json!({"minLength": -1}), "`#/minLength` is -1, expected a whole number, not negative");
    check_refused(json!({"maxItems": 1.5}), "`#/maxItems` is 1.5, expected a whole number, not negative");
    check_refused(json!({"multipleOf": 0}), "`#/multipleOf` is 0, expected a number above 0");
    check_refused(json!({"required": "a"}), "`#/required` is \"a\", expected an array of strings");
    check_refused(json!({"required": [1]}), "`#/required` is an array, expected an array of strings");
    check_refused(json!({"enum": []}), "`#/enum` is [], expected an array of values, not empty");
    check_refused(json!({"anyOf": []}), "`#/anyOf` is [], expected an array of schemas, not empty");
    check_refused(json!({"anyOf": [true, 1]}), "`#/anyOf/1` is 1, expected a schema");
    check_refused(json!({"items": [true]}), "`#/items` is an array, expected a schema");
    check_refused(json!({"uniqueItems": "yes"}), "`#/uniqueItems` is \"yes\", expected a boolean");
    check_refused(json!({"exclusiveMinimum": true}), "`#/exclusiveMinimum` is true, expected a number");
    check_refused(
        json!({"$defs": {"a": {"type": 1}}}),
        "`#/$defs/a/type` is 1, expected the name of a type, or an array of such names",
    );
}

#[test]
fn references_that_lead_nowhere_are_refused() {
    check_refused(
        json!({"items": {"$ref": "#/$defs/a"}}),
        "`#/items/$ref` points to `#/$defs/a`, where this schema holds no schema",
    );
    check_refused(json!({"$ref": 1}), "`#/$ref` is 1, expected a string");
    check_refused(
        json!({"$ref": "https://example.org/a.json"}),
        "`#/$ref` points outside of the schema, to \"https://example.org/a.json\"",
    );
    check_refused(json!({"$ref": "#/a%zz"}), "`#/$ref` is \"#/a%zz\", expected a place within the schema");
    check_refused(json!({"$ref": "#"}), "`#` refers to itself without end");
    check_refused(
        json!({"$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        "`#/$defs/a` refers to itself without end",
    );
}

#[test]
fn assertions_that_cannot_be_checked_are_refused() {
    for keyword in ["pattern", "patternProperties", "if", "contains", "dependentSchemas", "unevaluatedProperties"] {
        let expected = format!("`#/items/{keyword}` asserts something that cannot be checked here");
        check_refused(json!({"items": {keyword: {}}}), &expected);
    }
    check_refused(
        json!({"requierd": ["a"]}),
        "`#/requierd` is not a known keyword; an annotation of your own begins with `x-`",
    );
}

#[test]
fn lenient_schemas_let_pass_what_they_do_not_understand() {
    let cases = [
        (json!(3), json!(1)),
        (json!({"pattern": "^a$"}), json!("b")),
        (json!({"type": "strin"}), json!(1)),
        (json!({"$ref": "#/nowhere"}), json!(1)),
        (json!({"not": {"pattern": "^a$"}}), json!("b")),
        (json!({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}), json!("a")),
        (json!({"patternProperties": {"^x": {}}, "additionalProperties": false}), json!({"xy": 1})),
    ];
    for (schema, value) in cases {
        assert_eq!(Schema::lenient(&schema).check(&value), Ok(()), "{value} against {schema}");
    }
    let partly = Schema::lenient(&json!({"pattern": "^a$", "type": "string"}));
    assert_eq!(partly.check(&json!(1)), Err("the value is a number, expected a string".into()));
}

#[test]
fn derived_schemas_are_read_in_full() {
    #[derive(schemars::JsonSchema)]
    #[allow(dead_code)]
    enum Shape {
        Empty,
        Circle { radius: f32 },
        Named(String, Option<Box<Shape>>),
    }
    let schema = schemars::schema_for!(Vec<Shape>).to_value();
    check(
        schema,
        &[
            (json!(["Empty", {"Circle": {"radius": 1.5}}, {"Named": ["x", {"Named": ["y", null]}]}]), ""),
            (
                json!([{"Circle": {"radius": "1"}}]),
                "`[0].Circle.radius` is a string, expected a number (the nearest of 3 alternatives)",
            ),
        ],
    );
}

/// An array of an array of …, so many times.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn depth_is_bounded() {
    let list = json!({"items": {"$ref": "#"}});
    let deepest = format!("checking the value goes more than {MAX_CHECK_DEPTH} schemas deep");
    check(list.clone(), &[(nested(MAX_VALUE_DEPTH), "")]);
    check(list, &[(nested(MAX_VALUE_DEPTH + 1), &format!("the value is nested more than {MAX_VALUE_DEPTH} deep"))]);
    check(json!({"items": {"allOf": [{"allOf": [{"$ref": "#"}]}]}}), &[(nested(MAX_VALUE_DEPTH), &deepest)]);
    // Only lenient reading lets a circle through.
    assert_eq!(Schema::lenient(&json!({"$ref": "#"})).check(&json!(1)), Err(deepest));

    let schema = (0..=MAX_SCHEMA_DEPTH).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(Schema::new(&schema).unwrap_err().ends_with("/not` is nested more than 64 deep"));
    assert!(Schema::new(&json!({"const": nested(MAX_VALUE_DEPTH + 1)})).is_err());
}

#[test]
fn work_is_bounded() {
    let too_much = format!("checking the value takes more than {MAX_CHECK_STEPS} steps");
    // Each alternative tries the next level twice: 2^40 in all.
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        definitions.insert(level.to_string(), json!({"anyOf": [next, next]}));
    }
    definitions.insert("40".into(), json!({"type": "string"}));
    check(json!({"$ref": "#/$defs/0", "$defs": definitions}), &[(json!(1), &too_much)]);

    // The same array is looked through a thousand times.
    let unique = vec![json!({"uniqueItems": true}); 1000];
    check(json!({"allOf": unique}), &[(json!((0..10_000).collect::<Vec<_>>()), &too_much)]);

    let wide = json!({"allOf": vec![true; MAX_SCHEMA_PARTS]});
    assert!(Schema::new(&wide).unwrap_err().contains("one schema too many"));
    assert_eq!(Schema::lenient(&wide).check(&json!(1)), Ok(()));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..4_i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::sample::select(vec!["", "a", "b", "日本", "string", "#", "#/$defs/a"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Objects with keywords as names, many of them real schemas and many not.
fn any_schema() -> impl Strategy<Value = Value> {
    const KEYWORDS: [&str; 28] = [
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
        "multipleOf",
        "minLength",
        "maxLength",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "$defs",
        "title",
        "pattern",
        "if",
    ];
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let leaf = prop_oneof![
        3 => prop::sample::select(types.to_vec()).prop_map(|name| json!({"type": name})),
        1 => prop::sample::select(vec!["#", "#/$defs/a", "#/properties/a", "#/x"]).prop_map(|place| json!({"$ref": place})),
        1 => any::<bool>().prop_map(Value::from),
        2 => (0..4_u64).prop_map(|n| json!({"minimum": n, "minLength": n, "maxItems": n})),
        1 => any_value().prop_map(|value| json!({"const": value})),
    ];
    leaf.prop_recursive(5, 32, 4, |inner| {
        let map = prop::collection::btree_map("[abc]", inner.clone(), 0..3);
        let list = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            4 => map.prop_map(|map| json!({"properties": map, "required": map.keys().take(1).collect::<Vec<_>>()})),
            4 => (prop::sample::select(vec!["anyOf", "allOf", "oneOf", "prefixItems"]), list)
                .prop_map(|(keyword, list)| json!({keyword: list})),
            4 => (prop::sample::select(vec!["items", "not", "additionalProperties"]), inner.clone())
                .prop_map(|(keyword, schema)| json!({keyword: schema})),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({"$defs": {"a": a}, "items": b})),
            2 => (prop::sample::select(KEYWORDS.to_vec()), prop_oneof![inner, any_value()])
                .prop_map(|(keyword, value)| json!({keyword: value})),
        ]
    })
}

proptest! {
    #[test]
    fn any_schema_and_any_value_are_judged(schema in any_schema(), value in any_value()) {
        let lenient = Schema::lenient(&schema).check(&value);
        if let Ok(strict) = Schema::new(&schema) {
            prop_assert_eq!(strict.check(&value), lenient);
        }
    }

    #[test]
    fn what_is_no_schema_at_all_is_judged_too(schema in any_value(), value in any_value()) {
        _ = Schema::new(&schema).map(|schema| schema.check(&value));
        _ = Schema::lenient(&schema).check(&value);
    }

    #[test]
    fn a_value_fits_either_a_schema_or_its_negation(schema in any_schema(), value in any_value()) {
        // Within a negation, `#` is another schema.
        prop_assume!(!schema.to_string().contains("$ref"));
        if let (Ok(plain), Ok(negated)) = (Schema::new(&schema), Schema::new(&json!({"not": schema}))) {
            prop_assert!(plain.check(&value).is_ok() != negated.check(&value).is_ok());
        }
    }

    #[test]
    fn a_value_fits_itself_as_a_constant(value in any_value()) {
        prop_assert_eq!(Schema::new(&json!({"const": value})).unwrap().check(&value), Ok(()));
    }

    #[test]
    fn values_are_ordered(a in any_value(), b in any_value(), c in any_value()) {
        prop_assert_eq!(compare(&a, &a), Ordering::Equal);
        prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        let mut values = [&a, &b, &c];
        values.sort_by(|a, b| compare(a, b));
        prop_assert!(compare(values[0], values[2]).is_le());
    }
}
