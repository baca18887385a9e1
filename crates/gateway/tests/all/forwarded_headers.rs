//! What an upstream sees of a request's head, and a client of an answer's.

use crate::support;

use evenkeel_gateway::config::{AddressIdentity, HeaderIdentity, IdentitySource, RequestIdFrom, UpstreamConfig};
use support::client::{Client, find, get};
use support::upstream::Upstream;
use support::{config, gateway, start};

#[tokio::test]
async fn the_connection_says_where_a_request_comes_from() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let spoofed =
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: https\r\n";
    let seen = get(running.address, "/a/b?c=d", spoofed).await.text();
    assert!(seen.starts_with("GET /a/b?c=d HTTP/1.1\r\n"), "{seen}");
    for (name, value) in [
        ("host", "shop.example"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "shop.example"),
        ("forwarded", "for=127.0.0.1;host=\"shop.example\";proto=http"),
        ("via", "1.1 evenkeel"),
    ] {
        assert_eq!(find(&seen, name).as_deref(), Some(value), "{name}");
    }
    running.done().await;
}

#[tokio::test]
async fn a_trusted_proxy_is_believed_and_added_to() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    let trusted = HeaderIdentity { from_addresses: vec!["127.0.0.0/8".parse().unwrap()], ..HeaderIdentity::default() };
    settings.identity.sources.insert(0, IdentitySource::TrustedHeaders(trusted));
    let running = start(settings).await;
    let said = "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: https\r\nForwarded: for=1.2.3.4\r\n\
        Via: 1.0 front\r\nX-Remote-User: alice\r\n";
    let seen = get(running.address, "/", said).await.text();
    for (name, value) in [
        ("x-forwarded-for", "1.2.3.4, 5.6.7.8, 127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "shop.example"),
        ("forwarded", "for=1.2.3.4, for=127.0.0.1;host=\"shop.example\";proto=http"),
        ("via", "1.0 front, 1.1 evenkeel"),
    ] {
        assert_eq!(find(&seen, name).as_deref(), Some(value), "{name}");
    }
    running.done().await;
}

#[tokio::test]
async fn what_is_about_one_connection_stays_there() {
    let upstream = Upstream::answering(|request| {
        format!(
            "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\nX-Far: 2\r\n\
             Proxy-Authenticate: Basic\r\nContent-Length: {}\r\n\r\n{}",
            request.head.len(),
            request.head
        )
    })
    .await;
    let running = gateway(upstream.address).await;
    let sent = "Connection: x-secret, X-Forwarded-For, x-request-id\r\nX-Secret: 1\r\nKeep-Alive: 3\r\nProxy-Authorization: b\r\n\
        Proxy-Connection: c\r\nTE: gzip, trailers\r\nTrailer: d\r\nUpgrade: h2c\r\nHTTP2-Settings: e\r\nExpect: x\r\nX-Far: 3\r\n";
    let answer = get(running.address, "/", sent).await;
    let seen = answer.text();
    for name in [
        "x-secret",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "trailer",
        "upgrade",
        "http2-settings",
        "expect",
    ] {
        assert_eq!(find(&seen, name), None, "{name} in {seen}");
    }
    assert_eq!((find(&seen, "te").as_deref(), find(&seen, "connection").as_deref()), (Some("trailers"), Some("te")));
    assert_eq!(
        (find(&seen, "x-far").as_deref(), find(&seen, "x-forwarded-for").as_deref()),
        (Some("3"), Some("127.0.0.1"))
    );
    for name in ["x-hop", "keep-alive", "connection", "proxy-authenticate"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-far").as_deref(), Some("2"));
    running.done().await;
}

#[tokio::test]
async fn requests_have_ids() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let answer = get(running.address, "/", "X-Request-Id: mine-1\r\n").await;
    assert_eq!(answer.header("x-request-id").as_deref(), Some("mine-1"));
    assert_eq!(find(&answer.text(), "x-request-id").as_deref(), Some("mine-1"));
    let answer = get(running.address, "/", "X-Request-Id: not \"sane\"\r\n").await;
    let made = answer.header("x-request-id").unwrap();
    assert_eq!((made.len(), find(&answer.text(), "x-request-id")), (32, Some(made)));
    running.done().await;
}

