//! Why a gateway, or an inspector by itself, cannot start.

use std::io;

use crate::write::StoreError;

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("listen on `{address}`")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The HTTP client cannot be created.
    #[error("set up requests to providers")]
    Client(#[from] reqwest::Error),
    /// It would send requests to itself.
    #[error("the upstream `{0}` is this gateway itself")]
    Loop(String),
}
