use contexture_core::Execution;
use contexture_core::layer::ClosureLayer;

async fn which(execution: Execution<(ClosureLayer<u32>, ClosureLayer<u32>)>) {
    execution.memory().state::<ClosureLayer<u32>, _>();
}

fn main() {}
