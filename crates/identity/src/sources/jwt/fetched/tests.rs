//! Keys from a server that is not always reachable.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, Response, Uri};
use serde_json::{Value, json};

use super::super::claims::Rules;
use super::super::keys::Keys;
use super::super::tests::{Issuer, NOW, claims, ed_head};
use super::*;
use crate::config::JwtIdentity;
use crate::key_server::{KeyResponse, KeyServer};

const PATIENCE: Duration = Duration::from_secs(60);
/// A period so long that nothing is fetched by itself.
const STILL: Duration = Duration::from_secs(3600);

/// A server that responds to every request with the same. Clones are the same server.
#[derive(Debug, Clone)]
struct Server(Arc<Served>);

#[derive(Debug)]
struct Served {
    /// `None`: the server cannot be reached.
    response: Mutex<Option<Response<Bytes>>>,
    requests: AtomicUsize,
}

impl KeyServer for Server {
    fn get(&self, headers: HeaderMap) -> KeyResponse<'_> {
        assert!(headers.contains_key(ACCEPT));
        self.0.requests.fetch_add(1, Ordering::SeqCst);
        let response = self.0.response.lock().unwrap().clone();
        Box::pin(async move { response.ok_or_else(|| "no connection".to_owned()) })
    }
}

impl Server {
    fn new(response: impl Into<Option<Response<Bytes>>>) -> Self {
        Self(Arc::new(Served { response: Mutex::new(response.into()), requests: AtomicUsize::new(0) }))
    }

    fn say(&self, response: impl Into<Option<Response<Bytes>>>) {
        *self.0.response.lock().unwrap() = response.into();
    }

    fn requests(&self) -> usize {
        self.0.requests.load(Ordering::SeqCst)
    }
}

fn status(status: u16, keys: &Value) -> Response<Bytes> {
    Response::builder().status(status).body(keys.to_string().into()).unwrap()
}

fn ok(keys: &Value) -> Response<Bytes> {
    status(200, keys)
}

/// Keys that are to be fetched again at once.
fn short_lived(keys: &Value) -> Response<Bytes> {
    Response::builder().header(CACHE_CONTROL, "max-age=0").body(keys.to_string().into()).unwrap()
}

fn rhythm() -> Rhythm {
    Rhythm {
        usual: STILL,
        least: Duration::from_millis(20),
        most: STILL,
        retry: Duration::from_millis(10),
        gap: Duration::from_millis(50),
        patience: PATIENCE,
    }
}

async fn open(server: &Server, rhythm: Rhythm) -> FetchedKeys {
    let source = KeySource::new(&Uri::from_static("https://issuer/keys"), Box::new(server.clone()));
    let rules = Rules::new(&JwtIdentity { issuer: Some("https://issuer".to_owned()), ..JwtIdentity::default() });
    let read = move |bytes: &[u8]| Verifier::new(Keys::read(bytes)?, rules.clone());
    let start = move || FetchedKeys::start(source, read, rhythm, IdentityCounts::default()).unwrap();
    tokio::task::spawn_blocking(start).await.unwrap()
}

async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout_at(tokio::time::Instant::now() + PATIENCE, waiting).await.is_ok(), "it never came true: {what}");
}

fn is_known(keys: &FetchedKeys, token: &str) -> bool {
    matches!(keys.ask(token, NOW), Verdict::Known(_))
}

#[tokio::test]
async fn keys_are_there_when_the_start_is_over_and_are_fetched_again_in_time() {
    let (first, second) = (Issuer::new(), Issuer::new());
    let server = Server::new(short_lived(&first.key_set()));
    let keys = open(&server, rhythm()).await;
    let (old, new) = (first.ed(&ed_head(), &claims()), second.ed(&ed_head(), &claims()));
    assert!(is_known(&keys, &old) && !is_known(&keys, &new));
    server.say(ok(&second.key_set()));
    eventually("the new keys are used", || is_known(&keys, &new) && !is_known(&keys, &old)).await;
}

