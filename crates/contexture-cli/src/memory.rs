//! `contexture memory`: what is remembered, for people to look into and to correct.

mod whose;
mod show;
mod why;
mod edit;
mod undo;
mod forgotten;
mod forget;
mod stats;
mod export;
mod mirror;
mod place;
mod import;
mod search;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use crate::terminal::Screen;

/// Look into what agents remember, and correct it
///
/// docs/memory.md says what is kept, and where.
#[derive(Args)]
pub struct Memory {
    #[command(subcommand)]
    command: MemoryCommand,
}

#[derive(Subcommand)]
enum MemoryCommand {
    Show(show::MemoryShow),
    Search(search::MemorySearch),
    Why(why::Why),
    Edit(edit::MemoryEdit),
    Undo(undo::Undo),
    Forget(forget::MemoryForget),
    Stats(stats::Stats),
    Export(export::Export),
    Import(import::MemoryImport),
}

/// Runs the command.
///
/// # Errors
/// Invalid usage, or a store that cannot be used.
pub fn run(memory: &Memory, screen: Screen) -> Result<(), Failure> {
    match &memory.command {
        MemoryCommand::Show(show) => show::run(show, screen),
        MemoryCommand::Search(search) => search::run(search, screen),
        MemoryCommand::Why(why) => why::run(why, screen),
        MemoryCommand::Edit(edit) => edit::run(edit),
        MemoryCommand::Undo(undo) => undo::run(undo),
        MemoryCommand::Forget(forget) => forget::run(forget),
        MemoryCommand::Stats(stats) => stats::run(stats, screen),
        MemoryCommand::Export(export) => export::run(export),
        MemoryCommand::Import(import) => import::run(import),
    }
}
