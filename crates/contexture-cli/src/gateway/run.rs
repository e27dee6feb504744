//! `contexture run`: runs an agent through its own gateway.

use std::env;
use std::io::{self, Write};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use clap::Args;
use contexture_gateway::{Gateway, Options, References};
use contexture_text::numbers::counted;
use tokio::process::Command;

use super::agents::{self, Agent, Pointed};
use super::configured::Surroundings;
use super::flags::{self, GatewayFlags, web_address};
use super::install::record::behind_installed;
use super::lean::lean_tools;
use super::print::{self, ReceiptExtent};
use super::running::KeptNote;
use super::signals::{Signals, exit_code};
use super::telemetry;
use crate::environment;
use crate::failure::Failure;
use crate::memory::embedder::without_meaning;
use crate::settings::GATEWAY_VARIABLE;
use contexture_terminal::screen::Screen;

/// Run an agent through a local gateway, and say at the end what it cost
///
/// The agent works in the terminal as it always does. It is pointed at the gateway with variables and files of the
/// gateway's own; no file of the agent is changed.
#[derive(Args)]
pub struct RunCommand {
    #[command(flatten)]
    flags: GatewayFlags,
    /// A variable for the agent, `{url}` in it being the gateway's address; can be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Where requests go; otherwise to what the agent would have used
    #[arg(long, value_name = "URL", value_parser = web_address)]
    upstream: Option<String>,
    /// Leave out tools that the last ten conversations of this project had and did not call
    #[arg(long, conflicts_with_all = ["no_store", "observe"])]
    lean_tools: bool,
    /// Print the whole receipt at the end, not only one line
    #[arg(long)]
    details: bool,
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Arguments for the agent
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Carries out the command, and ends the process with the agent's exit code.
///
/// # Errors
/// The agent is not there, or the gateway cannot start.
pub fn run(command: &RunCommand) -> Result<(), Failure> {
    environment::keep_from_others();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let status = runtime.block_on(run_agent(command))?;
    runtime.shutdown_background();
    std::process::exit(exit_code(status));
}

async fn run_agent(command: &RunCommand) -> Result<ExitStatus, Failure> {
    let agent = Agent::named(&command.agent).with(&command.set)?;
    agent.check_pointed()?;
    let config = command.flags.config(crate::settings::Command::Run)?;
    let here = env::current_dir().unwrap_or_default();
    let variable = |name: &str| env::var(name).ok();
    let around = Surroundings { variable: &variable, directory: &here, arguments: &command.arguments };
    let destination = match &command.upstream {
        Some(url) => agent.destination_given(contexture_gateway::Upstreams::one(url), &around),
        None => agent.destination(flags::upstreams(&config), &around)?,
    };
    let destination = destination.map_upstreams(behind_installed);
    // Before the agent takes over the terminal: at the end it would be too late.
    for doubt in &destination.doubts {
        eprintln!("contexture: warning: {doubt}: its requests may not reach the gateway");
    }
    let (upstreams, directory) = (destination.upstreams.clone(), here.to_str().map(Arc::from));
    let telemetry = telemetry::start()?;
    let memory = command.flags.remembering(&config, Some(&here))?;
    let embedder = memory.as_ref().and_then(|memory| memory.embedder().cloned());
    let leaves = agent.leaves();
    let mut options = Options { directory, memory, leaves, ..command.flags.options(&config, upstreams)? };
    if options.references == References::Unknown {
        options.references = agent.references();
    }
    if command.lean_tools {
        if options.holdout > 0.0 {
            let failure = Failure::usage("conversations that are held out are sent unchanged, with all tools");
            return Err(failure.hint("leave out --lean-tools, or the hold-out share"));
        }
        options.lean_tools = Some(lean_tools(&agent, &around)?);
    }
    options.watchers.extend(telemetry.watchers());
    let inspector = command.flags.inspector(&mut options).await?;
    let gateway = Gateway::start("127.0.0.1:0", options).await.map_err(super::start::cannot_start)?;
    for note in gateway.notes() {
        eprintln!("contexture: {note}");
    }
    if let Some(server) = &inspector {
        eprintln!("contexture: the inspector is at {}", server.inspector().url());
    }
    let note = KeptNote::write(&gateway, &agent.name);
    let pointed = agent.pointed_at(&gateway.url(), &destination, &around);
    let address = gateway.address().to_string();
    let status = spawn(&agent, pointed, &command.arguments, &address).await;
    drop(note);
    let refused = gateway.refused();
    let receipt = gateway.end().await;
    telemetry.finish().await;
    let status = status?;
    let (extent, screen) = (ReceiptExtent::with(command.details), Screen::of_prose_errors());
    let mut told = format!("\n{}", print::receipt(&receipt, command.flags.observe, extent, screen));
    if command.flags.inspect && !command.flags.no_store {
        told.push_str("  `contexture inspect` shows it again\n");
    }
    if let Some(trouble) = embedder.and_then(|embedder| embedder.trouble()) {
        told.push_str(&format!("  {}\n", without_meaning(&trouble)));
    }
    if receipt.requests == 0 {
        told.push_str(&unseen(&agent));
    }
    if refused > 0 {
        told.push_str(&format!(
            "  {} came without the gateway's key: an agent that drops the path of its \
             address cannot be used, unless it can send the header `x-contexture-key`\n",
            counted(refused as usize, "request")
        ));
    }
    // If the terminal is gone, there is nobody to tell; the agent's exit code is returned all the same.
    let _ = io::stderr().write_all(told.as_bytes());
    Ok(status)
}

/// Runs the agent in this terminal until it ends.
async fn spawn(
    agent: &Agent,
    pointed: io::Result<Pointed>,
    arguments: &[String],
    address: &str,
) -> Result<ExitStatus, Failure> {
    let pointed =
        pointed.map_err(|error| Failure::work(format!("tell `{}` where the gateway is: {error}", agent.name)))?;
    let mut signals = Signals::listen()?;
    let mut child = Command::new(&agent.command)
        .args(&pointed.arguments)
        .args(arguments)
        .envs(pointed.set.iter().cloned())
        .env("NO_PROXY", no_proxy("NO_PROXY"))
        .env("no_proxy", no_proxy("no_proxy"))
        // By it `contexture status --line` knows whose status bar it is in.
        .env(GATEWAY_VARIABLE, address)
        .stdin(Stdio::inherit())
        .spawn()
        .map_err(|error| agent.not_started(&error))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(status?),
            // Ending this program is meant to end the agent, which may have something to finish first.
            signal = signals.next() => signal.pass_on(&child),
        }
    }
}

/// The gateway is on this machine and must not be reached through a proxy.
fn no_proxy(name: &str) -> String {
    let before = env::var(name).unwrap_or_default();
    if before.is_empty() { "127.0.0.1,localhost".to_owned() } else { format!("{before},127.0.0.1,localhost") }
}

/// What the help says about agents. Their files are only read for it if it is shown.
pub(crate) fn known_agents() -> String {
    let names: Vec<String> = agents::known().into_iter().map(|agent| agent.name).collect();
    format!("Known agents: {}; any other command works with --set.", names.join(", "))
}

/// Possible reasons why no request was seen.
fn unseen(agent: &Agent) -> String {
    let mut told = String::new();
    if let Some(hint) = agent.hint() {
        told.push_str(&format!("  {hint}\n"));
    }
    told + &format!("  `contexture doctor {}` shows whether it reaches the gateway\n", agent.name)
}
