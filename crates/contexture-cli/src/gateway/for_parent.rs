//! `contexture serve --for-parent`: a gateway for the program that started it, which talks to it through pipes.
//!
//! It prints one line of JSON when it is ready and one when it has ended. It ends when its standard input is closed,
//! which the system does for a parent that was killed, and when its parent is gone although something else, such as
//! another child, still has the pipe open. For the same reason a parent that goes on writes a byte before it closes it.

use std::env;
use std::future::Future;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use contexture_gateway::{Gateway, Options, Receipt, References, Upstreams};
use contexture_inspect::InspectServer;
use serde::Serialize;
use tokio::sync::oneshot;

use super::flags::{self, GatewayFlags, web_address};
use super::start::cannot_start;
use super::telemetry;
use crate::failure::Failure;
use crate::settings::{Command, Config};

/// Where it listens: only this machine can reach it, and the system chooses the port.
const LISTEN: &str = "127.0.0.1:0";

/// The variables by which the clients of providers are given another address.
const ADDRESSES: [&str; 3] = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"];

/// A line of the output.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ParentMessage<'a> {
    /// It accepts requests.
    Ready(Addresses<'a>),
    /// It has ended.
    Ended(FinalReport<'a>),
}

/// What the parent is told when the gateway is ready. All of it is secret.
#[derive(Serialize)]
struct Addresses<'a> {
    /// The base address with the key.
    url: String,
    /// The base address for clients of Anthropic's API.
    anthropic: String,
    /// The base address for clients of OpenAI's API.
    openai: String,
    /// The base address for clients of Google's API.
    google: String,
    /// The address that it listens on.
    address: String,
    /// The token for its own routes.
    token: &'a str,
    /// The address of the inspector, if it was asked for.
    inspector: Option<String>,
}

/// What the parent is told at the end.
#[derive(Serialize)]
struct FinalReport<'a> {
    receipt: &'a Receipt,
    /// What was saved, as a share of the bill without it.
    saved_share: f64,
    /// Requests that came without the key.
    refused: u64,
}

/// Runs the gateway until its parent has ended or closes the pipe.
///
/// # Errors
/// The gateway cannot start.
pub(super) async fn serve(flags: &GatewayFlags, upstream: Option<&str>, base: Option<&Path>) -> Result<(), Failure> {
    let parent = Parent::now();
    let config = flags.config(Command::Serve)?;
    let upstreams = match upstream {
        Some(url) => Upstreams::one(url),
        None => upstreams(&config, |name| env::var(name).ok())?,
    };
    let telemetry = telemetry::start()?;
    let directory = base.map(base_directory).transpose()?;
    let mut options = Options { directory, ..flags.options(&config, upstreams)? };
    if options.directory.is_some() {
        // The program that names the directory writes the messages.
        options.references = References::Typed;
    }
    options.watchers.extend(telemetry.watchers());
    let inspector = flags.inspector(&mut options).await?;
    ignore_terminal()?;
    let mut gateway = Gateway::start(LISTEN, options).await.map_err(cannot_start)?;
    print(&ParentMessage::Ready(addresses(&gateway, inspector.as_ref())))?;
    tokio::select! {
        ended = gateway.wait() => return Ok(ended?),
        () = closed() => {}
        () = parent.gone() => {}
        () = terminated() => {}
    }
    let refused = gateway.refused();
    let receipt = gateway.end().await;
    telemetry.finish().await;
    // A parent that was killed does not read it.
    print(&ParentMessage::Ended(FinalReport { saved_share: receipt.saved_share(), receipt: &receipt, refused }))
}

fn addresses<'a>(gateway: &'a Gateway, inspector: Option<&InspectServer>) -> Addresses<'a> {
    let url = gateway.url();
    Addresses {
        anthropic: format!("{url}/anthropic"),
        openai: format!("{url}/openai"),
        google: format!("{url}/google"),
        url,
        address: gateway.address().to_string(),
        token: gateway.token(),
        inspector: inspector.map(|server| server.inspector().url()),
    }
}

/// Where requests go: to what the parent's own clients would have used.
fn upstreams(config: &Config, variable: impl Fn(&str) -> Option<String>) -> Result<Upstreams, Failure> {
    let mut upstreams = flags::upstreams(config);
    for name in ADDRESSES {
        let Some(url) = variable(name).filter(|url| !url.is_empty()) else { continue };
        let fail = |why| Failure::usage(format!("the variable `{name}` is no address of a provider: {why}"));
        let url = web_address(&url).map_err(|why| fail(why).hint("unset it, or name the provider with --upstream"))?;
        let given = Upstreams::one(&url);
        match name {
            "ANTHROPIC_BASE_URL" => upstreams.anthropic = given.anthropic,
            "GOOGLE_GEMINI_BASE_URL" => upstreams.google = given.google,
            _ => upstreams.openai = given.openai,
        }
    }
    Ok(upstreams)
}

/// The directory beneath which files are read that messages name.
fn base_directory(base: &Path) -> Result<Arc<str>, Failure> {
    let fail = |why: String| Failure::usage(format!("`{}` cannot be the base directory: {why}", base.display()));
    let found = base.canonicalize().map_err(|error| fail(error.to_string()))?;
    if !found.is_dir() {
        return Err(fail("it is no directory".to_owned()));
    }
    found.to_str().map(Arc::from).ok_or_else(|| fail("its path is not UTF-8".to_owned()))
}

/// Prints one line, at once.
fn print(line: &ParentMessage<'_>) -> Result<(), Failure> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Returns when the standard input is closed, or when anything is written to it.
fn closed() -> impl Future<Output = ()> {
    let (sender, receiver) = oneshot::channel::<()>();
    // A thread of its own: the process ends without waiting for it.
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let is_interrupted =
            |read: &io::Result<usize>| read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted);
        while is_interrupted(&input.read(&mut [0_u8; 1])) {}
        drop(sender);
    });
    async move {
        // The sender sends nothing; it is dropped when the input has ended.
        let _ = receiver.await;
    }
}

/// How often the parent is looked for. Usually the closed input says first that it is gone.
const LOOKING: Duration = Duration::from_secs(1);

/// The process that started this one.
#[derive(Clone, Copy)]
struct Parent(Option<u32>);

impl Parent {
    /// The parent as it is now. It is asked for before anything is printed: after that it may be gone at any time.
    #[cfg(unix)]
    fn now() -> Self {
        Self(Some(std::os::unix::process::parent_id()))
    }

    /// Nothing is known of it there: the closed input is all that says it.
    #[cfg(not(unix))]
    fn now() -> Self {
        Self(None)
    }

    /// Returns when it is gone.
    async fn gone(self) {
        while Self::now().0 == self.0 {
            tokio::time::sleep(LOOKING).await;
        }
    }
}

/// Takes no notice of the terminal from now on: Ctrl-C is meant for the parent, which may still need the gateway.
#[cfg(unix)]
fn ignore_terminal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        // Once there was a listener, the signal no longer ends the process.
        drop(signal(kind)?);
    }
    Ok(())
}

/// Returns when the process is asked to end.
#[cfg(unix)]
async fn terminated() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut signal) => signal.recv().await,
        Err(_) => std::future::pending().await,
    };
}

#[cfg(not(unix))]
fn ignore_terminal() -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
async fn terminated() {
    // Ctrl-C is meant for the parent, which may still need the gateway.
    while tokio::signal::ctrl_c().await.is_ok() {}
    std::future::pending().await
}
