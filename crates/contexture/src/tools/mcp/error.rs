//! Why an MCP server cannot be used.

use std::time::Duration;

use thiserror::Error;

/// The code of a refusal because of the revision.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// Why an MCP server cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpError {
    /// Its program could not be started.
    #[error("start the MCP server `{server}`")]
    Start {
        /// The server.
        server: String,
        /// What stopped it.
        #[source]
        source: std::io::Error,
    },
    /// Its address, or a header for it, is not one.
    #[error("the address of the MCP server `{server}`: {problem}")]
    Address {
        /// The server.
        server: String,
        /// What is wrong.
        problem: String,
    },
    /// It ended, or closed its output.
    #[error("the MCP server `{server}` ended")]
    Ended {
        /// The server.
        server: String,
    },
    /// It sent more in one message, or described more tools, than is read.
    #[error("the MCP server `{server}` sent more than {} MB {what}", limit >> 20)]
    TooLong {
        /// The server.
        server: String,
        /// Where.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// It did not respond in time.
    #[error("the MCP server `{server}` sent no response to `{method}` within {} s", waited.as_secs())]
    TimedOut {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// How long the client waited.
        waited: Duration,
    },
    /// It returned an error.
    #[error("the MCP server `{server}` refused `{method}`: {message}")]
    Refused {
        /// The server.
        server: String,
        /// The request.
        method: String,
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// It speaks a revision of the protocol that is not known here.
    #[error("the MCP server `{server}` speaks revision `{version}` of the protocol, which is not known here")]
    Version {
        /// The server.
        server: String,
        /// The revision.
        version: String,
    },
    /// It asks for something in place of a result, again and again or in a way that is not offered.
    #[error("the MCP server `{server}` asks for more: {reason}")]
    Asks {
        /// The server.
        server: String,
        /// What it asks for.
        reason: String,
    },
}
