//! A gateway that runs in another process.

use std::time::Duration;

use crate::account::receipt::Receipt;
use crate::send::prepare_tls;
use crate::write::RunningGateway;

/// Timeout for a gateway on this machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// The requests so far of a running gateway; `None` if it does not run.
pub async fn receipt_of(gateway: &RunningGateway) -> Option<Receipt> {
    prepare_tls();
    let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().ok()?;
    let request = client.get(format!("http://{}/contexture/status", gateway.address)).bearer_auth(&gateway.token);
    let answer = request.send().await.ok()?.error_for_status().ok()?;
    serde_json::from_slice(&answer.bytes().await.ok()?).ok()
}
