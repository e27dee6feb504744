//! `contexture forget`: deletes what the gateway stored.

use std::io::{self, Write};

use clap::Args;
use contexture_inspect::Archive;

use super::place::StoreFlag;
use crate::failure::Failure;
use contexture_text::numbers::counted;

/// Delete what the gateway stored about a conversation, or everything
#[derive(Args)]
pub struct ForgetCommand {
    /// The conversation; the first characters are enough
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Delete everything
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// Carries out the command.
///
/// # Errors
/// Nothing of that name is kept, or the store cannot be written.
pub fn run(command: &ForgetCommand) -> Result<(), Failure> {
    let fail = |error: contexture_gateway::StoreError| Failure::work(error.to_string());
    let Some(store) = command.store.existing()? else {
        return Ok(io::stdout().write_all(b"nothing is kept\n")?);
    };
    let gone = match &command.id {
        None => {
            forget_windows(command, None)?;
            store.forget(None).map_err(fail)?
        }
        Some(id) => {
            let names = store.names(id).map_err(fail)?;
            let [name] = names.as_slice() else {
                let failure = Failure::usage(format!("{} conversations begin with `{id}`", names.len()));
                return Err(failure.hint("`contexture receipts` names them"));
            };
            forget_windows(command, Some(name))?;
            store.forget(Some(name)).map_err(fail)?
        }
    };
    Ok(writeln!(io::stdout(), "forgot {}", counted(gone, "conversation"))?)
}

/// Forgets the windows that the inspector kept.
fn forget_windows(command: &ForgetCommand, conversation: Option<&str>) -> Result<(), Failure> {
    if let Some(path) = command.store.archive()?.filter(|path| path.exists()) {
        let forget = Archive::open(&path).and_then(|archive| archive.forget(conversation));
        forget.map_err(|error| Failure::work(error.to_string()))?;
    }
    Ok(())
}
