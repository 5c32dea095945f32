//! Which addresses a remote server may have: public ones, checked after DNS.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The one name that loopback has.
const LOCALHOST: &str = "localhost";

/// Why a URL is not connected to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AddressError {
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
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every spelling of an inside address that the URL parser accepts, and some that it refuses.
    const INSIDE: &[&str] = &[
        "https://127.0.0.1/",
        "https://127.1/",
        "https://127.255.255.254/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://0177.0.0.1/",
        "https://017700000001/",
        "https://0/",
        "https://0.0.0.0/",
        "https://0.1.2.3/",
        "https://10.0.0.1/",
        "https://10.255.255.255/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.168.0.1/",
        "https://192.168.255.255/",
        "https://169.254.169.254/latest/meta-data/",
        "https://2852039166/",
        "https://0xa9fea9fe/",
        "https://0251.0376.0251.0376/",
        "https://169.254.170.2/",
        "https://100.100.100.200/",
        "https://100.64.0.1/",
        "https://100.127.255.255/",
        "https://168.63.129.16/",
        "https://192.0.0.192/",
        "https://192.0.2.1/",
        "https://192.88.99.1/",
        "https://198.18.0.1/",
        "https://198.19.255.255/",
        "https://198.51.100.1/",
        "https://203.0.113.1/",
        "https://224.0.0.1/",
        "https://239.255.255.255/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://[::1]/",
        "https://[::]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[::ffff:0:127.0.0.1]/",
        "https://[::127.0.0.1]/",
        "https://[::10.0.0.1]/",
        "https://[64:ff9b::127.0.0.1]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[64:ff9b:1::1]/",
        "https://[2002:7f00:1::]/",
        "https://[2002:a9fe:a9fe::1]/",
        "https://[2001:0:0:0:0:0:80ff:fffe]/",
        "https://[2001:db8::1]/",
        "https://[2001:2::1]/",
        "https://[3fff::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[fec0::1]/",
        "https://[ff02::1]/",
        "https://[100::1]/",
        "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/",
        "https://127\u{3002}0\u{3002}0\u{3002}1/",
    ];

    #[test]
    fn no_spelling_of_an_inside_address_is_connected_to() {
        for url in INSIDE {
            let refused = check_url(url, false).unwrap_err();
            assert!(
                matches!(refused, AddressError::NotPublic { .. }),
                "{url}: {refused}"
            );
        }
    }

    #[test]
    fn other_schemes_and_shapes_are_refused() {
        for url in [
            "http://example.com/",
            "http://93.184.215.14/",
            "file:///etc/passwd",
            "gopher://example.com/",
            "ftp://example.com/",
            "unix:/run/docker.sock",
            "data:text/plain,x",
            "https://user:password@example.com/",
            "https://example.com@127.0.0.1/",
            "https:///",
            "//example.com/",
            "example.com",
            "",
            "https://[::1",
            "https://1.2.3.4.5/",
            "https://256.1.1.1/",
        ] {
            assert!(check_url(url, false).is_err(), "{url}");
        }
    }

    #[test]
    fn public_addresses_are_allowed() {
        for url in [
            "https://example.com/mcp",
            "https://example.com:8443/mcp?a=b",
            "https://93.184.215.14/",
            "https://100.63.255.255/",
            "https://172.15.0.1/",
            "https://172.32.0.1/",
            "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
            "https://[64:ff9b::8.8.8.8]/",
        ] {
            assert!(check_url(url, false).is_ok(), "{url}");
        }
    }

    #[test]
    fn loopback_is_allowed_on_request_and_nothing_else_with_it() {
        for url in [
            "http://127.0.0.1:1/",
            "http://localhost:1/",
            "https://[::1]/",
            "http://127.1/",
        ] {
            assert!(check_url(url, true).is_ok(), "{url}");
        }
        for url in [
            "http://10.0.0.1/",
            "https://169.254.169.254/",
            "http://example.com/",
            "https://[fd00::1]/",
        ] {
            assert!(check_url(url, true).is_err(), "{url}");
        }
    }

    #[test]
    fn a_name_with_one_inside_address_is_refused() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let mixed = [at("93.184.215.14"), at("127.0.0.1")];
        assert!(check_addresses("rebind.example", &mixed).is_err());
        assert!(check_addresses("rebind.example", &mixed[..1]).is_ok());
        assert!(check_addresses("nothing.example", &[]).is_err());
    }

    #[tokio::test]
    async fn a_name_is_checked_when_it_is_looked_up() {
        let name = || LOCALHOST.parse::<Name>().unwrap();
        let refused = PublicOnly { loopback: false }.resolve(name()).await;
        assert!(
            refused
                .err()
                .unwrap()
                .to_string()
                .contains("not a public one")
        );
        assert!(PublicOnly { loopback: true }.resolve(name()).await.is_ok());
    }

    proptest! {
        #[test]
        fn no_text_panics_and_no_inside_number_gets_through(text in "\\PC{0,40}", bits in any::<u32>()) {
            let _refused_or_not = check_url(&text, true);
            let address = Ipv4Addr::from(bits);
            let allowed = is_public(IpAddr::V4(address));
            for spelling in [
                format!("https://{bits}/"),
                format!("https://0x{bits:x}/"),
                format!("https://0{bits:o}/"),
                format!("https://[::ffff:{address}]/"),
                format!("https://[64:ff9b::{address}]/"),
            ] {
                prop_assert_eq!(check_url(&spelling, false).is_ok(), allowed, "{}", spelling);
            }
        }
    }
}
