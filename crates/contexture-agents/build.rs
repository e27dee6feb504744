//! Lists the files of `agents`, so that a new agent is one new file.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("agents");
    println!("cargo::rerun-if-changed={}", directory.display());
    let entries: Result<Vec<PathBuf>, _> = fs::read_dir(&directory)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths: Vec<PathBuf> = entries.map_err(|error: std::io::Error| error)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    let mut list = String::from("&[");
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        write!(list, "({stem:?}, include_str!({:?})),", path.display().to_string())?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("files.rs"), list + "]")?;
    Ok(())
}
