//! The program of the benchmarks: what windows of recordings keep and cost, how well things are found, and a database.

mod judge;
mod gateway;
mod grades;
mod hashes;
mod fit;
mod recall;
mod postgres;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use contexture_cli::failure::Failure;

/// What is measured of Contexture with recordings or a database.
#[derive(Parser)]
#[command(name = "contexture-bench")]
struct BenchArguments {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    Judge(judge::JudgeCommand),
    Gateway(gateway::PlayCommand),
    Grades(grades::GradesCommand),
    Hashes(hashes::HashesCommand),
    Fit(fit::FitCommand),
    Recall(recall::RecallCommand),
    Postgres(postgres::PostgresCommand),
}

fn main() -> ExitCode {
    let done = match BenchArguments::try_parse() {
        Ok(BenchArguments { command }) => run(command),
        Err(error) => Err(Failure::from(error).hint(format!("`{} --help` says what can be asked for", command_name()))),
    };
    done.map_or_else(Failure::report, |()| ExitCode::SUCCESS)
}

/// The program, with the command that is asked of it.
fn command_name() -> String {
    let name = std::env::args().nth(1).filter(|name| BenchArguments::command().find_subcommand(name).is_some());
    name.map_or("contexture-bench".to_owned(), |name| format!("contexture-bench {name}"))
}

fn run(command: BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Judge(judge) => judge::print(judge),
        BenchCommand::Gateway(play) => gateway::run(&play),
        BenchCommand::Grades(grades) => grades::print(&grades),
        BenchCommand::Hashes(hashes) => hashes::print(&hashes),
        BenchCommand::Fit(fit) => fit::print(fit),
        BenchCommand::Recall(recall) => recall::print(&recall),
        BenchCommand::Postgres(postgres) => postgres::run(&postgres),
    }
}
