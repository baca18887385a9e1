//! Reads the numbers of public keys in DER.

use super::algorithm::Algorithm;
use crate::der::{BIT_STRING, Element, INTEGER, SEQUENCE};

/// The parts of a public key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PublicKey<'a> {
    Rsa { n: &'a [u8], e: &'a [u8] },
    Point(Algorithm, &'a [u8]),
}

/// The algorithms of keys, with their parameters, as they are written.
const RSA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
const P256: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07";
const P384: &[u8] = b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22";
const ED25519: &[u8] = b"\x06\x03\x2b\x65\x70";

/// A `SubjectPublicKeyInfo`, the content of `PUBLIC KEY`.
pub(super) fn public_key(der: &[u8]) -> Option<PublicKey<'_>> {
    let algorithm = Element::of(SEQUENCE, Element::only(SEQUENCE, der)?)?;
    // The first byte says how many bits at the end do not count.
    let key = Element::only(BIT_STRING, algorithm.rest)?.strip_prefix(&[0])?;
    match algorithm.content {
        RSA => rsa_public_key(key),
        P256 => Some(PublicKey::Point(Algorithm::Es256, key)),
        P384 => Some(PublicKey::Point(Algorithm::Es384, key)),
        ED25519 => Some(PublicKey::Point(Algorithm::EdDsa, key)),
        _ => None,
    }
}

/// An `RSAPublicKey`, the content of `RSA PUBLIC KEY`.
pub(super) fn rsa_public_key(der: &[u8]) -> Option<PublicKey<'_>> {
    let n = Element::of(INTEGER, Element::only(SEQUENCE, der)?)?;
    let e = Element::only(INTEGER, n.rest)?;
    Some(PublicKey::Rsa { n: n.content, e })
}
