//! A part of the demo: a burst of requests at a priority level that was idle, with either way to borrow seats.
//!
//! Nothing is sent: what counts is how many requests may start at once, and flow control decides that when they arrive.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use evenkeel::division::Borrowing;
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};

/// The level: one of those that a Kubernetes API starts with.
const LEVEL: &str = "workload-low";
/// The seats of the server, and the requests of the burst.
const SEATS: u32 = 600;
const REQUESTS: u32 = 400;

/// How many requests of a burst start at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Burst {
    pub(crate) requests: u32,
    /// The seats that the level has of its own.
    pub(crate) nominal: i64,
    /// How many start at once with periodic borrowing.
    pub(crate) as_kubernetes: i64,
    /// How many start at once with immediate borrowing.
    pub(crate) with_evenkeel: i64,
}

// === impl Burst ===

impl Burst {
    pub(crate) fn measure() -> Self {
        let [(nominal, as_kubernetes), (_, with_evenkeel)] = [Borrowing::Periodic, Borrowing::Immediate].map(started);
        Self { requests: REQUESTS, nominal, as_kubernetes, with_evenkeel }
    }

    /// The result, in two sentences.
    pub(crate) fn summary(&self) -> String {
        let Self { requests, nominal, as_kubernetes, with_evenkeel } = self;
        format!(
            "When {requests} requests hit an idle priority level with {nominal} seats of its own, {as_kubernetes} start immediately \
             with Kubernetes' rules, which divide seats every ten seconds. With Evenkeel, which divides them at every request, \
             {with_evenkeel} do."
        )
    }
}

/// The seats that the level has of its own, and those in use when the burst has arrived.
fn started(borrowing: Borrowing) -> (i64, i64) {
    let flow =
        FlowControl::builder().kubernetes().server_concurrency(SEATS).borrowing(borrowing).drive_by_hand().build();
    // The seats are divided while nobody asks for any.
    flow.adjust();
    let request = RequestInfo { verb: "get".into(), path: "/orders".into(), ..RequestInfo::default() };
    let users: Vec<_> = (0..REQUESTS / 10)
        .map(|number| User::new(format!("system:serviceaccount:shop:worker-{number}"), ["system:serviceaccounts"]))
        .collect();
    let burst: Vec<_> = (0..REQUESTS)
        .zip(users.iter().cycle())
        .filter_map(|(_, user)| {
            let mut arrived = flow.arrive(Attributes { user, request: &request }, WorkEstimate::ONE_SEAT);
            match pin!(&mut arrived).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Ok(permit)) => Some((Some(permit), None)),
                Poll::Ready(Err(_)) => None,
                Poll::Pending => Some((None, Some(arrived))),
            }
        })
        .collect();
    let status = flow.status().into_iter().find(|level| level.name == LEVEL);
    let figures = status.map_or((0, 0), |level| (level.limits.nominal, level.seats_in_use));
    drop(burst);
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_gets_the_seats_of_its_level_at_once_only_with_immediate_borrowing() {
        let burst = Burst::measure();
        assert!(burst.as_kubernetes > 0 && 3 * burst.as_kubernetes < burst.nominal, "{burst:?}");
        assert!(burst.with_evenkeel >= burst.nominal, "{burst:?}");
        let summary = burst.summary();
        for number in [i64::from(burst.requests), burst.nominal, burst.as_kubernetes, burst.with_evenkeel] {
            assert!(summary.contains(&format!(" {number}")), "{summary}");
        }
    }
}
