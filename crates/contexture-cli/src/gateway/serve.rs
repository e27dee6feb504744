//! `contexture serve`: runs a gateway without an agent.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::settings::keys;
use clap::Args;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use contexture_inspect::InspectServer;

use super::flags::{self, GatewayFlags, web_address};
use super::install::record::Record;
use super::keys::KeptKeys;
use super::print;
use super::running::KeptNote;
use super::start::cannot_start;
use super::telemetry::Telemetry;
use crate::failure::Failure;

/// Run a gateway without an agent, and print the variables to set
///
/// It asks for a key, which is part of the printed addresses: it is made on the first start and kept for this user.
/// Requests go to each provider's own address by their format, or to --upstream. Ctrl-C ends it and prints a receipt.
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
    /// Be the gateway of an agent that was installed with `contexture install`
    #[arg(long, value_name = "AGENT", conflicts_with_all = ["listen", "keys", "upstream"])]
    installed: Option<String>,
}

/// Carries out the command.
///
/// # Errors
/// The gateway cannot start.
pub fn run(command: &Serve) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(command))?;
    runtime.shutdown_background();
    Ok(())
}

async fn serve(command: &Serve) -> Result<(), Failure> {
    let config = command.flags.config(crate::settings::Command::Serve)?;
    let installed = command.installed.as_deref().map(installed).transpose()?;
    let upstreams = match &installed {
        Some(record) => record.upstreams(),
        None => command.upstream.as_deref().map_or_else(|| flags::upstreams(&config), Upstreams::one),
    };
    let telemetry = Telemetry::start()?;
    let own_keys = installed.as_ref().map(Record::keys).transpose()?;
    let kept = KeptKeys::read(own_keys.as_deref().or(command.keys.as_deref()))?;
    let options = command.flags.options(&config, upstreams)?;
    let mut options = Options { keys: kept.keys.clone(), ..options };
    options.watchers.extend(telemetry.watcher());
    let inspector = command.flags.inspector(&mut options).await?;
    let listen = installed.as_ref().map(|record| record.address.clone()).or_else(|| command.listen.clone());
    let listen = listen.unwrap_or_else(|| config.get(&keys::GATEWAY_LISTEN));
    let mut gateway = Gateway::start(&listen, options).await.map_err(cannot_start)?;
    if !gateway.address().ip().is_loopback() {
        eprintln!("{}", written_warning(&gateway));
    }
    let note = KeptNote::write(&gateway, command.installed.as_deref().unwrap_or("serve"));
    let told = match &installed {
        // A service's output is kept, and keys are no matter for it.
        Some(record) => format!("the gateway of `{}` listens on http://{}\n", record.agent, gateway.address()),
        None => told(&gateway, &kept, inspector.as_ref()),
    };
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    tokio::select! {
        ended = gateway.wait() => return Ok(ended?),
        _ = tokio::signal::ctrl_c() => {}
    }
    drop(note);
    let records = gateway.stop().await;
    telemetry.finish().await;
    eprint!("\n{}", print::receipt(&Receipt::of(&records), command.flags.observe));
    Ok(())
}

/// What was installed for an agent.
fn installed(agent: &str) -> Result<Record, Failure> {
    let missing = || Failure::work(format!("`{agent}` is not installed")).hint(format!("`contexture install {agent}`"));
    Record::of(agent)?.ok_or_else(missing)
}

/// What the user is told to set.
fn told(gateway: &Gateway, kept: &KeptKeys, inspector: Option<&InspectServer>) -> String {
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

/// What a user should know who lets others reach the gateway.
fn written_warning(gateway: &Gateway) -> String {
    let address = gateway.address();
    format!(
        "warning: other machines can reach {address}, and nothing is encrypted on the way: keys and conversations can be \
         read there\nhint: listen on 127.0.0.1, or put something that speaks TLS in front of it"
    )
}
