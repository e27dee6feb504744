//! Where the gateway's store is.

use std::env;
use std::path::PathBuf;

use contexture_server::Store;

use crate::failure::Failure;

/// The store in the user's state directory.
pub(super) fn store_path() -> Result<PathBuf, Failure> {
    let directory = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| Some(directory("HOME")?.join(".local/state")));
    let state = state.ok_or_else(|| {
        Failure::work("no directory for the gateway's store is known")
            .hint("set HOME or XDG_STATE_HOME, or pass --no-store")
    })?;
    Ok(state.join("contexture/gateway.db"))
}

/// The store, if there is one.
pub(super) fn existing_store() -> Result<Option<Store>, Failure> {
    let path = store_path()?;
    match path.exists() {
        true => Ok(Some(opened(&path)?)),
        false => Ok(None),
    }
}

fn opened(path: &std::path::Path) -> Result<Store, Failure> {
    Store::open(path).map_err(|error| {
        Failure::work(format!("{error}"))
            .hint(format!("`{}` can be deleted: it holds only what the gateway kept", path.display()))
    })
}
