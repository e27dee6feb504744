//! Contexture in the process of a Python program: the module `contexture._native`, which `contexture` wraps.

mod failure;
mod files;
mod folder;
mod memory;

use pyo3::prelude::*;

/// What `contexture` is made of. It is no interface: use `contexture`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::files::{count_tokens, find_references};
    #[pymodule_export]
    use super::folder::NativeFolder;
    #[pymodule_export]
    use super::memory::NativeMemory;
}
