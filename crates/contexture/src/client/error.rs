//! Why a model could not be asked.

use std::time::Duration;

use contexture_core::error::BoxError;
use thiserror::Error;

/// Why a model could not be asked. Addresses are shown without their query and keys never.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// An option of the client cannot be used.
    #[error("option `{option}` of the model client: {problem}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// No connection could be made, or it broke before anything was received.
    #[error("connect to {address}")]
    Connect {
        /// The provider's address.
        address: String,
        /// What stopped it.
        #[source]
        source: BoxError,
    },
    /// The provider sent nothing for too long.
    #[error("{address} sent nothing for {} s", waited.as_secs())]
    TimedOut {
        /// The provider's address.
        address: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The provider asks to come back later than the client is told to wait.
    #[error("{address} is busy (status {status}): {message}; it asks to wait {} s", retry_after.as_secs())]
    Busy {
        /// The provider's address.
        address: String,
        /// The status of its response.
        status: u16,
        /// What it said.
        message: String,
        /// How long it asks to wait.
        retry_after: Duration,
    },
    /// The provider refused the request, or failed and went on failing.
    #[error("{address} returned status {status}: {message}")]
    Refused {
        /// The provider's address.
        address: String,
        /// The status of its response.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The provider failed after it had begun to respond.
    #[error("the provider failed during its response: {message}")]
    Failed {
        /// What it said.
        message: String,
    },
    /// The response ended before it was complete.
    #[error("the response ended before it was complete")]
    Cut,
    /// The response is not what the format says.
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

/// A response that is not what the format says.
pub(super) fn malformed(problem: impl Into<String>) -> ClientError {
    ClientError::Malformed { problem: problem.into() }
}
