//! Valid tokens, and all the ways in which they are invalid.

use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::public_key::{PublicKey, public_key, rsa_public_key};
use super::*;
use crate::config::SystemNames;

pub(super) const NOW: u64 = 1_700_000_000;

/// An issuer with a key of each kind.
pub(super) struct Issuer {
    ed25519: Ed25519KeyPair,
    p256: EcdsaKeyPair,
}

impl Issuer {
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        Self {
            ed25519: Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap(),
            p256: EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, p256.as_ref(), &random).unwrap(),
        }
    }

    pub(super) fn key_set(&self) -> Value {
        let point = &self.p256.public_key().as_ref()[1..];
        json!({"keys": [
            {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "use": "sig", "x": b64(self.ed25519.public_key().as_ref())},
            {"kty": "EC", "crv": "P-256", "kid": "ec", "x": b64(&point[..32]), "y": b64(&point[32..])},
            {"kty": "oct", "kid": "shared", "k": "c2VjcmV0"},
            {"kty": "RSA", "use": "enc", "n": "", "e": ""},
        ]})
    }

    pub(super) fn ed(&self, head: &Value, claims: &Value) -> String {
        signed(head, claims, |text| self.ed25519.sign(text).as_ref().to_vec())
    }

    fn ec(&self, head: &Value, claims: &Value) -> String {
        signed(head, claims, |text| self.p256.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec())
    }
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn signed(head: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!("{}.{}", b64(head.to_string().as_bytes()), b64(claims.to_string().as_bytes()));
    let signature = sign(text.as_bytes());
    format!("{text}.{}", b64(&signature))
}

pub(super) fn claims() -> Value {
    json!({"sub": "alice", "groups": ["staff", "system:masters"], "iss": "https://issuer", "aud": ["shop", "bank"], "exp": NOW + 60})
}

/// The claims with one changed.
fn with(name: &str, value: impl Into<Value>) -> Value {
    let mut claims = claims();
    claims[name] = value.into();
    claims
}

fn verifier(keys: &[u8]) -> Verifier {
    let config = JwtIdentity {
        issuer: Some("https://issuer".to_owned()),
        audiences: vec!["shop".to_owned()],
        leeway_seconds: 10,
        ..JwtIdentity::default()
    };
    Verifier::new(Keys::read(keys).unwrap(), Rules::new(&config)).unwrap()
}

pub(super) fn ed_head() -> Value {
    json!({"alg": "EdDSA", "kid": "ed"})
}

#[test]
fn a_good_token_names_its_user_and_is_known_until_it_expires() {
    let issuer = Issuer::new();
    let verifier = verifier(issuer.key_set().to_string().as_bytes());
    for token in [issuer.ed(&ed_head(), &claims()), issuer.ec(&json!({"alg": "ES256"}), &claims())] {
        let Verdict::Known(first) = verifier.ask(&token, NOW) else { panic!("{token}") };
        assert_eq!(*first, User::new("alice", ["staff", "system:authenticated"]));
        let Verdict::Known(again) = verifier.ask(&token, NOW + 69) else { panic!("{token}") };
        assert!(Arc::ptr_eq(&first, &again), "it is not verified twice");
        assert!(verifier.ask(&token, NOW + 70).is_wrong(), "the leeway is over");
        assert!(verifier.ask(&token.replace('.', ".x"), NOW).is_wrong());
    }
}

