//! Polite tenants beside greedy ones, behind an Envoy that asks Evenkeel and behind Envoy's own filters.

use std::io;

use evenkeel_bars::{Bar, Bars};

use super::{Asked, Asking, folder};
use crate::contestant::Task;
use crate::envoy::{self, Filter};
use crate::overload::{self, Tenants};
use crate::service::{SLOTS, Service};

/// An Envoy with a way of its own to keep requests away, and its name.
type Own = (&'static str, Filter);

const CIRCUIT_BREAKER: Own = ("its circuit breaker", Filter::None);
const ADAPTIVE: Own = ("adaptive_concurrency", Filter::AdaptiveConcurrency);
const RATE_LIMIT: Own = ("local_ratelimit", Filter::LocalRateLimit);
const ADMISSION: Own = ("admission_control", Filter::AdmissionControl);

const TASK: Task = Task::Protect { slots: SLOTS };

pub(super) fn bars(bars: &mut Bars) -> io::Result<()> {
    let service = Service::start()?;
    compare(
        bars,
        &service,
        Tenants::ONE_GREEDY,
        "a greedy tenant",
        &[CIRCUIT_BREAKER, ADAPTIVE, RATE_LIMIT, ADMISSION],
    )?;
    compare(bars, &service, Tenants::SIXTEEN_GREEDY, "16 greedy tenants", &[CIRCUIT_BREAKER, ADAPTIVE])
}

/// Evenkeel, and then Envoy by itself in each of these ways.
fn compare(bars: &mut Bars, service: &Service, tenants: Tenants, beside: &str, others: &[Own]) -> io::Result<()> {
    let upstream = service.process.address;
    let asking = Asking::start(TASK, upstream, Asked::Evenkeel { admin: None })?;
    let alone = overload::polite_alone(asking.envoy.address, tenants)?;
    bars.add(format!("polite p99, nobody else (before {beside})"), alone, "ms", Bar::None);
    let mut measure = |name: &str, target, bar| {
        let round = overload::beside_greedy(target, tenants)?;
        bars.add(format!("polite p99 beside {beside}, Envoy with {name}"), round.polite_p99_ms, "ms", bar);
        let served = format!("requests served per second then, Envoy with {name}");
        bars.add(served, round.served_per_second, "", Bar::None);
        io::Result::Ok(())
    };
    measure("Evenkeel", asking.envoy.address, Bar::TimesAtMost(2.0, alone))?;
    drop(asking);
    for (name, filter) in others {
        let folder = folder()?;
        // A filter has to do without the circuit breaker, as the gateway has to.
        let task = if matches!(filter, Filter::None) { TASK } else { Task::PassOn };
        let envoy = envoy::start(task, filter, None, upstream, folder.path())?;
        measure(name, envoy.address, Bar::None)?;
    }
    Ok(())
}
