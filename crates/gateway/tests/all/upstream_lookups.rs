//! Names of upstreams are looked up again and again, and all their addresses get requests.

#![cfg(target_os = "linux")] // Elsewhere, 127.0.0.2 is not an address of the machine.

use crate::support;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{AddressFamily, NameServer as Server, UpstreamConfig};
use support::client::{Client, find, get};
use support::name_server::{Knows, NameServer};
use support::upstream::{Upstream, answer_all, ok};
use support::{Running, config, eventually, start};
use tokio::net::TcpListener;

const NAME: &str = "app.example";
const SHORT: Duration = Duration::from_millis(30);

fn local(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, last)
}

fn addresses(last: impl IntoIterator<Item = u8>) -> Vec<Knows> {
    vec![Knows::A(300, last.into_iter().map(local).collect())]
}

/// Upstreams on these addresses, all with the same port, which say which they are.
async fn on_one_port<const N: usize>(last: [u8; N]) -> (u16, [Upstream; N]) {
    'port: loop {
        let mut listeners = Vec::new();
        let mut port = 0;
        for last in last {
            let Ok(listener) = TcpListener::bind((local(last), port)).await else { continue 'port };
            port = listener.local_addr().unwrap().port();
            listeners.push(listener);
        }
        let upstream = |listener: TcpListener| {
            let name = listener.local_addr().unwrap().ip().to_string();
            Upstream::at(listener, move |client, _| {
                let name = name.clone();
                answer_all(client, move |_| ok(&name))
            })
        };
        let all: Vec<_> = listeners.into_iter().map(upstream).collect();
        return (port, all.try_into().unwrap_or_else(|_| unreachable!("there are as many")));
    }
}

fn settings(server: &NameServer, url: &str) -> Config {
    let mut settings = config(&[]);
    settings.upstreams.push(UpstreamConfig::new(url).unwrap());
    settings.dns.servers = vec![Server(server.address)];
    settings.admin.address = Some("127.0.0.1:0".parse().unwrap());
    settings
}

async fn metric(running: &Running, name: &str) -> String {
    let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
    let line = page.lines().find(|line| line.starts_with(name) && line[name.len()..].starts_with(' '));
    line.map_or_else(|| panic!("{name} is not in\n{page}"), |line| line[name.len() + 1..].to_owned())
}

async fn asked_in_turn(running: &Running, requests: usize) -> Vec<String> {
    let mut answers = Vec::new();
    for _ in 0..requests {
        let answer = get(running.address, "/", "").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answers.push(answer.text());
    }
    answers.sort();
    answers.dedup();
    answers
}

#[tokio::test]
async fn all_addresses_of_a_name_get_requests() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1, 2, 3]).await);
    server.set(NAME, vec![Knows::Alias(300, "www.example")]);
    server.set("www.example", addresses([1, 2, 3]));
    let running = start(settings(&server, &format!("http://{NAME}:{port}"))).await;
    assert_eq!(asked_in_turn(&running, 9).await, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    let upstream = format!("http://{NAME}:{port}");
    for last in 1..=3 {
        let labels = format!("{{address=\"127.0.0.{last}:{port}\",code=\"2xx\",upstream=\"{upstream}\"}}");
        assert_eq!(metric(&running, &format!("evenkeel_upstream_requests_total{labels}")).await, "3");
    }
    let lookups = |outcome| format!("evenkeel_upstream_lookups_total{{outcome=\"{outcome}\",upstream=\"{upstream}\"}}");
    assert_eq!(metric(&running, &lookups("found")).await, "1");
    assert_eq!(metric(&running, &lookups("failed")).await, "0");
    assert_eq!(metric(&running, &format!("evenkeel_upstream_addresses{{upstream=\"{upstream}\"}}")).await, "3");
    running.done().await;
}

#[tokio::test]
async fn each_address_is_ejected_by_itself() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1]).await);
    // Nobody listens on the second.
    server.set(NAME, addresses([1, 2]));
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    (settings.health.pause, settings.health.pause_max) = (support::PATIENCE, support::PATIENCE);
    let running = start(settings).await;
    assert_eq!(asked_in_turn(&running, 20).await, ["127.0.0.1"]);
    let up =
        |last| format!("evenkeel_upstream_up{{address=\"127.0.0.{last}:{port}\",upstream=\"http://{NAME}:{port}\"}}");
    let until = Instant::now() + support::PATIENCE;
    while metric(&running, &up(2)).await != "0" {
        assert_eq!(get(running.address, "/", "").await.status, 200);
        assert!(Instant::now() < until, "the address that refuses connections is never ejected");
    }
    assert_eq!(metric(&running, &up(1)).await, "1");
    running.done().await;
}

#[tokio::test]
async fn a_name_is_looked_up_again_when_its_records_are_no_longer_valid() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1]).await);
    server.set(NAME, vec![Knows::A(1, vec![local(1)])]);
    let running = start(settings(&server, &format!("http://{NAME}:{port}"))).await;
    eventually("the name is looked up three times", || server.asked().len() >= 3).await;
    let asked = server.asked();
    assert!(asked.iter().all(|asked| asked.name == NAME && asked.kind == 1 && !asked.is_tcp));
    for pair in asked.windows(2) {
        let pause = pair[1].when - pair[0].when;
        assert!(pause >= Duration::from_millis(950), "{pause:?} is shorter than the records are valid");
    }
    running.done().await;
}

