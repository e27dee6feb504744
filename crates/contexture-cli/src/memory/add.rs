//! `contexture memory add`: remembers a fact that a person tells.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use contexture::facts::Added;
use contexture::personal::MemoryOwner;

use super::own::{current_project, memory_path, open_memory, told_of_secrets};
use super::whose::{not_changed, now_ms, wait};
use crate::failure::Failure;

/// Remember a fact of this project
///
/// It is shown to agents with `contexture run --memory`, found by `contexture memory search` and over MCP, and counts as
/// said by you. Keys and passwords are replaced by their kind.
#[derive(Args)]
pub struct MemoryAdd {
    /// The fact, as a sentence
    #[arg(value_name = "TEXT")]
    text: String,
    /// Remember it for all your projects
    #[arg(long)]
    everywhere: bool,
    /// The file of the memory; without one, your own
    #[arg(long, hide = true, value_name = "FILE")]
    store: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(add: &MemoryAdd) -> Result<(), Failure> {
    let owner = if add.everywhere { MemoryOwner::Person } else { current_project()? };
    let path = add.store.clone().map_or_else(memory_path, Ok)?;
    let added = wait(async {
        let opened = open_memory(&path)?;
        opened.memory.tell(&owner, &add.text, now_ms()).await.map_err(not_changed)
    })?;
    let told = match added {
        Added::New(id) => format!("remembered as {id}, for {owner}"),
        Added::Known(id) => format!("{id} says so already"),
    } + &told_of_secrets(&add.text);
    Ok(writeln!(io::stdout(), "{}", contexture_terminal::harmless::on_one_line(&told))?)
}
