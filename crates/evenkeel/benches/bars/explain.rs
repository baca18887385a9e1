//! Whether `explain` agrees with the classifier, and how long it takes.

use std::hint::black_box;

use evenkeel::{Attributes, WorkEstimate};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};

use crate::random_objects::{Configured, Random};

const CONFIGURATIONS: u64 = 200;
const REQUESTS: u64 = 5_000;

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure("explain: false explanations of 1,000,000 random requests", "in all", || {
        (false_explanations(), Bar::AtMost(0.0, "in all"))
    });
    bars.measure("explain: time for one request among 20 flow schemas", "µs", || (time() / 1e3, Bar::None));
}

fn false_explanations() -> f64 {
    let mut faults = 0;
    for seed in 0..CONFIGURATIONS {
        let mut random = Random(seed);
        let configured = Configured::new(&mut random, 20);
        for _ in 0..REQUESTS {
            let (user, request) = (random.user(), random.request());
            faults += u32::from(configured.fault(&user, &request).is_some());
        }
    }
    f64::from(faults)
}

fn time() -> f64 {
    let mut random = Random(7);
    let configured = Configured::new(&mut random, 20);
    let requests: Vec<_> = (0..20).map(|_| (random.user(), random.request())).collect();
    nanos_per_operation(20, || {
        for (user, request) in &requests {
            black_box(configured.flow.explain(Attributes { user, request }, WorkEstimate::ONE_SEAT));
        }
    })
}
