//! Two engines, as on two machines, that share states, eventual recalls and a search index.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::engine::Execution;
use contexture::prelude::*;
use contexture::search::SearchDocument;
use contexture::testing::ScriptedModel;
use serde_json::{Value, json};

use crate::server::Server;

/// Shows its state, which a function sets.
fn notes(name: &'static str, mode: RecallMode) -> ClosureLayer<String> {
    let tell = layer_fn_with_schema(
        "Takes a note.",
        json!({ "type": "string" }),
        json!(true),
        |note: Value, _: Arc<String>, _| async move {
            Ok(FnResult::new(json!("taken")).with_state(note.as_str().unwrap_or_default().to_owned()))
        },
    );
    let spec = LayerSpec::new(name, Slot::ENTITY, MemoryScope::Resource);
    layer::<String>(spec.with_recall_mode(mode).with_placement(Placement::Live))
        .recall(|params| async move { Ok((!params.state.is_empty()).then(|| (*params.state).clone()).into()) })
        .provides(LayerProvides::new().function("tell", tell))
        .build()
}

/// Finds what was remembered under the scope `shared`; a function remembers.
fn finds() -> ClosureLayer<u32> {
    let remember = layer_fn_with_schema(
        "Remembers a text.",
        json!({ "type": "string" }),
        json!(true),
        |text: Value, _: Arc<u32>, ctx: ExecutionContext| async move {
            let text = text.as_str().unwrap_or_default();
            ctx.search.add("shared", vec![SearchDocument::new(text, text)]).await?;
            Ok(FnResult::new(json!("remembered")))
        },
    );
    layer::<u32>(LayerSpec::new("finds", Slot::ENTITY, MemoryScope::Resource).with_placement(Placement::Live))
        .recall(|params| async move {
            let hits = params.ctx.search.search("shared", &params.query, 3).await?;
            let texts: Vec<String> = hits.into_iter().map(|hit| hit.document.text).collect();
            Ok((!texts.is_empty()).then(|| texts.join("; ")).into())
        })
        .provides(LayerProvides::new().function("remember", remember))
        .build()
}

type Layers = (ClosureLayer<String>, ClosureLayer<String>, ClosureLayer<u32>);

struct Machine {
    execution: Execution<Layers>,
    model: ScriptedModel,
}

impl Machine {
    async fn start(url: &str, thread: &str) -> Self {
        let model = ScriptedModel::new();
        let layers = memory((notes("now", RecallMode::Atomic), notes("soon", RecallMode::Eventual), finds()));
        let engine = contexture::open(url, layers).unwrap().model(model.clone()).build().unwrap();
        Self { execution: engine.execution(thread).resource("ann").start().await.unwrap(), model }
    }

    /// Takes a turn and returns what the model was shown of each layer.
    async fn turn(&mut self, text: &str) -> String {
        self.execution.turn(text).await.unwrap();
        let shown = self.model.last_texts().into_iter().filter(|text| text.starts_with("<memory"));
        shown.collect::<Vec<_>>().join("\n")
    }

    async fn call(&self, function: &str, argument: &str) {
        let called = self.execution.memory().call_json(function, json!(argument)).await.unwrap();
        assert!(called.durable);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_machine_changes_is_seen_at_the_next_turn() {
    let Some(server) = Server::start() else { return };
    let url = server.url(&server.make_database());
    // Both stay open: neither reads its states again because a thread is opened.
    let mut machines = [Machine::start(&url, "one").await, Machine::start(&url, "two").await];
    for machine in &mut machines {
        assert_eq!(machine.turn("hello").await, "");
    }
    for (round, (from, to)) in [(0, 1), (1, 0), (0, 1)].into_iter().enumerate() {
        let said = format!("note{round}");
        machines[from].call("now/tell", &said).await;
        machines[from].call("soon/tell", &said).await;
        machines[from].call("finds/remember", &format!("kettle {said}")).await;
        let shown = machines[to].turn("what of the kettle?").await;
        assert!(shown.contains(&format!("<memory layer=\"now\">\n{said}\n</memory>")), "{shown}");
        assert!(shown.contains(&format!("kettle {said}")), "{shown}");
        // Eventual: soon after the turn that noticed it.
        let begun = Instant::now();
        while !machines[to].turn("and now?").await.contains(&format!("<memory layer=\"soon\">\n{said}\n</memory>")) {
            assert!(begun.elapsed() < Duration::from_secs(20), "`{said}` is not shown");
        }
    }
}
