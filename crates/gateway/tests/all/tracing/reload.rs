//! Settings that change while requests are traced.

use super::collector::Collector;
use super::traced;
use crate::support::client::Client;
use crate::support::upstream::Upstream;
use crate::support::{config, start};

#[tokio::test]
async fn a_request_that_began_under_earlier_settings_is_traced_to_its_end() {
    let ((upstream, mut begun, leave), collector) = (Upstream::held().await, Collector::http().await);
    let on = traced(config(&[upstream.address]), &collector);
    let mut running = start(on.clone()).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    begun.recv().await.unwrap();
    let mut other = on.clone();
    other.concurrency = Some(601.into());
    running.gateway.reconfigure(other).await.unwrap();
    leave.add_permits(1);
    assert_eq!(client.answer().await.status, 200);
    // The connection stays open.
    collector.has_spans(3).await;
    drop(client);
    running.done().await;
}

#[tokio::test]
async fn the_last_spans_before_tracing_is_switched_off_arrive() {
    let ((upstream, mut begun, leave), collector) = (Upstream::held().await, Collector::http().await);
    let on = traced(config(&[upstream.address]), &collector);
    let mut off = on.clone();
    off.tracing.endpoint = None;
    let mut running = start(on).await;
    let mut client = Client::connect(running.address).await;
    client.send("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n").await;
    begun.recv().await.unwrap();
    running.gateway.reconfigure(off).await.unwrap();
    leave.add_permits(1);
    assert_eq!(client.answer().await.status, 200);
    running.done().await;
    assert_eq!(collector.spans().len(), 3, "the gateway has waited for them");
}
