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
    #[error("{address} is busy (status {status}){}; it asks to wait {} s", said(message), retry_after.as_secs())]
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
    #[error("{address} returned status {status}{}", said(message))]
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

/// The message of a provider after what happened, if it sent one.
fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_says_nothing_is_told_without_a_colon() {
        let refused = |message: &str| {
            let (address, message) = ("http://a/v1".to_owned(), message.to_owned());
            ClientError::Refused { address, status: 529, message }.to_string()
        };
        assert_eq!(refused(""), "http://a/v1 returned status 529");
        assert_eq!(refused("overloaded"), "http://a/v1 returned status 529: overloaded");
    }
}
