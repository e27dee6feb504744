//! `contexture memory`: what is remembered of past conversations.

mod import;
mod place;
mod search;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::terminal::Screen;

/// Look into what is remembered of past conversations
#[derive(Args)]
pub struct Memory {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Subcommand)]
enum MemoryCommand {
    Import(import::Import),
    Search(search::Search),
}

/// Runs the command.
///
/// # Errors
/// Invalid usage, or a store that cannot be used.
pub fn run(memory: &Memory, screen: Screen) -> Result<(), Failure> {
    match &memory.command {
        MemoryCommand::Import(import) => import::run(import),
        MemoryCommand::Search(search) => search::run(search, screen),
    }
}
