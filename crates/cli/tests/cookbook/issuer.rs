//! An identity provider: the page has `https://login.example.com`, and here it is on the loopback.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::session::Session;

const PRINTED: &str = "https://login.example.com";
const KEYS: &str = "/.well-known/jwks.json";

/// Signs tokens.
pub(crate) struct Issuer {
    key: Ed25519KeyPair,
    key_id: &'static str,
}

// === impl Issuer ===

impl Issuer {
    pub(crate) fn new(key_id: &'static str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { key: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap(), key_id }
    }

    pub(crate) fn key_set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": self.key_id, "x": x}]}).to_string()
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let head = json!({"alg": "EdDSA", "kid": self.key_id});
        let text = [&head, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(self.key.sign(text.as_bytes())))
    }
}

/// Seconds since 1970, in an hour from now.
pub(crate) fn in_an_hour() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    (since + Duration::from_secs(3600)).as_secs()
}

/// Serves the keys, and gives the reader tokens.
pub(crate) fn start(session: &mut Session) {
    let listener = TcpListener::bind((session.address(), 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (issuer, other) = (Issuer::new("2026-11"), Issuer::new("other"));
    let claims = |issuer: &str, expires: u64| json!({"iss": issuer, "aud": "orders", "sub": "alice", "exp": expires});
    session.set_variable("TOKEN", &issuer.token(&claims(&url, in_an_hour())));
    session.set_variable("EXPIRED", &issuer.token(&claims(&url, in_an_hour() - 7200)));
    session.set_variable("OTHER", &other.token(&claims("https://login.example.net", in_an_hour())));
    session.exchange(PRINTED, &url);
    let keys = issuer.key_set();
    thread::spawn(move || listener.incoming().for_each(|stream| respond(&stream.unwrap(), &keys)));
}

fn respond(mut stream: &TcpStream, keys: &str) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next().unwrap_or_default();
    lines.by_ref().take_while(|line| !line.is_empty()).for_each(drop);
    let (status, body) =
        if request.starts_with(&format!("GET {KEYS} ")) { ("200 OK", keys) } else { ("404 Not Found", "") };
    let length = body.len();
    // A gateway that does not get its keys says so.
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
}
