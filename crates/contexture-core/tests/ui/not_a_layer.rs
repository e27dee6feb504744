use contexture_core::memory;

fn main() {
    memory((1,));
}
