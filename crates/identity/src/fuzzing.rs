//! The readers of input from outside as plain functions of bytes, for `tests/any-input`. Not part of the API.

use std::sync::Arc;

use evenkeel_engine::User;

use crate::config::JwtIdentity;
use crate::der::Element;
use crate::sources::Verifier;

/// Accepts signed bearer tokens.
#[derive(Debug)]
pub struct TokenVerifier(Verifier);

/// The tag and the content of the first element of DER, and what follows it.
pub fn der_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    Element::read(der).map(|element| (element.tag, element.content, element.rest))
}

// === impl TokenVerifier ===

impl TokenVerifier {
    /// A verifier with the keys of a file.
    pub fn read(keys: &[u8], config: &JwtIdentity) -> Result<Self, String> {
        Verifier::open(keys, config).map(Self)
    }

    /// The user of this token at a time in seconds since 1970, if it is good then.
    pub fn user(&self, token: &str, now: u64) -> Option<Arc<User>> {
        self.0.user(token, now)
    }
}
