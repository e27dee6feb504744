//! `contexture forget`: deletes what the gateway stored.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use clap::Args;
use contexture_gateway::{Store, StoreError, delete_store_file};
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
    /// Do not ask in a terminal whether everything is to be deleted
    #[arg(long, requires = "all")]
    yes: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// Carries out the command.
///
/// # Errors
/// Nothing of that name is kept, or the store cannot be written.
pub fn run(command: &ForgetCommand) -> Result<(), Failure> {
    let Some(store) = command.store.existing()? else {
        return match &command.id {
            None => Ok(io::stdout().write_all(b"nothing is kept\n")?),
            Some(id) => Err(unknown(id)),
        };
    };
    let gone = match &command.id {
        None if !is_meant(command, &*store)? => return Ok(io::stdout().write_all(b"nothing was deleted\n")?),
        None => forget_all(command, &*store)?,
        Some(id) => {
            let names = store.names(id).map_err(|error| failed(&error))?;
            let name = match names.as_slice() {
                [] => return Err(unknown(id)),
                [name] => name,
                several => return Err(ambiguous(id, several.len())),
            };
            forget_windows(command, Some(name))?;
            store.forget(Some(name)).map_err(|error| failed(&error))?
        }
    };
    Ok(writeln!(io::stdout(), "forgot {}", counted(gone, "conversation"))?)
}

/// Asks in a terminal whether everything is to be deleted.
fn is_meant(command: &ForgetCommand, store: &dyn Store) -> Result<bool, Failure> {
    if command.yes || !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }
    let count = store.names("").map_err(|error| failed(&error))?.len();
    eprint!("delete {}, and what they cost? [y/N] ", counted(count, "conversation"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Deletes everything. Where there is no room to delete what is in the files, these are deleted.
fn forget_all(command: &ForgetCommand, store: &dyn Store) -> Result<usize, Failure> {
    let count = store.names("").map_err(|error| failed(&error))?.len();
    let gone = match store.forget(None) {
        Err(error) if error.is_unwritable() => {
            command.store.file()?.map_or(Ok(()), |path| delete(&path))?;
            count
        }
        done => done.map_err(|error| failed(&error))?,
    };
    if forget_windows(command, None).is_err() {
        command.store.archive()?.map_or(Ok(()), |path| delete(&path))?;
    }
    Ok(gone)
}

fn delete(path: &Path) -> Result<(), Failure> {
    delete_store_file(path).map_err(|error| {
        Failure::work(format!("delete `{}`: {error}", path.display()))
            .hint("it belongs to another user, or the disk is read-only")
    })
}

fn failed(error: &StoreError) -> Failure {
    let failure = Failure::of(error);
    match error.is_unwritable() {
        true => failure.hint("make room on the disk, or delete everything with `contexture forget --all`"),
        false => failure,
    }
}

/// Nothing has this name.
pub(super) fn unknown(id: &str) -> Failure {
    Failure::work(format!("nothing is kept under `{id}`"))
        .hint("`contexture receipts` names conversations; shortened outputs name their hash")
}

/// Several conversations have names that begin so.
pub(super) fn ambiguous(id: &str, count: usize) -> Failure {
    Failure::usage(format!("{count} conversations begin with `{id}`")).hint("write some more characters")
}

/// Forgets the windows that the inspector kept.
fn forget_windows(command: &ForgetCommand, conversation: Option<&str>) -> Result<(), Failure> {
    if let Some(path) = command.store.archive()?.filter(|path| path.exists()) {
        let forget = Archive::open(&path).and_then(|archive| archive.forget(conversation));
        forget.map_err(|error| failed(&error))?;
    }
    Ok(())
}
