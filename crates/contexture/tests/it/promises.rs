//! Every promise in `docs/reference/promises.md` has a test that exists.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The names of all functions in the Rust files that have tests, below a directory.
fn collect(directory: &Path, names: &mut HashSet<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, names);
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in text.lines().map(str::trim_start) {
            is_test |= line.starts_with("#[test") || line.starts_with("#[tokio::test");
            let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test && !line.starts_with("//")) else {
                continue;
            };
            names.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
}

#[test]
fn every_promise_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = HashSet::new();
    collect(&root.join("crates"), &mut tests);
    let page = fs::read_to_string(root.join("docs/reference/promises.md")).unwrap();
    let mut numbers: Vec<u32> = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let line = line.replace("\\|", "/");
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let Ok(number) = cells[1].parse() else { continue };
        numbers.push(number);
        assert_eq!(cells.len(), 6, "{line}");
        let test = cells[3].trim_matches('`');
        assert!(!cells[2].is_empty() && tests.contains(test), "promise {number}: there is no test `{test}`");
    }
    assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    assert_eq!(numbers.len(), 198);
}
