//! The allowed dependencies of core: no HTTP, no database, no command line, and of tokio neither I/O nor timers. And what
//! the program may contain of others: under which licences, and what in two versions.

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

/// Licences of what the program contains: all let it be given on as it is, with their texts.
const LICENCES: [&str; 11] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates of which the program contains two versions, because others have not moved to the newer one.
const DOUBLES: [&str; 5] = ["base64", "const-oid", "fallible-iterator", "getrandom", "syn"];

/// Asks cargo about the crate's own dependencies, not those of its tests.
fn cargo_tree(edges: &str) -> String {
    tree_of("contexture-core", &["--edges", edges])
}

fn tree_of(package: &str, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", package, "--prefix", "none"])
        .args(arguments)
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

/// Whether an expression can be met with allowed licences alone: `(MIT OR GPL-3.0) AND Zlib`.
fn is_allowed(licence: &str) -> bool {
    let licence = licence.replace(['(', ')'], "").replace('/', " OR ");
    let is_one = |one: &str| LICENCES.contains(&one.split_whitespace().collect::<Vec<_>>().join(" ").as_str());
    licence.split(" AND ").all(|part| part.split(" OR ").any(is_one))
}

#[test]
fn licences_are_read_as_they_are_written() {
    let allowed = ["MIT", "MIT/Apache-2.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"];
    assert!(allowed.into_iter().all(is_allowed));
    assert!(!["GPL-3.0", "MIT AND GPL-3.0", "", "MITRE"].into_iter().any(is_allowed));
}

#[test]
fn what_the_program_contains_may_be_given_on_and_is_there_once() {
    let tree = tree_of("contexture-cli", &["--edges", "normal", "--all-features", "--format", "{p}|{l}"]);
    let lines: BTreeSet<&str> = tree.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    assert!(lines.len() > 100, "{tree}");
    let foreign: Vec<_> =
        lines.iter().filter(|line| !line.split_once('|').is_some_and(|(_, licence)| is_allowed(licence))).collect();
    assert!(foreign.is_empty(), "a licence that is new is a decision: {foreign:?}");
    let names: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
    let doubles: BTreeSet<&str> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    assert_eq!(doubles, BTreeSet::from(DOUBLES), "a crate in two versions is a decision");
}
