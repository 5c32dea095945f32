//! Which addresses a remote server may have: public ones, checked after DNS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The one name that loopback has.
const LOCALHOST: &str = "localhost";

/// Why a URL is not connected to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum AddressError {
    /// It is no URL.
    #[error("`{0}` is not a URL")]
    NotUrl(String),
    /// Not `https`.
    #[error(
        "`{0}` is not https; http is for loopback addresses, where the configuration allows it"
    )]
    NotHttps(String),
    /// A user name or password in it.
    #[error("the URL holds a user name or password: use a header instead")]
    Credentials,
    /// An address of this machine or its networks.
    #[error("`{host}` is the address {address}, which is not a public one")]
    NotPublic {
        /// The host of the URL.
        host: String,
        /// What it stands for.
        address: IpAddr,
    },
    /// No address at all.
    #[error("`{0}` has no address")]
    Unknown(String),
}

/// Checks a URL before anything is looked up. Loopback by its number or as `localhost` is allowed
/// only on request, and then with `http` as well.
pub(super) fn check_url(text: &str, loopback: bool) -> Result<Url, AddressError> {
    let shown = || text.chars().take(200).collect::<String>();
    let url = Url::parse(text).map_err(|_cause| AddressError::NotUrl(shown()))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    let host = url.host_str().unwrap_or_default().to_owned();
    let literal = literal(&host);
    let on_loopback =
        host == LOCALHOST || literal.is_some_and(|address| unmapped(address).is_loopback());
    if loopback && on_loopback && matches!(url.scheme(), "http" | "https") {
        return Ok(url);
    }
    if url.scheme() != "https" {
        return Err(AddressError::NotHttps(shown()));
    }
    match literal {
        Some(address) if !is_public(address) => Err(AddressError::NotPublic { host, address }),
        _ if host.is_empty() => Err(AddressError::NotUrl(shown())),
        _ => Ok(url),
    }
}

/// An address that is written as a number. The URL parser has turned decimal, octal and
/// hexadecimal spellings into the usual one.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse()
        .ok()
}

/// Looks names up and refuses them when any of their addresses is not public: an attacker's name
/// server may mix both. The connection goes to the addresses that were checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct PublicOnly {
    /// Whether `localhost` may be looked up, and then be nothing but loopback.
    pub(super) loopback: bool,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let loopback = self.loopback && name.as_str() == LOCALHOST;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if !(loopback && found.iter().all(|address| address.ip().is_loopback())) {
                check_addresses(&host, &found)?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Refuses a name without addresses or with one that is not public.
pub(super) fn check_addresses(host: &str, found: &[SocketAddr]) -> Result<(), AddressError> {
    if found.is_empty() {
        return Err(AddressError::Unknown(host.to_owned()));
    }
    match found.iter().find(|address| !is_public(address.ip())) {
        Some(address) => Err(AddressError::NotPublic {
            host: host.to_owned(),
            address: address.ip(),
        }),
        None => Ok(()),
    }
}

/// Whether an address is on the open internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match unmapped(address) {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// The IPv4 address inside an IPv6 one: mapped, compatible, NAT64, 6to4 and Teredo.
fn unmapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    if v6.is_loopback() || v6.is_unspecified() {
        return address;
    }
    let segments = v6.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => v4(high, low),
        [0x2001, 0, .., high, low] => v4(!high, !low),
        _ => address,
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || 240 <= a
        // Shared by carriers (RFC 6598): some clouds keep their metadata service there.
        || (a == 100 && (64..128).contains(&b))
        // Protocol assignments, old 6to4 relays, benchmarks.
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b))
        // Azure's host address, reachable from inside every machine there.
        || address == Ipv4Addr::new(168, 63, 129, 16))
}

/// Only `2000::/3` is handed out; of it the documentation and benchmark ranges are not public.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let handed_out = (0x2000..0x4000).contains(&a);
    let reserved = matches!((a, b), (0x2001, 0xdb8 | 0..=0x1ff)) || a == 0x3fff;
    handed_out && !reserved
}
