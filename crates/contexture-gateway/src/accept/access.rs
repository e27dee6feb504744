//! Who may use the gateway: those whose requests carry one of its keys.
//!
//! A key is the first part of the path (`http://127.0.0.1:7717/KEY/anthropic/v1/messages`), because the headers by
//! which clients authenticate belong to the provider. Clients that can add a header may send it as `x-contexture-key`.

use std::borrow::Cow;
use std::fmt;

use axum::http::{HeaderMap, header};

/// The header that may carry a key in place of the path. It is never forwarded.
pub(crate) const KEY_HEADER: &str = "x-contexture-key";

/// The shortest secret that is accepted: 128 bits, if its letters are hexadecimal and random.
const LEAST_LETTERS: usize = 32;

/// The longest secret that is accepted.
const MOST_LETTERS: usize = 256;

/// A fresh secret of 128 random bits.
///
/// # Panics
/// The system has no random numbers.
pub fn fresh_secret() -> String {
    let mut bytes = [0_u8; 16];
    let random = rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The secret of one who may use a gateway, with a name that may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    name: String,
    secret: String,
}

/// Why a text cannot be the secret of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 32 to 256 letters, digits, `-` and `_`")]
pub struct BadKey;

impl AccessKey {
    /// A key with a random secret.
    pub fn fresh(name: &str) -> Self {
        Self { name: name.to_owned(), secret: fresh_secret() }
    }

    /// A key with a given secret.
    ///
    /// # Errors
    /// The secret is too short or too long, or cannot be a part of a path as it is.
    pub fn new(name: &str, secret: &str) -> Result<Self, BadKey> {
        let is_plain = secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        match is_plain && (LEAST_LETTERS..=MOST_LETTERS).contains(&secret.len()) {
            true => Ok(Self { name: name.to_owned(), secret: secret.to_owned() }),
            false => Err(BadKey),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A request that may use the gateway.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Caller<'a> {
    /// It carries a key.
    Key {
        /// The name of the key.
        name: &'a str,
        /// The path without the key.
        path: &'a str,
    },
    /// It carries the token for the gateway's own routes.
    Owner,
}

/// The secrets of a gateway.
#[derive(Debug)]
pub(crate) struct Access {
    keys: Vec<AccessKey>,
    /// The token for the gateway's own routes.
    token: AccessKey,
    /// Secrets of others on this machine, which are not for the gateway: the token of its inspector.
    others: Vec<AccessKey>,
}

impl Access {
    /// Access with keys; without any, with a fresh one.
    pub(crate) fn new(mut keys: Vec<AccessKey>, others: &[&str]) -> Self {
        if keys.is_empty() {
            keys.push(AccessKey::fresh("own"));
        }
        let other = |secret: &&str| AccessKey { name: "other".to_owned(), secret: (*secret).to_owned() };
        Self { keys, token: AccessKey::fresh("status"), others: others.iter().map(other).collect() }
    }

    /// The keys, of which there is at least one.
    pub(crate) fn keys(&self) -> &[AccessKey] {
        &self.keys
    }

    /// The token for the gateway's own routes.
    pub(crate) fn token(&self) -> &str {
        &self.token.secret
    }

    /// Who sent a request; `None` if it carries no secret of this gateway.
    pub(crate) fn caller<'a>(&'a self, path: &'a str, headers: &HeaderMap) -> Option<Caller<'a>> {
        let trimmed = path.strip_prefix('/').unwrap_or(path);
        let (first, _) = trimmed.split_once('/').unwrap_or((trimmed, ""));
        let rest = &trimmed[first.len()..];
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (in_path, in_header) = (matching(&self.keys, first), matching(&self.keys, text(KEY_HEADER)));
        let bearer = bearer(headers).unwrap_or_default();
        let is_owner = matching(std::slice::from_ref(&self.token), bearer).is_some();
        match (in_path, in_header) {
            (Some(key), _) => Some(Caller::Key { name: &key.name, path: if rest.is_empty() { "/" } else { rest } }),
            (None, Some(key)) => Some(Caller::Key { name: &key.name, path }),
            (None, None) => is_owner.then_some(Caller::Owner),
        }
    }

    /// Whether a request carries a secret that nobody but this machine may see where it would be forwarded: a token
    /// anywhere, or a key in the query.
    pub(crate) fn would_tell(&self, headers: &HeaderMap, query: Option<&str>) -> bool {
        let tokens = || std::iter::once(&self.token).chain(&self.others);
        let in_headers = headers.values().any(|value| tokens().any(|token| holds(value.as_bytes(), &token.secret)));
        let query = query.unwrap_or_default();
        in_headers || tokens().chain(&self.keys).any(|key| holds(query.as_bytes(), &key.secret))
    }

    /// A text without the secrets of this gateway, for what is kept: an agent may have printed its variables.
    pub(crate) fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        for key in self.keys.iter().chain([&self.token]).chain(&self.others) {
            if shown.contains(&key.secret) {
                shown = Cow::Owned(shown.replace(&key.secret, "(key of the gateway)"));
            }
        }
        shown
    }

    /// Removes what belongs to the gateway and its inspector from headers that are forwarded.
    pub(crate) fn strip(&self, headers: &mut HeaderMap) {
        let is_own = |name: &header::HeaderName| name.as_str().starts_with("x-contexture");
        let names: Vec<_> = headers.keys().filter(|name| is_own(name)).cloned().collect();
        for name in names {
            headers.remove(name);
        }
        let tells = |value: &header::HeaderValue| self.keys.iter().any(|key| holds(value.as_bytes(), &key.secret));
        let names: Vec<_> = headers.iter().filter(|(_, value)| tells(value)).map(|(name, _)| name.clone()).collect();
        for name in names {
            headers.remove(name);
        }
        strip_cookies(headers);
    }
}

/// The token of the header `authorization`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (kind, token) = value.split_once(' ')?;
    kind.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether two secrets are the same. Digests are compared, in constant time, so that the time tells nothing of them.
pub fn is_same(given: &str, secret: &str) -> bool {
    blake3::hash(given.as_bytes()) == blake3::hash(secret.as_bytes())
}

/// The key with a secret. All keys are compared, so that the time does not tell which of them it is.
fn matching<'a>(keys: &'a [AccessKey], given: &str) -> Option<&'a AccessKey> {
    keys.iter().fold(None, |found, key| if is_same(given, &key.secret) { Some(key) } else { found })
}

