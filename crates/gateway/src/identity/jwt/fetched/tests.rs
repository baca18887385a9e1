//! Keys from a server that is not always reachable.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::claims::Rules;
use super::super::keys::Keys;
use super::super::tests::{Issuer, NOW, claims, ed_head};
use super::*;
use crate::config::JwtIdentity;

const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing happens by itself.
const STILL: Duration = Duration::from_secs(3600);

/// A server that responds to every request with the same.
struct Server {
    response: Arc<Mutex<String>>,
    requests: Arc<AtomicUsize>,
    url: http::Uri,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(response: &str) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), response)
    }

    fn on(listener: TcpListener, response: &str) -> Self {
        let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
        let response = Arc::new(Mutex::new(response.to_owned()));
        let requests = Arc::<AtomicUsize>::default();
        let (text, count) = (Arc::clone(&response), Arc::clone(&requests));
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read_buf(&mut Vec::with_capacity(4096)).await;
                let response = text.lock().unwrap().clone();
                let _ = stream.write_all(response.as_bytes()).await;
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { response, requests, url, task }
    }

    fn say(&self, response: &str) {
        response.clone_into(&mut self.response.lock().unwrap());
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn ok(keys: &Value, headers: &str) -> String {
    let keys = keys.to_string();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n{keys}", keys.len())
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

async fn open(url: &http::Uri, rhythm: Rhythm) -> FetchedKeys {
    let source = KeySource::new(url, None).unwrap();
    let rules = Rules::new(&JwtIdentity { issuer: Some("https://issuer".to_owned()), ..JwtIdentity::default() });
    let read = move |bytes: &[u8]| Verifier::new(Keys::read(bytes)?, rules.clone());
    let start = move || FetchedKeys::start(source, read, rhythm, KeyFetches::default()).unwrap();
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
    let server = Server::start(&ok(&first.key_set(), "Cache-Control: max-age=0\r\n")).await;
    let keys = open(&server.url, rhythm()).await;
    let (old, new) = (first.ed(&ed_head(), &claims()), second.ed(&ed_head(), &claims()));
    assert!(is_known(&keys, &old) && !is_known(&keys, &new));
    server.say(&ok(&second.key_set(), ""));
    eventually("the new keys are used", || is_known(&keys, &new) && !is_known(&keys, &old)).await;
}

#[tokio::test]
async fn the_last_good_keys_stay_whatever_the_server_says() {
    let issuer = Issuer::new();
    let server = Server::start(&ok(&issuer.key_set(), "Cache-Control: max-age=0\r\n")).await;
    let keys = open(&server.url, rhythm()).await;
    let token = issuer.ed(&ed_head(), &claims());
    for wrong in [
        "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 302 Found\r\nLocation: /other\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "no HTTP".to_owned(),
        String::new(),
        ok(&json!({"keys": []}), ""),
        ok(&json!("none"), ""),
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", " ".repeat((1 << 20) + 1)),
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{".to_owned(),
    ] {
        server.say(&wrong);
        let count = server.requests();
        eventually("it is fetched twice", || server.requests() >= count + 2).await;
        assert!(is_known(&keys, &token), "{}", &wrong[..wrong.len().min(80)]);
    }
}

#[tokio::test]
async fn without_a_server_tokens_are_undecided_until_there_is_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let keys = open(&format!("http://{address}/keys").parse().unwrap(), rhythm()).await;
    let issuer = Issuer::new();
    let token = issuer.ed(&ed_head(), &claims());
    assert_eq!(keys.ask(&token, NOW), Verdict::Undecided);
    assert_eq!(keys.ask("no token", NOW), Verdict::Undecided);
    let _server = Server::on(TcpListener::bind(address).await.unwrap(), &ok(&issuer.key_set(), ""));
    eventually("the keys arrive", || is_known(&keys, &token)).await;
    assert!(keys.ask("no token", NOW).is_wrong());
}

#[tokio::test]
async fn an_unknown_key_leads_to_a_fetch_but_not_to_many() {
    let (first, second) = (Issuer::new(), Issuer::new());
    let server = Server::start(&ok(&first.key_set(), "")).await;
    let gap = Duration::from_millis(300);
    let keys = open(&server.url, Rhythm { gap, ..rhythm() }).await;
    assert_eq!(server.requests(), 1);
    let mut renamed = second.key_set();
    renamed["keys"][0]["kid"] = "new".into();
    let token = second.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims());
    // A token that names a key that is there, and is wrong, leads to nothing.
    assert!(keys.ask(&second.ed(&ed_head(), &claims()), NOW).is_wrong());
    server.say(&ok(&renamed, ""));
    let begun = Instant::now();
    eventually("the new key is known", || is_known(&keys, &token)).await;
    // However often somebody asks, there is one fetch in each gap.
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
    let server = Server::start(&ok(&issuer.key_set(), "")).await;
    let keys = open(&server.url, Rhythm { gap: Duration::ZERO, ..rhythm() }).await;
    let stranger = issuer.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims());
    assert_eq!(keys.ask(&stranger, NOW), Verdict::Undecided);
    let keys = open(&server.url, Rhythm { gap: STILL, ..rhythm() }).await;
    assert!(keys.ask(&stranger, NOW).is_wrong());
}

#[tokio::test]
async fn a_token_that_no_key_could_make_good_is_wrong_at_once() {
    let issuer = Issuer::new();
    let server = Server::start(&ok(&issuer.key_set(), "")).await;
    let keys = open(&server.url, Rhythm { gap: Duration::ZERO, ..rhythm() }).await;
    for (claim, value) in [("iss", json!("https://other")), ("exp", json!(NOW - 3600)), ("sub", Value::Null)] {
        let mut claims = claims();
        claims[claim] = value;
        let stranger = issuer.ed(&json!({"alg": "EdDSA", "kid": "new"}), &claims);
        assert!(keys.ask(&stranger, NOW).is_wrong(), "{claims}");
    }
    assert_eq!(server.requests(), 1);
}
