//! Invalid specs are errors when the engine is built, with a message that names layer and field.

use std::sync::Arc;
use std::time::Duration;

use contexture_core::engine::EngineBuilder;
use contexture_core::layer::*;
use contexture_core::memory;
use contexture_core::testing::engine;
use contexture_core::window::ProjectionPolicy;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as ValueError, F64Deserializer, MapDeserializer};
use serde_json::{Value, json};

use crate::kit::spec;

fn one(spec: LayerSpec) -> EngineBuilder<(ClosureLayer<()>,)> {
    engine(memory((layer(spec).build(),)))
}

#[track_caller]
fn refused<Ls>(builder: EngineBuilder<Ls>, expected: &str) {
    match builder.build() {
        Ok(_) => panic!("it must be refused: {expected}"),
        Err(error) => assert_eq!(error.to_string(), expected),
    }
}

#[test]
fn ids_are_unique_and_not_empty() {
    refused(one(spec("", 1)), "layer ``: `id` is empty");
    refused(one(spec(" \t\n", 1)), "layer ` \t\n`: `id` is empty");
    let twins = memory((layer::<()>(spec("twin", 1)).build(), layer::<u32>(spec("twin", 2)).build()));
    refused(engine(twins), "layer `twin`: `id` is used by another layer too");
}

#[test]
fn odd_ids_are_fine() {
    for id in ["a/b", "%", "\0", "🦀", "..", &"x".repeat(10_000)] {
        assert!(one(spec(id, 1)).build().is_ok(), "{id}");
    }
}

#[test]
fn budgets_make_sense() {
    refused(
        one(spec("facts", 1).with_budget(BudgetConfig::range(10, 9))),
        "layer `facts`: `budget.min` is above `budget.max` (10 > 9)",
    );
    refused(
        one(spec("facts", 1).with_budget(u64::MAX)),
        "layer `facts`: `budget.max` is above 1099511627776 (18446744073709551615)",
    );
    refused(
        one(spec("facts", 1).with_budget(BudgetConfig::range(0, (1 << 40) + 1))),
        "layer `facts`: `budget.max` is above 1099511627776 (1099511627777)",
    );
    for fine in [BudgetConfig::Cap(0), BudgetConfig::Cap(1 << 40), BudgetConfig::range(7, 7), BudgetConfig::Auto] {
        assert!(one(spec("facts", 1).with_budget(fine)).build().is_ok(), "{fine:?}");
    }
}

#[test]
fn timeouts_are_not_zero() {
    let zero = Some(Duration::ZERO);
    let cases = [
        (LayerTimeouts { init: zero, ..Default::default() }, "init"),
        (LayerTimeouts { on_item_append: zero, ..Default::default() }, "on_item_append"),
        (LayerTimeouts { recall: zero, ..Default::default() }, "recall"),
        (LayerTimeouts { project_history: zero, ..Default::default() }, "project_history"),
        (LayerTimeouts { before_tool_call: zero, ..Default::default() }, "before_tool_call"),
        (LayerTimeouts { after_model_call: zero, ..Default::default() }, "after_model_call"),
        (LayerTimeouts { store: zero, ..Default::default() }, "store"),
        (LayerTimeouts { on_spawn: zero, ..Default::default() }, "on_spawn"),
        (LayerTimeouts { on_return: zero, ..Default::default() }, "on_return"),
        (LayerTimeouts { on_complete: zero, ..Default::default() }, "on_complete"),
        (LayerTimeouts { dispose: zero, ..Default::default() }, "dispose"),
    ];
    for (timeouts, hook) in cases {
        refused(one(spec("slow", 1).with_timeouts(timeouts)), &format!("layer `slow`: `timeouts.{hook}` is zero"));
    }
}

fn idle() -> LayerFunctionDecl<()> {
    layer_fn("Idles.", |_: Value, _: Arc<()>, _| async { Ok(FnResult::new(())) })
}

fn with_schemas(input: Value, output: Value) -> LayerFunctionDecl<()> {
    layer_fn_with_schema("Idles.", input, output, |_, _, _| async { Ok(FnResult::new(json!(null))) })
}

fn providing(provides: LayerProvides<()>) -> EngineBuilder<(ClosureLayer<()>,)> {
    engine(memory((layer(spec("facts", 1)).provides(provides).build(),)))
}

#[test]
fn what_a_layer_provides_has_names_of_its_own_and_real_schemas() {
    let provides = LayerProvides::new;
    refused(
        providing(provides().function("a", idle()).function("a", idle())),
        "layer `facts`: `provides.a` is declared twice",
    );
    let data = || layer_data(|(): &()| 1);
    refused(
        providing(provides().data("a", data()).function("a", idle())),
        "layer `facts`: `provides.a` is declared twice",
    );
    refused(providing(provides().function("", idle())), "layer `facts`: `provides` has an entry without a name");
    refused(
        providing(provides().function("f", with_schemas(json!({ "type": "objekt" }), json!(true)))),
        "layer `facts`: `provides.f.input` is not a schema: `#/type` is \"objekt\", \
         expected the name of a type, or an array of such names",
    );
    refused(
        providing(provides().function("f", with_schemas(json!(true), json!(7)))),
        "layer `facts`: `provides.f.output` is not a schema: `#` is 7, expected a schema",
    );
}

