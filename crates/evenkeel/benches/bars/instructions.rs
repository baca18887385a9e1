//! What is counted in instructions, which other load on the machine does not change.
//!
//! Time passes by hand: under valgrind, a request takes so long that what is due every millisecond would be done for every twentieth.

use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel_bars::Call;

use crate::service::{objects, queuing, user};
use crate::{admit, cost, layer, shadow};

pub(crate) const CALLS: &[Call] = &[
    ("admit and drop", admit_and_drop),
    ("admit, cost and drop, nothing said of costs and rates", |calls| cost::call("", calls)),
    ("admit, cost and drop with learnt costs", |calls| cost::call(cost::LEARNT, calls)),
    ("admit, cost and drop with a rate", |calls| cost::call(cost::RATE, calls)),
    ("admit and drop, nothing recorded", |calls| shadow::call(None, calls)),
    ("admit and drop with the recorder", |calls| shadow::call(Some(32 << 20), calls)),
    ("a request through the layer", layer::call_layered),
    ("the same request without the layer", layer::call_bare),
];

/// About as long as a request takes when nobody counts.
pub(crate) const PACE: Duration = Duration::from_nanos(200);

fn admit_and_drop(calls: u32) {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().kubernetes().server_concurrency(600).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 10_000)])).expect("valid objects");
    let user = user("one", "tenants");
    for _ in 0..calls {
        clock.advance(PACE);
        admit(&flow, &user);
    }
}
