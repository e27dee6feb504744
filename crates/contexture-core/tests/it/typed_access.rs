//! Asking for a layer that is not there does not compile, and the compiler says why in our words.

use contexture_core::layer::*;
use contexture_core::memory;
use contexture_core::testing::{ScriptedModel, engine};

use crate::kit::spec;

#[test]
fn what_does_not_compile_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// Two layers of one type are told apart by what they declare.
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

struct Other;

impl MemoryLayer for Other {
    type State = String;

    fn spec(&self) -> LayerSpec {
        spec("other", 1)
    }
}

#[tokio::test]
async fn layers_are_found_wherever_they_stand() {
    let engine = engine(memory((Other, Numbered(1)))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.memory().read(Numbered::ONE), Some(1));
    assert_eq!(execution.memory().read(Numbered::TWO), None);
    assert_eq!(execution.memory().state::<Other, _>(), "");
}

#[tokio::test]
async fn a_layer_whose_type_was_forgotten_still_runs() {
    let engine = engine(memory((Numbered(1),)).with_layer(Numbered(2))).model(ScriptedModel::new()).build().unwrap();
    let execution = engine.execution("thread").start().await.unwrap();
    assert_eq!(execution.memory().read(Numbered::TWO), Some(2), "of a type that is in the memory");
    assert_eq!(execution.memory().context_memory()["layer-2"]["data-2"], 2);
}
