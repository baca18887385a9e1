//! `Header`: a parsed header of the PROXY protocol, of version 1 (text) or 2 (binary).
//!
//! A plain function of the bytes that have arrived. It allocates nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A header of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// The client that has connected to the proxy, if it has an IP address. None if the proxy speaks for itself (`LOCAL`), does not say
    /// (`UNKNOWN`), or was connected to over a Unix socket.
    pub(crate) client: Option<SocketAddr>,
    /// How many bytes the header has. Some of them may not have arrived: extensions (TLVs) are of no interest.
    pub(crate) length: usize,
}

/// Why bytes are not a header of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidHeader {
    /// The bytes do not begin like a header.
    #[error("the connection does not begin with a PROXY protocol header")]
    Missing,
    /// The line of version 1 is malformed.
    #[error("the PROXY protocol header of version 1 is malformed")]
    Line,
    /// Version 2 has no such version or command.
    #[error("the PROXY protocol header has an unknown version or command")]
    Command,
    /// Version 2 has no such address family or transport protocol.
    #[error("the PROXY protocol header has an unknown address family")]
    Family,
    /// The addresses of version 2 do not fit in the header.
    #[error("the PROXY protocol header of version 2 is too short for its addresses")]
    Short,
}

/// The longest line of version 1, with its end.
const LINE_MAX: usize = 107;
const LINE_START: &[u8] = b"PROXY ";
/// How version 2 begins.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, version and command, family, and length.
const FIXED: usize = 16;

// === impl Header ===

impl Header {
    /// The largest number of bytes that have to be read to decide about a header.
    pub(crate) const BYTES_MAX: usize = LINE_MAX;

    /// Reads the header that these bytes begin with. None if more of them are needed; then all of them belong to the header.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<Self>, InvalidHeader> {
        if starts_alike(bytes, SIGNATURE) {
            Self::read_binary(bytes)
        } else if starts_alike(bytes, LINE_START) {
            Self::read_line(bytes)
        } else {
            Err(InvalidHeader::Missing)
        }
    }

    fn read_line(bytes: &[u8]) -> Result<Option<Self>, InvalidHeader> {
        let within = &bytes[..bytes.len().min(LINE_MAX)];
        let Some(end) = within.iter().position(|byte| *byte == b'\n') else {
            return if within.len() < LINE_MAX { Ok(None) } else { Err(InvalidHeader::Line) };
        };
        let line = within[..end].strip_suffix(b"\r").and_then(|line| line.strip_prefix(LINE_START));
        let line = line.and_then(|line| std::str::from_utf8(line).ok()).ok_or(InvalidHeader::Line)?;
        let client = if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
            None
        } else {
            Some(line_client(line).ok_or(InvalidHeader::Line)?)
        };
        Ok(Some(Self { client, length: end + 1 }))
    }

    fn read_binary(bytes: &[u8]) -> Result<Option<Self>, InvalidHeader> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else { return Ok(None) };
        let [.., command, family, high, low] = *fixed;
        let payload = usize::from(u16::from_be_bytes([high, low]));
        let length = FIXED + payload;
        let is_local = match command {
            0x20 => true,
            0x21 => false,
            _ => return Err(InvalidHeader::Command),
        };
        // The family, and whether there are streams or datagrams at the other side of the proxy, which may speak QUIC.
        let size = match (family >> 4, family & 0xf) {
            (0, 0..=2) => 0,
            (1, 0..=2) => 12,
            (2, 0..=2) => 36,
            (3, 0..=2) => 216,
            _ => return Err(InvalidHeader::Family),
        };
        // The addresses of a proxy that speaks for itself are not read.
        if is_local {
            return Ok(Some(Self { client: None, length }));
        }
        if payload < size {
            return Err(InvalidHeader::Short);
        }
        let client = match size {
            12 => {
                let Some((block, _)) = rest.split_first_chunk::<12>() else { return Ok(None) };
                let [a, b, c, d, _, _, _, _, port_high, port_low, ..] = *block;
                Some(SocketAddr::from((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([port_high, port_low]))))
            }
            36 => {
                let Some((block, _)) = rest.split_first_chunk::<36>() else { return Ok(None) };
                let (source, ports) = block.split_at(32);
                let source: [u8; 16] = source.first_chunk().copied().unwrap_or_default();
                let port = u16::from_be_bytes(ports.first_chunk().copied().unwrap_or_default());
                Some(SocketAddr::from((Ipv6Addr::from(source), port)))
            }
            _ => None,
        };
        Ok(Some(Self { client, length }))
    }
}

/// Whether the bytes that are there are those of the start, or its first ones.
fn starts_alike(bytes: &[u8], start: &[u8]) -> bool {
    let common = bytes.len().min(start.len());
    bytes[..common] == start[..common]
}

/// The client of a line such as `TCP4 192.0.2.7 192.0.2.1 50000 443`.
fn line_client(line: &str) -> Option<SocketAddr> {
    let mut words = line.split(' ');
    let family = words.next()?;
    let (source, destination) = (words.next()?, words.next()?);
    let (port, destination_port) = (port(words.next()?)?, port(words.next()?)?);
    let _ = destination_port;
    if words.next().is_some() {
        return None;
    }
    let address: IpAddr = match family {
        "TCP4" => {
            destination.parse::<Ipv4Addr>().ok()?;
            source.parse::<Ipv4Addr>().ok()?.into()
        }
        "TCP6" => {
            destination.parse::<Ipv6Addr>().ok()?;
            source.parse::<Ipv6Addr>().ok()?.into()
        }
        _ => return None,
    };
    Some((address, port).into())
}

