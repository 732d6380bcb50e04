//! Who may send requests: checks `Host`, `Origin` and the token. Hosts are parsed strictly: a value
//! that two parsers could read as different hosts is refused.

use std::net::Ipv6Addr;

use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use tokio::sync::broadcast;

use super::response::HttpError;
use super::scope::Scope;

/// A caller, identified by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The token's name.
    pub name: String,
    /// What it may use.
    pub scope: Scope,
    /// When its token expires, as [`Authenticator::is_past`] understands it.
    pub expires_at: Option<u64>,
}

/// Knows the tokens.
pub trait Authenticator: Send + Sync {
    /// The owner of a token; compared in constant time.
    fn authenticate(&self, token: &str) -> Option<Principal>;

    /// Changes whenever a token is created or revoked, before that takes effect for the caller of the
    /// change. Connections remember their caller as long as it stays the same; `None` if they must
    /// not.
    fn generation(&self) -> Option<u64> {
        None
    }

    /// Whether a time at which a token expires has passed.
    fn is_past(&self, expires_at: u64) -> bool {
        let _ = expires_at;
        true
    }

    /// Whether the token of this name is still valid.
    fn is_valid(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The names of tokens that are revoked from now on.
    fn revocations(&self) -> broadcast::Receiver<String> {
        broadcast::channel(1).1
    }
}

/// The token of a request; none if there are two.
pub(super) fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let value = all.next().filter(|_| all.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Host names of loopback.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Which hosts and origins are allowed.
#[derive(Debug)]
pub(super) struct HostPolicy {
    hosts: Vec<String>,
    origins: Vec<String>,
}

/// A host, and its port if given.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    /// In lower case; an IPv6 address in brackets, in its shortest form.
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// `host` or `host:port`, and nothing else: no user, no empty port, no blanks.
    fn parse(text: &str) -> Option<Self> {
        let (host, rest) = match text.strip_prefix('[') {
            Some(inside) => {
                let (address, rest) = inside.split_once(']')?;
                (format!("[{}]", address.parse::<Ipv6Addr>().ok()?), rest)
            }
            None => {
                let (name, rest) = text.split_at(text.find(':').unwrap_or(text.len()));
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
                if name.is_empty() || !name.bytes().all(plain) {
                    return None;
                }
                (name.to_ascii_lowercase(), rest)
            }
        };
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            None => return None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }
}

impl HostPolicy {
    /// Host names and origins besides those of loopback.
    pub(super) fn new(hosts: &[String], origins: &[String]) -> Self {
        let hosts = hosts.iter().filter_map(|host| Authority::parse(host));
        let hosts = hosts.filter(|host| host.port.is_none()).map(|host| host.host).collect();
        Self { hosts, origins: origins.to_vec() }
    }

