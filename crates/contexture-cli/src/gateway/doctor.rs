//! `contexture doctor`: whether an agent reaches the gateway.

use std::env;
use std::io::{self, Write};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use contexture_gateway::answerer::Answerer;
use contexture_gateway::{Gateway, Options, RequestRecord, Upstreams};
use tokio::process::Command;

use super::agents::Agent;
use super::configured::Surroundings;
use crate::failure::Failure;

/// Check that an agent's requests reach the gateway
///
/// The agent is started with one question and a local provider that always responds with one word. Nothing is sent
/// to the real provider, and nothing is billed.
#[derive(Args)]
pub struct Doctor {
    /// A variable for the agent, as in `run`
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// How long the agent may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Arguments for one question, if the agent is not a known one
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Carries out the command.
///
/// # Errors
/// The agent is not installed, or no request of it was seen.
pub fn run(command: &Doctor) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let agent = Agent::named(&command.agent).with(&command.set)?;
    agent.check_pointed()?;
    let (told, records) = runtime.block_on(tried(command, &agent))?;
    runtime.shutdown_background();
    if records.is_empty() {
        let failure = Failure::work(format!("no request of `{}` was seen by the gateway ({told})", agent.name));
        return Err(match &agent.hint {
            Some(hint) => failure.hint(hint.clone()),
            None => failure.hint("look up how it is told the address of its provider, and pass that with --set"),
        });
    }
    let mut text = format!("`{}` reaches the gateway ({told})\n", agent.name);
    for record in &records {
        let format = record.format.map_or("unknown", |format| format.name());
        let why = record.passed.as_deref().map(|why| format!("; passed through, because {why}")).unwrap_or_default();
        text.push_str(&format!("  {format}, model {}, status {}{why}\n", record.model, record.status));
    }
    Ok(io::stdout().write_all(text.as_bytes())?)
}

async fn tried(command: &Doctor, agent: &Agent) -> Result<(String, Vec<RequestRecord>), Failure> {
    let here = env::current_dir().unwrap_or_default();
    let variable = |name: &str| env::var(name).ok();
    let around = Surroundings { variable: &variable, directory: &here, arguments: &command.arguments };
    // Where requests would go does not matter here, but whether they would reach the gateway.
    let destination = agent.destination_if_known(&around)?;
    let answerer = Answerer::start().await?;
    let upstreams =
        Upstreams { anthropic: answerer.url(), openai: format!("{}/v1", answerer.url()), ..Upstreams::default() };
    let options = Options { upstreams, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.map_err(super::start::cannot_start)?;
    let pointed = agent
        .pointed_at(&gateway.url(), &destination, &around)
        .map_err(|error| Failure::work(format!("tell `{}` where the gateway is: {error}", agent.name)))?;
    let arguments = if command.arguments.is_empty() { &agent.trial } else { &command.arguments };
    let mut child = Command::new(&agent.command)
        .args(&pointed.arguments)
        .args(arguments)
        .envs(pointed.set.iter().cloned())
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let failure = Failure::work(format!("start `{}`: {error}", agent.command));
            failure.hint("is it installed, and on the PATH?")
        })?;
    let told = match tokio::time::timeout(Duration::from_secs(command.seconds), child.wait()).await {
        Ok(status) => format!("it ended with {}", status?),
        Err(_) => format!("it was still running after {} s", command.seconds),
    };
    Ok((told, gateway.stop().await))
}
