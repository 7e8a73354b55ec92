//! The network prefix of a client's address.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the part of `address` that identifies one client: the /64 prefix of an IPv6 address, since a host may
/// use any address in it. An IPv4 address is returned whole, even if it is written as IPv4-mapped IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    // A dual-stack socket reports IPv4 clients as mapped addresses, which all share one /64.
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_network_are_one_client() {
        let check = |address: &str, expected: &str| {
            let found = network(address.parse().unwrap());
            assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{address}");
        };
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("2001:db8:1:3::1", "2001:db8:1:3::");
    }
}
