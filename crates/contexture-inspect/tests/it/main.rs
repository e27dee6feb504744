//! The inspector, spoken to over real connections.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../contexture-gateway/tests/it/agent.rs"]
#[allow(dead_code, reason = "the tests of the gateway use all of it")]
mod agent;
mod inspected;
#[path = "../../../contexture-gateway/tests/it/played.rs"]
#[allow(dead_code, reason = "the tests of the gateway use all of it")]
mod played;
#[path = "../../../contexture-gateway/tests/it/provider.rs"]
#[allow(dead_code, reason = "the tests of the gateway use all of it")]
mod provider;
#[path = "../../../contexture-gateway/tests/it/receiver.rs"]
mod receiver;

mod answers;
mod api;
mod archive;
mod examples;
mod privacy;
mod story;
mod strangers;
