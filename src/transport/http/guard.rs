//! Host and Origin, checked before anything else, against DNS rebinding and foreign web pages.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// An origin of the configuration is none.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not an origin: write `https://host` or `https://host:port`")]
pub struct ParseOriginError(String);

/// Host names and origins that requests may carry. Loopback names are always among them.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Guard {
    /// Loopback names, and these besides.
    pub fn new(hosts: &[String], origins: &[String]) -> Result<Self, ParseOriginError> {
        for origin in origins {
            if split_origin(origin).is_none() {
                return Err(ParseOriginError(origin.clone()));
            }
        }
        let lower = |list: &[String]| list.iter().map(|item| item.to_lowercase()).collect();
        Ok(Self {
            hosts: lower(hosts),
            origins: lower(origins),
        })
    }

    fn allows_host(&self, authority: &str) -> bool {
        let authority = authority.to_lowercase();
        let host = host_of(&authority);
        is_loopback(host)
            || self
                .hosts
                .iter()
                .any(|known| known == host || *known == authority)
    }

    fn allows_origin(&self, origin: &str) -> bool {
        let origin = origin.to_lowercase();
        let Some(authority) = split_origin(&origin) else {
            return false;
        };
        is_loopback(host_of(authority)) || self.origins.contains(&origin)
    }

    /// What is wrong with a request's headers, if anything.
    fn refuse(&self, uri: &Uri, headers: &HeaderMap) -> Option<(StatusCode, &'static str)> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        let authority = uri.authority().map(|authority| authority.as_str());
        let host = host
            .map(HeaderValue::to_str)
            .and_then(Result::ok)
            .or(authority);
        match host {
            Some(host) if second.is_none() && self.allows_host(host) => {}
            _ => {
                return Some((
                    StatusCode::MISDIRECTED_REQUEST,
                    "this Host is not served here",
                ));
            }
        }
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let allowed = origins.all(|origin| origin.to_str().is_ok_and(|o| self.allows_origin(o)));
        (!allowed).then_some((StatusCode::FORBIDDEN, "this Origin may not call here"))
    }
}

/// Refuses what the guard does not know.
pub(super) async fn check(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    if let Some(refusal) = guard.refuse(request.uri(), request.headers()) {
        return refusal.into_response();
    }
    next.run(request).await
}

/// Answers are data for programs: no browser guesses at their type or keeps them.
pub(super) async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn split_origin(origin: &str) -> Option<&str> {
    let authority = origin
        .strip_prefix("https://")
        .or_else(|| origin.strip_prefix("http://"))?;
    let plain = !authority.is_empty() && !authority.contains(['/', '?', '#', '@', ' ']);
    plain.then_some(authority)
}

/// The host of an authority, without its port.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &str, origin: Option<&str>, expected: Option<u16>) {
        let own = ["Crib.Example".to_owned(), "other.example:8443".to_owned()];
        let guard = Guard::new(&own, &["https://app.example".to_owned()]).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let refused = guard.refuse(&Uri::from_static("/mcp"), &headers);
        assert_eq!(
            refused.map(|(code, _)| code.as_u16()),
            expected,
            "{host} {origin:?}"
        );
    }

    #[test]
    fn only_known_hosts_and_origins_pass() {
        check("localhost:8787", None, None);
        check("127.0.0.1:8787", None, None);
        check("[::1]:8787", None, None);
        check("crib.example", None, None);
        check("CRIB.example:99", None, None);
        check("other.example:8443", None, None);
        check("other.example", None, Some(421));
        check("evil.example", None, Some(421));
        check("localhost.evil.example", None, Some(421));
        check("127.0.0.1.evil.example", None, Some(421));
        check("", None, Some(421));
        check("localhost", Some("http://localhost:5173"), None);
        check("localhost", Some("https://app.example"), None);
        check("localhost", Some("https://app.example:444"), Some(403));
        check("localhost", Some("http://app.example"), Some(403));
        check("localhost", Some("null"), Some(403));
        check("localhost", Some("https://evil.example"), Some(403));
        check(
            "localhost",
            Some("http://localhost@evil.example"),
            Some(403),
        );
    }

    #[test]
    fn two_hosts_are_refused() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        headers.append(header::HOST, "localhost".parse().unwrap());
        let refused = Guard::default().refuse(&Uri::from_static("/mcp"), &headers);
        assert!(refused.is_some());
    }

    #[test]
    fn an_origin_without_scheme_is_a_fault_of_the_configuration() {
        assert!(Guard::new(&[], &["app.example".to_owned()]).is_err());
    }
}
