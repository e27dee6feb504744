//! How a connection begins: which revision of the protocol both sides speak.

use std::pin::pin;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use super::connection::{Connection, McpRequestKind, STATELESS, about};
use super::error::{McpError, UNSUPPORTED_VERSION};

/// The revisions with a handshake, newest first; servers return the one that they use.
const HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Timeout of each way to begin.
const HELLO: Duration = Duration::from_secs(30);

/// How long only the newest revision is tried. Servers that do not know it may be silent.
const ALONE: Duration = Duration::from_millis(500);

/// Begins with the newest revision that the server speaks: asks for it, and offers a handshake if it is refused or if
/// there is no response for a while. Of both, what the server replies to first counts.
///
/// # Errors
/// The server ended or refuses both.
pub(super) async fn begin(connection: &Connection) -> Result<(), McpError> {
    let mut discovered = pin!(discover(connection));
    match timeout(ALONE, discovered.as_mut()).await {
        Ok(Ok(true)) => return Ok(()),
        Ok(Err(error @ (McpError::Ended { .. } | McpError::TooLong { .. }))) => return Err(error),
        // It is not known there.
        Ok(Ok(false) | Err(_)) => return handshake(connection).await,
        Err(_) => {}
    }
    let mut shaken = pin!(handshake(connection));
    tokio::select! {
        biased;
        outcome = discovered.as_mut() => match outcome {
            Ok(true) => Ok(()),
            Err(error @ (McpError::Ended { .. } | McpError::TooLong { .. })) => Err(error),
            Ok(false) | Err(_) => shaken.await,
        },
        outcome = shaken.as_mut() => match outcome {
            Ok(()) => Ok(()),
            // It speaks the newest revision only, and its response to that is on the way.
            Err(McpError::Refused { code: UNSUPPORTED_VERSION, .. }) => {
                connection.set_stateless();
                Ok(())
            }
            Err(error) => match timeout(ALONE, discovered).await {
                Ok(Ok(true)) => Ok(()),
                _ => Err(error),
            },
        },
    }
}

/// Asks for the revision without a handshake, which is used from then on if the server speaks it.
async fn discover(connection: &Connection) -> Result<bool, McpError> {
    let parameters = json!({ "_meta": connection.meta() });
    let result = connection.request(McpRequestKind::Hello, "server/discover", parameters, HELLO).await?;
    let mut versions = result["supportedVersions"].as_array().into_iter().flatten();
    let is_spoken = versions.any(|version| version == STATELESS);
    if is_spoken {
        connection.set_stateless();
    }
    Ok(is_spoken)
}

/// The handshake of the older revisions.
///
/// # Errors
/// The server refuses it, or chose a revision that is not known here.
pub(super) async fn handshake(connection: &Connection) -> Result<(), McpError> {
    let capabilities = connection.capabilities();
    let hello = json!({ "protocolVersion": HANDSHAKE[0], "capabilities": capabilities, "clientInfo": about() });
    let result = connection.request(McpRequestKind::Hello, "initialize", hello, HELLO).await?;
    let version = result["protocolVersion"].as_str().unwrap_or(HANDSHAKE[0]);
    if !HANDSHAKE.contains(&version) {
        let version = version.chars().take(40).collect();
        return Err(McpError::Version { server: connection.server.clone(), version });
    }
    connection.set_agreed(version);
    connection.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    Ok(())
}
