//! `contexture memory`: what is remembered, for people to look into and to correct.

pub(crate) mod embedder;
pub(crate) mod learning;
pub(crate) mod own;
mod sessions;
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
mod import_sessions;
mod import;
mod search_own;
mod search;
mod add;
mod contained;

use clap::{Args, Subcommand};
pub(crate) use whose::now_ms;

use crate::failure::Failure;
use contexture_terminal::screen::Screen;

/// Search what your agents did before, and look into what they remember
///
/// `contexture memory import` takes in the sessions that agents recorded, and `contexture memory search` searches those of
/// this project. docs/memory.md says what is kept, and where.
#[derive(Args)]
pub struct Memory {
    #[command(subcommand)]
    command: MemorySubcommand,
}

#[derive(Subcommand)]
enum MemorySubcommand {
    Import(import::MemoryImport),
    Search(search::MemorySearchCommand),
    Add(add::MemoryAdd),
    #[command(alias = "list")]
    Show(show::MemoryShow),
    Why(why::Why),
    Edit(edit::MemoryEdit),
    Undo(undo::MemoryUndo),
    Forget(forget::MemoryForget),
    Stats(stats::Stats),
    Export(export::Export),
}

/// Runs the command.
///
/// # Errors
/// Invalid usage, or a store that cannot be used.
pub fn run(memory: &Memory, screen: Screen) -> Result<(), Failure> {
    match &memory.command {
        MemorySubcommand::Show(show) => show::run(show, screen),
        MemorySubcommand::Search(search) => search::run(search, screen),
        MemorySubcommand::Add(add) => add::run(add),
        MemorySubcommand::Why(why) => why::run(why, screen),
        MemorySubcommand::Edit(edit) => edit::run(edit),
        MemorySubcommand::Undo(undo) => undo::run(undo),
        MemorySubcommand::Forget(forget) => forget::run(forget),
        MemorySubcommand::Stats(stats) => stats::run(stats, screen),
        MemorySubcommand::Export(export) => export::run(export),
        MemorySubcommand::Import(import) => import::run(import, screen),
    }
}
