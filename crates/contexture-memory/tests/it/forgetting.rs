//! What is forgotten is gone everywhere: from facts, from the search over past conversations, and from episodes. Secrets
//! never get there.

use std::sync::Arc;

use contexture_core::engine::Execution;
use contexture_core::memory::memory;
use contexture_core::search::SearchIndex;
use contexture_core::testing::{ScriptedModel, engine};
use contexture_core::{MemoryStore, StorageAdapter};
use contexture_memory::facts::Forget;
use contexture_memory::layers::{Entity, Episodic, SemanticRecall};
use contexture_text::search::MemoryIndex;
use serde_json::json;

use crate::wait;

type Layers = (Entity, Episodic, SemanticRecall);

struct Rig {
    store: Arc<dyn StorageAdapter>,
    index: Arc<dyn SearchIndex>,
}

impl Rig {
    fn new() -> Self {
        Self { store: Arc::new(MemoryStore::new()), index: Arc::new(MemoryIndex::new()) }
    }

    async fn start(&self, thread: &str, model: &ScriptedModel) -> Execution<Layers> {
        let layers = memory((Entity::new(), Episodic::new(), SemanticRecall::new()));
        let builder = engine(layers).store(self.store.clone()).search(self.index.clone()).model(model.clone());
        builder.build().unwrap().execution(thread).resource("ada").start().await.unwrap()
    }

    /// Everything that the store and the index have, as text.
    async fn kept(&self, query: &str) -> String {
        let mut text = String::new();
        for key in self.store.list("layers/").await.unwrap() {
            let record = self.store.get(&key).await.unwrap().unwrap();
            text.push_str(&String::from_utf8(record.value).unwrap());
        }
        for hit in self.index.search("semantic-recall/resource:ada", query, 100).await.unwrap() {
            text.push_str(&hit.document.text);
        }
        text
    }
}

#[test]
fn a_forgotten_fact_leaves_the_search_and_the_episodes_too() {
    wait(async {
        let rig = Rig::new();
        let fact = json!({ "text": "Ada's locker has the number 4711.", "entity": "user", "quote": "number 4711" });
        let model = ScriptedModel::new().calls("entity/remember", fact.to_string()).says("Noted.");
        let mut first = rig.start("one", &model).await;
        first.turn("My locker in the cellar has the number 4711.").await.unwrap();
        first.complete().await.unwrap();
        let question = "What is the number of my locker in the cellar?";
        let model = ScriptedModel::new();
        let mut second = rig.start("two", &model).await;
        second.turn(question).await.unwrap();
        assert!(model.last_texts().join("\n").contains("4711"), "{:?}", model.last_texts());
        let id = second.memory().read(Entity::FACTS).unwrap()[0].id.to_string();
        second.memory().call(Entity::FORGET, Forget { id }).await.unwrap();
        second.complete().await.unwrap();
        let model = ScriptedModel::new();
        let mut third = rig.start("three", &model).await;
        third.turn(question).await.unwrap();
        third.complete().await.unwrap();
        assert!(!model.last_texts().join("\n").contains("4711"), "{:?}", model.last_texts());
        let kept = rig.kept("locker number 4711 cellar").await;
        assert!(!kept.contains("4711"), "{kept}");
    });
}

/// The agent says again what it was told: in its answer, in other words of the same, and while it forgets.
#[test]
fn what_the_agent_repeated_is_forgotten_too() {
    wait(async {
        let rig = Rig::new();
        let fact = json!({ "text": "The locker in the cellar has the number 4711.", "entity": "user", "value": "4711",
            "quote": "My locker in the cellar has the number 4711" });
        let model = ScriptedModel::new()
            .calls("entity/remember", fact.to_string())
            .says("Noted: the number of your locker in the cellar is 4711. Anything else?");
        let mut first = rig.start("one", &model).await;
        first.turn("My locker in the cellar has the number 4711.").await.unwrap();
        let id = first.memory().read(Entity::FACTS).unwrap()[0].id.to_string();
        first.complete().await.unwrap();
        let model = ScriptedModel::new()
            .calls("entity/forget", json!({ "id": id }).to_string())
            .says("I have forgotten that your locker in the cellar has the number 4711.");
        let mut second = rig.start("two", &model).await;
        second.turn("Forget that my cellar locker has the number 4711, please.").await.unwrap();
        second.complete().await.unwrap();
        let model = ScriptedModel::new();
        let mut third = rig.start("three", &model).await;
        third.turn("What is the number of my locker in the cellar?").await.unwrap();
        assert!(!model.last_texts().join("\n").contains("4711"), "{:?}", model.last_texts());
        let mut kept = String::new();
        for hit in rig.index.search("semantic-recall/resource:ada", "locker number 4711 cellar", 100).await.unwrap() {
            kept.push_str(&hit.document.text);
        }
        assert!(!kept.contains("4711"), "{kept}");
    });
}

#[test]
fn secrets_reach_neither_facts_nor_search_nor_episodes() {
    wait(async {
        let rig = Rig::new();
        let key = format!("ghp_{}", "a1B2".repeat(9));
        let said = format!("Push it with the token {key}, please.");
        let fact =
            json!({ "text": format!("The token is {key}."), "entity": "user", "quote": format!("the token {key}") });
        let model = ScriptedModel::new().calls("entity/remember", fact.to_string()).says("Done.");
        let mut execution = rig.start("one", &model).await;
        execution.turn(said.as_str()).await.unwrap();
        execution.complete().await.unwrap();
        let kept = rig.kept("push token").await;
        assert!(!kept.contains(&key), "{kept}");
        assert!(kept.matches("[redacted: GitHub token]").count() >= 3, "{kept}");
    });
}
