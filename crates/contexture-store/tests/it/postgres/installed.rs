//! Where PostgreSQL is installed.

use std::path::PathBuf;

/// The directory of its programs, if there is one.
pub fn binaries() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin"));
    let listed =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    debian.chain(listed).find(|path| path.join("initdb").exists() && path.join("postgres").exists())
}
