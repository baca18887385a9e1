//! Nobody says how many seats the service has: the gateways of a fleet find it out, one of them for all (FL-13).

use super::bars::is_etcd_missing;
use super::gateways::{Gateway, Sharing};
use super::service::Service;
use crate::etcd_server::EtcdServer;
use crate::until::until;

/// Each further seat brings as much as the others here, so that the fleet takes all that it may have. It begins at 20.
const FLEET: Sharing = Sharing::Finding { terms: "ttl: 3s", concurrency: "auto:6..36" };
const MOST: u64 = 36;

/// The limit of a gateway, by its own account.
async fn limit(gateway: &Gateway) -> serde_json::Value {
    gateway.json("/debug/status").await["limit"].clone()
}

/// The gateways that find the limit themselves. All others name the one that does.
async fn finders(fleet: &[Gateway]) -> Vec<usize> {
    let mut finders = Vec::new();
    for (at, gateway) in fleet.iter().enumerate() {
        if limit(gateway).await["foundBy"].is_null() {
            finders.push(at);
        }
    }
    finders
}

async fn until_one_finds(fleet: &[Gateway]) -> usize {
    until("one that finds the limit", || async {
        match finders(fleet).await.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fl_13_three_gateways_find_the_seats_of_their_service() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let (etcd, service) = (EtcdServer::start().await, Service::start().await);
    let members = [etcd.endpoint()];
    let mut fleet = Gateway::start_three(&service, &members, &FLEET, &["anybody"]).await;
    for gateway in &fleet {
        gateway.clients.want(MOST);
    }
    until("more seats", || async { (service.in_flight() >= MOST * 9 / 10).then_some(()) }).await;
    let finder = until_one_finds(&fleet).await;
    let found = limit(&fleet[finder]).await;
    assert_eq!(found["most"].as_u64(), Some(MOST), "{found}");
    assert!(found["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{found}");

    // When it is killed, another one goes on.
    fleet.remove(finder).kill(&service);
    until_one_finds(&fleet).await;
    assert!(service.max().0 <= MOST, "{} in flight", service.max().0);
}