#[tokio::test]
async fn the_last_good_keys_stay_whatever_the_server_says() {
    let issuer = Issuer::new();
    let server = Server::new(short_lived(&issuer.key_set()));
    let keys = open(&server, rhythm()).await;
    let token = issuer.ed(&ed_head(), &claims());
    for wrong in [
        Some(status(500, &json!({}))),
        Some(status(302, &issuer.key_set())),
        None,
        Some(ok(&json!({"keys": []}))),
        Some(ok(&json!("none"))),
    ] {
        server.say(wrong.clone());
        let count = server.requests();
        eventually("it is fetched twice", || server.requests() >= count + 2).await;
        assert!(is_known(&keys, &token), "{wrong:?}");
    }
}

#[tokio::test]
async fn without_a_server_tokens_are_undecided_until_there_is_one() {
    let server = Server::new(None);
    let keys = open(&server, rhythm()).await;
    let issuer = Issuer::new();
    let token = issuer.ed(&ed_head(), &claims());
    assert_eq!(keys.ask(&token, NOW), Verdict::Undecided);
    assert_eq!(keys.ask("no token", NOW), Verdict::Undecided);
    server.say(ok(&issuer.key_set()));
    eventually("the keys arrive", || is_known(&keys, &token)).await;
    assert!(keys.ask("no token", NOW).is_wrong());
}

#[tokio::test]
async fn an_unknown_key_leads_to_a_fetch_but_not_to_many() {
    let (first, second) = (Issuer::new(), Issuer::new());
    let server = Server::new(ok(&first.key_set()));
    let gap = Duration::from_millis(300);
    let keys = open(&server, Rhythm { gap, ..rhythm() }).await;
    assert_eq!(server.requests(), 1);
    let mut renamed = second.key_set();
    renamed["keys"][0]["kid"] = "new".into();
    let token = second.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims());
    // A token that names a key that is there, and is wrong, leads to nothing.
    assert!(keys.ask(&second.ed(&ed_head(), &claims()), NOW).is_wrong());
    server.say(ok(&renamed));
    let begun = Instant::now();
    eventually("the new key is known", || is_known(&keys, &token)).await;
    // However often requests ask, there is one fetch in each gap.
    while begun.elapsed() < 3 * gap {
        keys.ask(&first.ed(&json!({"alg": "EdDSA", "kid": "nobody's"}), &claims()), NOW);
        tokio::task::yield_now().await;
    }
    let most = 2 + begun.elapsed().as_millis() / gap.as_millis();
    assert!((2..=most).contains(&(server.requests() as u128)), "{} requests", server.requests());
}

#[tokio::test]
async fn a_token_of_an_unknown_key_is_undecided_while_that_key_is_looked_for() {
    let issuer = Issuer::new();
    let server = Server::new(ok(&issuer.key_set()));
    let keys = open(&server, Rhythm { gap: Duration::ZERO, ..rhythm() }).await;
    let stranger = issuer.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims());
    assert_eq!(keys.ask(&stranger, NOW), Verdict::Undecided);
    let keys = open(&server, Rhythm { gap: STILL, ..rhythm() }).await;
    assert!(keys.ask(&stranger, NOW).is_wrong());
}

#[tokio::test]
async fn a_token_that_no_key_could_make_good_is_wrong_at_once() {
    let issuer = Issuer::new();
    let server = Server::new(ok(&issuer.key_set()));
    let keys = open(&server, Rhythm { gap: Duration::ZERO, ..rhythm() }).await;
    for (claim, value) in [("iss", json!("https://other")), ("exp", json!(NOW - 3600)), ("sub", Value::Null)] {
        let mut claims = claims();
        claims[claim] = value;
        let stranger = issuer.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims);
        assert!(keys.ask(&stranger, NOW).is_wrong(), "{claims}");
    }
    assert_eq!(server.requests(), 1);
}
