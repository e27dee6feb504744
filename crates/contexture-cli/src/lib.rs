//! The program `contexture`, as a library: its commands.

#[cfg(unix)]
pub mod chat;
#[cfg(not(unix))]
#[path = "chat/unsupported.rs"]
pub mod chat;
pub mod completions;
pub mod config;
pub mod demo;
// Only chat has a model, and it is not on Windows.
#[cfg_attr(not(unix), allow(dead_code))]
mod endpoint;
pub mod environment;
pub mod failure;
pub mod gateway;
mod groups;
mod lines;
pub mod manual;
pub mod mcp;
pub mod memory;
mod old;
pub mod replay;
pub mod settings;
pub mod setup;
pub mod source;
mod state_directory;
pub mod store;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use contexture_terminal::screen::{Screen, TextStyle};
use failure::Failure;

/// Builds the context window of an LLM agent: runs agents through a gateway, and measures recorded sessions.
#[derive(Parser)]
#[command(name = "contexture", version)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<CliCommand>,
}

#[derive(Subcommand)]
enum CliCommand {
    Chat(chat::Chat),
    Demo(demo::Demo),
    Run(gateway::run::RunCommand),
    Serve(gateway::serve::Serve),
    Receipts(gateway::receipts::Receipts),
    Status(gateway::status::StatusCommand),
    Pause(gateway::pause::Pause),
    Install(gateway::install::InstallCommand),
    Uninstall(gateway::install::Uninstall),
    Doctor(gateway::doctor::Doctor),
    Inspect(gateway::inspect::Inspect),
    Show(gateway::show::ShowCommand),
    Forget(gateway::forget::ForgetCommand),
    Store(store::StoreCommand),
    Replay(replay::ReplayCommand),
    Memory(memory::Memory),
    Mcp(mcp::Mcp),
    Config(setup::ConfigCommand),
    Completions(completions::Completions),
    Manual(manual::Manual),
}

/// What `contexture` without arguments prints: commands with descriptions.
const EXAMPLES: [(&str, &str); 5] = [
    ("contexture demo", "shows in a minute what happens to a long session, without a key, an agent or a network"),
    ("contexture run claude", "runs your agent through a local gateway, and prints a receipt (or codex, opencode, …)"),
    ("contexture run --inspect claude", "the same, with a page that shows what the model sees"),
    (
        "contexture replay ~/.claude/projects",
        "what models would have been sent in your recorded sessions, and what it would have cost",
    ),
    ("contexture doctor claude", "checks that your agent's requests reach the gateway"),
];

/// Runs the program with the arguments of the process, and returns its exit code.
pub fn main() -> ExitCode {
    let screen = Screen::of_output();
    let words: Vec<OsString> = old::renewed(std::env::args_os().collect());
    let parsed = program(screen).try_get_matches_from(&words).and_then(|matches| {
        old::tell_flags(&matches);
        CommandLine::from_arg_matches(&matches)
    });
    let outcome = match parsed {
        Ok(arguments) => run(arguments, screen),
        Err(error) => Err(Failure::from_clap(&error, screen, &program(screen), &words)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// The commands and flags, with a help that fits the screen.
fn program(screen: Screen) -> clap::Command {
    let styles =
        Styles::styled().header(AnsiColor::Green.on_default().bold()).usage(AnsiColor::Green.on_default().bold());
    let program = CommandLine::command().term_width(screen.columns).styles(styles);
    let program = program.mut_subcommands(|command| match command.get_name() {
        "run" => command.defer(|run| run.after_long_help(gateway::run::known_agents())),
        _ => command,
    });
    groups::grouped(program, screen)
}

fn run(arguments: CommandLine, screen: Screen) -> Result<(), Failure> {
    match arguments.command {
        None => Ok(io::stdout().write_all(short_help(screen).as_bytes())?),
        Some(CliCommand::Chat(chat)) => chat::run(&chat, screen),
        Some(CliCommand::Demo(demo)) => demo::run(&demo, screen),
        Some(CliCommand::Run(run)) => gateway::run::run(&run),
        Some(CliCommand::Serve(serve)) => gateway::serve::run(&serve),
        Some(CliCommand::Receipts(receipts)) => gateway::receipts::run(&receipts),
        Some(CliCommand::Status(status)) => gateway::status::run(&status),
        Some(CliCommand::Pause(pause)) => gateway::pause::run(&pause),
        Some(CliCommand::Install(install)) => gateway::install::install(&install),
        Some(CliCommand::Uninstall(uninstall)) => gateway::install::uninstall(&uninstall),
        Some(CliCommand::Doctor(doctor)) => gateway::doctor::run(&doctor),
        Some(CliCommand::Inspect(inspect)) => gateway::inspect::run(&inspect),
        Some(CliCommand::Show(show)) => gateway::show::run(&show),
        Some(CliCommand::Forget(forget)) => gateway::forget::run(&forget),
        Some(CliCommand::Store(store)) => store::run(&store, screen),
        Some(CliCommand::Replay(replay)) => replay::run(&replay, screen),
        Some(CliCommand::Memory(memory)) => memory::run(&memory, screen),
        Some(CliCommand::Mcp(mcp)) => mcp::run(&mcp),
        Some(CliCommand::Config(config)) => setup::run(&config, screen),
        Some(CliCommand::Completions(completions)) => completions::run(&completions, program(screen)),
        Some(CliCommand::Manual(manual)) => manual::run(&manual, program(screen)),
    }
}

fn short_help(screen: Screen) -> String {
    let mut text = screen.wrap("contexture builds the context window of an LLM agent.", 0);
    text.push_str("\n\n");
    for (command, shows) in EXAMPLES {
        text.push_str(&format!("  {}\n", screen.paint(TextStyle::Bold, command)));
        text.push_str(&format!("{}\n", screen.wrap(&format!("      {shows}"), 6)));
    }
    let more = "`contexture help` lists all commands, `contexture help COMMAND` explains one.";
    format!("{text}\n{}\n", screen.wrap(more, 0))
}
