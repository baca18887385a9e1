//! Chooses an upstream: the healthy one with the fewest requests.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::health::Condition;
use super::{Http2Stream, Upstream, UpstreamTarget};
use crate::config::Config;
use crate::http1::BufferPool;
use crate::proxy::service_times::{ServiceTimes, Started};
use crate::timeouts::CoarseTimer;

/// All upstreams, with the connections of one worker.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Rc<Upstream>>,
    /// Which worker's they are.
    worker: usize,
    /// Where to look first, so that those with equally much to do take turns.
    next: Cell<usize>,
}

/// An upstream that was chosen for a request.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) upstream: Rc<Upstream>,
    index: usize,
    is_trial: Cell<bool>,
    /// Whether anybody compares it with others.
    is_one_of_many: bool,
    /// When the request was sent, if its latency is measured.
    started: Cell<Option<Instant>>,
}

/// A request that an upstream works on. It has one less when this is dropped.
#[derive(Debug)]
struct Place {
    upstream: Rc<Upstream>,
    /// Whether anybody compares the upstream with others.
    is_one_of_many: bool,
}

/// A request that an upstream works on, and what goes with it for as long.
#[derive(Debug)]
pub(crate) struct InFlight {
    _place: Place,
    /// Since when, where somebody wants to know how long such requests take.
    timing: Option<(Rc<ServiceTimes>, Started)>,
    /// Its place on a connection that it shares.
    _stream: Option<Http2Stream>,
}

// === impl Upstreams ===

impl Upstreams {
    pub(crate) fn new(
        known: &[Arc<UpstreamTarget>],
        worker: usize,
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let upstream = |known: &Arc<_>| Rc::new(Upstream::new(Arc::clone(known), worker, config, timer, buffer_pool));
        Self { all: known.iter().map(upstream).collect(), worker, next: Cell::new(0) }
    }

    /// Those that are there under new settings. An upstream for which nothing changes keeps its connections.
    pub(crate) fn renewed(
        &self,
        known: &[Arc<UpstreamTarget>],
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let kept = |known: &Arc<UpstreamTarget>| {
            self.all.iter().find(|upstream| Arc::ptr_eq(&upstream.known, known) && upstream.is_as_in(config))
        };
        let made = |known: &Arc<_>| Rc::new(Upstream::new(Arc::clone(known), self.worker, config, timer, buffer_pool));
        let all = known.iter().map(|known| kept(known).cloned().unwrap_or_else(|| made(known))).collect();
        Self { all, worker: self.worker, next: Cell::new(self.next.get()) }
    }

    /// Closes the idle connections to those that are not among these any more.
    pub(crate) fn retire(&self, successors: &Self) {
        for upstream in &self.all {
            if !successors.all.iter().any(|other| Rc::ptr_eq(other, upstream)) {
                upstream.pool.close();
            }
        }
    }

    /// Closes connections that have been idle for too long.
    pub(crate) fn prune(&self) {
        self.all.iter().for_each(|upstream| upstream.pool.prune());
    }

    /// Whether one of them may be sent gRPC calls over HTTP/2.
    pub(crate) fn may_speak_http2(&self) -> bool {
        self.all.iter().any(|upstream| upstream.may_speak_http2())
    }

    /// The upstream for a new request. There is at least one: no gateway starts without.
    pub(crate) fn pick(&self) -> Picked {
        if let [only] = &*self.all {
            return Picked::new(only, 0, 1);
        }
        let start = self.turn();
        self.best(start, self.others(start))
    }

    /// Another upstream, for a request that those given have refused.
    pub(crate) fn pick_other(&self, tried: &[usize]) -> Option<Picked> {
        let start = self.turn();
        let mut untried = std::iter::once(start).chain(self.others(start)).filter(|index| !tried.contains(index));
        let first = untried.next()?;
        Some(self.best(first, untried))
    }

    /// Where to begin to look.
    fn turn(&self) -> usize {
        let turn = self.next.get();
        self.next.set(turn.wrapping_add(1));
        turn % self.all.len()
    }

    /// All but this one, in the order in which they are looked at.
    fn others(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.all.len();
        (1..count).map(move |step| (start + step) % count)
    }

    /// The best of these. Upstreams that fail are a choice too, the last one: a request may find that they respond again.
    fn best(&self, first: usize, others: impl Iterator<Item = usize>) -> Picked {
        let now = Instant::now();
        let mut best: Option<Rank> = None;
        let mut chosen = first;
        for index in std::iter::once(first).chain(others) {
            let known = &self.all[index].known;
            let rank = match known.health.condition(now) {
                Condition::Due => Rank::Due,
                Condition::Well => Rank::Well(known.load.load(Ordering::Relaxed)),
                Condition::Ejected(since) => Rank::Ejected(since),
            };
            if rank == Rank::Due && known.health.begin_trial() {
                let picked = Picked::new(&self.all[index], index, self.all.len());
                picked.is_trial.set(true);
                return picked;
            }
            if best.is_none_or(|found| rank < found) {
                (best, chosen) = (Some(rank), index);
            }
        }
        Picked::new(&self.all[chosen], chosen, self.all.len())
    }
}

/// How good a choice an upstream is, the best first. Of those that are all out of the rotation it is the one whose failure
/// is the longest ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Well(usize),
    Due,
    Ejected(Instant),
}

// === impl Picked ===

impl Picked {
    fn new(upstream: &Rc<Upstream>, index: usize, of: usize) -> Self {
        let (is_trial, started) = (Cell::new(false), Cell::new(None));
        Self { upstream: Rc::clone(upstream), index, is_trial, is_one_of_many: of > 1, started }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// It has responded.
    pub(crate) fn note_success(&self) {
        self.is_trial.set(false);
        self.upstream.known.health.note_success();
        self.upstream.stopwatch.stop(self.started.take());
    }

    /// It refused the connection, or cut it before it responded. One that does so too often is down. It is taken out of the
    /// rotation, unless there is no other.
    pub(crate) fn note_failure(&self) {
        self.is_trial.set(false);
        let known = &self.upstream.known;
        let Some(pause) = known.health.note_failure(Instant::now()) else { return };
        if self.is_one_of_many {
            let upstream = &known.authority;
            tracing::warn!(upstream, ?pause, "the upstream is failing and is taken out of the rotation");
            known.metrics.ejected(self.upstream.worker);
        }
    }

    /// It gets the request to work on.
    pub(crate) fn begin(&self) -> InFlight {
        let upstream = &self.upstream;
        self.started.set(upstream.stopwatch.start(upstream.timer.now()));
        upstream.known.metrics.begun(upstream.worker);
        if self.is_one_of_many {
            upstream.known.load.fetch_add(1, Ordering::Relaxed);
        }
        let place = Place { upstream: Rc::clone(upstream), is_one_of_many: self.is_one_of_many };
        InFlight { _place: place, timing: None, _stream: None }
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        if self.is_trial.get() {
            self.upstream.known.health.abandon_trial();
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Keeps the request's place on a connection for as long.
    pub(crate) fn on(self, stream: Http2Stream) -> Self {
        Self { _stream: Some(stream), ..self }
    }

    /// Notes how long the upstream works on the request.
    pub(crate) fn timed(mut self, times: &Rc<ServiceTimes>, started: Started) -> Self {
        self.timing = Some((Rc::clone(times), started));
        self
    }

    /// The upstream has sent the whole response.
    pub(crate) fn complete(self) {
        if let Some((times, started)) = &self.timing {
            times.note(*started);
        }
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        let upstream = &self.upstream;
        upstream.known.metrics.ended(upstream.worker);
        if self.is_one_of_many {
            upstream.known.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
