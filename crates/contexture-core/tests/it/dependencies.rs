//! The allowed dependencies of core: no HTTP, no database, no command line, and of tokio neither I/O nor timers.

use std::collections::BTreeSet;
use std::process::Command;

/// All direct and indirect dependencies of core.
const ALLOWED: [&str; 33] = [
    "contexture-core",
    // Hashes of tables in memory.
    "foldhash",
    // Futures.
    "futures-core",
    "futures-task",
    "futures-util",
    "pin-project-lite",
    "slab",
    // JSON, its schemas, and Rust types as both.
    "dyn-clone",
    "itoa",
    "memchr",
    "ref-cast",
    "ref-cast-impl",
    "schemars",
    "schemars_derive",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_derive_internals",
    "serde_json",
    "serde_path_to_error",
    "zmij",
    // One form of the many that Unicode has for a text, so that a search finds it.
    "tinyvec",
    "unicode-normalization",
    // Errors.
    "thiserror",
    "thiserror-impl",
    // Tasks and locks.
    "tokio",
    // Traces.
    "once_cell",
    "tracing",
    "tracing-core",
    // Macros, while compiling.
    "proc-macro2",
    "quote",
    "syn",
    "unicode-ident",
];

/// The features of tokio that the core may use.
const TOKIO_FEATURES: [&str; 3] = ["default", "rt", "sync"];

/// Asks cargo about the crate's own dependencies, not those of its tests.
fn cargo_tree(edges: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "contexture-core", "--prefix", "none", "--edges", edges])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo is there, since it runs this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo writes UTF-8")
}

fn crate_names(tree: &str) -> BTreeSet<&str> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn the_core_has_few_dependencies_and_none_for_io() {
    let tree = cargo_tree("normal");
    let unknown: Vec<_> = crate_names(&tree).into_iter().filter(|name| !ALLOWED.contains(name)).collect();
    assert!(unknown.is_empty(), "new dependencies of the core are a decision: {unknown:?}");
}

#[test]
fn of_tokio_the_core_uses_tasks_and_locks() {
    let tree = cargo_tree("normal,features");
    let prefix = "tokio feature \"";
    let features = tree.lines().filter_map(|line| line.strip_prefix(prefix)?.split('"').next());
    let surplus: BTreeSet<_> = features.filter(|feature| !TOKIO_FEATURES.contains(feature)).collect();
    assert!(surplus.is_empty(), "of tokio, the core uses {surplus:?} too");
}
