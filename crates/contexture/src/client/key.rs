//! A secret that is never shown.

use std::fmt;

/// The key of an account with a provider.
///
/// It is sent to the provider and goes nowhere else: it has no `Display`, its `Debug` shows no part of it, and texts of
/// errors in which a provider repeats it are [redacted](ApiKey::redact).
///
/// ```
/// use contexture::client::ApiKey;
/// assert_eq!(format!("{:?}", ApiKey::new("sk-secret")), "ApiKey(…)");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Shorter parts of a key are too common to be looked for in a text.
const MIN_REDACTED: usize = 6;

impl ApiKey {
    /// A key; white space around it is dropped, since keys are often pasted with a line feed.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// The key in an environment variable; `None` if there is none, or an empty one.
    pub fn from_env(variable: &str) -> Option<Self> {
        let key = ApiKey::new(std::env::var(variable).ok()?);
        (!key.0.is_empty()).then_some(key)
    }

    /// A text without the key.
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