/// A port in its one spelling.
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(command: u8, family: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([command, family]);
        bytes.extend(u16::try_from(payload.len()).unwrap().to_be_bytes());
        bytes.extend(payload);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Option<(Option<String>, usize)>, InvalidHeader> {
        let found = Header::read(bytes)?;
        Ok(found.map(|header| (header.client.map(|client| client.to_string()), header.length)))
    }

    #[test]
    fn lines_of_version_1() {
        for (line, client) in [
            ("PROXY TCP4 192.0.2.7 192.0.2.1 50000 443\r\n", Some("192.0.2.7:50000")),
            ("PROXY TCP6 2001:db8::7 2001:db8::1 1 65535\r\n", Some("[2001:db8::7]:1")),
            ("PROXY UNKNOWN\r\n", None),
            ("PROXY UNKNOWN ffff::1 whatever 1 2\r\n", None),
        ] {
            let expected = Some((client.map(str::to_owned), line.len()));
            assert_eq!(read(line.as_bytes()), Ok(expected.clone()), "{line}");
            assert_eq!(read(format!("{line}GET / HTTP/1.1\r\n").as_bytes()), Ok(expected), "{line}");
            for cut in 0..line.len() {
                assert_eq!(read(&line.as_bytes()[..cut]), Ok(None), "{line} {cut}");
            }
        }
        let longest = "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n";
        assert!(read(longest.as_bytes()).unwrap().is_some());
        assert_eq!(read(format!("PROXY UNKNOWN {}", "x".repeat(200)).as_bytes()), Err(InvalidHeader::Line));
    }

    #[test]
    fn what_is_no_line_of_version_1() {
        for line in [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            "PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3 1 2\r\n",
            "PROXY TCP4 01.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP6 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 65536 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 01 2\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY \u{fffd}\r\n",
        ] {
            assert_eq!(read(line.as_bytes()), Err(InvalidHeader::Line), "{line:?}");
        }
        for start in ["GET / HTTP/1.1\r\n", "PROXI", "proxy ", "\r\n\r\n\r", "\u{16}\u{3}\u{1}"] {
            assert_eq!(read(start.as_bytes()), Err(InvalidHeader::Missing), "{start:?}");
        }
    }

    #[test]
    fn version_2() {
        let ipv4 = [192, 0, 2, 7, 192, 0, 2, 1, 0xc3, 0x50, 1, 0xbb];
        let mut ipv6 = [0; 36];
        ipv6[..16].copy_from_slice(&"2001:db8::7".parse::<Ipv6Addr>().unwrap().octets());
        ipv6[33] = 9;
        let with_tlvs = [&ipv4[..], &[4, 0, 2, 1, 2]].concat();
        for (command, family, payload, client) in [
            (0x21, 0x11, &ipv4[..], Some("192.0.2.7:50000")),
            (0x21, 0x12, &ipv4, Some("192.0.2.7:50000")),
            (0x21, 0x11, &with_tlvs, Some("192.0.2.7:50000")),
            (0x21, 0x21, &ipv6, Some("[2001:db8::7]:9")),
            (0x21, 0x31, &[b'/'; 216], None),
            (0x21, 0x00, &[], None),
            (0x20, 0x00, &[], None),
            (0x20, 0x11, &ipv4, None),
            (0x20, 0x21, b"short", None),
        ] {
            let bytes = binary(command, family, payload);
            let expected = Some((client.map(str::to_owned), bytes.len()));
            assert_eq!(read(&bytes), Ok(expected.clone()), "{bytes:?}");
            assert_eq!(read(&[&bytes[..], b"GET /"].concat()), Ok(expected), "{bytes:?}");
            assert_eq!(read(&bytes[..15]), Ok(None));
        }
        // Bytes that are not needed need not have arrived.
        let long = binary(0x21, 0x11, &[&ipv4[..], &vec![0; 60_000]].concat());
        assert_eq!(read(&long[..28]), Ok(Some((Some("192.0.2.7:50000".to_owned()), long.len()))));
        assert_eq!(read(&long[..27]), Ok(None));
    }

    #[test]
    fn what_version_2_does_not_have() {
        for (command, family, payload, reason) in [
            (0x11, 0x11, &[0; 12][..], InvalidHeader::Command),
            (0x22, 0x11, &[0; 12], InvalidHeader::Command),
            (0x21, 0x41, &[0; 12], InvalidHeader::Family),
            (0x21, 0x13, &[0; 12], InvalidHeader::Family),
            (0x21, 0x11, &[0; 11], InvalidHeader::Short),
            (0x21, 0x21, &[0; 35], InvalidHeader::Short),
            (0x21, 0x31, &[0; 215], InvalidHeader::Short),
        ] {
            assert_eq!(read(&binary(command, family, payload)), Err(reason));
        }
    }
}
