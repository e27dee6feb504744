//! `contexture serve`: runs a gateway without an agent.

use std::io::{self, Write};

use crate::settings::keys;
use clap::Args;
use contexture_server::{Gateway, Options, Receipt, StartError, Upstreams};

use super::flags::{self, GatewayFlags, web_address};
use super::print;
use super::telemetry::Telemetry;
use crate::failure::Failure;

/// Run a gateway without an agent, and print the variables to set
///
/// Requests go to each provider's own address by their format, or to --upstream. Ctrl-C ends it and prints a receipt.
#[derive(Args)]
pub struct Serve {
    #[command(flatten)]
    flags: GatewayFlags,
    /// Where to listen [default: 127.0.0.1:7717]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
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
    let options = Options { watcher: telemetry.watcher(), ..command.flags.options(&config, upstreams)? };
    let listen = command.listen.clone().unwrap_or_else(|| config.get(&keys::GATEWAY_LISTEN));
    let mut gateway = Gateway::start(&listen, options).await.map_err(cannot_start)?;
    let url = gateway.url();
    let inspector = gateway.inspect_url().map(|url| format!("the inspector is at {url}\n")).unwrap_or_default();
    let told = format!(
        "listening on {url}\n  export ANTHROPIC_BASE_URL={url}/anthropic\n  export OPENAI_BASE_URL={url}/openai\n\
         its own routes (/contexture/status, /metrics) ask for the token {}\n{inspector}",
        gateway.token()
    );
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    tokio::select! {
        ended = gateway.wait() => return Ok(ended?),
        _ = tokio::signal::ctrl_c() => {}
    }
    let records = gateway.stop().await;
    telemetry.finish().await;
    eprint!("\n{}", print::receipt(&Receipt::of(&records), command.flags.observe));
    Ok(())
}

/// Why a gateway cannot start, with what can be done.
pub(super) fn cannot_start(error: StartError) -> Failure {
    let failure = Failure::of(&error);
    match error {
        StartError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            failure.hint("another program listens there: choose another port with --listen")
        }
        StartError::Listen { .. } => {
            failure.hint("it is an address of this machine with a port, as in `--listen 127.0.0.1:7717`")
        }
        StartError::Store(_) if failure.has_hint() => failure,
        StartError::Store(_) => failure.hint("pass --no-store to go on without it"),
        StartError::Loop(_) => failure.hint("an address of the gateway is set as its own upstream: unset it"),
        _ => failure,
    }
}