fn holds(bytes: &[u8], secret: &str) -> bool {
    bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
}

/// Removes cookies that an inspector set. Browsers send them to every port of a machine.
fn strip_cookies(headers: &mut HeaderMap) {
    let is_own = |pair: &str| pair.trim_start().starts_with("contexture_");
    let cookies: Vec<_> = headers.get_all(header::COOKIE).iter().cloned().collect();
    let has_own = |value: &header::HeaderValue| value.to_str().is_ok_and(|value| value.split(';').any(is_own));
    if !cookies.iter().any(has_own) {
        return;
    }
    headers.remove(header::COOKIE);
    for value in &cookies {
        let kept: Vec<&str> = value.to_str().unwrap_or_default().split(';').filter(|pair| !is_own(pair)).collect();
        let kept = kept.join(";");
        if let Ok(kept) = header::HeaderValue::from_str(kept.trim())
            && !kept.is_empty()
        {
            headers.append(header::COOKIE, kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "00112233445566778899aabbccddeeff";
    const TWO: &str = "ffeeddccbbaa99887766554433221100";

    fn access() -> Access {
        let keys = vec![AccessKey::new("one", ONE).unwrap(), AccessKey::new("two", TWO).unwrap()];
        Access::new(keys, &["inspectorinspectorinspectorinspe"])
    }

    #[track_caller]
    fn check(path: &str, headers: &[(&'static str, &str)], expected: Option<(&str, &str)>) {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, value.parse().unwrap());
        }
        let access = access();
        let expected = expected.map(|(name, path)| Caller::Key { name, path });
        assert_eq!(access.caller(path, &all), expected, "{path} {headers:?}");
    }

    #[test]
    fn only_who_has_a_key_may_use_it() {
        check(&format!("/{ONE}/v1/messages"), &[], Some(("one", "/v1/messages")));
        check(&format!("/{TWO}/v1/messages"), &[], Some(("two", "/v1/messages")));
        check(&format!("/{ONE}"), &[], Some(("one", "/")));
        check(&format!("/{ONE}/"), &[], Some(("one", "/")));
        check("/v1/messages", &[(KEY_HEADER, TWO)], Some(("two", "/v1/messages")));
        for path in ["/", "", "//", "/v1/messages", &ONE[1..], &format!("/{}/v1", &ONE[1..]), &format!("/{ONE}0/v1")] {
            check(path, &[], None);
        }
        check(&format!("//{ONE}/v1/messages"), &[], None);
        check(&format!("/v1/{ONE}/messages"), &[], None);
        check(&format!("/{}/v1/messages", ONE.to_uppercase()), &[], None);
        check("/v1/messages", &[(KEY_HEADER, "")], None);
        check("/v1/messages", &[("authorization", &format!("Bearer {ONE}"))], None);
        check("/v1/messages", &[("x-api-key", ONE)], None);
    }

    #[test]
    fn a_key_that_can_be_guessed_is_refused() {
        for secret in ["", "short", &ONE[1..], &format!("{ONE}/"), &format!("{ONE}é"), &"a".repeat(257)] {
            assert_eq!(AccessKey::new("one", secret), Err(BadKey), "{secret}");
        }
        let (one, two) = (fresh_secret(), fresh_secret());
        assert_ne!(one, two);
        assert!(AccessKey::new("fresh", &one).is_ok());
    }

    #[test]
    fn a_key_is_not_in_its_debug_form() {
        let shown = format!("{:?}", access());
        assert!(shown.contains("one") && !shown.contains(ONE) && !shown.contains("inspectorinsp"), "{shown}");
    }

    #[test]
    fn what_belongs_to_the_gateway_is_not_forwarded() {
        let mut headers = HeaderMap::new();
        headers.insert(KEY_HEADER, ONE.parse().unwrap());
        headers.insert("x-contexture", "1".parse().unwrap());
        headers.insert("referer", format!("http://127.0.0.1:1/{TWO}/x").parse().unwrap());
        headers.insert("cookie", "a=b; contexture_80=secret; c=d".parse().unwrap());
        headers.append("cookie", "contexture_81=secret".parse().unwrap());
        headers.insert("authorization", "Bearer sk-of-the-provider".parse().unwrap());
        access().strip(&mut headers);
        let left: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(left, [("authorization", "Bearer sk-of-the-provider"), ("cookie", "a=b; c=d")]);
    }

    #[test]
    fn a_token_that_is_for_this_machine_is_noticed() {
        let access = access();
        let mut headers = HeaderMap::new();
        assert!(!access.would_tell(&headers, Some("beta=true")));
        assert!(access.would_tell(&headers, Some(&format!("token={}", access.token()))));
        assert!(access.would_tell(&headers, Some(&format!("x={TWO}"))));
        headers.insert("x-api-key", "inspectorinspectorinspectorinspe".parse().unwrap());
        assert!(access.would_tell(&headers, None));
    }
}
