//! Which cryptography connections to providers use, whom they trust, and what is wrong with a certificate.

use std::error::Error;
use std::io;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Makes connections of this process use `ring`, unless another provider was installed before.
pub fn prepare_tls() {
    // An error means that another one was installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Certificates that are trusted besides those of the system.
#[derive(Clone, Default)]
pub struct ExtraRoots(Vec<CertificateDer<'static>>);

impl ExtraRoots {
    /// Reads certificates in PEM, as they are in a file.
    ///
    /// # Errors
    /// There is no certificate in it, or one that cannot be read; the text says which.
    pub fn read(pem: &[u8]) -> Result<Self, String> {
        let mut roots = rustls::RootCertStore::empty();
        let mut certificates = Vec::new();
        for (at, found) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let der = found.map_err(|error| format!("certificate {}: {error}", at + 1))?;
            // It is looked into now: later it would fail all connections.
            roots.add(der.clone()).map_err(|error| format!("certificate {}: {error}", at + 1))?;
            certificates.push(der);
        }
        if certificates.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(Self(certificates)) }
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The certificates.
    pub(crate) fn certificates(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.0.iter()
    }

    /// The same in the form that `reqwest` takes.
    pub(crate) fn for_reqwest(&self) -> impl Iterator<Item = reqwest::Certificate> {
        self.0.iter().filter_map(|der| reqwest::Certificate::from_der(der).ok())
    }
}

/// What is wrong with the provider's certificate, if that is why a request failed.
pub(crate) fn certificate_error(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        // An error of I/O does not have what it is made of as its source.
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = error.downcast_ref::<rustls::Error>();
        if let Some(found) = found.or_else(|| inner.and_then(|inner| inner.downcast_ref::<rustls::Error>())) {
            return certificate_problem(found);
        }
        next = inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| error.source());
    }
    None
}

fn certificate_problem(error: &rustls::Error) -> Option<String> {
    use rustls::CertificateError as Wrong;
    let rustls::Error::InvalidCertificate(wrong) = error else { return None };
    Some(match wrong {
        Wrong::UnknownIssuer => "whose issuer this machine does not trust".to_owned(),
        Wrong::Expired | Wrong::ExpiredContext { .. } => "that has expired".to_owned(),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "that is not valid yet".to_owned(),
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => "for another name".to_owned(),
        other => format!("that is not accepted ({other})"),
    })
}