#[test]
fn a_service_account_is_in_the_groups_that_kubernetes_puts_it_into() {
    let issuer = Issuer::new();
    let name = "system:serviceaccount:shop:batch";
    let token = issuer.ed(&ed_head(), &json!({"sub": name, "exp": NOW + 60}));
    let ask = |user_prefix: &str, system_names| {
        let config = JwtIdentity { user_prefix: user_prefix.to_owned(), system_names, ..JwtIdentity::default() };
        let keys = Keys::read(issuer.key_set().to_string().as_bytes()).unwrap();
        Verifier::new(keys, Rules::new(&config)).unwrap().ask(&token, NOW)
    };
    let groups = ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"];
    assert_eq!(ask("", SystemNames::Allow), Verdict::Known(Arc::new(User::new(name, groups))));
    let prefixed = User::new("k8s:system:serviceaccount:shop:batch", ["system:authenticated"]);
    assert_eq!(ask("k8s:", SystemNames::Allow), Verdict::Known(Arc::new(prefixed)));
    assert!(ask("", SystemNames::Refuse).is_wrong());
}

#[test]
fn what_a_token_says_of_its_algorithm_is_not_trusted() {
    let issuer = Issuer::new();
    let verifier = verifier(issuer.key_set().to_string().as_bytes());
    for head in [
        json!({"alg": "none"}),
        json!({"alg": "HS256", "kid": "shared"}),
        json!({"alg": "ES256", "kid": "ed"}),
        json!({"alg": "RS256", "kid": "ed"}),
        json!({"alg": "eddsa"}),
        json!({"alg": "EdDSA", "kid": "ec"}),
        json!({"alg": "EdDSA", "kid": "unknown"}),
        json!({"alg": "EdDSA", "crit": ["b64"]}),
        json!({"kid": "ed"}),
    ] {
        assert!(verifier.ask(&issuer.ed(&head, &claims()), NOW).is_wrong(), "{head}");
    }
    // The public key, which is no secret, used as a shared secret.
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, issuer.ed25519.public_key().as_ref());
    let forged = signed(&json!({"alg": "HS256"}), &claims(), |text| ring::hmac::sign(&secret, text).as_ref().to_vec());
    assert!(verifier.ask(&forged, NOW).is_wrong());
    let unsigned = signed(&json!({"alg": "none"}), &claims(), |_| Vec::new());
    assert!(verifier.ask(&unsigned, NOW).is_wrong());
}

#[test]
fn a_token_is_wrong_if_any_claim_is() {
    let issuer = Issuer::new();
    let verifier = verifier(issuer.key_set().to_string().as_bytes());
    for (wrong, reason) in [
        (with("exp", NOW - 10), Denial::Expired),
        (with("exp", "soon"), Denial::Claims),
        (with("exp", -1), Denial::Claims),
        (with("exp", Value::Null), Denial::Claims),
        (with("nbf", NOW + 11), Denial::NotYetValid),
        (with("iss", "https://other"), Denial::Issuer),
        (with("iss", json!(["https://issuer"])), Denial::Issuer),
        (with("aud", "bank"), Denial::Audience),
        (with("aud", json!({"shop": 1})), Denial::Audience),
        (with("sub", ""), Denial::Name),
        (with("sub", 7), Denial::Claims),
        (with("sub", "system:admin"), Denial::Name),
        (with("sub", "alice\r\nX-Remote-Group: root"), Denial::Name),
        (with("groups", 7), Denial::Claims),
        (with("groups", json!(["staff", 7])), Denial::Claims),
        (json!([claims()]), Denial::Claims),
        (json!("claims"), Denial::Claims),
    ] {
        assert_eq!(verifier.ask(&issuer.ed(&ed_head(), &wrong), NOW), Verdict::Wrong(reason), "{wrong}");
    }
    for good in [
        with("exp", NOW - 9),
        with("exp", json!(1_700_000_060.5)),
        with("nbf", NOW + 10),
        with("aud", "shop"),
        with("groups", "staff"),
        with("groups", Value::Null),
    ] {
        assert!(matches!(verifier.ask(&issuer.ed(&ed_head(), &good), NOW), Verdict::Known(_)), "{good}");
    }
}

