//! Reads the subject of a certificate (common name and organisations) and when it expires.
//!
//! The certificate has been verified, so only these few steps into it are needed.

use crate::ClientCertificate;
use crate::der::{Element, OBJECT_IDENTIFIER, SEQUENCE, SET};

const VERSION: u8 = 0xa0;
/// 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// The fields of a certificate.
struct Fields {
    certificate: ClientCertificate,
    /// The number of common names, including those that are not text.
    common_names: usize,
}

// === impl ClientCertificate ===

impl ClientCertificate {
    /// Reads a certificate in DER that has been verified. The error says why the certificate identifies nobody.
    pub fn from_der(certificate: &[u8]) -> Result<Self, &'static str> {
        let read = fields(certificate).ok_or("it cannot be read")?;
        if read.common_names > 1 { Err("it has more than one common name") } else { Ok(read.certificate) }
    }
}

fn fields(certificate: &[u8]) -> Option<Fields> {
    let signed = Element::of(SEQUENCE, certificate)?;
    let mut rest = Element::of(SEQUENCE, signed.content)?.content;
    let first = Element::read(rest)?;
    if first.tag == VERSION {
        rest = first.rest;
    }
    // The serial number, the algorithm and the issuer come before the validity, and that before the subject.
    for _ in 0..3 {
        rest = Element::read(rest)?.rest;
    }
    let validity = Element::of(SEQUENCE, rest)?;
    let not_before = Element::read(validity.content)?;
    let not_after = Element::read(not_before.rest)?.time()?;
    let mut names = Element::of(SEQUENCE, validity.rest)?.content;
    let (mut common_name, mut common_names, mut organizations) = (None, 0, Vec::new());
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
                (COMMON_NAME, text) => {
                    common_names += 1;
                    common_name = text;
                }
                (ORGANIZATION, Some(text)) => organizations.push(text),
                _ => {}
            }
        }
    }
    let certificate = ClientCertificate { common_name, organizations, not_after: Some(not_after) };
    Some(Fields { certificate, common_names })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn certificate(names: &[(rcgen::DnType, &str)]) -> Vec<u8> {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, name) in names {
            parameters.distinguished_name.push(kind.clone(), *name);
        }
        parameters.not_after = rcgen::date_time_ymd(2051, 3, 4);
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_subject_is_read() {
        let names = [(rcgen::DnType::OrganizationName, "staff"), (rcgen::DnType::CommonName, "alice")];
        for (count, common_name) in [(2, Some("alice".to_owned())), (1, None)] {
            let not_after = Some(SystemTime::from(rcgen::date_time_ymd(2051, 3, 4)));
            let expected = ClientCertificate { common_name, organizations: vec!["staff".into()], not_after };
            assert_eq!(ClientCertificate::from_der(&certificate(&names[..count])), Ok(expected));
        }
    }

    #[test]
    fn anything_else_is_nobody() {
        let whole = certificate(&[(rcgen::DnType::CommonName, "alice")]);
        for length in 0..whole.len() {
            let _ = ClientCertificate::from_der(&whole[..length]);
            let mut changed = whole.clone();
            changed[length] ^= 0x83;
            let _ = ClientCertificate::from_der(&changed);
        }
        for nothing in [&[][..], &[SEQUENCE, 0x84, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(ClientCertificate::from_der(nothing), Err("it cannot be read"));
        }
    }

    /// A distinguished name of rcgen has each kind of attribute once: one is renamed afterwards.
    #[test]
    fn with_two_common_names_it_is_nobodys() {
        let mut twice =
            certificate(&[(rcgen::DnType::CommonName, "alice"), (rcgen::DnType::OrganizationName, "admin")]);
        let is_organization = |bytes: &[u8]| bytes == [0x06, 0x03, 0x55, 0x04, 0x0a];
        while let Some(place) = twice.windows(5).position(is_organization) {
            twice[place + 4] = 0x03;
        }
        assert_eq!(ClientCertificate::from_der(&twice), Err("it has more than one common name"));
    }
}
