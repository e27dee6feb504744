//! The programs of the guides compile in a crate of a stranger: outside of this workspace, with the dependencies that the
//! page shows and no others.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The pages with programs, by name.
const PAGES: [&str; 7] =
    ["library", "writing-a-layer", "writing-a-store", "models", "file-references", "file-aware-history", "memory"];

/// Pages whose programs need Unix.
#[cfg(unix)]
const MORE_PAGES: [&str; 1] = ["tools"];
#[cfg(not(unix))]
const MORE_PAGES: [&str; 0] = [];

/// Where the pages say that a clone is.
const CLONE: &str = "../contexture/crates/contexture";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The fenced blocks of a page, each with what follows its fence.
fn blocks(page: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    // The ticks of its fence, and the block.
    let mut open: Option<(usize, (String, String))> = None;
    for line in page.lines() {
        let rest = line.trim_start_matches('`');
        let ticks = line.len() - rest.len();
        match &mut open {
            Some((fence, _)) if ticks == *fence && rest.is_empty() => {
                blocks.extend(open.take().map(|(_, block)| block))
            }
            Some((_, (_, text))) => writeln!(text, "{line}").unwrap(),
            None if ticks >= 3 => open = Some((ticks, (rest.to_owned(), String::new()))),
            None => {}
        }
    }
    blocks
}

/// A program as rustdoc makes it: with the lines that it hides, and in a `main` if it has none.
fn program(block: &str) -> String {
    let lines = block.lines().map(|line| line.strip_prefix("# ").unwrap_or(if line == "#" { "" } else { line }));
    let text = lines.collect::<Vec<_>>().join("\n");
    if text.contains("fn main()") { text } else { format!("fn main() {{\n{text}\n}}\n") }
}

/// Writes the crate of a page and returns how many programs it has.
fn write_crate(directory: &Path, name: &str) -> usize {
    let page = fs::read_to_string(root().join(format!("docs/{name}.md"))).unwrap();
    let blocks = blocks(&page);
    let is_manifest = |(language, text): &&(String, String)| language == "toml" && text.contains("[dependencies]");
    // Further lists are variants of the first.
    let (_, manifest) = blocks.iter().find(is_manifest).unwrap_or_else(|| panic!("{name}.md shows no dependencies"));
    assert!(manifest.contains(CLONE), "{name}.md: {manifest}");
    assert!(!page.contains("contexture = { version"), "{name}.md: no registry has it");
    let clone = root().join("crates/contexture");
    let head = format!("[package]\nname = \"guide-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n");
    let manifest = manifest.replace(CLONE, clone.to_str().unwrap());
    let bins = directory.join(name).join("src/bin");
    fs::create_dir_all(&bins).unwrap();
    fs::write(directory.join(name).join("Cargo.toml"), head + &manifest).unwrap();
    let programs = blocks.iter().filter(|(language, _)| matches!(language.as_str(), "rust" | "rust,no_run"));
    let mut programs: Vec<String> = programs.map(|(_, text)| program(text)).collect();
    if name == "library" {
        // The page shows a part of it.
        programs.push(fs::read_to_string(clone.join("examples/coding_agent.rs")).unwrap());
    }
    for (at, program) in programs.iter().enumerate() {
        fs::write(bins.join(format!("program-{at}.rs")), program).unwrap();
    }
    programs.len()
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
fn the_programs_of_the_guides_compile_in_a_crate_of_a_stranger() {
    let directory = tempfile::tempdir().unwrap();
    let pages: Vec<&str> = PAGES.into_iter().chain(MORE_PAGES).collect();
    let members: Vec<String> = pages.iter().map(|page| format!("\"{page}\"")).collect();
    let workspace = format!("[workspace]\nresolver = \"3\"\nmembers = [{}]\n", members.join(", "));
    fs::write(directory.path().join("Cargo.toml"), workspace).unwrap();
    // The same versions as here, which are on this machine.
    fs::copy(root().join("Cargo.lock"), directory.path().join("Cargo.lock")).unwrap();
    let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
    for page in &pages {
        assert!(write_crate(directory.path(), page) > 0, "{page}.md has no program");
    }
    for page in &pages {
        // One by one: together, a feature that one page names would be there for all.
        let output = Command::new(env!("CARGO"))
            .args(["check", "--offline", "--quiet", "-p", &format!("guide-{page}")])
            .current_dir(directory.path())
            .env("CARGO_TARGET_DIR", &target)
            .env_remove("RUSTFLAGS")
            .output()
            .unwrap();
        assert!(output.status.success(), "docs/{page}.md:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn blocks_are_read_as_rustdoc_reads_them() {
    let page =
        "text\n```rust\n# use a::B;\nlet b = 1;\n#\n```\n````text\n```rust\n```\n````\n```toml\n[dependencies]\n```\n";
    let blocks = blocks(page);
    assert_eq!(blocks[1], ("text".to_owned(), "```rust\n```\n".to_owned()));
    assert_eq!(blocks[2], ("toml".to_owned(), "[dependencies]\n".to_owned()));
    assert_eq!(program(&blocks[0].1), "fn main() {\nuse a::B;\nlet b = 1;\n\n}\n");
}
