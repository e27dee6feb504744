use contexture_core::Execution;
use contexture_core::layer::*;

struct Present;
struct Missing;

impl Missing {
    const DATA: LayerData<Missing, u32> = LayerData::new("data");
}

impl MemoryLayer for Present {
    type State = ();
    fn spec(&self) -> LayerSpec {
        unimplemented!()
    }
}

impl MemoryLayer for Missing {
    type State = ();
    fn spec(&self) -> LayerSpec {
        unimplemented!()
    }
}

fn ask(execution: Execution<(Present,)>) {
    execution.memory().read(Missing::DATA);
}

fn main() {}
