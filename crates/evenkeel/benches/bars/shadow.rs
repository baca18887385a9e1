//! What the flight recorder and a shadow cost a request of the library (FR-1, SH-2).

use evenkeel::objects::Objects;
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};

use crate::{ROUND, now};

pub(crate) fn bars(bars: &mut Bars) {
    if !bars.wants("shadow: ") {
        return;
    }
    let off = request(|_| {});
    bars.measure("shadow: admit and finish, without shadow and recorder", "ns", || (off, Bar::None));
    bars.measure("shadow: recording, a request more", "ns", || {
        (request(|flow| flow.record(32 << 20)) - off, Bar::AtMost(12.0, "ns"))
    });
    bars.measure("shadow: a shadow, a request more on its thread", "ns", || {
        let shadow = |flow: &FlowControl| flow.shadow(Objects::from(flow.preset())).expect("valid objects");
        (request(shadow) - off, Bar::None)
    });
}

/// How long a request takes that is let in and ends, in nanoseconds.
fn request(begin: impl Fn(&FlowControl)) -> f64 {
    let flow = FlowControl::builder().server_concurrency(1000).drive_by_hand().build();
    begin(&flow);
    let (user, info) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/orders/7"));
    let attributes = Attributes { user: &user, request: &info };
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            drop(now(flow.admit(attributes, WorkEstimate::ONE_SEAT)).expect("a seat"));
        }
    })
}
