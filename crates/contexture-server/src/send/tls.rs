//! Which cryptography connections to providers use.

/// Makes connections of this process use `ring`, unless another provider was installed before.
pub fn prepare_tls() {
    // An error means that another one was installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
