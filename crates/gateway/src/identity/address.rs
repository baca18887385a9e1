//! Users that are known by the address that they connect from.

use std::net::IpAddr;
use std::sync::Arc;

use evenkeel_engine::User;

use crate::config::{AddressIdentity, masked};

/// Makes users of addresses.
#[derive(Debug)]
pub(super) struct Addresses(AddressIdentity);

/// Whoever is known by an address has proved nothing.
const UNAUTHENTICATED: &str = "system:unauthenticated";

// === impl Addresses ===

impl Addresses {
    pub(super) fn new(config: &AddressIdentity) -> Self {
        Self(config.clone())
    }

    pub(super) fn user(&self, address: IpAddr) -> Arc<User> {
        let address = address.to_canonical();
        let (bits, most) = if address.is_ipv4() { (self.0.ipv4_bits, 32) } else { (self.0.ipv6_bits, 128) };
        let (prefix, first) = (&self.0.user_prefix, masked(address, bits));
        let name = if bits < most { format!("{prefix}{first}/{bits}") } else { format!("{prefix}{first}") };
        let groups = self.0.groups.iter().map(String::as_str).chain([UNAUTHENTICATED]);
        Arc::new(User::new(name, groups))
    }
}

#[cfg(test)]
mod tests {
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
}
