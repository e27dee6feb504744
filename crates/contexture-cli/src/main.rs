//! The program `contexture`.

#[allow(dead_code, reason = "the command that compares policies is to use it")]
mod measure;
mod replay;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Weaves the context window of an LLM agent out of memory layers.
#[derive(Parser)]
#[command(name = "contexture", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Plays recorded transcripts and shows what would have been sent.
    Replay(replay::Replay),
}

fn main() -> ExitCode {
    let Arguments { command: Command::Replay(replay) } = Arguments::parse();
    match replay.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
