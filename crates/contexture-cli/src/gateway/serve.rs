//! `contexture serve`: runs a gateway without an agent.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::settings::keys;
use clap::Args;
use contexture_gateway::{Gateway, Options, Upstreams};
use contexture_inspect::InspectServer;

use super::flags::{self, GatewayFlags, web_address};
use super::keys::KeptKeys;
use super::print;
use super::signals::Signals;
use super::start::cannot_start;
use super::telemetry::Telemetry;
use crate::failure::Failure;

/// Run a gateway without an agent, and print the variables to set
///
/// It asks for a key, which is part of the printed addresses: it is made on the first start and kept for this user.
/// Requests go to each provider's own address by their format, or to --upstream. Ctrl-C or a signal to terminate ends it and prints a receipt.
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
    let upstreams = command.upstream.as_deref().map_or_else(|| flags::upstreams(&config), Upstreams::one);
    let telemetry = Telemetry::start()?;
    let kept = KeptKeys::read(command.keys.as_deref())?;
    let options = command.flags.options(&config, upstreams)?;
    let mut options = Options { keys: kept.keys.clone(), ..options };
    options.watchers.extend(telemetry.watcher());
    let inspector = command.flags.inspector(&mut options).await?;
    let listen = command.listen.clone().unwrap_or_else(|| config.get(&keys::GATEWAY_LISTEN));
    let mut gateway = Gateway::start(&listen, options).await.map_err(cannot_start)?;
    if !gateway.address().ip().is_loopback() {
        eprintln!("{}", written_warning(&gateway));
    }
    for note in gateway.notes() {
        eprintln!("warning: {note}");
    }
    // From here on, a signal ends it with a receipt.
    let mut signals = Signals::listen()?;
    let told = told(&gateway, &kept, inspector.as_ref());
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    tokio::select! {
        ended = gateway.wait() => return Ok(ended?),
        () = asked_to_end(&mut signals) => {}
    }
    let receipt = gateway.end().await;
    telemetry.finish().await;
    // If the terminal is gone, there is nobody to tell.
    let _ = write!(io::stderr(), "\n{}", print::receipt(&receipt, command.flags.observe));
    Ok(())
}

/// Waits until somebody asks the program to end: the terminal, a user, or the system's service manager.
async fn asked_to_end(signals: &mut Signals) {
    tokio::select! {
        _ = signals.next() => {}
        // Where there are no other signals.
        _ = tokio::signal::ctrl_c() => {}
    }
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
