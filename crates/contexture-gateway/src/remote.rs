//! A gateway that runs in another process.

use std::time::Duration;

use serde_json::Value;

use crate::gateway::own::PAUSED;
use crate::provider::prepare_tls;
use crate::report::receipt::Receipt;

/// Timeout for a gateway on this machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a running gateway says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayStatus {
    /// The requests so far.
    pub receipt: Receipt,
    /// Whether a user paused it.
    pub is_paused: bool,
}

/// The status of a gateway, by its address and its token; `None` if it does not run.
pub async fn status_of(address: &str, token: &str) -> Option<GatewayStatus> {
    fetch_status(client()?.get(format!("http://{address}/contexture/status")), token).await
}

/// Pauses a gateway, or lets it go on; `None` if it does not run, or is of a version that cannot be paused.
pub async fn set_paused(address: &str, token: &str, is_paused: bool) -> Option<GatewayStatus> {
    let route = if is_paused { "pause" } else { "resume" };
    fetch_status(client()?.post(format!("http://{address}/contexture/{route}")), token).await
}

fn client() -> Option<reqwest::Client> {
    prepare_tls();
    reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().ok()
}

async fn fetch_status(request: reqwest::RequestBuilder, token: &str) -> Option<GatewayStatus> {
    let answer = request.bearer_auth(token).send().await.ok()?.error_for_status().ok()?;
    let mut status: Value = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    let is_paused = status.as_object_mut()?.remove(PAUSED).is_some_and(|value| value == true);
    Some(GatewayStatus { receipt: serde_json::from_value(status).ok()?, is_paused })
}
