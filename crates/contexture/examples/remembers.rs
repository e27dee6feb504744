//! An agent that remembers a person across two runs of the program.
//!
//! `cargo run -p contexture --example remembers`

use std::path::Path;

use contexture::facts::{Extraction, Remembered};
use contexture::layers::{Entity, Observations};
use contexture::prelude::*;
use contexture::store::SqliteStore;
use contexture::testing::ScriptedModel;
use serde_json::json;

/// One run: opens the store, talks, and ends. `model` is asked by the agent, `reader` by the layer that learns.
async fn run(
    store: &Path,
    thread: &str,
    said: &[&str],
    model: &ScriptedModel,
    reader: &ScriptedModel,
) -> Result<(), BoxError> {
    // `entity` has only its functions; `observations` also reads the conversation, with a small model of its own.
    let reading = Extraction::by("small-model").with_end_tokens(40).with_daily_tokens(50_000);
    let layers = memory((Entity::new(), Observations::new().with_extraction(reading)));
    let engine = contexture::open(store, layers)?.model(model.clone()).layer_model(reader.clone()).build()?;
    let mut execution = engine.execution(thread).resource("ada").start().await?;
    for text in said {
        println!("ada:   {text}");
        println!("agent: {}", execution.turn(*text).await?.text());
    }
    Ok(execution.complete().await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let directory = std::env::temp_dir().join(format!("contexture-remembers-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let store = directory.join("agent.db");

    println!("-- Monday");
    let said = ["I am Ada, and I live in Lisbon.", "We chose SQLite for the app, since one machine is enough."];
    // Stands in for a model: it remembers what it is told, with the words that say so.
    let fact = json!({
        "text": "Ada lives in Lisbon.", "entity": "user", "attribute": "lives in", "value": "Lisbon",
        "quote": "I live in Lisbon",
    });
    let model =
        ScriptedModel::new().calls("entity/remember", fact.to_string()).says("Hello, Ada!").says("A good choice.");
    let note = json!({ "facts": [{
        "text": "We chose SQLite for the app, since one machine is enough.", "entity": "project",
        "quote": "We chose SQLite for the app",
    }] });
    let reader = ScriptedModel::new().says(note.to_string());
    run(&store, "monday", &said, &model, &reader).await?;

    println!("-- Friday, another conversation in another process");
    let model = ScriptedModel::new().says("You live in Lisbon, and the app uses SQLite.");
    run(&store, "friday", &["Where do I live, and which database do we use?"], &model, &ScriptedModel::new()).await?;
    println!("-- the model was shown:");
    for text in model.requests()[0].items.iter().filter_map(|item| Some(item.as_message()?.text())) {
        println!("{text}");
    }

    println!("-- what is kept:");
    let remembered = Remembered::new(std::sync::Arc::new(SqliteStore::open(&store)?));
    for place in remembered.places().await? {
        for fact in remembered.load(&place).await?.iter().flat_map(|facts| facts.current()) {
            println!("{} in {}: {} (said by {})", place.layer, place.scope_key(), fact.text, fact.said_by.as_str());
        }
    }
    Ok(std::fs::remove_dir_all(directory)?)
}
