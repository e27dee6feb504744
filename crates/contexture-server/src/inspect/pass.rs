//! Access control of the inspector.

use axum::http::{HeaderMap, Method, Uri, header};

/// The header that the page sends with changes. A form of another site cannot send it.
pub const ACT_HEADER: &str = "x-contexture";

/// The token of the inspector.
pub struct Pass {
    token: String,
    cookie: String,
}

impl Pass {
    /// A token for the inspector at a port. Cookies are shared between ports, so the port is part of the cookie's name.
    pub fn new(token: String, port: u16) -> Self {
        Self { token, cookie: format!("contexture_{port}") }
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The cookie for the browser.
    pub fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.token)
    }

    /// Why a request is refused; `None` if it is allowed.
    pub fn refuses(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let in_address = uri.query().into_iter().flat_map(|query| query.split('&'));
        let in_address = in_address.filter_map(|pair| pair.strip_prefix("token="));
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let cookies = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let cookies = cookies.filter(|(name, _)| *name == self.cookie).map(|(_, value)| value);
        // Comparing digests keeps the timing independent of the token.
        let is_it = |given: &str| blake3::hash(given.as_bytes()) == blake3::hash(self.token.as_bytes());
        let has_token = bearer.into_iter().chain(in_address).chain(cookies).any(is_it);
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

    #[track_caller]
    fn check(method: Method, uri: &str, headers: &[(&'static str, &str)], expected: bool) {
        let mut all = HeaderMap::new();
        all.insert("host", "127.0.0.1:80".parse().unwrap());
        for (name, value) in headers {
            all.insert(*name, value.parse().unwrap());
        }
        let pass = Pass::new("secret".to_owned(), 80);
        let refused = pass.refuses(&method, &uri.parse().unwrap(), &all);
        assert_eq!(refused.is_none(), expected, "{method} {uri} {headers:?}: {refused:?}");
    }

    #[test]
    fn only_who_has_the_token_may_look() {
        let cookie = ("cookie", "a=b; contexture_80=secret");
        check(Method::GET, "/inspect/", &[], false);
        check(Method::GET, "/inspect/?token=secret", &[], true);
        check(Method::GET, "/inspect/?token=secre", &[], false);
        check(Method::GET, "/api/v1/about", &[cookie], true);
        check(Method::GET, "/api/v1/about", &[("cookie", "contexture_81=secret")], false);
        check(Method::GET, "/api/v1/about", &[("authorization", "Bearer secret")], true);
        check(Method::GET, "/api/v1/about", &[cookie, ("sec-fetch-site", "same-site")], false);
        check(Method::GET, "/api/v1/about", &[cookie, ("origin", "http://127.0.0.1:81")], false);
        check(Method::DELETE, "/api/v1/conversations/1", &[cookie], false);
        check(Method::DELETE, "/api/v1/conversations/1", &[cookie, (ACT_HEADER, "1")], true);
        check(
            Method::DELETE,
            "/api/v1/conversations/1",
            &[cookie, (ACT_HEADER, "1"), ("origin", "http://evil")],
            false,
        );
    }

    #[test]
    fn a_refusal_says_what_is_missing() {
        let pass = Pass::new("secret".to_owned(), 80);
        let uri: Uri = "/api/v1/conversations/1?token=secret".parse().unwrap();
        let why = pass.refuses(&Method::DELETE, &uri, &HeaderMap::new()).unwrap();
        assert!(why.contains("x-contexture: 1"), "{why}");
    }
}
