//! Headers of the PROXY protocol: what was read of one does not depend on how it arrived, and both versions say the same.

use std::net::SocketAddr;

use evenkeel_gateway::fuzzing;

/// Takes the input for the first bytes of a connection.
///
/// # Panics
/// If the header that they begin with is another one when they arrive in pieces, if it is longer than a header can be, or if the
/// client that it names is another one when it is written anew in either version.
pub fn proxy_header(input: &[u8]) {
    let whole = fuzzing::proxy_header(input);
    // The first bytes that tell, and what they tell.
    let first =
        (0..=input.len()).map(|cut| (cut, fuzzing::proxy_header(&input[..cut]))).find(|(_, read)| *read != Ok(None));
    match (&whole, first) {
        (Ok(None), first) => assert_eq!(first, None, "what needs more bytes has not told anything"),
        (told, first) => {
            let (cut, read) = first.expect("the whole input tells something");
            assert!(cut <= 107, "{cut} bytes are needed");
            assert_eq!(&read, told, "after {cut} bytes");
            for cut in cut..input.len().min(300) {
                assert_eq!(&fuzzing::proxy_header(&input[..cut]), told, "after {cut} bytes");
            }
        }
    }
    if let Ok(Some((client, length))) = whole {
        assert!(length <= 16 + usize::from(u16::MAX), "{length}");
        if let Some(client) = client {
            for written in [line(client), binary(client)] {
                assert_eq!(fuzzing::proxy_header(&written), Ok(Some((Some(client), written.len()))), "{written:?}");
            }
        }
    }
}

/// The header of version 1.
fn line(client: SocketAddr) -> Vec<u8> {
    let (family, here) = if client.is_ipv4() { ("TCP4", "192.0.2.1") } else { ("TCP6", "2001:db8::1") };
    format!("PROXY {family} {} {here} {} 443\r\n", client.ip(), client.port()).into_bytes()
}

/// The header of version 2.
fn binary(client: SocketAddr) -> Vec<u8> {
    let mut bytes = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    match client {
        SocketAddr::V4(client) => {
            bytes.extend([0x11, 0, 12]);
            bytes.extend(client.ip().octets());
            bytes.extend([192, 0, 2, 1]);
        }
        SocketAddr::V6(client) => {
            bytes.extend([0x21, 0, 36]);
            bytes.extend(client.ip().octets());
            bytes.extend([0; 16]);
        }
    }
    bytes.extend(client.port().to_be_bytes());
    bytes.extend(443_u16.to_be_bytes());
    bytes
}