#[tokio::test]
async fn a_period_counts_more_than_what_records_say() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1]).await);
    server.set(NAME, addresses([1]));
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    settings.dns.period = Some(SHORT);
    let running = start(settings).await;
    eventually("the name is looked up often", || server.asked().len() >= 5).await;
    running.done().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_change_under_load_and_no_request_fails() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1, 2, 3, 4]).await);
    server.set(NAME, addresses([1]));
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    settings.dns.period = Some(SHORT);
    settings.workers = Some(2);
    let running = start(settings).await;
    let (is_over, requests, address) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), running.address);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (is_over, requests) = (Arc::clone(&is_over), Arc::clone(&requests));
            tokio::spawn(async move {
                let (mut client, mut failed) = (Client::connect(address).await, 0);
                while !is_over.load(Ordering::Relaxed) {
                    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                    let answer = client.answer().await;
                    failed += usize::from(answer.status != 200);
                    requests.fetch_add(1, Ordering::Relaxed);
                }
                failed
            })
        })
        .collect();
    let sets: [&[u8]; 6] = [&[2], &[2, 3], &[1, 4], &[1, 2, 3, 4], &[3], &[1, 4]];
    for set in sets {
        server.set(NAME, addresses(set.iter().copied()));
        let asked = server.asked().len();
        eventually("the name is looked up", || server.asked().len() > asked + 2).await;
        let from = requests.load(Ordering::Relaxed);
        eventually("requests are served", || requests.load(Ordering::Relaxed) > from + 200).await;
        let page = get(running.gateway.admin_address().unwrap(), "/metrics", "").await.text();
        let mut known: Vec<u8> = (1..=4)
            .filter(|last| page.contains(&format!("evenkeel_upstream_up{{address=\"127.0.0.{last}:{port}\"")))
            .collect();
        known.sort_unstable();
        assert_eq!(known, set);
    }
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        assert_eq!(client.await.unwrap(), 0, "requests failed");
    }
    assert!(requests.load(Ordering::Relaxed) > 1000);
    running.done().await;
}

#[tokio::test]
async fn an_address_that_is_gone_gets_no_requests() {
    let (server, (port, [one, other])) = (NameServer::start().await, on_one_port([1, 2]).await);
    server.set(NAME, addresses([1]));
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    settings.dns.period = Some(SHORT);
    let running = start(settings).await;
    assert_eq!(asked_in_turn(&running, 2).await, ["127.0.0.1"]);
    server.set(NAME, addresses([2]));
    let until = Instant::now() + support::PATIENCE;
    while get(running.address, "/", "").await.text() != "127.0.0.2" {
        assert!(Instant::now() < until, "the new address gets no requests");
    }
    assert_eq!(asked_in_turn(&running, 10).await, ["127.0.0.2"]);
    assert_eq!((one.connections(), other.connections()), (1, 1));
    running.done().await;
}

#[tokio::test]
async fn the_last_known_addresses_stay_while_a_name_is_gone() {
    let (server, (port, [one, _other])) = (NameServer::start().await, on_one_port([1, 2]).await);
    server.set(NAME, addresses([1]));
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    settings.dns.period = Some(SHORT);
    let running = start(settings).await;
    let upstream = format!("http://{NAME}:{port}");
    let lookups = |outcome| format!("evenkeel_upstream_lookups_total{{outcome=\"{outcome}\",upstream=\"{upstream}\"}}");
    for failure in [None, Some(Knows::Fails(2)), Some(Knows::A(1, vec![]))] {
        let before: u64 = metric(&running, &lookups("failed")).await.parse().unwrap();
        match failure {
            None => server.forget(NAME),
            Some(failure) => server.set(NAME, vec![failure]),
        }
        let until = Instant::now() + support::PATIENCE;
        while metric(&running, &lookups("failed")).await.parse::<u64>().unwrap() < before + 2 {
            assert_eq!(get(running.address, "/", "").await.text(), "127.0.0.1");
            assert!(Instant::now() < until, "no lookup fails");
        }
    }
    assert_eq!(one.connections(), 1, "connections are kept");
    server.set(NAME, addresses([2]));
    let until = Instant::now() + support::PATIENCE;
    while get(running.address, "/", "").await.text() != "127.0.0.2" {
        assert!(Instant::now() < until, "the name is not looked up again");
    }
    running.done().await;
}

#[tokio::test]
async fn a_gateway_starts_before_its_upstream_has_an_address() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1]).await);
    let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
    settings.dns.period = Some(SHORT);
    let running = start(settings).await;
    let answer = get(running.address, "/", "").await;
    assert_eq!(answer.status, 502);
    assert!(answer.text().contains("the upstream's name cannot be resolved"), "{}", answer.text());
    server.set(NAME, addresses([1]));
    let until = Instant::now() + support::PATIENCE;
    while get(running.address, "/", "").await.status != 200 {
        assert!(Instant::now() < until, "the address is not found");
    }
    running.done().await;
}

