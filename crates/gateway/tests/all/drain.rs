//! Stopping: what has begun is ended, and nothing is lost.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel_gateway::{Drained, Phase};
use support::client::{Client, find};
use support::upstream::{Upstream, ok};
use support::{config, eventually, gateway, start};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn idle_connections_close_at_once_and_running_requests_end() {
    let (release, released) = tokio::sync::watch::channel(false);
    let upstream = Upstream::new(move |mut client, _| {
        let mut released = released.clone();
        async move {
            client.head().await;
            client.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha").await;
            released.wait_for(|released| *released).await.unwrap();
            client.send("lf2").await;
            client.rest().await;
        }
    })
    .await;
    let running = gateway(upstream.address).await;
    let mut idle = Client::connect(running.address).await;
    let mut busy = Client::connect(running.address).await;
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    busy.head().await;
    let readiness = running.gateway.readiness().clone();
    let draining = tokio::spawn(running.gateway.drain());
    assert!(idle.is_closed().await);
    assert_eq!(readiness.phase(), Phase::Draining);
    eventually("nothing is accepted", || std::net::TcpStream::connect(running.address).is_err()).await;
    release.send(true).unwrap();
    assert_eq!(busy.exactly(5).await, b"half2");
    assert_eq!(draining.await.unwrap(), Drained { requests_cut: 0 });
    assert!(busy.is_closed().await);
}

#[tokio::test]
async fn what_takes_too_long_is_cut_and_counted() {
    let upstream = Upstream::new(|mut client, _| async move {
        client.rest().await;
    })
    .await;
    let mut settings = config(&[upstream.address]);
    settings.timeouts.drain = Duration::from_millis(100);
    let running = start(settings).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(running.address).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        clients.push(client);
    }
    eventually("all run", || upstream.connections() == 3).await;
    let flow = running.gateway.flow().clone();
    assert_eq!(running.gateway.drain().await, Drained { requests_cut: 3 });
    for client in &mut clients {
        assert!(client.is_closed().await);
    }
    assert!(flow.status().iter().all(evenkeel::status::LevelStatus::is_idle));
}

/// One worker ends before the time is over and the other one does not, in either order.
#[tokio::test]
async fn a_drain_that_runs_out_of_time_does_not_depend_on_which_worker_is_stuck() {
    for _ in 0..8 {
        let upstream = Upstream::new(|mut client, _| async move {
            client.rest().await;
        })
        .await;
        let mut settings = config(&[upstream.address]);
        settings.workers = Some(2);
        settings.timeouts.drain = Duration::from_millis(300);
        let running = start(settings).await;
        let mut stuck = Client::connect(running.address).await;
        stuck.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
        eventually("it runs", || upstream.connections() == 1).await;
        assert_eq!(running.gateway.drain().await, Drained { requests_cut: 1 });
        assert!(stuck.is_closed().await);
    }
}

#[tokio::test]
async fn dropping_a_gateway_ends_it() {
    let upstream = Upstream::echo().await;
    let running = gateway(upstream.address).await;
    let mut idle = Client::connect(running.address).await;
    eventually("it is connected", || running.gateway.connections() == 1).await;
    drop(running.gateway);
    assert!(idle.is_closed().await);
}

/// Sends a request on a new connection. None if nobody accepts it any more.
async fn once(address: std::net::SocketAddr) -> Option<bool> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    if stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await.is_err() {
        return Some(false);
    }
    Some(Client::on(stream).rest().await.ends_with(b"answered"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_no_request_is_lost() {
    let upstream = Upstream::answering(|_| ok("answered")).await;
    let mut settings = config(&[upstream.address]);
    settings.workers = Some(2);
    let running = start(settings).await;
    let (address, is_over) = (running.address, Arc::new(AtomicBool::new(false)));
    let (answered, lost) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut load = Vec::new();
    for _ in 0..16 {
        let (answered, lost, is_over) = (Arc::clone(&answered), Arc::clone(&lost), Arc::clone(&is_over));
        load.push(tokio::spawn(async move {
            while let Some(is_answered) = once(address).await {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                if is_answered { &answered } else { &lost }.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    eventually("there is load", || answered.load(Ordering::SeqCst) > 500).await;
    assert_eq!(running.gateway.drain().await, Drained { requests_cut: 0 });
    is_over.store(true, Ordering::SeqCst);
    for task in load {
        task.await.unwrap();
    }
    assert_eq!(lost.load(Ordering::SeqCst), 0);
}

/// Sends requests on one connection for as long as it is open. Whether all that were sent were answered.
async fn on_one_connection(address: std::net::SocketAddr, answered: Arc<AtomicUsize>) -> bool {
    let mut client = Client::connect(address).await;
    loop {
        if client.stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.is_err() {
            return false;
        }
        let head = client.head().await;
        client.exactly(8).await;
        answered.fetch_add(1, Ordering::SeqCst);
        if find(&head, "connection").as_deref() == Some("close") {
            return client.is_closed().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_keep_their_connections_lose_nothing() {
    for _ in 0..5 {
        let upstream = Upstream::answering(|_| ok("answered")).await;
        let mut settings = config(&[upstream.address]);
        settings.workers = Some(2);
        let running = start(settings).await;
        let answered = Arc::new(AtomicUsize::new(0));
        let load: Vec<_> =
            (0..16).map(|_| tokio::spawn(on_one_connection(running.address, Arc::clone(&answered)))).collect();
        eventually("there is load", || answered.load(Ordering::SeqCst) > 200).await;
        assert_eq!(running.gateway.drain().await, Drained { requests_cut: 0 });
        for client in load {
            assert!(client.await.unwrap(), "a request was lost");
        }
    }
}
