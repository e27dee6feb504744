//! The crates of the workspace: which may use which, and that every file says its subject.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate with the crates of the workspace that it may depend on, from the bottom up. A crate uses only those above
/// it in this list, so there is no circle and nothing that points up.
const CRATES: [(&str, &[&str]); 14] = [
    ("contexture-core", &[]),
    ("contexture-agents", &[]),
    ("contexture-text", &["contexture-agents", "contexture-core"]),
    ("contexture-store", &["contexture-core", "contexture-text"]),
    ("contexture-wire", &["contexture-agents", "contexture-core", "contexture-text"]),
    ("contexture-files", &["contexture-agents", "contexture-core", "contexture-text"]),
    ("contexture-fold", &["contexture-agents", "contexture-core", "contexture-files", "contexture-text"]),
    ("contexture-memory", &["contexture-core", "contexture-files", "contexture-text"]),
    (
        "contexture",
        &[
            "contexture-core",
            "contexture-files",
            "contexture-fold",
            "contexture-memory",
            "contexture-store",
            "contexture-text",
            "contexture-wire",
        ],
    ),
    ("contexture-measure", &["contexture"]),
    (
        "contexture-gateway",
        &[
            "contexture",
            "contexture-agents",
            "contexture-core",
            "contexture-measure",
            "contexture-store",
            "contexture-text",
        ],
    ),
    (
        "contexture-inspect",
        &["contexture", "contexture-core", "contexture-gateway", "contexture-store", "contexture-text"],
    ),
    ("contexture-terminal", &["contexture-core"]),
    (
        "contexture-cli",
        &[
            "contexture",
            "contexture-agents",
            "contexture-core",
            "contexture-gateway",
            "contexture-inspect",
            "contexture-measure",
            "contexture-terminal",
            "contexture-text",
        ],
    ),
];

/// The crate of benchmarks, which may use everything and which nothing uses.
const BENCH: &str = "contexture-bench";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[expect(clippy::disallowed_methods, reason = "the files of the workspace are what is tested")]
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The crates of the workspace, without that of benchmarks.
pub(crate) fn library_crates() -> impl Iterator<Item = &'static str> {
    CRATES.into_iter().map(|(name, _)| name)
}

/// The crates of the workspace, with that of benchmarks.
pub(crate) fn all_crates() -> impl Iterator<Item = &'static str> {
    library_crates().chain([BENCH])
}

/// The source files beneath a directory, by their path within it, without tests.
fn sources(directory: &Path, within: &str, found: &mut BTreeMap<String, String>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, &format!("{within}{name}/"), found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.insert(format!("{within}{name}"), read(&path));
        }
    }
}

pub(crate) fn sources_of(name: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    sources(&root().join("crates").join(name).join("src"), "", &mut found);
    found
}

/// The crates of the workspace that a crate's manifest names outside of its tests.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = read(&root().join("crates").join(name).join("Cargo.toml"));
    let mut is_of_tests = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_of_tests = section.starts_with("dev-dependencies") || !section.contains("dependencies");
        } else if !is_of_tests && line.starts_with("contexture") {
            found.insert(line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn crates_use_only_crates_below_them() {
    let mut below: BTreeSet<&str> = BTreeSet::new();
    for (name, allowed) in CRATES {
        let used = dependencies(name);
        assert_eq!(
            used.iter().map(String::as_str).collect::<BTreeSet<_>>(),
            allowed.iter().copied().collect(),
            "{name}"
        );
        assert!(allowed.iter().all(|it| below.contains(it)), "{name} points up");
        below.insert(name);
    }
    let there: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned())
        .collect();
    let known: BTreeSet<String> = all_crates().map(str::to_owned).collect();
    assert_eq!(there, known, "every crate has its place");
}

/// Whether a file begins with a sentence that says its subject.
fn says_its_subject(text: &str) -> bool {
    text.lines().next().and_then(|line| line.strip_prefix("//!")).is_some_and(|subject| !subject.trim().is_empty())
}

#[test]
fn every_file_says_its_subject() {
    for name in all_crates() {
        let silent: Vec<String> =
            sources_of(name).into_iter().filter(|(_, text)| !says_its_subject(text)).map(|(file, _)| file).collect();
        assert!(silent.is_empty(), "{silent:?} of {name} do not begin with a line that says their subject");
    }
}

/// The names in code marks of a text that look like paths of files.
fn named_files(text: &str) -> impl Iterator<Item = &str> {
    let is_file = |name: &&str| name.ends_with(".rs") || name.ends_with(".md") || name.ends_with(".toml");
    let is_plain = |name: &&str| name.contains('/') && !name.contains(['*', ' ', '<', '~']) && !name.starts_with('/');
    text.split('`').skip(1).step_by(2).filter(is_file).filter(is_plain)
}

#[test]
fn the_architecture_names_only_what_exists() {
    let page = read(&root().join("ARCHITECTURE.md"));
    for (name, _) in CRATES {
        assert!(page.contains(&format!("{name} ")), "{name} is not on the page");
    }
    let exists = |name: &&str| {
        root().join(name).exists()
            || CRATES.iter().any(|(of, _)| root().join("crates").join(of).join("src").join(name).exists())
    };
    let missing: Vec<&str> = named_files(&page).filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names {missing:?}, which do not exist");
}
