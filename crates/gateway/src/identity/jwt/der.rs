//! Reads the numbers of public keys in DER.

use super::algorithm::Algorithm;

/// What a key consists of.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PublicKey<'a> {
    Rsa { n: &'a [u8], e: &'a [u8] },
    Point(Algorithm, &'a [u8]),
}

const INTEGER: u8 = 2;
const BIT_STRING: u8 = 3;
const SEQUENCE: u8 = 0x30;

/// The algorithms of keys, with their parameters, as they are written.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22";
const ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

/// A `SubjectPublicKeyInfo`, the content of `PUBLIC KEY`.
pub(super) fn public_key(der: &[u8]) -> Option<PublicKey<'_>> {
    let (whole, []) = take(SEQUENCE, der)? else { return None };
    let (algorithm, rest) = take(SEQUENCE, whole)?;
    let (bits, []) = take(BIT_STRING, rest)? else { return None };
    // The first byte says how many bits at the end do not count.
    let key = bits.strip_prefix(&[0])?;
    match algorithm {
        RSA => rsa_public_key(key),
        P256 => Some(PublicKey::Point(Algorithm::Es256, key)),
        P384 => Some(PublicKey::Point(Algorithm::Es384, key)),
        ED25519 => Some(PublicKey::Point(Algorithm::EdDsa, key)),
        _ => None,
    }
}

/// An `RSAPublicKey`, the content of `RSA PUBLIC KEY`.
pub(super) fn rsa_public_key(der: &[u8]) -> Option<PublicKey<'_>> {
    let (whole, []) = take(SEQUENCE, der)? else { return None };
    let (n, rest) = take(INTEGER, whole)?;
    let (e, []) = take(INTEGER, rest)? else { return None };
    Some(PublicKey::Rsa { n, e })
}

/// The content of a value with this tag, and what follows it.
fn take(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = der.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match length {
        ..=0x7f => (usize::from(length), rest),
        0x81 | 0x82 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(length & 3))?;
            (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}
