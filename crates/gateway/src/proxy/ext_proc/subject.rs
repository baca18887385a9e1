//! The subject of a client certificate, as Envoy writes it: `CN=acme,O=paying` (RFC 2253).

use crate::identity::ClientCertificate;

/// The parts of a subject that identify a client. A subject with two common names identifies nobody.
pub(super) fn certificate_of(subject: &str) -> ClientCertificate {
    let (mut names, mut organizations) = (Vec::new(), Vec::new());
    for (key, value) in attributes(subject) {
        match &*key.to_ascii_uppercase() {
            "CN" => names.push(value),
            "O" => organizations.push(value),
            _ => {}
        }
    }
    let common_name = if names.len() == 1 { names.pop() } else { None };
    // RFC 2253 has the last part first.
    organizations.reverse();
    ClientCertificate { common_name, organizations, not_after: None }
}

/// The keys and values of a subject, escapes resolved. What is malformed is left out.
fn attributes(subject: &str) -> Vec<(String, String)> {
    let (mut found, mut key, mut text) = (Vec::new(), None, Vec::new());
    let mut bytes = subject.bytes();
    let mut end = |key: &mut Option<String>, text: &mut Vec<u8>| {
        let value = String::from_utf8(std::mem::take(text));
        if let (Some(key), Ok(value)) = (key.take(), value) {
            found.push((key, value));
        }
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(unescaped(&mut bytes)),
            b'=' if key.is_none() => {
                let name = String::from_utf8_lossy(&std::mem::take(&mut text)).trim().to_owned();
                key = Some(name);
            }
            b',' | b'+' => end(&mut key, &mut text),
            byte => text.push(byte),
        }
    }
    end(&mut key, &mut text);
    found
}

/// The byte after a backslash: itself, or two hexadecimal digits.
fn unescaped(bytes: &mut std::str::Bytes<'_>) -> Option<u8> {
    let first = bytes.next()?;
    let Some(high) = char::from(first).to_digit(16) else { return Some(first) };
    let low = char::from(bytes.next()?).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_read_as_rfc_2253_writes_them() {
        for (subject, name, organizations) in [
            ("CN=acme,O=paying", Some("acme"), vec!["paying"]),
            ("emailAddress=a@b,CN=acme,OU=x,O=paying,O=europe,C=DE", Some("acme"), vec!["europe", "paying"]),
            (r"CN=Acme\, Inc.,O=a\+b", Some("Acme, Inc."), vec!["a+b"]),
            (r"CN=M\C3\BCller", Some("Müller"), vec![]),
            ("O=only", None, vec!["only"]),
            ("CN=one,CN=two", None, vec![]),
            ("", None, vec![]),
            ("CN", None, vec![]),
            (r"CN=x\", Some("x"), vec![]),
        ] {
            let certificate = certificate_of(subject);
            assert_eq!(certificate.common_name.as_deref(), name, "{subject}");
            assert_eq!(certificate.organizations, organizations, "{subject}");
        }
    }
}
