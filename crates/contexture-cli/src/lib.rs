//! The program `contexture`, as a library: its commands, and the measures that they print.

pub mod bill;
pub mod compare;
pub mod config;
pub mod failure;
pub mod gateway;
pub mod import;
pub mod judge;
pub mod pauses;
pub mod plot;
pub mod policies;
pub mod progress;
pub mod recorded;
pub mod replay;
pub mod said;
pub mod source;
pub mod table;
pub mod terminal;
pub mod window;
pub mod work;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

/// Weaves the context window of an LLM agent out of memory layers.
#[derive(Parser)]
#[command(name = "contexture", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Run(gateway::run::Run),
    Serve(gateway::serve::Serve),
    Receipts(gateway::receipts::Receipts),
    Status(gateway::status::Status),
    Doctor(gateway::doctor::Doctor),
    Show(gateway::show::Show),
    Forget(gateway::forget::Forget),
    Window(window::WindowCommand),
    Replay(replay::Replay),
    Import(import::Import),
    Compare(compare::Compare),
    Config(config::command::ConfigCommand),
}

/// What `contexture` without arguments prints.
const SHORT_HELP: &str = "\
contexture weaves the context window of an LLM agent out of memory layers.

  contexture window --message 'Look at #README.md' --map
                              what a model would be sent right now, and what it takes
  contexture replay ~/.claude/projects
                              what models would have been sent, and what was folded when
  contexture compare ~/.claude/projects --budget 32000
                              what context policies would have kept, and at what price

`contexture --help` lists all commands, `contexture COMMAND --help` explains one.
";

/// Runs the program with the arguments of the process, and gives its exit code.
pub fn main() -> ExitCode {
    let outcome = match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(error) => Err(Failure::from(error)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        None => Ok(io::stdout().write_all(SHORT_HELP.as_bytes())?),
        Some(Command::Run(run)) => gateway::run::run(&run),
        Some(Command::Serve(serve)) => gateway::serve::run(&serve),
        Some(Command::Receipts(receipts)) => gateway::receipts::run(&receipts),
        Some(Command::Status(status)) => gateway::status::run(&status),
        Some(Command::Doctor(doctor)) => gateway::doctor::run(&doctor),
        Some(Command::Show(show)) => gateway::show::run(&show),
        Some(Command::Forget(forget)) => gateway::forget::run(&forget),
        Some(Command::Window(window)) => window::run(&window),
        Some(Command::Replay(replay)) => replay::run(&replay),
        Some(Command::Import(import)) => import::run(&import),
        Some(Command::Compare(compare)) => compare::run(&compare),
        Some(Command::Config(config)) => config::command::run(&config),
    }
}
