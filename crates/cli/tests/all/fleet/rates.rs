//! The rate of a client that is connected to three gateways: all of them together accept it, wherever the client's requests are (RL-6).

use std::time::Duration;

use super::bars::is_etcd_missing;
use super::gateways::{Gateway, Sharing};
use super::service::Service;
use crate::etcd_server::EtcdServer;
use crate::figures::figure;
use crate::until::until;

/// For each client.
const RATE: f64 = 100.0;
const FLEET: Sharing = Sharing::WithRate { terms: "ttl: 3s", rate: "100/s;burst=10" };

/// What the three gateways accept together in a while, in a second.
async fn accepted_in_a_second(service: &Service, lasts: Duration) -> f64 {
    let (before, start) = (service.started(), std::time::Instant::now());
    tokio::time::sleep(lasts).await;
    #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
    let accepted = (service.started() - before) as f64;
    accepted / start.elapsed().as_secs_f64()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl_6_three_gateways_accept_the_rate_of_a_client_together() {
    if is_etcd_missing() {
        return evenkeel_missing_tool::skip("etcd is not installed");
    }
    let lasts = if std::env::var_os("FLEET_LIVE_SECONDS").is_some() { 30 } else { 5 };
    let (etcd, service) = (EtcdServer::start().await, Service::start().await);
    let members = [etcd.endpoint()];
    let fleet = Gateway::start_three(&service, &members, &FLEET, &["alice"]).await;
    for gateway in &fleet {
        gateway
            .until_page("/metrics", &["\nevenkeel_fleet_instances 3", "\nevenkeel_fleet_footing{footing=\"grant\"} 1"])
            .await;
    }
    // A client of each gateway asks again as soon as it has its response: nearly all of them wait for the rate.
    for (name, wanted) in [("90/5/5", [90, 5, 5]), ("5/5/90", [5, 5, 90])] {
        fleet.iter().zip(wanted).for_each(|(gateway, wanted)| gateway.clients.want(wanted));
        // Requests that wait where the demand was are served there.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let accepted = accepted_in_a_second(&service, Duration::from_secs(lasts)).await;
        figure(
            &format!("a rate of 100/s, clients spread {name} over three gateways, {lasts} s after one second"),
            &format!("{accepted:.1}/s"),
            "95 to 105/s",
            (95.0..=105.0).contains(&accepted),
        );
        // A busy machine is slower, but nothing makes a rate too high.
        assert!((RATE * 0.7..=RATE * 1.1).contains(&accepted), "{accepted} in a second");
    }
    // What applies here is told: nearly all of the rate belongs to the third gateway now.
    until("the parts of the rate", || async {
        let percent = |page: serde_json::Value| page["rate"]["partPercent"].as_u64().unwrap_or(100);
        let path = "/debug/explain?method=GET&url=/0/alice&user=alice";
        let (first, third) = (percent(fleet[0].json(path).await), percent(fleet[2].json(path).await));
        (first < 20 && third > 70).then_some(())
    })
    .await;
    // A client that is on one gateway only has all of it there.
    fleet.iter().zip([0, 0, 50]).for_each(|(gateway, wanted)| gateway.clients.want(wanted));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let accepted = accepted_in_a_second(&service, Duration::from_secs(3)).await;
    assert!(accepted > RATE * 0.7 && accepted <= RATE * 1.1, "{accepted} in a second");
}
