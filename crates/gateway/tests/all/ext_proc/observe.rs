//! An Envoy that is not governed yet (EP-5): nothing is held, and the shadow tells what would be.

use std::time::Instant;

use evenkeel::shadow::ShadowReport;
use evenkeel_gateway::config::ShadowConfig;

use super::envoy::Envoy;
use super::{Deciding, one_level, send};
use crate::support::PATIENCE;
use crate::support::client::get;
use crate::support::upstream::Upstream;

/// In this mode, Envoy ends a stream after the request, by default five seconds.
const OBSERVING: (&str, &str) =
    ("message_timeout: 20s", "observability_mode: true\n              deferred_close_timeout: 0.001s");

/// What the shadow says when it has decided about so many requests.
pub(super) async fn report(deciding: &Deciding, requests: u64) -> ShadowReport {
    let until = Instant::now() + PATIENCE;
    loop {
        let report = deciding.gateway.flow().shadow_report().unwrap();
        if report.requests >= requests {
            return report;
        }
        assert!(Instant::now() < until, "{report:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Three requests run at once behind an Envoy that asks nobody. With one seat, two of them would have waited.
#[tokio::test]
async fn requests_that_nobody_holds_wait_in_the_shadow_only() {
    let (upstream, mut told, leave) = Upstream::held().await;
    let mut settings = one_level(1, 10);
    settings.shadow = Some(ShadowConfig::default());
    let deciding = Deciding::start(settings).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[OBSERVING]).await else { return };
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(send(envoy.address, "/").await);
        told.recv().await.unwrap();
    }
    assert_eq!((deciding.executing(), deciding.waiting()), (0, 0), "nothing holds a seat");
    leave.add_permits(3);
    for client in &mut clients {
        assert_eq!(client.answer().await.status, 200);
    }
    let report = report(&deciding, 3).await;
    assert_eq!((report.requests, report.totals.wait.real.samples, report.totals.wait.shadow.samples), (3, 3, 3));
    assert!(report.totals.wait.real.p99 < f64::EPSILON, "{:?}", report.totals);
    assert!(report.totals.wait.shadow.p99 > 0.0, "{:?}", report.totals);
    deciding.done().await;
}

/// Without a shadow there is nobody to tell, and requests pass, although Envoy rejects those whose streams fail.
#[tokio::test]
async fn without_a_shadow_requests_pass() {
    let upstream = Upstream::echo().await;
    let deciding = Deciding::start(one_level(1, 10)).await;
    let Some(envoy) = Envoy::start(upstream.address, deciding.address, &[OBSERVING]).await else { return };
    assert_eq!(get(envoy.address, "/", "").await.status, 200);
    deciding.done().await;
}
