//! Tells the linker that Node's own functions are there when the library is loaded.

fn main() {
    napi_build::setup();
}
