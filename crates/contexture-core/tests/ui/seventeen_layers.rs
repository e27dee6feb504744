use contexture_core::layer::{ClosureLayer, LayerSpec, MemoryScope, layer};
use contexture_core::{Slot, memory};

fn one() -> ClosureLayer<()> {
    layer(LayerSpec::new("one", Slot(1), MemoryScope::Thread)).build()
}

fn main() {
    memory((
        one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(), one(),
        one(),
    ));
}
