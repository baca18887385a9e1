//! Signed bearer tokens and the keys of their issuers: nobody gets in but with a genuine token, whatever it says.

use std::sync::{Arc, LazyLock};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use evenkeel_engine::User;
use evenkeel_identity::config::JwtIdentity;
use evenkeel_identity::fuzzing::TokenVerifier;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Map, Value, json};

/// An issuer, and who accepts its tokens.
struct Issuer {
    key: Ed25519KeyPair,
    config: JwtIdentity,
    verifier: TokenVerifier,
}

const NOW: u64 = 1_700_000_000;

static ISSUER: LazyLock<Issuer> = LazyLock::new(Issuer::new);

/// Reads the bytes as a token. Then takes the first line for the head and the rest for the claims of a token, and signs
/// it with the issuer's key.
///
/// # Panics
/// If a token is accepted that the issuer did not sign, or that says the wrong things.
pub fn jwt(input: &[u8]) {
    let issuer = &*ISSUER;
    let text = String::from_utf8_lossy(input);
    assert_eq!(issuer.verifier.user(&text, NOW), None, "nobody signed it");

    let (head, claims) = input.split_at(input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len()));
    let claims = claims.strip_prefix(b"\n").unwrap_or_default();
    let token = issuer.sign(head, claims);
    let user = issuer.verifier.user(&token, NOW);
    // The second time, it may come from the cache.
    assert_eq!(issuer.verifier.user(&token, NOW), user);
    if let Some(user) = user {
        assert_is_good(&user, head, claims);
        let unsigned = token.rsplit_once('.').map_or("", |(signed, _)| signed);
        for other in [format!("{unsigned}."), format!("{token}A"), format!("{token}="), format!(".{token}")] {
            assert_eq!(issuer.verifier.user(&other, NOW), None, "{other}");
        }
    }
}

/// Reads the bytes as a file of keys, and as the content of keys in PEM. No token of another issuer is good with them.
///
/// # Panics
/// If one is.
pub fn key_set(input: &[u8]) {
    let issuer = &*ISSUER;
    let claims = json!({"sub": "alice", "exp": NOW + 60, "iss": "https://issuer", "aud": "shop"}).to_string();
    let body = STANDARD.encode(input);
    let pem = |label: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
    let (public, rsa) = (pem("PUBLIC KEY"), pem("RSA PUBLIC KEY"));
    for file in [input, public.as_bytes(), rsa.as_bytes()] {
        let verifier = match TokenVerifier::read(file, &issuer.config) {
            Ok(verifier) => verifier,
            Err(problem) => {
                assert!(problem.len() < 500 + input.len(), "{problem}");
                continue;
            }
        };
        for algorithm in ["RS256", "PS512", "ES256", "ES384", "EdDSA", "none", "HS256"] {
            let head = json!({"alg": algorithm}).to_string();
            assert_eq!(verifier.user(&issuer.sign(head.as_bytes(), claims.as_bytes()), NOW), None, "{algorithm}");
        }
    }
}

/// What a good token has to say, read anew.
fn assert_is_good(user: &Arc<User>, head: &[u8], claims: &[u8]) {
    let head: Map<String, Value> = serde_json::from_slice(head).expect("a head in JSON");
    assert!(matches!(head["alg"].as_str(), Some("EdDSA" | "Ed25519")), "{head:?}");
    assert!(head.get("crit").is_none_or(Value::is_null), "{head:?}");
    let claims: Map<String, Value> = serde_json::from_slice(claims).expect("claims in JSON");
    assert_eq!(claims["sub"].as_str(), Some(&*user.name), "{claims:?}");
    assert_eq!(claims["iss"], "https://issuer", "{claims:?}");
    let is_audience = claims["aud"] == "shop"
        || claims["aud"].as_array().is_some_and(|names| names.iter().any(|name| name == "shop"));
    assert!(is_audience, "{claims:?}");
    let seconds = |name: &str| claims.get(name).and_then(Value::as_f64);
    #[expect(clippy::cast_precision_loss, reason = "the time of the test is a small number")]
    let now = NOW as f64;
    assert!(seconds("exp").is_some_and(|end| end + 60.0 >= now), "{claims:?}");
    assert!(seconds("nbf").is_none_or(|start| start - 60.0 <= now + 1.0), "{claims:?}");
    assert!(!user.name.starts_with("system:"), "{claims:?}");
}

// === impl Issuer ===

impl Issuer {
    fn new() -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed of 32 bytes");
        let public = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "main", "x": public}]}).to_string();
        let settings = json!({"keys": "keys.json", "issuer": "https://issuer", "audiences": ["shop"]});
        let config: JwtIdentity = serde_json::from_value(settings).expect("settings");
        let verifier = TokenVerifier::read(keys.as_bytes(), &config).expect("keys");
        Self { key, config, verifier }
    }

    fn sign(&self, head: &[u8], claims: &[u8]) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key.sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}
