//! `contexture pause`: whether a running gateway changes requests.

use std::io::{self, Write};

use clap::Args;
use contexture_gateway::remote::{GatewayStatus, set_paused};

use super::place::StoreFlag;
use super::running::{self, LocalGateway};
use crate::failure::Failure;

/// Pause a running gateway: requests pass through it as they come
///
/// They are still counted, and nothing is forgotten: what was folded before applies again after `contexture pause --off`.
/// A conversation that has become too long without the gateway may be refused by its provider meanwhile.
#[derive(Args)]
pub struct Pause {
    /// Let a paused gateway fold again
    #[arg(long)]
    off: bool,
    /// The gateway at this address, as in 127.0.0.1:7717
    #[arg(long, value_name = "ADDRESS", conflicts_with = "all")]
    gateway: Option<String>,
    /// All gateways of this machine
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    store: StoreFlag,
}

/// Pauses a gateway, or lets it go on.
///
/// # Errors
/// No gateway runs, or it is not clear which is meant.
pub fn run(which: &Pause) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (running, _) = runtime.block_on(running::all(&which.store))?;
    let mut told = String::new();
    for gateway in meant(which, &running)? {
        let LocalGateway { address, token, status, .. } = gateway;
        let Some(now) = runtime.block_on(set_paused(address, token, !which.off)) else {
            let failure = Failure::work(format!("the gateway at {address} cannot be paused"));
            return Err(failure.hint("it may be of another version, or have ended just now: `contexture status`"));
        };
        told.push_str(&said(address, status.is_paused, &now));
    }
    Ok(io::stdout().write_all(told.as_bytes())?)
}

/// The gateways that are meant, of those that run.
fn meant<'a>(which: &Pause, running: &'a [LocalGateway]) -> Result<Vec<&'a LocalGateway>, Failure> {
    if running.is_empty() {
        return Err(Failure::work("no gateway runs").hint("`contexture run claude` starts one"));
    }
    if which.all {
        return Ok(running.iter().collect());
    }
    match (running::own(running, which.gateway.as_deref()), &which.gateway, running) {
        (Some(own), ..) => Ok(vec![own]),
        (None, Some(address), _) => {
            Err(Failure::work(format!("no gateway runs at `{address}`")).hint("`contexture status` lists them"))
        }
        (None, None, [only]) => Ok(vec![only]),
        (None, None, many) => {
            let addresses: Vec<&str> = many.iter().map(|gateway| gateway.address.as_str()).collect();
            let failure = Failure::usage(format!("{} gateways run: {}", many.len(), addresses.join(", ")));
            Err(failure.hint("name one with --gateway, or all with --all"))
        }
    }
}

/// What was done, and what follows from it.
fn said(address: &str, was_paused: bool, now: &GatewayStatus) -> String {
    match (was_paused, now.is_paused) {
        (true, true) => format!("{address} is paused already\n"),
        (false, false) => format!("{address} is not paused\n"),
        (true, false) => format!("{address} folds again; what was folded before the pause applies as it was\n"),
        (false, true) => {
            let mut told = format!("{address} is paused: requests pass as they come until `contexture pause --off`\n");
            let dependent = now.receipt.dependent.len();
            if dependent > 0 {
                let many = if dependent == 1 { "conversation is" } else { "conversations are" };
                told.push_str(&format!(
                    "warning: {dependent} {many} too long without the gateway, and may be refused until then\n"
                ));
            }
            told
        }
    }
}
