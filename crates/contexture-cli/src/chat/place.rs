//! Where threads are kept.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::store::SqliteStore;

use crate::environment::variable_os;
use crate::failure::Failure;

/// Opens the store that was named, or the one in the user's state directory. Only its owner can read it.
pub(super) fn open(named: Option<&Path>) -> Result<(Arc<SqliteStore>, PathBuf), Failure> {
    let path = path_of(named)?;
    let failed = |problem: String| {
        Failure::work(format!("open the store `{}`: {problem}", path.display()))
            .hint("`--store PATH` names another one")
    };
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| failed(error.to_string()))?;
    }
    let store = SqliteStore::open(&path).map_err(|error| failed(error.to_string()))?;
    Ok((Arc::new(store), path))
}

/// The same, if there is one: whoever only looks makes no file.
pub(super) fn existing(named: Option<&Path>) -> Result<Option<Arc<SqliteStore>>, Failure> {
    match path_of(named)?.exists() {
        true => open(named).map(|(store, _)| Some(store)),
        false => Ok(None),
    }
}

fn path_of(named: Option<&Path>) -> Result<PathBuf, Failure> {
    named.map_or_else(usual, |path| Ok(path.to_owned()))
}

fn usual() -> Result<PathBuf, Failure> {
    let directory = |name: &str| variable_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")));
    let state = state.ok_or_else(|| {
        Failure::work("no directory for threads is known").hint("set HOME or XDG_STATE_HOME, or pass --store PATH")
    })?;
    Ok(state.join("contexture/chat.db"))
}
