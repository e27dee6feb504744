//! `contexture forget`: deletes what the gateway stored.

use std::io::{self, Write};

use clap::Args;

use super::place::existing_store;
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
        None => store.forget(None).map_err(fail)?,
        Some(id) => {
            let names = store.names(id).map_err(fail)?;
            let [name] = names.as_slice() else {
                let failure = Failure::usage(format!("{} conversations begin with `{id}`", names.len()));
                return Err(failure.hint("`contexture receipts` names them"));
            };
            store.forget(Some(name)).map_err(fail)?
        }
    };
    Ok(writeln!(io::stdout(), "forgot {gone} conversations")?)
}
