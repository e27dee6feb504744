//! Telemetry for OpenTelemetry, as far as the environment asks for it.

use std::env;

use contexture_gateway::otlp::Telemetry;

use crate::failure::Failure;

/// Begins as the usual variables of OpenTelemetry say.
pub(super) fn start() -> Result<Telemetry, Failure> {
    Telemetry::start(|name| env::var(name).ok()).map_err(|error| Failure::usage(error.to_string()).hint(error.hint()))
}
