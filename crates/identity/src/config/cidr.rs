//! Ranges of addresses, as `10.0.0.0/8` or `10.1.2.3`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A range of addresses: those that share their first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    first: IpAddr,
    bits: u8,
}

// === impl Cidr ===

impl Cidr {
    /// Whether the address is in the range. An IPv4 address that comes as an IPv6 address (`::ffff:10.1.2.3`), as it does
    /// on a socket for both, is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.bits) == self.first
    }
}

/// The address with all but its first bits set to zero.
pub fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(bits.into())).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fault = |why: &str| {
            format!("{text:?} is not a range of addresses: {why}; write it as `10.0.0.0/8`, `fd00::/8` or `10.1.2.3`")
        };
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| fault("it does not begin with an IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(|| fault("it has too many bits"))?
            }
            Some(_) => return Err(fault("what follows the slash is not a number")),
        };
        // 10.1.2.3/8 may mean 10.0.0.0/8 or 10.1.2.3/32, and only one of them is safe.
        let first = masked(address, bits);
        if first != address {
            return Err(fault(&format!("the address has bits outside of the prefix; the range begins at {first}")));
        }
        Ok(Self { first, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("::/0", "fd00::1", "1.2.3.4"),
            ("fd00::/8", "fdff::1", "fe00::"),
            ("2001:db8::/33", "2001:db8:7fff::", "2001:db8:8000::"),
        ] {
            assert!(cidr(range).contains(inside.parse().unwrap()), "{inside} in {range}");
            assert!(!cidr(range).contains(outside.parse().unwrap()), "{outside} in {range}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "does not begin with an IP address"),
            ("localhost", "does not begin with an IP address"),
            ("10.0.0.0/33", "too many bits"),
            ("::/129", "too many bits"),
            ("10.0.0.0/", "too many bits"),
            ("10.0.0.0/+8", "not a number"),
            ("10.0.0.0/8/8", "not a number"),
            ("10.1.2.3/8", "the range begins at 10.0.0.0"),
        ] {
            assert!(text.parse::<Cidr>().unwrap_err().contains(reason), "{text}");
        }
    }

    fn any_address() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from(bits))),
            any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from(bits))),
        ]
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_comparison_bit_by_bit(one in any_address(), other in any_address(), bits in 0_u8..=128) {
            prop_assume!(one.to_canonical() == one && other.to_canonical() == other);
            let bits = bits.min(if one.is_ipv4() { 32 } else { 128 });
            let range = Cidr { first: masked(one, bits), bits };
            let text = |address: IpAddr| match address {
                IpAddr::V4(address) => format!("{:032b}", address.to_bits()),
                IpAddr::V6(address) => format!("{:0128b}", address.to_bits()),
            };
            let is_same = one.is_ipv4() == other.is_ipv4()
                && text(one)[..bits.into()] == text(other)[..bits.into()];
            prop_assert_eq!(range.contains(other), is_same);
            prop_assert!(range.contains(one));
            prop_assert_eq!(range.to_string().parse::<Cidr>(), Ok(range));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,40}") {
            if let Ok(range) = text.parse::<Cidr>() {
                prop_assert_eq!(range.to_string().parse::<Cidr>(), Ok(range));
            }
        }
    }
}