#[tokio::test]
async fn the_path_of_an_upstream_comes_first() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[]);
    settings.upstreams.push(UpstreamConfig::new(&format!("http://{}/v2/", upstream.address)).unwrap());
    let running = start(settings).await;
    let seen = get(running.address, "/a//b/?x=%2F", "").await.text();
    assert!(seen.starts_with("GET /v2/a/b/?x=%2F HTTP/1.1\r\n"), "{seen}");
    running.done().await;
}

#[tokio::test]
async fn the_upstream_is_told_of_the_user_of_this_request_and_not_of_the_one_before_it() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    let trusted = HeaderIdentity { from_addresses: vec!["127.0.0.0/8".parse().unwrap()], ..HeaderIdentity::default() };
    settings.identity.sources.insert(0, IdentitySource::TrustedHeaders(trusted));
    settings.identity.tell_upstream = true;
    let running = start(settings).await;
    let mut client = Client::connect(running.address).await;
    for user in ["alice", "bob", "alice"] {
        client.send(&format!("GET / HTTP/1.1\r\nHost: shop.example\r\nX-Remote-User: {user}\r\n\r\n")).await;
        let seen = client.answer().await.text();
        assert_eq!(find(&seen, "x-remote-user").as_deref(), Some(user));
    }
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn requests_of_one_proxy_are_those_of_its_clients() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    let trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
    let address = AddressIdentity { trusted_proxies, ..AddressIdentity::default() };
    settings.identity.sources = vec![IdentitySource::Address(address)];
    settings.identity.tell_upstream = true;
    let running = start(settings).await;
    let mut proxy = Client::connect(running.address).await;
    for client in ["192.0.2.7", "192.0.2.8"] {
        let said = format!("X-Forwarded-For: 6.6.6.6, {client}\r\nX-Remote-User: root\r\n");
        proxy.send(&format!("GET / HTTP/1.1\r\nHost: shop.example\r\n{said}\r\n")).await;
        let seen = proxy.answer().await.text();
        assert_eq!(find(&seen, "x-remote-user"), Some(format!("address:{client}")));
        assert_eq!(find(&seen, "x-forwarded-for"), Some(format!("6.6.6.6, {client}, 127.0.0.1")));
    }
    drop(proxy);
    running.done().await;
}

#[tokio::test]
async fn a_request_id_is_adopted_from_those_who_may_choose_it() {
    let upstream = Upstream::echo().await;
    let long = "x".repeat(129);
    for (from, is_proxy, is_adopted) in [
        (RequestIdFrom::Anyone, false, true),
        (RequestIdFrom::TrustedProxies, false, false),
        (RequestIdFrom::TrustedProxies, true, true),
        (RequestIdFrom::Nobody, true, false),
    ] {
        let mut settings = config(&[upstream.address]);
        settings.requests.request_id_from = from;
        if is_proxy {
            let from_addresses = vec!["127.0.0.0/8".parse().unwrap()];
            let trusted = HeaderIdentity { from_addresses, ..HeaderIdentity::default() };
            settings.identity.sources.insert(0, IdentitySource::TrustedHeaders(trusted));
        }
        let running = start(settings).await;
        for (sent, is_sound) in [("mine-1", true), ("a b", false), ("a<b", false), (&*long, false)] {
            let answer = get(running.address, "/", &format!("X-Request-Id: {sent}\r\nX_Request_Id: spoofed\r\n")).await;
            let told = answer.header("x-request-id").unwrap();
            assert_eq!(find(&answer.text(), "x-request-id").unwrap(), told, "the upstream gets the same one");
            assert_eq!(told == sent, is_adopted && is_sound, "{sent} {from:?} {is_proxy}");
            assert!(told.len() <= 128 && !answer.text().contains("spoofed"));
        }
        running.done().await;
    }
}
