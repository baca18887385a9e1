//! Bearer tokens: where they are in a request.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::{Denial, Verdict};

/// The verdict of `ask` on the token, if there is one.
pub(super) fn ask(headers: &HeaderMap, ask: impl FnOnce(&str) -> Verdict) -> Verdict {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Verdict::Absent };
    // With two of them, the upstream may use the other one.
    if values.next().is_some() {
        return Verdict::Wrong(Denial::Malformed);
    }
    let Ok(value) = value.to_str() else { return Verdict::Wrong(Denial::Malformed) };
    let value = value.trim();
    let (scheme, token) = value.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Verdict::Absent;
    }
    match token.trim() {
        "" => Verdict::Absent,
        // A single space separates the two (RFC 6750); other separators are refused, which an upstream might accept.
        _ if value.as_bytes().get(scheme.len()) != Some(&b' ') => Verdict::Wrong(Denial::Malformed),
        token => ask(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_found_or_not_there_or_wrong() {
        let of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, http::HeaderValue::from_bytes(value).unwrap());
            }
            let mut found = None;
            let verdict = ask(&headers, |token| {
                found = Some(token.to_owned());
                Verdict::Absent
            });
            (verdict, found)
        };
        for value in ["Bearer abc", "bearer  abc ", "BEARER abc"] {
            assert_eq!(of(&[value.as_bytes()]), (Verdict::Absent, Some("abc".to_owned())), "{value}");
        }
        for absent in [&[] as &[&[u8]], &[b"Basic YTpi"], &[b"Bearerabc"], &[b"Bearer"], &[b"Bearer "]] {
            assert_eq!(of(absent), (Verdict::Absent, None));
        }
        for wrong in [&[b"Bearer a" as &[u8], b"Bearer a"] as &[&[u8]], &[b"Bearer \xff"], &[b"Bearer\tabc"]] {
            assert_eq!(of(wrong), (Verdict::Wrong(Denial::Malformed), None));
        }
    }
}
