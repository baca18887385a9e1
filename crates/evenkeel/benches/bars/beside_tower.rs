//! What a request costs here, beside what it costs with tower's `ConcurrencyLimit`, which only counts.

use std::cell::LazyCell;
use std::convert::Infallible;
use std::hint::black_box;
use std::task::{Context, Waker};

use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use tower::limit::ConcurrencyLimitLayer;
use tower::{Layer, Service, service_fn};

use crate::service::{assert_idle, user};
use crate::{ROUND, admit, admit_by_two, nanos_of_two, now, roomy};

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure("admit and drop, 1 thread", "ns", || (admit_by_one(), Bar::AtMost(160.0, "ns")));
    let theirs = LazyCell::new(limited_by_one);
    bars.measure("tower's ConcurrencyLimit: a call, 1 thread", "ns", || (*theirs, Bar::None));
    bars.measure("beside tower's ConcurrencyLimit: admit and drop, 1 thread", "ns", || {
        (admit_by_one(), Bar::TimesAtMost(3.0, *theirs))
    });
    let theirs = LazyCell::new(limited_by_two);
    bars.measure("tower's ConcurrencyLimit: a call, 2 threads", "ns", || (*theirs, Bar::None));
    bars.measure("beside tower's ConcurrencyLimit: admit and drop, 2 threads", "ns", || {
        (admit_by_two(), Bar::TimesAtMost(3.0, *theirs))
    });
}

fn admit_by_one() -> f64 {
    let (flow, user) = (roomy(), user("one", "tenants"));
    let nanos = nanos_per_operation(ROUND, || (0..ROUND).for_each(|_| admit(&flow, &user)));
    assert_idle(&flow);
    nanos
}

/// A service that does nothing, behind a limit that clones share.
fn limited() -> impl Service<u32, Response = u32, Error = Infallible> + Clone + Send {
    let inner = service_fn(|request: u32| std::future::ready(Ok::<_, Infallible>(request)));
    ConcurrencyLimitLayer::new(600).layer(inner)
}

fn call(limited: &mut impl Service<u32, Response = u32, Error = Infallible>) {
    let ready = limited.poll_ready(&mut Context::from_waker(Waker::noop()));
    assert!(ready.is_ready());
    black_box(now(limited.call(black_box(7)))).unwrap_or_else(|never| match never {});
}

fn limited_by_one() -> f64 {
    let mut limited = limited();
    nanos_per_operation(ROUND, || (0..ROUND).for_each(|_| call(&mut limited)))
}

fn limited_by_two() -> f64 {
    let limited = limited();
    nanos_of_two(&mut [limited.clone(), limited], call)
}