#[test]
fn what_is_no_token_is_wrong() {
    let issuer = Issuer::new();
    let verifier = verifier(issuer.key_set().to_string().as_bytes());
    let good = issuer.ed(&ed_head(), &claims());
    let long = format!("{good}{}", "a".repeat(TOKEN_BYTES_MAX));
    for token in [
        "",
        ".",
        "..",
        "a.b.c",
        "....",
        &good[1..],
        &good[..good.len() - 1],
        &format!("{good}."),
        &format!("{good}="),
        &long,
    ] {
        assert!(verifier.ask(token, NOW).is_wrong(), "{token}");
    }
}

#[test]
fn keys_are_read_from_pem_too() {
    let issuer = Issuer::new();
    let spki = |prefix: &[u8], key: &[u8]| {
        let text = STANDARD.encode([prefix, key].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
    };
    let ed = spki(b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", issuer.ed25519.public_key().as_ref());
    let ec_prefix =
        b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
    let ec = spki(ec_prefix, issuer.p256.public_key().as_ref());
    let verifier = verifier(format!("{ed}{ec}").as_bytes());
    for token in [issuer.ed(&ed_head(), &claims()), issuer.ec(&json!({"alg": "ES256"}), &claims())] {
        assert!(matches!(verifier.ask(&token, NOW), Verdict::Known(_)));
    }
    let other = Issuer::new();
    assert!(verifier.ask(&other.ed(&ed_head(), &claims()), NOW).is_wrong());
}

#[test]
fn rsa_keys_are_read_from_pem_and_from_a_set() {
    let (spki, pkcs1) = (include_str!("testdata/rsa.pem"), include_str!("testdata/rsa_pkcs1.pem"));
    let (rs256, ps256) = (include_str!("testdata/rs256.jwt").trim(), include_str!("testdata/ps256.jwt").trim());
    let body: String = pkcs1.lines().filter(|line| !line.starts_with('-')).collect();
    let der = STANDARD.decode(body).unwrap();
    let Some(PublicKey::Rsa { n, e }) = rsa_public_key(&der) else { panic!("no key of RSA") };
    let jwk =
        |alg: &str| json!({"keys": [{"kty": "RSA", "kid": "r", "alg": alg, "n": b64(n), "e": b64(e)}]}).to_string();
    for (keys, good, wrong) in [
        (spki.to_owned(), rs256, ps256),
        (pkcs1.to_owned(), rs256, ps256),
        (jwk("RS256"), rs256, ps256),
        // The key is for another algorithm, and the token is not asked.
        (jwk("PS256"), ps256, rs256),
    ] {
        let verifier = verifier(keys.as_bytes());
        assert!(matches!(verifier.ask(good, NOW), Verdict::Known(_)), "{keys}");
        assert!(verifier.ask(wrong, NOW).is_wrong(), "{keys}");
    }
}

#[test]
fn files_without_keys_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "there is no key in it"),
        ("{}", "it is no JSON Web Key Set"),
        (r#"{"keys": []}"#, "there is no key in it"),
        (r#"{"keys": [7]}"#, "keys[0] is no JSON Web Key"),
        (r#"{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}"#, "there is no key in it"),
        (r#"{"keys": [{"kty": "OKP", "crv": "Ed25519"}]}"#, "keys[0]: x is missing"),
        (r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "!"}]}"#, "keys[0]: x is not base64url"),
        (r#"{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}"#, "keys[0]: a key of RSA has 24 bits"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "it is a private key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "it is no key of RSA"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA", "has no end"),
    ] {
        let error = Keys::read(text.as_bytes()).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn random_bytes_are_no_key(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        proptest::prop_assert!(Keys::read(&bytes).is_err());
        proptest::prop_assert!(public_key(&bytes).is_none() && rsa_public_key(&bytes).is_none());
    }

    #[test]
    fn any_text_is_no_token(token in "[A-Za-z0-9_.-]{0,200}") {
        let verifier = verifier(Issuer::new().key_set().to_string().as_bytes());
        proptest::prop_assert!(verifier.ask(&token, NOW).is_wrong());
    }
}
