//! The time between two tries.

use std::time::Duration;

/// The time before the first retry.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// How often the time is doubled: up to about a second, so that a server that is back is not left waiting.
const MOST_DOUBLED: u32 = 6;

/// Waits before something is tried again: longer each time, and not all at the same moment.
pub(super) async fn pause(retries: u32) {
    let spread = (uuid::Uuid::now_v7().as_u128() % 1_024) as f64 / 1_024.0;
    tokio::time::sleep(FIRST_PAUSE.saturating_mul(1 << retries.min(MOST_DOUBLED)).mul_f64(0.5 + spread / 2.0)).await;
}
