//! `ContinueToken`: the name after which the next page of a list starts, and the revision that the first page showed (API-151
//! to API-153).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The start of the next page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    /// The state that the list shows; `None` for whatever is current.
    pub(crate) revision: Option<u64>,
    /// The last name of the page before.
    pub(crate) after: String,
}

/// The JSON inside of a token.
#[derive(Serialize, Deserialize)]
struct TokenContent<'a> {
    #[serde(default)]
    v: std::borrow::Cow<'a, str>,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: std::borrow::Cow<'a, str>,
}

const VERSION: &str = "meta.k8s.io/v1";

// === impl ContinueToken ===

impl ContinueToken {
    /// The token as clients get it.
    pub(crate) fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let wire = TokenContent { v: VERSION.into(), rv, start: format!("/{}\0", self.after).into() };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&wire).unwrap_or_default())
    }

    /// The token that a client sent.
    pub(crate) fn decode(text: &str) -> Result<Self, Failure> {
        let fault = |why: &dyn std::fmt::Display| {
            Failure::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| fault(&error))?;
        // serde would also accept a JSON array of the three values.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(fault(&"it is not an object"));
        }
        let wire: TokenContent<'_> = serde_json::from_slice(&bytes).map_err(|error| fault(&error))?;
        if wire.v != VERSION {
            return Err(fault(&format!("server does not recognize this encoded version {}", wire.v)));
        }
        if wire.rv == 0 {
            return Err(fault(&format!("incorrect encoded start resourceVersion (version {VERSION})")));
        }
        if wire.start.is_empty() {
            return Err(fault(&format!("encoded start key empty (version {VERSION})")));
        }
        let key = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        if !is_clean(key) {
            return Err(fault(&wire.start));
        }
        // A key without the zero byte names the first object of the page itself, and not the last one before it.
        let after = key.strip_suffix('\0').map_or_else(|| before(key), str::to_owned);
        Ok(Self { revision: u64::try_from(wire.rv).ok(), after })
    }
}

/// Whether the key is a plain relative name.
fn is_clean(key: &str) -> bool {
    key.split('/').all(|segment| !matches!(segment, "" | "." | ".."))
}

/// A text before `key` with no name of an object between them.
fn before(key: &str) -> String {
    let mut text = key.to_owned();
    if let Some(previous) = text.pop().and_then(|last| char::from_u32(u32::from(last).saturating_sub(1))) {
        text.push(previous);
        text.push(char::MAX);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_151_tokens_are_read_back() {
        for token in [
            ContinueToken { revision: Some(17), after: "b".to_owned() },
            ContinueToken { revision: None, after: "b".to_owned() },
        ] {
            assert_eq!(ContinueToken::decode(&token.encode()), Ok(token));
        }
        let bare = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"b\u0000"}"#);
        assert_eq!(ContinueToken::decode(&bare).unwrap().after, "b", "the slash is optional");
    }

    #[test]
    fn api_151_a_key_without_a_zero_byte_is_the_first_of_the_page() {
        let token = URL_SAFE_NO_PAD.encode(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"/object"}"#);
        let after = ContinueToken::decode(&token).unwrap().after;
        for name in ["a", "objec", "objec-9", "objecs", "objecsz.z"] {
            assert!(name <= after.as_str(), "{name} is on the page before");
        }
        for name in ["object", "object-1", "z"] {
            assert!(name > after.as_str(), "{name} is on the page");
        }
    }

    #[test]
    fn api_152_what_is_wrong_with_a_token() {
        for (inside, what) in [
            (r#"{"v":"v9","rv":1,"start":"/a\u0000"}"#, "server does not recognize this encoded version v9"),
            (
                r#"{"v":"meta.k8s.io/v1","start":"/a\u0000"}"#,
                "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (r#"{"v":"meta.k8s.io/v1","rv":1}"#, "encoded start key empty (version meta.k8s.io/v1)"),
            (r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#, "../x"),
        ] {
            let failure = ContinueToken::decode(&URL_SAFE_NO_PAD.encode(inside)).unwrap_err();
            assert_eq!(failure.message, format!("invalid continue token: continue key is not valid: {what}"));
        }
        let list = URL_SAFE_NO_PAD.encode(r#"["meta.k8s.io/v1",5,"/a\u0000"]"#);
        let padded = format!("{}=", ContinueToken { revision: Some(17), after: "b".to_owned() }.encode());
        for text in ["%%%", "YWJj", "", &list, &padded] {
            let failure = ContinueToken::decode(text).unwrap_err();
            assert!(failure.message.starts_with("invalid continue token: continue key is not valid: "), "{text}");
        }
    }
}
