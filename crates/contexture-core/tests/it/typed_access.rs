//! Asking for a layer that is not there does not compile, with a designed message.

use std::sync::Arc;

use contexture_core::layer::*;
use contexture_core::memory;
use contexture_core::testing::{ScriptedModel, engine};

use crate::kit::spec;

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
fn what_does_not_compile_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// Two layers of one type are distinguished by what they declare.
struct Numbered(u32);

impl Numbered {
    const ONE: LayerData<Numbered, u32> = LayerData::new("data-1");
    const TWO: LayerData<Numbered, u32> = LayerData::new("data-2");
}

impl MemoryLayer for Numbered {
    type State = u32;

    fn spec(&self) -> LayerSpec {
        spec(&format!("layer-{}", self.0), 1)
    }

    fn provides(&self) -> LayerProvides<u32> {
        let number = self.0;
        LayerProvides::new().data(format!("data-{number}"), layer_data(move |_: &u32| number))
    }
}

#[tokio::test]
async fn two_layers_of_one_type_are_told_apart_by_their_index() {
    use contexture_core::memory::At;
    let words = |id: &str| {
        let add = layer_fn("Adds.", |word: String, words: Arc<Vec<String>>, _| async move {
            let words = [(*words).clone(), vec![word]].concat();
            Ok(FnResult::new(words.len()).with_state(words))
        });
        let all = layer_data(|words: &Vec<String>| words.clone());
        layer::<Vec<String>>(spec(id, 1)).provides(LayerProvides::new().function("add", add).data("all", all)).build()
    };
    type Words = ClosureLayer<Vec<String>>;
    const ADD: LayerFunction<Words, String, usize> = LayerFunction::new("add");
    const ALL: LayerData<Words, Vec<String>> = LayerData::new("all");
    let engine = engine(memory((words("first"), Other, words("second")))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    let memory = execution.memory();
    memory.call::<_, _, _, At<2>>(ADD, "to the second".to_owned()).await.unwrap();
    assert_eq!(memory.read::<_, _, At<0>>(ALL), Some(vec![]));
    assert_eq!(memory.read::<_, _, At<2>>(ALL), Some(vec!["to the second".to_owned()]));
    assert_eq!(memory.state::<Words, At<2>>(), ["to the second"]);
    assert_eq!(memory.state::<Words, At<0>>(), [""; 0]);
}

struct Other;

impl MemoryLayer for Other {
    type State = String;

    fn spec(&self) -> LayerSpec {
        spec("other", 1)
    }
}

#[tokio::test]
async fn layers_are_found_at_any_position() {
    let engine = engine(memory((Other, Numbered(1)))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.memory().read(Numbered::ONE), Some(1));
    assert_eq!(execution.memory().read(Numbered::TWO), None);
    assert_eq!(execution.memory().state::<Other, _>(), "");
}

#[tokio::test]
async fn a_layer_without_typed_access_still_runs() {
    let engine = engine(memory((Numbered(1),)).with_layer(Numbered(2))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.memory().read(Numbered::TWO), None, "the layer in the tuple is another one");
    assert_eq!(execution.memory().context_memory()["layer-2"]["data-2"], 2);
}
