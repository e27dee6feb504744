//! What a user should know when a gateway or an inspector starts: why it cannot, and who can reach it.

use std::io;
use std::net::SocketAddr;

use contexture_gateway::{StartError, StoreError};

use crate::failure::Failure;

/// Why a gateway cannot start, with what can be done.
pub(crate) fn cannot_start(error: StartError) -> Failure {
    let failure = Failure::of(&error);
    match error {
        StartError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            failure.hint("another program listens there: choose another port with --listen")
        }
        StartError::Listen { .. } => {
            failure.hint("it is an address of this machine with a port, as in `--listen 127.0.0.1:7717`")
        }
        StartError::Store(_) if failure.said_hint().is_some() => failure,
        StartError::Store(StoreError::Foreign(_)) => failure.hint("name another file with --store"),
        StartError::Store(_) => failure.hint("pass --no-store to go on without it"),
        StartError::Loop(_) => failure.hint("an address of the gateway is set as its own upstream: unset it"),
        // Small systems, such as containers, often come without certificates.
        StartError::Client(_) => failure.hint(
            "providers are checked with the certificates of the system: install the package `ca-certificates`, or name a \
             file of certificates with SSL_CERT_FILE",
        ),
        _ => failure,
    }
}

/// Says what a user should know who lets other machines reach an address.
pub(super) fn warn_of_others(address: SocketAddr) {
    if !address.ip().is_loopback() {
        eprintln!(
            "warning: other machines can reach {address}, and nothing is encrypted on the way: keys and conversations \
             can be read there\nhint: listen on 127.0.0.1, or put something that speaks TLS in front of it"
        );
    }
}
