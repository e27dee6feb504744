//! The names of types: how many of them mean two things.

use std::collections::{BTreeMap, BTreeSet};

use crate::crates::{all_crates, library_crates, sources_of};

/// Most names of public types that mean two things, of a hundred.
const MOST_PUBLIC_PERCENT: usize = 5;

/// Most names of types that mean two things, of a hundred, whoever can see them.
const MOST_PERCENT: usize = 3;

/// Most types that share a name.
const MOST_MEANINGS: usize = 3;

/// Names that mean two things for a reason.
const PRESCRIBED: [(&str, &str); 2] = [
    ("Chat", "one thing, for the systems that have it and for those that do not"),
    ("LocalFs", "one thing, for the systems that have it and for those that do not"),
];

/// Which types are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Public,
    Any,
}

/// The types that a file declares, outside of its tests.
fn declared(text: &str, visibility: Visibility) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    code.lines().filter_map(move |line| {
        let start = line.trim_start();
        let is_inner = start.len() < line.len();
        let rest = match (start.strip_prefix("pub "), visibility) {
            (Some(rest), _) => rest,
            (None, Visibility::Public) => return None,
            // A restricted visibility, as in `pub(super)`.
            (None, Visibility::Any) => start.strip_prefix("pub(").map_or(start, |rest| after(rest, ") ")),
        };
        let is_associated = is_inner && rest.starts_with("type ");
        let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| rest.strip_prefix(word))?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        Some(&rest[..end]).filter(|name| !is_associated && name.starts_with(|c: char| c.is_ascii_uppercase()))
    })
}

/// What follows the first of a mark.
fn after<'a>(text: &'a str, mark: &str) -> &'a str {
    text.split_once(mark).map_or("", |(_, rest)| rest)
}

/// The files that declare a name, by the name.
type Names = BTreeMap<String, BTreeSet<String>>;

fn names(crates: impl Iterator<Item = &'static str>, visibility: Visibility) -> Names {
    let mut names = Names::new();
    for of in crates {
        for (file, text) in sources_of(of) {
            for name in declared(&text, visibility) {
                names.entry(name.to_owned()).or_default().insert(format!("{of}/{file}"));
            }
        }
    }
    names
}

/// Fails if more names than `most` of a hundred mean two things, and prints them.
fn assert_few(names: &Names, most: usize) {
    let is_prescribed = |name: &str| PRESCRIBED.iter().any(|(known, _)| *known == name);
    let twice: Vec<_> = names.iter().filter(|(name, files)| files.len() > 1 && !is_prescribed(name)).collect();
    for (name, files) in &twice {
        println!("{name}: {}", files.iter().map(String::as_str).collect::<Vec<_>>().join(", "));
    }
    println!("{} of {} names mean two things", twice.len(), names.len());
    assert!(
        twice.len() * 100 <= names.len() * most,
        "{} of {} type names mean two things; say whose each is: {:?}",
        twice.len(),
        names.len(),
        twice.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()
    );
    let worst: Vec<_> = twice.iter().filter(|(_, files)| files.len() > MOST_MEANINGS).collect();
    assert!(worst.is_empty(), "names of more than {MOST_MEANINGS} types: {worst:?}");
}

#[test]
fn few_public_names_mean_two_things() {
    assert_few(&names(library_crates(), Visibility::Public), MOST_PUBLIC_PERCENT);
}

/// Whoever reads a file of one crate has just read one of another: a name is a name, whoever can use it.
#[test]
fn few_names_mean_two_things() {
    assert_few(&names(all_crates(), Visibility::Any), MOST_PERCENT);
}

/// What is excused is there: a reason for a name that is gone excuses another one later.
#[test]
fn what_is_prescribed_is_still_there() {
    let names = names(all_crates(), Visibility::Any);
    for (name, why) in PRESCRIBED {
        assert!(names.get(name).is_some_and(|files| files.len() > 1), "{name} means one thing now; it was {why}");
    }
}

#[test]
fn types_are_counted_whoever_can_see_them() {
    let text = "pub struct A;\npub(super) enum B {\nstruct C(u8);\n    pub(in crate::x) trait D {\n\
                type E = u8;\n    type F = u8;\n    type_of(G);\nstructure H\n#[cfg(test)]\nmod tests {\nstruct I;";
    assert_eq!(declared(text, Visibility::Any).collect::<Vec<_>>(), ["A", "B", "C", "D", "E"]);
    assert_eq!(declared(text, Visibility::Public).collect::<Vec<_>>(), ["A"]);
}
