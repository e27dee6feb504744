//! `contexture serve`: runs a gateway without an agent.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use contexture_gateway::{Gateway, Options, Upstreams};
use contexture_inspect::InspectServer;

use super::flags::{self, GatewayFlags, web_address};
use super::for_parent;
use super::install::record::InstallRecord;
use super::keys::KeptKeys;
use super::print::{self, ReceiptExtent};
use super::running::KeptNote;
use super::start::{cannot_start, warn_of_others};
use super::stopping::StopSignals;
use super::telemetry;
use crate::environment;
use crate::failure::Failure;
use contexture_terminal::screen::Screen;

/// Run a gateway without an agent, and print the variables to set
///
/// It asks for a key, which is part of the printed addresses: it is made on the first start and kept for this user.
/// Requests go to each provider's own address by their format, or to --upstream. Ctrl-C or SIGTERM
/// stops it: it accepts nothing new, lets responses in progress finish, and prints a receipt; a second one ends it at
/// once.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    flags: GatewayFlags,
    /// Where to listen [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// The file with the keys of those who may use it [default: gateway-keys.toml in the user's state directory]
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Where all requests go
    #[arg(long, value_name = "URL", value_parser = web_address)]
    upstream: Option<String>,
    /// How long responses in progress may take to finish after it is asked to stop [default: 120]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=86_400))]
    stop_time: Option<u64>,
    /// Print where it listens, but no keys: what is printed may be kept in a log
    #[arg(long)]
    quiet: bool,
    /// Print the whole receipt at the end, not only one line
    #[arg(long)]
    details: bool,
    /// Be the gateway of an agent that was installed with `contexture install`
    #[arg(long, hide = true, value_name = "AGENT", conflicts_with_all = ["listen", "keys", "upstream"])]
    installed: Option<String>,
    /// Serve the program that started this one: on a free port, with a key that is not kept, printing JSON, until the
    /// standard input is closed
    #[arg(long, hide = true, conflicts_with_all = ["listen", "keys"])]
    for_parent: bool,
    /// The directory of the agent, beneath which files are read that messages name as `#path`; otherwise none are
    #[arg(long, hide = true, value_name = "DIR", requires = "for_parent")]
    base: Option<PathBuf>,
}

/// How long responses in progress may take to finish, in seconds. Long ones take minutes.
const STOP_TIME: u64 = 120;

/// Carries out the command.
///
/// # Errors
/// The gateway cannot start.
pub fn run(command: &Serve) -> Result<(), Failure> {
    environment::keep_from_others();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(command))?;
    runtime.shutdown_background();
    Ok(())
}

async fn serve(command: &Serve) -> Result<(), Failure> {
    if command.for_parent {
        return for_parent::serve(&command.flags, command.upstream.as_deref(), command.base.as_deref()).await;
    }
    let config = command.flags.config(crate::settings::Command::Serve)?;
    let installed = command.installed.as_deref().map(installed).transpose()?;
    let upstreams = match &installed {
        Some(record) => record.upstreams(),
        None => command.upstream.as_deref().map_or_else(|| flags::upstreams(&config), Upstreams::one),
    };
    let telemetry = telemetry::start()?;
    let own_keys = installed.as_ref().map(InstallRecord::keys).transpose()?;
    let kept = KeptKeys::read(own_keys.as_deref().or(command.keys.as_deref()))?;
    let options = command.flags.options(&config, upstreams)?;
    let memory = command.flags.remembering(&config, None)?;
    let mut options = Options { keys: kept.keys.clone(), is_supervised: true, memory, ..options };
    options.watchers.extend(telemetry.watchers());
    let inspector = command.flags.inspector(&mut options).await?;
    let listen = installed.as_ref().map(|record| record.address.clone()).or_else(|| command.listen.clone());
    let listen = listen.unwrap_or_else(|| config.gateway_listen());
    let mut stopping = StopSignals::listen()?;
    let mut gateway = Gateway::start(&listen, options).await.map_err(cannot_start)?;
    warn_of_others(gateway.address());
    for note in gateway.notes() {
        eprintln!("warning: {note}");
    }
    let note = KeptNote::write(&gateway, command.installed.as_deref().unwrap_or("serve"));
    let told = match &installed {
        // A service's output is kept, and keys are no matter for it.
        Some(record) => format!("the gateway of `{}` listens on http://{}\n", record.agent, gateway.address()),
        None if command.quiet => public_text(&gateway, &kept),
        None => setup_text(&gateway, &kept, inspector.as_ref()),
    };
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    tokio::select! {
        ended = gateway.wait() => return Ok(ended?),
        () = stopping.next() => {}
    }
    drop(note);
    let stop_time = command.stop_time.unwrap_or(STOP_TIME);
    // If the terminal is gone, there is nobody to tell.
    let _ = writeln!(io::stderr(), "contexture: stopping; responses in progress have {stop_time} s to finish");
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(stop_time)) => {}
            // Asked a second time, it does not wait.
            () = stopping.next() => {}
        }
    };
    let receipt = gateway.end_after(patience).await;
    telemetry.finish().await;
    let (extent, screen) = (ReceiptExtent::with(command.details), Screen::of_prose_errors());
    let _ = write!(io::stderr(), "\n{}", print::receipt(&receipt, command.flags.observe, extent, screen));
    Ok(())
}

/// What was installed for an agent.
fn installed(agent: &str) -> Result<InstallRecord, Failure> {
    let missing = || Failure::work(format!("`{agent}` is not installed")).hint(format!("`contexture install {agent}`"));
    InstallRecord::of(agent)?.ok_or_else(missing)
}

/// What the user is told to set.
fn setup_text(gateway: &Gateway, kept: &KeptKeys, inspector: Option<&InspectServer>) -> String {
    let mut told = format!("listening on http://{}\n", gateway.address());
    for key in &kept.keys {
        let url = gateway.url_for(key);
        if kept.keys.len() > 1 {
            told.push_str(&format!("for the key `{}`:\n", key.name()));
        }
        told.push_str(&format!("  export ANTHROPIC_BASE_URL={url}/anthropic\n  export OPENAI_BASE_URL={url}/openai\n"));
    }
    // Such an agent is not started by this program, so nobody else tells it.
    told.push_str(
        "Claude Code sends all its tools with every request to such an address, unless it is told otherwise:\n  \
         export ENABLE_TOOL_SEARCH=true\n",
    );
    let made = if kept.is_new { "was made now and is kept" } else { "is kept" };
    told.push_str(&format!(
        "the addresses hold a key, which {made} in {}: whoever has it can use this gateway\n\
         its own routes (/contexture/status, /metrics) ask for the token {}\n",
        kept.path.display(),
        gateway.token()
    ));
    if let Some(server) = inspector {
        told.push_str(&format!("the inspector is at {}\n", server.inspector().url()));
    }
    told
}

/// What may be read by those who read the log.
fn public_text(gateway: &Gateway, kept: &KeptKeys) -> String {
    format!("listening on http://{}\nthe keys are in {}\n", gateway.address(), kept.path.display())
}
