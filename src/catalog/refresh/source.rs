//! A place that tools come from.

use std::fmt;
use std::path::PathBuf;

use reqwest::Url;

use crate::catalog::import::Format;
use crate::catalog::pins::Policy;

/// Why a text is not the URL of a source.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseOriginError {
    /// No URL.
    #[error("`{0}` is not a URL")]
    NotUrl(String),
    /// Not `https`.
    #[error(
        "`{0}` is not https; http is for loopback addresses, where `catalog.allow_loopback` is set"
    )]
    NotHttps(String),
    /// A password that logs would show.
    #[error("the URL holds a user name or password")]
    Credentials,
}

/// Where a source is read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// A file, or a folder with all files below it.
    Path(PathBuf),
    /// A document on the web.
    Url(Url),
}

impl Origin {
    /// From a URL: `https`, or `http` to a loopback address where that is allowed.
    pub fn of_url(text: &str, loopback: bool) -> Result<Self, ParseOriginError> {
        let url = Url::parse(text).map_err(|_cause| ParseOriginError::NotUrl(text.to_owned()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ParseOriginError::Credentials);
        }
        let http = url.scheme() == "http" && loopback && is_loopback(&url);
        if url.scheme() == "https" || http {
            Ok(Self::Url(url))
        } else {
            Err(ParseOriginError::NotHttps(text.to_owned()))
        }
    }
}

/// Whether a URL names this machine, by number or as `localhost`.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']');
    let number = number.parse::<std::net::IpAddr>();
    host == "localhost" || number.is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Url(url) => url.fmt(f),
        }
    }
}

/// A source of the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// Its name, unique.
    pub name: Box<str>,
    /// How it is written.
    pub format: Format,
    /// Where it is.
    pub origin: Origin,
    /// How far it is trusted.
    pub policy: Policy,
    /// Hosts beside its own that lists of tools named in it may be fetched from.
    pub lists_from: Vec<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a URL is good by itself, and where loopback is allowed.
    fn check(text: &str, expected: [bool; 2]) {
        let good = [false, true].map(|loopback| Origin::of_url(text, loopback).is_ok());
        assert_eq!(good, expected, "{text}");
    }

    #[test]
    fn plain_http_is_for_loopback_on_request() {
        check("https://example.com/catalog.yaml", [true, true]);
        check("http://example.com/catalog.yaml", [false, false]);
        check("http://127.0.0.1:80/c", [false, true]);
        check("http://[::1]:80/c", [false, true]);
        check("http://127.0.0.1.example.com/c", [false, false]);
        check("https://user:secret@example.com/c", [false, false]);
        check("file:///etc/passwd", [false, false]);
        check("catalog.yaml", [false, false]);
    }
}
