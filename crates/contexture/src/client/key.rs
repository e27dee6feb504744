//! A secret that is never shown.

use std::fmt;

/// The API key of an account with a provider.
///
/// It is sent only to the provider: it has no `Display`, its `Debug` shows no part of it, and it is
/// [redacted](ApiKey::redact) from error messages in which a provider repeats it.
///
/// ```
/// use contexture::client::ApiKey;
/// assert_eq!(format!("{:?}", ApiKey::new("sk-secret")), "ApiKey(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Shorter parts of a key are too common to be searched for in a text.
const MIN_REDACTED: usize = 6;

impl ApiKey {
    /// Creates a key. White space around it is removed, since keys are often pasted with a line feed.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// Reads the key from an environment variable; `None` if it is not set or empty.
    pub fn from_env(variable: &str) -> Option<Self> {
        let key = ApiKey::new(std::env::var(variable).ok()?);
        (!key.0.is_empty()).then_some(key)
    }

    /// Returns a text without the key.
    pub fn redact(&self, text: &str) -> String {
        match self.0.len() < MIN_REDACTED {
            true => text.to_owned(),
            false => text.replace(&self.0, "[key]"),
        }
    }

    /// The key itself, for a header.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
