//! Checks who may send requests to the gateway.

use std::net::IpAddr;

use axum::http::{HeaderMap, Uri, header};

/// Whether the `Host` and `Origin` of a request are those of this machine. They differ if a page of another site makes
/// a browser send the request. What listens on all addresses does not know all names of its machine, so `Host` may be
/// any.
pub fn is_local(headers: &HeaderMap, uri: &Uri, listens_on: IpAddr) -> bool {
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or("?"));
    let host = host.or_else(|| uri.authority().map(|authority| authority.as_str()));
    let is_it = |name: &str| name.trim_matches(['[', ']']).parse() == Ok(listens_on);
    let is_own = |name: &str| is_loopback(name) || is_it(name);
    let is_host_own = listens_on.is_unspecified() || host.is_some_and(|host| is_own(without_port(host)));
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().unwrap_or("?"));
    let is_origin_own =
        origin.is_none_or(|origin| origin.split_once("://").is_some_and(|(_, host)| is_own(without_port(host))));
    is_host_own && is_origin_own
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: Option<&str>, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        assert_eq!(is_local(&headers, &Uri::from_static("/"), [127, 0, 0, 1].into()), expected, "{host} {origin:?}");
    }

    #[test]
    fn only_this_machine_may_speak() {
        check("127.0.0.1:4000", None, true);
        check("localhost:4000", Some("http://localhost:3000"), true);
        check("[::1]:4000", None, true);
        check("[::1]", None, true);
        check("evil.example:4000", None, false);
        check("127.0.0.1.evil.example", None, false);
        check("127.0.0.1:4000", Some("https://evil.example"), false);
        check("127.0.0.1:4000", Some("null"), false);
        check("127.0.0.1:4000", Some("https://localhost.evil.example"), false);
    }

    #[test]
    fn who_listens_on_all_addresses_still_refuses_other_pages() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "machine.example:4000".parse().unwrap());
        let is_ok = |headers: &HeaderMap| is_local(headers, &Uri::from_static("/"), [0, 0, 0, 0].into());
        assert!(is_ok(&headers));
        headers.insert(header::ORIGIN, "https://evil.example".parse().unwrap());
        assert!(!is_ok(&headers));
    }
}
