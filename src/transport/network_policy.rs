//! Restricts connections to allowed IP addresses.
//!
//! A user's channel must not give access to the service's machine or network. Addresses are checked after name
//! resolution, when the connection is made, which also prevents DNS rebinding.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::{TcpStream, lookup_host};

use crate::transport::error::SendRefusal;

/// The IP addresses to which connections are allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NetworkPolicy {
    /// Any address, for channels of the operator.
    #[default]
    Anywhere,
    /// Only globally reachable addresses.
    Public,
}

impl NetworkPolicy {
    /// Returns whether a connection to `address` is allowed.
    pub(super) fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Public => is_public(address),
        }
    }

    /// Resolves `host` to the addresses to which connections are allowed.
    ///
    /// Fails if the name has no such address. If only public addresses are allowed, a name that does not resolve
    /// and a name that resolves to private addresses fail with the same error, [`SendRefusal::NotPublic`]. An IP
    /// literal that is not allowed fails with [`SendRefusal::Private`].
    pub(super) async fn resolve(self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let literal = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if literal.is_ok_and(|address| !self.allows(address)) {
            return Err(io::Error::other(SendRefusal::Private));
        }
        let found = self.look_up(host, port).await;
        match self {
            Self::Anywhere => found,
            Self::Public => found.map_err(|_| io::Error::other(SendRefusal::NotPublic)),
        }
    }

    /// Looks up `host` and filters its addresses.
    async fn look_up(self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<SocketAddr> = lookup_host((host, port)).await?.collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        let allowed: Vec<SocketAddr> =
            found.into_iter().filter(|address| self.allows(address.ip())).collect();
        if allowed.is_empty() {
            return Err(io::Error::other(SendRefusal::NotPublic));
        }
        Ok(allowed)
    }

    /// Connects to `host` if its address is allowed.
    pub(super) async fn connect(self, host: &str, port: u16) -> io::Result<TcpStream> {
        TcpStream::connect(self.resolve(host, port).await?.as_slice()).await
    }

    /// Checks an IP literal in `url`, which never reaches the resolver. `Url` has already normalized all
    /// spellings, such as `0x7f.1`.
    pub(super) fn check(self, url: &Url) -> Result<(), SendRefusal> {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        match host.parse::<IpAddr>() {
            Ok(address) if !self.allows(address) => Err(SendRefusal::Private),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

impl Resolve for NetworkPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = *self;
        Box::pin(async move {
            // The client sets the port.
            let found = Self::resolve(policy, name.as_str(), 0).await?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Returns whether `address` is globally reachable, according to the registries of special-purpose addresses (RFC
/// 6890).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, private, loopback.
        (0 | 10 | 127, _, _)
        // Link-local, including cloud metadata services.
        | (169, 254, _)
        | (172, 16..=31, _)
        // Protocols, documentation, relays.
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (192, 168, _)
        // Carrier-grade NAT, including cloud metadata services.
        | (100, 64..=127, _)
        // Benchmarking and documentation.
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113)
        // Multicast, reserved, broadcast.
        | (224..=255, _, _) => true,
        _ => false,
    };
    // Virtual machines in Azure reach the platform services at this address.
    !special && address != Ipv4Addr::new(168, 63, 129, 16)
}

/// Returns the IPv4 address whose halves are the last two segments of an IPv6 address.
fn embedded_v4(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // ::ffff:0:0/96 are IPv4-mapped addresses; 64:ff9b::/96 (NAT64) is translated to IPv4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(embedded_v4(high, low))
        }
        // Protocols with Teredo (2001::/23), documentation, 6to4 relays.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Allocated global unicast addresses. The rest is loopback, local, multicast or reserved.
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_of_machines_and_networks_are_not_public() {
        let private = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.5",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in private {
            assert!(!NetworkPolicy::Public.allows(text.parse().unwrap()), "{text}");
            assert!(NetworkPolicy::Anywhere.allows(text.parse().unwrap()), "{text}");
        }
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
            "3ffe::1",
        ];
        for text in public {
            assert!(NetworkPolicy::Public.allows(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_an_address_in_a_url_is_seen() {
        let check = |text: &str| NetworkPolicy::Public.check(&Url::parse(text).unwrap());
        let private = [
            "http://127.0.0.1/",
            "https://127.1/",
            "http://0x7f.1/",
            "http://2130706433/",
            "http://0177.0.0.1/",
            "http://[::1]/",
            "http://[::ffff:7f00:1]/",
            "http://[::]:80/",
            "http://１２７.0.0.1/",
        ];
        for text in private {
            assert_eq!(check(text), Err(SendRefusal::Private), "{text}");
        }
        for text in ["http://1.1.1.1/", "https://[2606:4700::1111]/", "https://h.example/"] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        assert_eq!(
            NetworkPolicy::Anywhere.check(&Url::parse("http://127.0.0.1/").unwrap()),
            Ok(())
        );
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let cases = [
            ("127.0.0.1", SendRefusal::Private),
            ("::1", SendRefusal::Private),
            ("::ffff:127.0.0.1", SendRefusal::Private),
            ("localhost", SendRefusal::NotPublic),
            ("no-such-name.invalid", SendRefusal::NotPublic),
        ];
        for (host, expected) in cases {
            let error = NetworkPolicy::resolve(NetworkPolicy::Public, host, 80).await.unwrap_err();
            let refusal = error.get_ref().and_then(|inner| inner.downcast_ref::<SendRefusal>());
            assert_eq!(refusal, Some(&expected), "{host}");
        }
        let found =
            NetworkPolicy::resolve(NetworkPolicy::Anywhere, "localhost", 80).await.unwrap();
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        let found = NetworkPolicy::resolve(NetworkPolicy::Public, "1.1.1.1", 21).await.unwrap();
        assert_eq!(found, ["1.1.1.1:21".parse().unwrap()]);
    }

    proptest! {
        #[test]
        fn what_the_standard_library_calls_local_is_never_public(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from_bits(bits);
            let local = v4.is_loopback() || v4.is_private() || v4.is_link_local()
                || v4.is_multicast() || v4.is_unspecified() || v4.is_broadcast()
                || v4.is_documentation();
            prop_assert!(!(local && is_public_v4(v4)), "{}", v4);
            let seen = is_public_v4(v4);
            prop_assert_eq!(is_public_v6(v4.to_ipv6_mapped()), seen);
            let [a, b, c, d] = v4.octets().map(u16::from);
            let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, (a << 8) | b, (c << 8) | d);
            prop_assert_eq!(is_public_v6(nat64), seen);
            prop_assert!(!is_public_v6(v4.to_ipv6_compatible()));
        }

        #[test]
        fn local_ranges_are_never_public(
            v4 in prop_oneof![Just((127, 8)), Just((10, 8))],
            rest in any::<u32>(),
            v6 in any::<u128>(),
        ) {
            let v4 = Ipv4Addr::from_bits((v4.0 << (32 - v4.1)) | (rest & 0x00ff_ffff));
            prop_assert!(!is_public(v4.into()));
            let v6 = Ipv6Addr::from_bits(v6);
            let local = v6.is_loopback() || v6.is_unspecified() || v6.is_multicast()
                || v6.is_unique_local() || v6.is_unicast_link_local();
            prop_assert!(!(local && is_public(v6.into())), "{}", v6);
            for prefix in [0xfc_u8, 0xfd, 0xff] {
                let mut octets = v6.octets();
                octets[0] = prefix;
                prop_assert!(!is_public(Ipv6Addr::from(octets).into()));
            }
        }
    }
}
