//! Access control of the inspector.

use axum::http::{HeaderMap, Method};

use crate::accept::access::{bearer, is_same};

/// The header that the page sends with changes. A form of another site cannot send it.
pub const ACT_HEADER: &str = "x-contexture";

/// The token of the inspector. It is accepted in the header `authorization` only: what is in a query ends up in
/// logs, and browsers send cookies to every port of a machine.
pub struct Pass {
    token: String,
}

impl Pass {
    /// A token.
    pub fn new(token: String) -> Self {
        Self { token }
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Why a request is refused; `None` if it is allowed.
    pub fn refuses(&self, method: &Method, headers: &HeaderMap) -> Option<&'static str> {
        let has_token = bearer(headers).is_some_and(|given| is_same(given, &self.token));
        match () {
            () if !has_token => {
                Some("the inspector asks for its token: open the address that was printed when it started")
            }
            () if !is_of_page(headers) => Some("requests of other pages are refused"),
            () if method != Method::GET && !headers.contains_key(ACT_HEADER) => {
                Some("a request that changes something needs the header `x-contexture: 1`")
            }
            () => None,
        }
    }
}

/// Whether the request comes from the inspector's own page or from a navigation by the user.
fn is_of_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let is_navigation = text("sec-fetch-mode") == Some("navigate");
    let is_site_own = text("sec-fetch-site").is_none_or(|site| is_navigation || matches!(site, "same-origin" | "none"));
    let host = text("host").unwrap_or_default();
    let is_origin_own =
        text("origin").is_none_or(|origin| origin.split_once("://").is_some_and(|(_, own)| own == host));
    is_site_own && is_origin_own
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: (&str, &str) = ("authorization", "Bearer secret");

    #[track_caller]
    fn check(method: Method, headers: &[(&'static str, &str)], expected: bool) {
        let mut all = HeaderMap::new();
        all.insert("host", "127.0.0.1:80".parse().unwrap());
        for (name, value) in headers {
            all.insert(*name, value.parse().unwrap());
        }
        let refused = Pass::new("secret".to_owned()).refuses(&method, &all);
        assert_eq!(refused.is_none(), expected, "{method} {headers:?}: {refused:?}");
    }

    #[test]
    fn only_who_has_the_token_may_look() {
        check(Method::GET, &[], false);
        check(Method::GET, &[OWN], true);
        check(Method::GET, &[("authorization", "bearer secret")], true);
        check(Method::GET, &[("authorization", "Bearer secre")], false);
        check(Method::GET, &[("authorization", "Basic secret")], false);
        check(Method::GET, &[("cookie", "contexture_80=secret")], false);
        check(Method::GET, &[OWN, ("sec-fetch-site", "same-site")], false);
        check(Method::GET, &[OWN, ("origin", "http://127.0.0.1:81")], false);
        check(Method::DELETE, &[OWN], false);
        check(Method::DELETE, &[OWN, (ACT_HEADER, "1")], true);
        check(Method::DELETE, &[OWN, (ACT_HEADER, "1"), ("origin", "http://evil")], false);
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer secret".parse().unwrap());
        let why = Pass::new("secret".to_owned()).refuses(&Method::DELETE, &headers).unwrap();
        assert!(why.contains("x-contexture: 1"), "{why}");
    }
}
