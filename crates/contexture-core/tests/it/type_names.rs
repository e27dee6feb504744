//! The names of public types: how many of them mean two things.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::{library_crates, sources_of};

/// Most names that mean two things, of a hundred.
const MOST_PERCENT: usize = 5;

/// Names that mean two things for a reason.
const PRESCRIBED: [(&str, &str); 1] =
    [("LocalFs", "one thing, for the systems that have it and for those that do not")];

/// The types that a file declares with `pub`, outside of its tests.
fn declared(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("pub ")?;
        let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

/// Every public name with the files that declare it.
fn names() -> BTreeMap<String, BTreeSet<String>> {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for of in library_crates() {
        for (file, text) in sources_of(of) {
            for name in declared(&text) {
                names.entry(name.to_owned()).or_default().insert(format!("{of}/{file}"));
            }
        }
    }
    names
}

#[test]
fn few_public_names_mean_two_things() {
    let names = names();
    let is_prescribed = |name: &str| PRESCRIBED.iter().any(|(known, _)| *known == name);
    let twice: Vec<_> = names.iter().filter(|(name, files)| files.len() > 1 && !is_prescribed(name)).collect();
    for (name, files) in &twice {
        println!("{name}: {}", files.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    println!("{} of {} names mean two things", twice.len(), names.len());
    assert!(
        twice.len() * 100 <= names.len() * MOST_PERCENT,
        "{} of {} public type names mean two things; say whose each is: {:?}",
        twice.len(),
        names.len(),
        twice.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    );
}

/// What is excused is there: a reason for a name that is gone excuses another one later.
#[test]
fn what_is_prescribed_is_still_there() {
    let names = names();
    for (name, why) in PRESCRIBED {
        assert!(names.get(name).is_some_and(|files| files.len() > 1), "{name} means one thing now; it was {why}");
    }
}
