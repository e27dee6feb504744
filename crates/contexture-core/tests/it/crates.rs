//! The crates of the workspace: which may use which, how large each is, and a map made of the first lines of their
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate with the crates of the workspace that it may depend on, from the bottom up. A crate uses only those above
/// it in this list, so there is no circle and nothing that points up.
const CRATES: [(&str, &[&str]); 13] = [
    ("contexture-core", &[]),
    ("contexture-text", &["contexture-core"]),
    ("contexture-files", &["contexture-core", "contexture-text"]),
    ("contexture-fold", &["contexture-core", "contexture-files", "contexture-text"]),
    ("contexture-wire", &["contexture-core", "contexture-text"]),
    ("contexture-memory", &["contexture-core", "contexture-files", "contexture-text"]),
    ("contexture-store", &["contexture-core", "contexture-text"]),
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
    ("contexture-gateway", &["contexture", "contexture-core", "contexture-text"]),
    ("contexture-inspect", &["contexture", "contexture-core", "contexture-gateway", "contexture-text"]),
    ("contexture-measure", &["contexture"]),
    ("contexture-terminal", &["contexture-core"]),
    (
        "contexture-cli",
        &[
            "contexture",
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

/// Most lines of code of a crate, without tests.
const MOST_LINES: usize = 16_000;

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

/// Lines that are neither blank nor a comment, before a file's tests.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[test]
fn no_crate_is_too_large() {
    for (name, _) in CRATES {
        let lines: usize = sources_of(name).values().map(|text| lines_of_code(text)).sum();
        println!("{name}: {lines} lines of code");
        assert!(lines <= MOST_LINES, "{name} has {lines} lines of code; more than {MOST_LINES} are two subjects");
    }
}

/// The first sentence of a file, which says its subject.
fn subject(file: &str, text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let head: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    assert!(!head.is_empty(), "{file} does not begin with a line that says its subject");
    let head = head.join(" ");
    match head.split_once(". ") {
        Some((first, _)) => format!("{first}."),
        None => head,
    }
}

/// The page that lists every file with its subject.
fn map() -> String {
    let mut page = String::from(
        "# Map\n\nEvery source file with the sentence on its top. This page is made from these sentences; a test says \
         how.\n",
    );
    for name in all_crates() {
        let files = sources_of(name);
        let root = files.get("lib.rs").expect("a crate has a root");
        let _ = write!(page, "\n## `{name}`\n\n{}\n\n| file | subject |\n| --- | --- |\n", subject("lib.rs", root));
        for (file, text) in files.iter().filter(|(file, _)| *file != "lib.rs") {
            let _ = writeln!(page, "| `{file}` | {} |", subject(file, text).replace('|', "\\|"));
        }
    }
    page
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the files of the workspace are what is tested")]
fn the_map_is_what_the_files_say() {
    let file = root().join("docs/map.md");
    let map = map();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &map).unwrap();
    }
    let is_current = fs::read_to_string(&file).is_ok_and(|kept| kept == map);
    assert!(is_current, "docs/map.md is not current; UPDATE_DOCS=1 cargo test -p contexture-core --test it crates");
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