#[tokio::test]
async fn services_have_ports_weights_and_priorities() {
    let server = NameServer::start().await;
    let heads = [Upstream::echo().await, Upstream::echo().await, Upstream::echo().await];
    let ports = heads.each_ref().map(|upstream| upstream.address.port());
    server.set("node.example", addresses([1]));
    let service = "_http._tcp.app.example";
    let records = |last| {
        vec![
            (10, 30, ports[0], "node.example"),
            (10, 10, ports[1], "node.example"),
            (20, 10, last, "node.example"),
            (5, 10, 1, "gone.example"),
        ]
    };
    server.set(service, vec![Knows::Srv(300, records(ports[2]))]);
    let mut settings = settings(&server, &format!("http://{service}"));
    settings.dns.period = Some(SHORT);
    let running = start(settings).await;
    for _ in 0..20 {
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.0\r\n\r\n").await;
        let answer = client.answer().await;
        assert_eq!(find(&answer.text(), "host").as_deref(), Some("app.example"), "{}", answer.text());
    }
    let upstream = format!("http://{service}");
    let mut counts = Vec::new();
    for port in ports.iter().take(2) {
        let labels = format!("{{address=\"127.0.0.1:{port}\",code=\"2xx\",upstream=\"{upstream}\"}}");
        counts.push(metric(&running, &format!("evenkeel_upstream_requests_total{labels}")).await);
    }
    assert_eq!(counts, ["15", "5"]);
    assert_eq!(heads[2].connections(), 0, "those of another priority are not asked");
    server.set(service, vec![Knows::Srv(300, vec![(20, 10, ports[2], "node.example")])]);
    let until = Instant::now() + support::PATIENCE;
    while heads[2].connections() == 0 {
        assert_eq!(get(running.address, "/", "").await.status, 200);
        assert!(Instant::now() < until, "the new service gets no requests");
    }
    running.done().await;
}

#[tokio::test]
async fn an_answer_that_does_not_fit_comes_over_tcp() {
    let (server, (port, _upstreams)) = (NameServer::start().await, on_one_port([1]).await);
    // All addresses of the machine, and no others listen: the gateway knows them, and finds the one that does.
    let many = (1..=60).map(local).collect();
    server.set(NAME, vec![Knows::A(300, many)]);
    let running = start(settings(&server, &format!("http://{NAME}:{port}"))).await;
    assert!(server.asked().iter().any(|asked| asked.is_tcp));
    let addresses =
        metric(&running, &format!("evenkeel_upstream_addresses{{upstream=\"http://{NAME}:{port}\"}}")).await;
    assert_eq!(addresses, "60");
    running.done().await;
}

#[tokio::test]
async fn another_name_server_is_asked_if_one_fails() {
    let (failing, server) = (NameServer::start().await, NameServer::start().await);
    let (port, _upstreams) = on_one_port([1]).await;
    failing.set(NAME, vec![Knows::Fails(5)]);
    server.set(NAME, addresses([1]));
    let mut settings = settings(&failing, &format!("http://{NAME}:{port}"));
    settings.dns.servers.push(Server(server.address));
    let running = start(settings).await;
    assert_eq!(asked_in_turn(&running, 2).await, ["127.0.0.1"]);
    assert_eq!((failing.asked().len(), server.asked().len()), (1, 1));
    running.done().await;
}

#[tokio::test]
async fn addresses_of_both_kinds_are_used_only_if_the_settings_say_so() {
    let server = NameServer::start().await;
    let (port, _upstreams) = on_one_port([1]).await;
    let both = vec![Knows::A(300, vec![local(1)]), Knows::Aaaa(300, vec!["::1".parse().unwrap()])];
    server.set(NAME, both);
    for (family, count) in [(AddressFamily::Auto, "1"), (AddressFamily::Ipv6, "1"), (AddressFamily::All, "2")] {
        let mut settings = settings(&server, &format!("http://{NAME}:{port}"));
        settings.dns.family = family;
        let running = start(settings).await;
        let addresses = format!("evenkeel_upstream_addresses{{upstream=\"http://{NAME}:{port}\"}}");
        assert_eq!(metric(&running, &addresses).await, count, "{family:?}");
        running.done().await;
    }
}

#[tokio::test]
async fn new_settings_keep_the_connections_to_a_name() {
    let (server, (port, [one, other])) = (NameServer::start().await, on_one_port([1, 2]).await);
    server.set(NAME, addresses([1, 2]));
    let mut running = start(settings(&server, &format!("http://{NAME}:{port}"))).await;
    assert_eq!(asked_in_turn(&running, 6).await.len(), 2);
    let mut changed = running.gateway.config().as_ref().clone();
    changed.concurrency = Some(17.into());
    running.gateway.reconfigure(changed).await.unwrap();
    assert_eq!(asked_in_turn(&running, 6).await.len(), 2);
    assert_eq!((one.connections(), other.connections()), (1, 1));
    assert_eq!(server.asked().len(), 1, "the name is not looked up for it");
    running.done().await;
}