#[test]
fn item_schemas_are_schemas_and_named_once() {
    let noted = |schema: Value| spec("facts", 1).with_item_schema("note", schema);
    refused(
        one(noted(json!("text"))),
        "layer `facts`: `item_schemas.note` is not a schema: `#` is \"text\", expected a schema",
    );
    refused(
        one(noted(json!(true)).with_item_schema("note", json!(true))),
        "layer `facts`: `item_schemas` names `note` twice",
    );
    let engine = one(noted(json!({ "type": "object" }))).build().unwrap();
    let schemas = engine.item_schemas();
    assert_eq!((schemas[0].0.as_str(), schemas[0].1.item_type.as_str()), ("facts", "note"));
}

#[test]
fn names_on_the_wire_have_a_limit() {
    let named = |len: usize| {
        let provides = LayerProvides::new().function("f", idle());
        engine(memory((layer(spec(&"x".repeat(len), 1)).provides(provides).build(),)))
    };
    assert!(named(61).build().is_ok());
    let x = "x".repeat(62);
    refused(named(62), &format!("layer `{x}`: `name` makes `{x}__f` on the wire, which is longer than 64 characters"));
}

#[test]
fn policies_and_options_make_sense() {
    let with = |policy: ProjectionPolicy| engine(memory(())).policy(policy);
    let policy = || ProjectionPolicy::new(1000);
    refused(with(ProjectionPolicy::new(0)), "projection policy: `token_budget` is zero");
    refused(
        with(ProjectionPolicy::new(u64::MAX)),
        "projection policy: `token_budget` is above 1099511627776 (18446744073709551615)",
    );
    refused(
        with(ProjectionPolicy { response_reserve: 1000, ..policy() }),
        "projection policy: `response_reserve` leaves nothing of `token_budget` (1000 of 1000)",
    );
    refused(with(ProjectionPolicy { window_size: Some(0), ..policy() }), "projection policy: `window_size` is zero");
    refused(engine(memory(())).max_steps(0), "engine: `max_steps` is zero");
}

#[track_caller]
fn check_json(json: Value, expected: Result<BudgetConfig, &str>) {
    let read: Result<BudgetConfig, _> = serde_json::from_value(json.clone());
    assert_eq!(read.map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{json}");
}

#[test]
fn budgets_from_configuration_files_are_read_or_refused_by_field() {
    check_json(json!(1500), Ok(BudgetConfig::Cap(1500)));
    check_json(json!(1500.9), Ok(BudgetConfig::Cap(1500)));
    check_json(json!({ "min": 200, "max": 1000 }), Ok(BudgetConfig::range(200, 1000)));
    check_json(json!("auto"), Ok(BudgetConfig::Auto));
    check_json(json!(-1), Err("`budget` is negative (-1)"));
    check_json(json!(1e300), Err(&format!("`budget` is above 1099511627776 (1{})", "0".repeat(300))));
    check_json(json!({ "min": -200, "max": 1000 }), Err("`budget.min` is negative (-200)"));
    check_json(json!({ "min": 0, "max": -0.5 }), Err("`budget.max` is negative (-0.5)"));
    check_json(json!("much"), Err("`budget` is `much`; the only word it takes is `auto`"));
    for shapeless in [json!(null), json!([1, 2]), json!({ "max": 1 }), json!(true)] {
        check_json(shapeless, Err("`budget` is neither a number, nor `{ min, max }`, nor \"auto\""));
    }
}

/// JSON has no NaN, other formats do.
#[test]
fn budgets_that_are_not_numbers_are_refused() {
    let number = |number: f64| -> F64Deserializer<ValueError> { number.into_deserializer() };
    let read = |value: f64| BudgetConfig::deserialize(number(value)).map_err(|error| error.to_string());
    assert_eq!(read(f64::NAN), Err("`budget` is not a number".to_owned()));
    assert_eq!(read(f64::INFINITY), Err("`budget` is above 1099511627776 (inf)".to_owned()));
    let range = MapDeserializer::<_, ValueError>::new([("min", f64::NAN), ("max", 1.0)].into_iter());
    assert_eq!(BudgetConfig::deserialize(range).unwrap_err().to_string(), "`budget.min` is not a number");
    let policy = MapDeserializer::<_, ValueError>::new([("token_budget", f64::NAN)].into_iter());
    assert_eq!(ProjectionPolicy::deserialize(policy).unwrap_err().to_string(), "`token_budget` is not a number");
    let policy: Result<ProjectionPolicy, _> = serde_json::from_value(json!({ "response_reserve": -5 }));
    assert_eq!(policy.unwrap_err().to_string(), "`response_reserve` is negative (-5)");
}

#[test]
fn a_budget_is_written_as_it_is_read() {
    for budget in [BudgetConfig::Cap(7), BudgetConfig::range(1, 2), BudgetConfig::Auto] {
        let written = serde_json::to_value(budget).unwrap();
        assert_eq!(serde_json::from_value::<BudgetConfig>(written).unwrap(), budget);
    }
}
