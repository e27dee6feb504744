//! Which cryptography connections to providers use.

/// Has connections of this process use `ring`, unless something else was chosen before.
pub fn prepare_tls() {
    // An error means that something else was chosen.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
