//! `contexture forget`: deletes what the gateway stored.

use std::io::{self, Write};

use clap::Args;
use contexture_server::ARCHIVE_NAME;
use contexture_server::inspect::Archive;

use super::place::{existing_store, store_path};
use crate::failure::Failure;

/// Delete what the gateway stored about a conversation, or everything
#[derive(Args)]
pub struct Forget {
    /// The conversation; the first characters are enough
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Delete everything
    #[arg(long)]
    all: bool,
}

/// Carries out the command.
///
/// # Errors
/// Nothing of that name is kept, or the store cannot be written.
pub fn run(command: &Forget) -> Result<(), Failure> {
    let fail = |error: contexture_server::StoreError| Failure::work(error.to_string());
    let Some(store) = existing_store()? else {
        return Ok(io::stdout().write_all(b"nothing is kept\n")?);
    };
    let gone = match &command.id {
        None => {
            forget_windows(None)?;
            store.forget(None).map_err(fail)?
        }
        Some(id) => {
            let names = store.names(id).map_err(fail)?;
            let [name] = names.as_slice() else {
                let failure = Failure::usage(format!("{} conversations begin with `{id}`", names.len()));
                return Err(failure.hint("`contexture receipts` names them"));
            };
            forget_windows(Some(name))?;
            store.forget(Some(name)).map_err(fail)?
        }
    };
    Ok(writeln!(io::stdout(), "forgot {gone} conversations")?)
}

/// Forgets the windows that the inspector kept.
fn forget_windows(conversation: Option<&str>) -> Result<(), Failure> {
    let path = store_path()?.with_file_name(ARCHIVE_NAME);
    if path.exists() {
        let forget = Archive::open(&path).and_then(|archive| archive.forget(conversation));
        forget.map_err(|error| Failure::work(error.to_string()))?;
    }
    Ok(())
}
