//! The flags of all commands that start a gateway.

use clap::Args;
use contexture_server::{Options, Upstreams};

use super::place::store_path;
use crate::failure::Failure;

/// The flags of a gateway.
#[derive(Args, Clone, Debug)]
pub(super) struct GatewayFlags {
    /// The most tokens of a request; otherwise what the model takes
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(4_000..))]
    pub(super) budget: Option<u64>,
    /// Send everything as it came, and only record what would have been done
    #[arg(long)]
    pub(super) observe: bool,
    /// The share of conversations to pass through unchanged, for comparison
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub(super) holdout: f64,
    /// Show what the model is sent, live, on a page in the browser
    #[arg(long)]
    pub(super) inspect: bool,
    /// Store nothing on the disk
    #[arg(long)]
    pub(super) no_store: bool,
}

impl GatewayFlags {
    /// What a gateway is told.
    pub(super) fn options(&self, upstreams: Upstreams) -> Result<Options, Failure> {
        Ok(Options {
            upstreams,
            budget: self.budget,
            observe: self.observe,
            holdout: self.holdout,
            inspect: self.inspect,
            store: if self.no_store { None } else { Some(store_path()?) },
            ..Options::default()
        })
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("a share is a number from 0 to 1".to_owned()),
    }
}

/// An address that requests can go to.
pub(super) fn web_address(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    match host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !text.contains(char::is_whitespace)) {
        true => Ok(text.to_owned()),
        false => Err("an address begins with http:// or https://".to_owned()),
    }
}
