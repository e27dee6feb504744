//! Why a request is not understood.

use thiserror::Error;

/// Why a request is not understood. It should then be passed on unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WireError {
    /// It is not JSON, or has another shape.
    #[error("the request is not written as expected")]
    Json(#[from] serde_json::Error),
    /// A field is there twice, so that readers may disagree.
    #[error("the field `{0}` is there twice")]
    Twice(&'static str),
    /// The list of messages is not there, or is no list.
    #[error("the request has no list `{0}`")]
    NoList(&'static str),
    /// A message or a part of it is of a kind that nothing is known about.
    #[error("`{0}` is of a kind that is not known")]
    UnknownKind(String),
    /// The provider would refuse the result.
    #[error("the provider would refuse {0}")]
    Refused(&'static str),
    /// A plan speaks of messages or parts that the request does not have.
    #[error("the plan does not fit the request")]
    OtherRequest,
}
