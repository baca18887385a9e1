//! DER: any bytes are read or rejected, in the one form that DER allows.

use evenkeel_identity::ClientCertificate;
use evenkeel_identity::fuzzing::der_element;

/// Reads the bytes as a client certificate, and as elements of DER.
///
/// # Panics
/// If a name is found that is not there, if bytes after the certificate matter, or if an element has a second form.
pub fn certificate(input: &[u8]) {
    if let Ok(found) = ClientCertificate::from_der(input) {
        let has = |name: &String| name.is_empty() || input.windows(name.len()).any(|bytes| bytes == name.as_bytes());
        assert!(found.common_name.iter().chain(&found.organizations).all(has), "{found:?}");
        assert!(found.not_after.is_some(), "{found:?}");
        let longer = [input, b"\x30\x00"].concat();
        assert_eq!(ClientCertificate::from_der(&longer), Ok(found));
    }
    // Elements after and inside of each other; a bound, since every byte may start one.
    let mut pending = vec![input];
    for _ in 0..1_000 {
        let Some((tag, content, rest)) = pending.pop().map(|input| (input, der_element(input))).and_then(checked)
        else {
            if pending.is_empty() {
                break;
            }
            continue;
        };
        pending.push(rest);
        if tag & 0x20 != 0 {
            pending.push(content);
        }
    }
}

/// The tag of an element, its content, and what follows it.
type Element<'a> = (u8, &'a [u8], &'a [u8]);

/// The element, once it is shown to be the only one that these bytes can be.
fn checked<'a>((input, element): (&'a [u8], Option<Element<'a>>)) -> Option<Element<'a>> {
    let (tag, content, rest) = element?;
    let bytes = content.len().to_be_bytes();
    let digits: Vec<u8> = bytes.into_iter().skip_while(|byte| *byte == 0).collect();
    let mut written = vec![tag];
    if content.len() < 0x80 {
        written.push(u8::try_from(content.len()).expect("a small number"));
    } else {
        written.push(0x80 | u8::try_from(digits.len()).expect("a small number"));
        written.extend_from_slice(&digits);
    }
    written.extend_from_slice(content);
    written.extend_from_slice(rest);
    assert_eq!(written, input);
    Some((tag, content, rest))
}