    /// Refuses requests for another host or from a foreign site: a page in a browser can reach
    /// loopback, also under a name of its own.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpError> {
        let forbidden = |why: String| HttpError::new(StatusCode::FORBIDDEN, why);
        let host = single_header(headers, &header::HOST)?.unwrap_or_default();
        let requested = Authority::parse(host).filter(|requested| self.is_known(requested));
        let Some(requested) = requested else {
            return Err(forbidden(format!("`Host: {host}` is not a name of this server")));
        };
        // Some intermediaries prefer a host in the request target to the header.
        if let Some(target) = uri.authority()
            && Authority::parse(target.as_str()).as_ref() != Some(&requested)
        {
            return Err(forbidden(format!("the request is for {target}, but `Host` says {host}")));
        }
        match single_header(headers, &header::ORIGIN)? {
            Some(origin) if !self.is_origin(origin) => {
                Err(forbidden(format!("`Origin: {origin}` may not call this server")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a value of `Host` is a name of this server.
    pub(super) fn is_host(&self, host: &str) -> bool {
        Authority::parse(host).is_some_and(|requested| self.is_known(&requested))
    }

    fn is_known(&self, requested: &Authority) -> bool {
        LOCAL.contains(&requested.host.as_str()) || self.hosts.contains(&requested.host)
    }

    /// Whether pages of this origin may send requests.
    pub(super) fn is_origin(&self, origin: &str) -> bool {
        let site = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let site = site.and_then(Authority::parse);
        site.is_some_and(|site| self.is_known(&site))
            || self.origins.iter().any(|known| known.eq_ignore_ascii_case(origin))
    }
}

/// The value of a header that may appear once.
fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, HttpError> {
    let mut all = headers.get_all(name).iter();
    let Some(value) = all.next() else { return Ok(None) };
    if all.next().is_some() {
        let why = format!("the header `{name}` appears twice");
        return Err(HttpError::new(StatusCode::BAD_REQUEST, why));
    }
    let text = value.to_str().ok();
    text.map(Some).ok_or_else(|| {
        let why = format!("the header `{name}` is not plain text");
        HttpError::new(StatusCode::BAD_REQUEST, why)
    })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn policy() -> HostPolicy {
        HostPolicy::new(
            &["box.example".into(), "[fd00::2]".into()],
            &["https://app.example".into()],
        )
    }

    #[track_caller]
    fn check(target: &str, headers: &[(&'static str, &str)], allowed: bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let checked = policy().check(&target.parse().unwrap(), &map);
        assert_eq!(checked.is_ok(), allowed, "{target} {headers:?}");
    }

    #[test]
    fn only_names_of_this_server_are_accepted() {
        for host in [
            "localhost",
            "LocalHost",
            "localhost:80",
            "127.0.0.1:8080",
            "[::1]",
            "[::1]:9",
            "[0:0:0:0:0:0:0:1]:9",
            "box.example:1",
            "BOX.example",
            "[fd00:0::2]:7",
        ] {
            check("/mcp", &[("host", host)], true);
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "[::2]",
            "[::1]evil.com",
            "[::1]:80evil",
            "[::1",
            "::1",
            "[::1]]",
            "[::1%25lo]",
            "[v1.x]",
            "localhost:80:evil",
            "localhost:",
            "localhost:port",
            "localhost:+80",
            "localhost:65536",
            "localhost.",
            "localhost,evil.com",
            "localhost evil.com",
            "user@localhost",
            "evil.com@localhost",
            "localhost@evil.com",
            "localhost/evil",
            "localhost#x",
            "localhost?x",
            "localhost\\evil",
            "http://localhost",
            "127.1",
            "2130706433",
            "ſ",
        ] {
            // A header cannot contain every byte.
            if HeaderValue::from_str(host).is_ok() {
                check("/mcp", &[("host", host)], false);
            }
        }
        check("/mcp", &[], false);
        check("/mcp", &[("host", "localhost"), ("host", "localhost")], false);
        check("/mcp", &[("host", "localhost"), ("host", "evil.com")], false);
    }

    #[test]
    fn a_host_in_the_target_must_match_the_header() {
        check("http://localhost:80/mcp", &[("host", "localhost:80")], true);
        check("http://LOCALHOST/mcp", &[("host", "localhost")], true);
        check("http://evil.com/mcp", &[("host", "localhost")], false);
        check("http://localhost/mcp", &[("host", "evil.com")], false);
        check("http://localhost:81/mcp", &[("host", "localhost:80")], false);
        check("http://me@localhost/mcp", &[("host", "localhost")], false);
    }

    #[test]
    fn only_allowed_origins_are_accepted() {
        for origin in ["http://localhost:3000", "https://127.0.0.1", "https://app.example"] {
            check("/mcp", &[("host", "localhost"), ("origin", origin)], true);
        }
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost/x",
            "file://",
            "localhost",
            "http://localhost:80:evil",
            "http://[::1]evil.com",
            "http://localhost@evil.com",
            "http://user@localhost",
            "http://localhost:",
            "http://localhost.",
            "//localhost",
            "http://localhost http://evil.com",
            "https://app.example.evil.com",
        ] {
            check("/mcp", &[("host", "localhost"), ("origin", origin)], false);
        }
        let twice =
            [("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://localhost")];
        check("/mcp", &twice, false);
    }
}
