//! Polite tenants beside a greedy one, behind an Envoy that asks Evenkeel and behind Envoy's own filters.

use std::io;

use evenkeel_bars::{Bar, Bars};

use super::{Asked, Asking, folder};
use crate::contestant::Task;
use crate::envoy::{self, Filter};
use crate::overload::{self, Round};
use crate::service::{SLOTS, Service};

/// Envoy's own ways to keep requests away. Without a filter it has its circuit breaker.
const FILTERS: [(&str, Filter); 4] = [
    ("its circuit breaker", Filter::None),
    ("adaptive_concurrency", Filter::AdaptiveConcurrency),
    ("local_ratelimit", Filter::LocalRateLimit),
    ("admission_control", Filter::AdmissionControl),
];

pub(super) fn bars(bars: &mut Bars) -> io::Result<()> {
    let service = Service::start()?;
    let (task, address) = (Task::Protect { slots: SLOTS }, service.process.address);
    let asking = Asking::start(task, address, Asked::Evenkeel { admin: None })?;
    let alone = overload::polite_alone(asking.envoy.address)?;
    bars.add("polite p99, nobody else", alone, "ms", Bar::None);
    let mut add = |name: &str, round: Round, bar| {
        bars.add(format!("polite p99 beside a greedy tenant, Envoy with {name}"), round.polite_p99_ms, "ms", bar);
        bars.add(format!("requests served per second then, Envoy with {name}"), round.served_per_second, "", Bar::None);
    };
    add("Evenkeel", overload::beside_greedy(asking.envoy.address)?, Bar::TimesAtMost(2.0, alone));
    drop(asking);
    for (name, filter) in FILTERS {
        let folder = folder()?;
        // A filter has to do without the circuit breaker, as the gateway has to.
        let task = if matches!(filter, Filter::None) { task } else { Task::PassOn };
        let envoy = envoy::start(task, &filter, None, address, folder.path())?;
        add(name, overload::beside_greedy(envoy.address)?, Bar::None);
    }
    Ok(())
}
