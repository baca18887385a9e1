//! `SocketMode`: who may connect to a Unix socket.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Permissions of the file of a Unix socket, as `0660`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketMode(u16);

// === impl SocketMode ===

impl SocketMode {
    /// The permissions as the system writes them.
    pub fn bits(self) -> u32 {
        self.0.into()
    }
}

impl Default for SocketMode {
    fn default() -> Self {
        Self(0o600)
    }
}

impl FromStr for SocketMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_octal = matches!(text.len(), 3 | 4) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = u16::from_str_radix(text, 8).ok().filter(|bits| is_octal && *bits <= 0o777);
        bits.map(Self).ok_or_else(|| {
            format!(
                "{text:?} are not permissions of a file; write them in octal, as `\"0660\"` for the user and the group"
            )
        })
    }
}

impl fmt::Display for SocketMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl Serialize for SocketMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SocketMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal() {
        for (text, bits) in [("0660", 0o660), ("600", 0o600), ("0777", 0o777), ("0000", 0)] {
            assert_eq!(text.parse::<SocketMode>().unwrap().bits(), bits);
        }
        assert_eq!("660".parse::<SocketMode>().unwrap().to_string(), "0660");
        for text in ["", "66", "0o660", "0668", "1777", "+660", "u=rw"] {
            let found = text.parse::<SocketMode>().unwrap_err();
            assert!(found.contains("in octal, as `\"0660\"`"), "{found}");
        }
    }
}
