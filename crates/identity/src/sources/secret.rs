//! Credentials are stored and looked up as keyed hashes only, never as they are.

use ring::hmac;
use ring::rand::SystemRandom;

/// Makes hashes of secrets, under a key that is new in every process. So the time that a look-up takes says nothing about
/// any secret, and a dump of the memory holds none.
#[derive(Clone)]
pub(super) struct SecretHasher(hmac::Key);

/// A hash of a secret.
pub(super) type SecretHash = [u8; 32];

// === impl SecretHasher ===

impl SecretHasher {
    pub(super) fn new() -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        key.map(Self).map_err(|_| "cannot get random numbers from the operating system".to_owned())
    }

    pub(super) fn hash(&self, secret: &str) -> SecretHash {
        let tag = hmac::sign(&self.0, secret.as_bytes());
        let mut hash = SecretHash::default();
        hash.copy_from_slice(tag.as_ref());
        hash
    }
}

impl std::fmt::Debug for SecretHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretHasher")
    }
}
