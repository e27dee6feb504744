//! Says which tests were left out, and why. It has no tests of its own: Cargo runs test programs in the order of their
//! crates, and this is the last one, so that what it says is at the end.

use std::fs;
use std::path::Path;

#[path = "../../contexture-store/tests/it/postgres/installed.rs"]
mod installed;

/// What a test begins with that needs a server.
const NEEDS_SERVER: &str = "Server::start() else { return }";

/// What is before a test that takes long.
const TAKES_LONG: &str = "cfg_attr(not(feature = \"long-tests\"), ignore";

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let [need_server, take_long] = [NEEDS_SERVER, TAKES_LONG].map(|mark| count(&crates, mark));
    assert!(need_server > 0 && take_long > 0, "there are such tests: {need_server} and {take_long}");
    println!();
    if installed::binaries().is_none() {
        println!("{need_server} tests need PostgreSQL: `apt-get install postgresql`");
    }
    if !cfg!(feature = "long-tests") {
        println!(
            "{take_long} tests take long, and others are shorter than they could be: \
             `cargo test --workspace --features long-tests` runs all of it"
        );
    }
}

/// How often a text occurs in the Rust files below a directory, other than this one.
fn count(directory: &Path, mark: &str) -> usize {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let own = Path::new(file!()).file_name();
    let of = |path: &Path| match path.extension() {
        _ if path.is_dir() => count(path, mark),
        Some(kind) if kind == "rs" && path.file_name() != own => {
            fs::read_to_string(path).map_or(0, |source| source.matches(mark).count())
        }
        _ => 0,
    };
    entries.flatten().map(|entry| of(&entry.path())).sum()
}
