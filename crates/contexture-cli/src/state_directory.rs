//! Where the program keeps what is to outlive it.

use std::env;
use std::path::PathBuf;

use crate::failure::Failure;

/// The program's directory in the user's state directory.
pub(crate) fn state_directory() -> Result<PathBuf, Failure> {
    let directory = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let usual = || match cfg!(windows) {
        true => directory("LOCALAPPDATA"),
        false => Some(directory("HOME")?.join(".local/state")),
    };
    let state = directory("XDG_STATE_HOME").or_else(usual).ok_or_else(|| {
        let names = if cfg!(windows) { "LOCALAPPDATA" } else { "HOME or XDG_STATE_HOME" };
        Failure::work("no directory for the gateway's store is known")
            .hint(format!("set {names}, or name a file with --store"))
    })?;
    Ok(state.join("contexture"))
}
