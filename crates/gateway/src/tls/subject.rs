//! The subject of a certificate: its common name and its organisations.
//!
//! The certificate has been verified, so that only these few steps into it are needed, and none of what makes parsers of
//! certificates large.

use crate::peer::ClientCertificate;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const VERSION: u8 = 0xa0;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
/// 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// A value, its kind, and what comes after it.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

/// What a certificate says of its owner: nothing at all if it cannot be read.
pub(super) fn read(certificate: &[u8]) -> ClientCertificate {
    subject(certificate).unwrap_or_default()
}

fn subject(certificate: &[u8]) -> Option<ClientCertificate> {
    let signed = Element::of(SEQUENCE, certificate)?;
    let mut rest = Element::of(SEQUENCE, signed.content)?.content;
    let first = Element::read(rest)?;
    if first.tag == VERSION {
        rest = first.rest;
    }
    // The serial number, the algorithm, the issuer and the validity come before the subject.
    for _ in 0..4 {
        rest = Element::read(rest)?.rest;
    }
    let mut names = Element::of(SEQUENCE, rest)?.content;
    let (mut common_name, mut organizations) = (None, Vec::new());
    while !names.is_empty() {
        let set = Element::of(SET, names)?;
        names = set.rest;
        let mut attributes = set.content;
        while !attributes.is_empty() {
            let attribute = Element::of(SEQUENCE, attributes)?;
            attributes = attribute.rest;
            let kind = Element::of(OBJECT_IDENTIFIER, attribute.content)?;
            let value = Element::read(kind.rest)?;
            match (kind.content, value.text()) {
                (COMMON_NAME, Some(text)) => common_name = Some(text),
                (ORGANIZATION, Some(text)) => organizations.push(text),
                _ => {}
            }
        }
    }
    Some(ClientCertificate { common_name, organizations })
}

// === impl Element ===

impl<'a> Element<'a> {
    fn of(tag: u8, input: &'a [u8]) -> Option<Self> {
        Self::read(input).filter(|element| element.tag == tag)
    }

    fn read(input: &'a [u8]) -> Option<Self> {
        let (tag, input) = input.split_first()?;
        let (first, input) = input.split_first()?;
        let (length, input) = if *first < 0x80 {
            (usize::from(*first), input)
        } else {
            let (digits, input) = input.split_at_checked(usize::from(first & 0x7f))?;
            if digits.is_empty() || digits.len() > 4 {
                return None;
            }
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), input)
        };
        let (content, rest) = input.split_at_checked(length)?;
        Some(Self { tag: *tag, content, rest })
    }

    fn text(&self) -> Option<String> {
        match self.tag {
            UTF8_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING => {
                std::str::from_utf8(self.content).ok().map(ToOwned::to_owned)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(names: &[(rcgen::DnType, &str)]) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            parameters.distinguished_name.push(kind.clone(), *name);
        }
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_subject_is_read() {
        let names = [(rcgen::DnType::OrganizationName, "staff"), (rcgen::DnType::CommonName, "alice")];
        for (count, common_name) in [(2, Some("alice".to_owned())), (1, None)] {
            let expected = ClientCertificate { common_name, organizations: vec!["staff".into()] };
            assert_eq!(read(&certificate(&names[..count])), expected);
        }
    }

    #[test]
    fn anything_else_is_nobody() {
        let whole = certificate(&[(rcgen::DnType::CommonName, "alice")]);
        for length in 0..whole.len() {
            let _ = read(&whole[..length]);
            let mut changed = whole.clone();
            changed[length] ^= 0x83;
            let _ = read(&changed);
        }
        for nothing in [&[][..], &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(read(nothing), ClientCertificate::default());
        }
    }
}
