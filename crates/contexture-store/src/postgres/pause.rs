//! The time between two tries.

use std::time::Duration;

/// The time before the first retry.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Waits before something is tried again: longer each time, and not all at the same moment.
pub(super) async fn pause(retries: u32) {
    let spread = (uuid::Uuid::now_v7().as_u128() % 1_024) as f64 / 1_024.0;
    tokio::time::sleep(FIRST_PAUSE.saturating_mul(1 << retries.min(8)).mul_f64(0.5 + spread / 2.0)).await;
}
