//! What a limit that finds itself costs each request, beside a number of seats.

use evenkeel::FlowControl;
use evenkeel::limit::Learnt;
use evenkeel_bars::{Bar, Bars};

use crate::service::{assert_idle, objects, queuing, user};
use crate::{ROUND, admit};

/// How often the two take turns.
const TURNS: usize = 2_000;

pub(crate) fn bars(bars: &mut Bars) {
    let name = "a limit that finds itself, each request beside a number of seats";
    bars.measure(name, "ns", || (difference(), Bar::AtMost(5.0, "ns")));
}

/// The difference between the usual rounds of both, which take turns, so that whatever disturbs the machine disturbs both.
fn difference() -> f64 {
    let builder = || FlowControl::builder().kubernetes().drive_by_hand().objects(objects([queuing("tenants", 10_000)]));
    let learnt = Learnt { limit: 600.0, ln_cost: None, peak: 0.0 };
    let fixed = builder().server_concurrency(600).build();
    let auto = builder().server_concurrency_auto(1..=1000).learnt_limit(learnt).build();
    let user = user("one", "tenants");
    let round = |flow: &FlowControl| {
        let start = std::time::Instant::now();
        (0..ROUND).for_each(|_| admit(flow, &user));
        // What has been summed up is looked at some times a second.
        flow.tick();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND)
    };
    let (mut of_fixed, mut of_auto): (Vec<f64>, Vec<f64>) = (0..TURNS).map(|_| (round(&fixed), round(&auto))).unzip();
    assert_idle(&fixed);
    assert_idle(&auto);
    let usual = |rounds: &mut Vec<f64>| {
        rounds.sort_by(f64::total_cmp);
        rounds[TURNS / 10]
    };
    usual(&mut of_auto) - usual(&mut of_fixed)
}
