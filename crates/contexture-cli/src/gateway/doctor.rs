//! `contexture doctor`: whether an agent reaches the gateway.

use std::env;
use std::io::{self, Write};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use contexture_gateway::answerer::Answerer;
use contexture_gateway::{Gateway, Options, RequestRecord, Upstreams};
use contexture_text::numbers::counted;
use tokio::process::{Child, Command};

use super::agents::Agent;
use super::configured::Surroundings;
use super::words::ProgramWords;
use crate::failure::Failure;

/// How long an agent may go on after it was answered: some ask for more than one word.
const ENOUGH: Duration = Duration::from_secs(10);

/// Check that an agent's requests reach the gateway
///
/// The agent is started with one question and a local provider that always responds with one word. Nothing is sent
/// to the real provider, and nothing is billed. It fails unless a request to a model was seen and answered, and unless it
/// had a key or a login where the provider wants one; what the agent said is printed.
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

/// What was seen of an agent.
struct AgentTrial {
    /// How it ended.
    ended: String,
    /// What it said.
    words: String,
    /// How many requests to a model were answered.
    answered: usize,
    /// Whether they had no key or login, although their provider wants one.
    lacks_key: bool,
    /// How many requests came without the gateway's key.
    refused: u64,
    records: Vec<RequestRecord>,
}

/// Carries out the command.
///
/// # Errors
/// The agent is not installed, or no request of it to a model was seen and answered.
pub fn run(command: &Doctor) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let agent = Agent::named(&command.agent).with(&command.set)?;
    agent.check_pointed()?;
    let trial = runtime.block_on(tried(command, &agent))?;
    runtime.shutdown_background();
    if trial.answered == 0 {
        // What the agent says is usually the reason.
        io::stderr().write_all(said(&agent, &trial).as_bytes())?;
        return Err(unseen(&agent, &trial));
    }
    if trial.lacks_key {
        io::stderr().write_all(said(&agent, &trial).as_bytes())?;
        return Err(keyless(&agent, &trial));
    }
    let mut text = format!("`{}` reaches the gateway ({})\n", agent.name, trial.ended);
    for record in &trial.records {
        let format = record.format.map_or("another format", |format| format.name());
        let model = if record.model.is_empty() { String::new() } else { format!(", model {}", record.model) };
        let why = record.passed.as_deref().map(|why| format!("; passed through, because {why}")).unwrap_or_default();
        text.push_str(&format!("  {format}{model}, status {}{why}\n", record.status));
    }
    Ok(io::stdout().write_all((text + &said(&agent, &trial)).as_bytes())?)
}

/// What the agent said.
fn said(agent: &Agent, trial: &AgentTrial) -> String {
    match trial.words.is_empty() {
        true => format!("`{}` said nothing\n", agent.name),
        false => format!("`{}` said:\n{}", agent.name, trial.words),
    }
}

/// The route is proved, but nobody would answer on it.
fn keyless(agent: &Agent, trial: &AgentTrial) -> Failure {
    let (name, ended) = (&agent.name, &trial.ended);
    let told = format!("`{name}` reaches the gateway, but without a key or a login, so its provider will refuse it");
    Failure::work(format!("{told} ({ended})")).hint(format!("log `{name}` in, or set its key, and try again"))
}

/// Why the route is not proved, with what to look at.
fn unseen(agent: &Agent, trial: &AgentTrial) -> Failure {
    let AgentTrial { ended, refused, records, .. } = trial;
    let name = &agent.name;
    if *refused > 0 {
        let count = counted(*refused as usize, "request");
        let failure = Failure::work(format!("{count} of `{name}` came without the gateway's key ({ended})"));
        return failure.hint(
            "an agent that drops the path of its address cannot be used, unless it can send the header `x-contexture-key`",
        );
    }
    let failure = Failure::work(match records.len() {
        0 => format!("no request of `{name}` was seen by the gateway ({ended})"),
        count => {
            let seen = counted(count, "request");
            format!("the gateway saw {seen} of `{name}`, but none that a model answered ({ended})")
        }
    });
    match (agent.hint(), trial.words.is_empty()) {
        (Some(hint), _) => failure.hint(hint),
        (None, false) => failure.hint(format!("what `{name}` said above may be the reason: is it logged in?")),
        (None, true) => failure.hint("look up how it is told the address of its provider, and pass that with --set"),
    }
}

async fn tried(command: &Doctor, agent: &Agent) -> Result<AgentTrial, Failure> {
    let here = env::current_dir().unwrap_or_default();
    let variable = |name: &str| env::var(name).ok();
    let around = Surroundings { variable: &variable, directory: &here, arguments: &command.arguments };
    // Where requests would go does not matter here, but whether they would reach the gateway.
    let destination = agent.destination_if_known(&around)?;
    let arguments = if command.arguments.is_empty() { agent.question(&around)? } else { command.arguments.clone() };
    let answerer = Answerer::start().await?;
    let upstreams = Upstreams {
        anthropic: answerer.url(),
        openai: format!("{}/v1", answerer.url()),
        google: answerer.url(),
        ..Upstreams::default()
    };
    let options = Options { upstreams, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.map_err(super::start::cannot_start)?;
    let pointed = agent
        .pointed_at(&gateway.url(), &destination, &around)
        .map_err(|error| Failure::work(format!("tell `{}` where the gateway is: {error}", agent.name)))?;
    let mut child = in_its_own_group(Command::new(&agent.command))
        .args(&pointed.arguments)
        .args(&arguments)
        .envs(agent.variables_for_question(&around))
        .envs(pointed.set.iter().cloned())
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| agent.not_started(&error))?;
    let words = ProgramWords::of(&mut child);
    let ended = ended(&mut child, &answerer, Duration::from_secs(command.seconds)).await?;
    let (words, refused) = (words.finish().await, gateway.refused());
    let key = gateway.url();
    let key = key.rsplit('/').next().unwrap_or_default();
    let words = words.replace(key, "(key)");
    // Another provider than the usual one may want none.
    let lacks_key = agent.is_known() && destination.upstreams == Upstreams::default() && !answerer.has_seen_key();
    Ok(AgentTrial { ended, words, answered: answerer.answered(), lacks_key, refused, records: gateway.stop().await })
}

/// Waits for an agent, for a limited time; some never end by themselves.
async fn ended(child: &mut Child, answerer: &Answerer, most: Duration) -> Result<String, Failure> {
    let enough = async {
        answerer.first_answer().await;
        tokio::time::sleep(ENOUGH).await;
    };
    let ended = tokio::select! {
        status = child.wait() => format!("it ended with {}", status?),
        () = enough => format!("it was still running {} s after it was answered", ENOUGH.as_secs()),
        () = tokio::time::sleep(most) => format!("it was still running after {} s", most.as_secs()),
        _ = tokio::signal::ctrl_c() => {
            kill_group(child);
            return Err(Failure::work("interrupted"));
        }
    };
    kill_group(child);
    Ok(ended)
}

/// A command whose programs can be ended with it.
#[cfg(unix)]
fn in_its_own_group(mut command: Command) -> Command {
    command.process_group(0);
    command
}

#[cfg(not(unix))]
fn in_its_own_group(command: Command) -> Command {
    command
}

/// Ends what an agent has started, and itself.
#[cfg(unix)]
fn kill_group(child: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
        // An error means that all of it has ended.
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_: &Child) {}
