//! Identifies users by address: the one that they connect from, or the one that a trusted proxy names.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use evenkeel_engine::User;
use evenkeel_engine::implied_groups::UNAUTHENTICATED;
use http::{HeaderMap, HeaderName};

use super::cache::Cache;
use crate::Peer;
use crate::config::{AddressIdentity, masked};

/// Makes users of addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    config: AddressIdentity,
    /// Users behind proxies, by the part of the address that tells them apart.
    known: Cache<IpAddr, Arc<User>>,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// No request goes through more proxies than this; a client could name a trusted one again and again.
const HOPS_MAX: usize = 32;

// === impl Addresses ===

impl Addresses {
    pub(crate) fn new(config: &AddressIdentity) -> Self {
        Self { config: config.clone(), known: Cache::default() }
    }

    /// Whether this peer is a proxy whose `X-Forwarded-For` is trusted.
    pub(crate) fn trusts(&self, peer: &Peer) -> bool {
        self.is_proxy(peer.address.ip())
    }

    pub(crate) fn user(&self, address: IpAddr) -> Arc<User> {
        let address = address.to_canonical();
        let (bits, most) = self.bits(address);
        let (prefix, first) = (&self.config.user_prefix, masked(address, bits));
        let name = if bits < most { format!("{prefix}{first}/{bits}") } else { format!("{prefix}{first}") };
        // An address is no proof of identity, so the user counts as unauthenticated.
        let groups = self.config.groups.iter().map(String::as_str).chain([UNAUTHENTICATED]);
        Arc::new(User::new(name, groups))
    }

    /// The user behind a trusted proxy.
    pub(crate) fn forwarded_user(&self, proxy: IpAddr, headers: &HeaderMap) -> Arc<User> {
        let address = self.client(proxy, headers).to_canonical();
        let key = masked(address, self.bits(address).0);
        self.known.get(&key).unwrap_or_else(|| {
            let user = self.user(address);
            self.known.keep(key, Arc::clone(&user));
            user
        })
    }

    /// The right-most address that is not a trusted proxy's. Each proxy has added the address that it was connected from, so
    /// entries to the left of an untrusted address are that client's own claim. An entry that is not an address ends the walk:
    /// the client is then the one that has sent it.
    pub(crate) fn client(&self, proxy: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = proxy;
        let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
        let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        for entry in entries.take(HOPS_MAX) {
            let Some(address) = address(entry) else { break };
            client = address;
            if !self.is_proxy(address) {
                break;
            }
        }
        client
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.config.trusted_proxies.iter().any(|range| range.contains(address))
    }

    /// How many bits of such an address tell users apart, and how many there are.
    fn bits(&self, address: IpAddr) -> (u8, u8) {
        if address.is_ipv4() { (self.config.ipv4_bits, 32) } else { (self.config.ipv6_bits, 128) }
    }
}

/// An entry of `X-Forwarded-For`: an address, which some proxies write with a port.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = std::str::from_utf8(entry.trim_ascii()).ok()?;
    entry.parse().ok().or_else(|| Some(entry.parse::<SocketAddr>().ok()?.ip())).or_else(|| {
        let inside = entry.strip_prefix('[')?.strip_suffix(']')?;
        inside.parse::<std::net::Ipv6Addr>().ok().map(IpAddr::V6)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_told_apart_by_their_first_bits() {
        let addresses = Addresses::new(&AddressIdentity { ipv4_bits: 24, ..AddressIdentity::default() });
        for (address, name) in [
            ("10.1.2.3", "address:10.1.2.0/24"),
            ("::ffff:10.1.2.3", "address:10.1.2.0/24"),
            ("2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::/64"),
        ] {
            let user = addresses.user(address.parse().unwrap());
            assert_eq!((&*user.name, &*user.groups), (name, &["system:unauthenticated".into()][..]));
        }
        let addresses = Addresses::new(&AddressIdentity { groups: vec!["lan".into()], ..AddressIdentity::default() });
        let user = addresses.user("10.1.2.3".parse().unwrap());
        assert_eq!(*user, User::new("address:10.1.2.3", ["lan", UNAUTHENTICATED]));
    }

    fn behind_proxies() -> Addresses {
        let trusted_proxies = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        Addresses::new(&AddressIdentity { trusted_proxies, ..AddressIdentity::default() })
    }

    fn headers(lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (X_FORWARDED_FOR, line.parse().unwrap())).collect()
    }

    #[test]
    fn the_client_is_the_right_most_address_that_is_no_trusted_proxy() {
        let addresses = behind_proxies();
        for (lines, client) in [
            (&[] as &[&str], "10.0.0.1"),
            (&[""], "10.0.0.1"),
            (&["192.0.2.7"], "192.0.2.7"),
            // Entries that a client has sent itself are left of those that the proxy has added.
            (&["198.51.100.1, 192.0.2.7"], "192.0.2.7"),
            (&["192.0.2.7, 10.2.3.4"], "192.0.2.7"),
            (&["192.0.2.7,10.2.3.4 , fd00::1"], "192.0.2.7"),
            (&["198.51.100.1", "192.0.2.7", "10.2.3.4"], "192.0.2.7"),
            // Nothing but proxies: the one that is the furthest away.
            (&["10.9.9.9, 10.2.3.4"], "10.9.9.9"),
            // An entry that is not an address was sent by the client at its right.
            (&["192.0.2.7, unknown"], "10.0.0.1"),
            (&["192.0.2.7, , 10.2.3.4"], "10.2.3.4"),
            (&["192.0.2.7, 10.2.3"], "10.0.0.1"),
            (&["192.0.2.7:5678"], "192.0.2.7"),
            (&["[2001:db8::7]:5678"], "2001:db8::7"),
            (&["[2001:db8::7]"], "2001:db8::7"),
            (&["::ffff:10.2.3.4"], "::ffff:10.2.3.4"),
        ] {
            let found = addresses.client("10.0.0.1".parse().unwrap(), &headers(lines));
            assert_eq!(found, client.parse::<IpAddr>().unwrap(), "{lines:?}");
        }
        let many = vec!["10.9.9.9"; 5000].join(",");
        let found = addresses.client("10.0.0.1".parse().unwrap(), &headers(&["192.0.2.7", &many]));
        assert_eq!(found, "10.9.9.9".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn the_same_client_is_not_put_together_twice() {
        let addresses = behind_proxies();
        let of = |line: &str| addresses.forwarded_user("10.0.0.1".parse().unwrap(), &headers(&[line]));
        let first = of("2001:db8::7");
        assert_eq!(*first, User::new("address:2001:db8::/64", [UNAUTHENTICATED]));
        assert!(Arc::ptr_eq(&first, &of("2001:db8::8, 10.0.0.2")));
        assert_eq!(&*of("192.0.2.7").name, "address:192.0.2.7");
    }

    proptest! {
        #[test]
        fn the_client_is_the_proxy_or_named_by_a_header(
            lines in proptest::collection::vec("(10\\.0\\.0\\.[0-9]|1\\.2\\.3\\.4|\\[?::1\\]?|:80|,| |[ -~]{0,6}){0,6}", 0..4),
        ) {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(X_FORWARDED_FOR, line.parse().unwrap());
            }
            let proxy: IpAddr = "10.0.0.1".parse().unwrap();
            let client = behind_proxies().client(proxy, &headers);
            let mut named = lines.iter().flat_map(|line| line.split(',')).filter_map(|entry| address(entry.as_bytes()));
            prop_assert!(client == proxy || named.any(|address| address == client), "{}", client);
        }
    }
}
