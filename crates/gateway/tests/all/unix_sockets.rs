//! Unix sockets to listen on, and as upstreams.

use crate::support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use evenkeel_gateway::config::{AddressIdentity, IdentitySource, UpstreamConfig};
use evenkeel_gateway::{Config, Gateway, StartError, objects};
use support::client::{Client, find, get};
use support::upstream::{Upstream, ok};
use support::{config, start};
use tokio::net::{UnixListener, UnixStream};

fn listening_on(path: &Path, upstream: &Upstream) -> Config {
    let mut settings = config(&[upstream.address]);
    settings.listen[0].address = format!("unix:{}", path.display()).parse().unwrap();
    settings.workers = Some(2);
    settings
}

async fn started(settings: Config) -> Result<Gateway, StartError> {
    let objects = objects::source(&settings);
    Gateway::start(settings, objects).await
}

async fn ask(path: &Path, headers: &str) -> String {
    let mut client = Client::on(UnixStream::connect(path).await.unwrap());
    client.send(&format!("GET / HTTP/1.1\r\nHost: shop.example\r\n{headers}\r\n")).await;
    client.answer().await.text()
}

#[tokio::test]
async fn clients_of_a_unix_socket_are_this_machine() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::echo().await);
    let path = folder.path().join("evenkeel.sock");
    let mut settings = listening_on(&path, &upstream);
    settings.identity.sources = vec![IdentitySource::Address(AddressIdentity::default())];
    settings.identity.tell_upstream = true;
    let gateway = started(settings.clone()).await.unwrap();
    assert_eq!(gateway.unix_sockets().collect::<Vec<_>>(), [&*path]);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let spoofed = "X-Forwarded-For: 6.6.6.6\r\nX-Remote-User: root\r\n";
    let seen = ask(&path, spoofed).await;
    assert_eq!(find(&seen, "x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(find(&seen, "x-remote-user").as_deref(), Some("address:127.0.0.1"));
    let error = started(settings.clone()).await.unwrap_err().to_string();
    assert!(error.contains("another process listens on it; stop that"), "{error}");
    assert_eq!(gateway.drain().await.requests_cut, 0);
    assert!(!path.exists(), "the file is removed at the end");
    // Whoever is trusted on this machine is trusted on the socket.
    let trusting =
        AddressIdentity { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..AddressIdentity::default() };
    settings.identity.sources = vec![IdentitySource::Address(trusting)];
    settings.listen[0].mode = Some("0666".parse().unwrap());
    let gateway = started(settings).await.unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o666);
    let seen = ask(&path, spoofed).await;
    assert_eq!(find(&seen, "x-forwarded-for").as_deref(), Some("6.6.6.6, 127.0.0.1"));
    assert_eq!(find(&seen, "x-remote-user").as_deref(), Some("address:6.6.6.6"));
    assert_eq!(gateway.drain().await.requests_cut, 0);
}

#[tokio::test]
async fn what_waits_on_a_unix_socket_is_served_before_the_end() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::echo().await);
    let path = folder.path().join("evenkeel.sock");
    let gateway = started(listening_on(&path, &upstream)).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut client = Client::on(UnixStream::connect(&path).await.unwrap());
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    let draining = tokio::spawn(gateway.drain());
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    assert_eq!(draining.await.unwrap().requests_cut, 0);
}

#[tokio::test]
async fn a_unix_socket_that_cannot_be_made_says_what_to_do() {
    let (folder, upstream) = (tempfile::tempdir().unwrap(), Upstream::echo().await);
    let there = folder.path().join("precious");
    std::fs::write(&there, "data").unwrap();
    for (path, expected) in [
        (folder.path().join("none/a.sock"), "make its folder"),
        (there.clone(), "the file exists and is not a socket; choose another file with `--listen`"),
    ] {
        let error = started(listening_on(&path, &upstream)).await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on unix:{}: ", path.display())), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(std::fs::read_to_string(there).unwrap(), "data");
}

/// An upstream on a Unix socket that echoes heads.
fn echo_at(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        loop {
            let mut client = Client::on(listener.accept().await.unwrap().0);
            tokio::spawn(async move {
                loop {
                    let request = client.answer().await;
                    client.send(&ok(&request.head)).await;
                }
            });
        }
    });
}

#[tokio::test]
async fn an_upstream_may_listen_on_a_unix_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    echo_at(&path);
    let mut settings = config(&[]);
    let url = format!("unix:{}", path.display());
    settings.upstreams.push(UpstreamConfig::new(&url).unwrap());
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings.health.check = Some(evenkeel_gateway::config::HealthCheckConfig::new("/healthz"));
    let running = start(settings).await;
    for _ in 0..3 {
        let answer = get(running.address, "/a?b", "").await;
        assert_eq!(answer.status, 200);
        let seen = answer.text();
        assert!(seen.starts_with("GET /a?b HTTP/1.1\r\n"), "{seen}");
        assert_eq!(find(&seen, "host").as_deref(), Some("shop.example"));
    }
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let line = format!(r#"evenkeel_upstream_requests_total{{code="2xx",upstream="{url}"}} 3"#);
    assert!(page.lines().any(|found| found == line), "{page}");
    running.done().await;
}

#[tokio::test]
async fn a_unix_socket_on_which_nobody_listens_is_an_upstream_that_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = config(&[]);
    let url = format!("unix:{}/gone.sock", folder.path().display());
    settings.upstreams.push(UpstreamConfig::new(&url).unwrap());
    let running = start(settings).await;
    let answer = get(running.address, "/", "").await;
    assert_eq!(answer.status, 502);
    assert!(!answer.text().contains("gone.sock"), "{}", answer.text());
    running.done().await;
}
