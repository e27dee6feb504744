//! Why a model call failed.

use std::time::Duration;

use contexture_core::error::BoxError;
use thiserror::Error;

/// Why a model call failed. Addresses are shown without their query, and keys are never shown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// An option of the client is invalid.
    #[error("option `{option}` of the model client: {problem}")]
    Option {
        /// The option.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The connection failed, or broke before anything was received.
    #[error("connect to {address}")]
    Connect {
        /// The provider's address.
        address: String,
        /// What stopped it.
        #[source]
        source: BoxError,
    },
    /// The provider sent nothing until the timeout.
    #[error("{address} sent nothing for {} s", waited.as_secs())]
    TimedOut {
        /// The provider's address.
        address: String,
        /// How long the client waited.
        waited: Duration,
    },
    /// The provider asks for a longer wait than the client allows.
    #[error("{address} is busy (status {status}): {message}; it asks to wait {} s", retry_after.as_secs())]
    Busy {
        /// The provider's address.
        address: String,
        /// The status of its response.
        status: u16,
        /// Its message.
        message: String,
        /// How long it asks to wait.
        retry_after: Duration,
    },
    /// The provider refused the request, or kept failing after all retries.
    #[error("{address} returned status {status}: {message}")]
    Refused {
        /// The provider's address.
        address: String,
        /// The status of its response.
        status: u16,
        /// Its message.
        message: String,
    },
    /// The provider failed after it had started to respond.
    #[error("the provider failed during its response: {message}")]
    Failed {
        /// Its message.
        message: String,
    },
    /// The response ended before it was complete.
    #[error("the response ended before it was complete")]
    Cut,
    /// The response does not follow the format.
    #[error("the response is not understood: {problem}")]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
}

impl ClientError {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            ClientError::Connect { .. } | ClientError::TimedOut { .. } | ClientError::Cut => true,
            ClientError::Busy { .. } | ClientError::Failed { .. } => true,
            ClientError::Refused { status, .. } => super::retry::is_transient(*status),
            ClientError::Option { .. } | ClientError::Malformed { .. } => false,
        }
    }
}

/// An error for a response that does not follow the format.
pub(super) fn malformed(problem: impl Into<String>) -> ClientError {
    ClientError::Malformed { problem: problem.into() }
}
