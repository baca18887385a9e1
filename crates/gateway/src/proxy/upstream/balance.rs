//! Chooses an upstream: the healthy one with the fewest requests for its weight, of those that respond about equally fast.

use std::cell::Cell;
use std::cmp::Reverse;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http::StatusCode;

use super::error::{self, GrpcStatus};
use super::health::{Condition, FULL_SHARE, RequestPurpose, Served, Unanswered};
use super::{Http2Stream, Upstream, UpstreamTarget};
use crate::config::Config;
use crate::http1::BufferPool;
use crate::proxy::service_times::{ServiceTimes, Started};
use crate::timeouts::CoarseTimer;

/// All upstreams, with the connections of one worker.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Rc<Upstream>>,
    /// The index of the worker.
    worker: usize,
    /// How many requests have been given an upstream.
    turns: Cell<usize>,
    /// The sum of all weights, and the least of them.
    weight: u64,
    weight_min: u64,
}

/// An upstream that was chosen for a request.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) upstream: Rc<Upstream>,
    index: usize,
    purpose: Cell<RequestPurpose>,
    /// Whether a request was sent that waits for a response.
    is_waiting: Cell<bool>,
    /// Whether the upstream is compared with others.
    is_one_of_many: bool,
    /// When the request was sent, if its latency is measured.
    started: Cell<Option<Instant>>,
}

/// A request in the count of those that an upstream works on. Dropping it takes the request out of the count.
#[derive(Debug)]
struct CountedInFlight {
    upstream: Rc<Upstream>,
    /// Whether the upstream is compared with others.
    is_one_of_many: bool,
}

/// A request that an upstream works on. Dropping it ends the count, the timing and the place on a shared connection.
#[derive(Debug)]
pub(crate) struct InFlight {
    _counted: CountedInFlight,
    /// When the upstream got the request, where service times are measured.
    timing: Option<(Rc<ServiceTimes>, Started)>,
    /// The place of the request on a connection that it shares.
    _stream: Option<Http2Stream>,
}

// === impl Upstreams ===

impl Upstreams {
    pub(crate) fn new(
        targets: &[Arc<UpstreamTarget>],
        worker: usize,
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let upstream = |target: &Arc<_>| Rc::new(Upstream::new(Arc::clone(target), worker, config, timer, buffer_pool));
        Self::of(targets.iter().map(upstream).collect(), worker, 0)
    }

    fn of(all: Vec<Rc<Upstream>>, worker: usize, turns: usize) -> Self {
        let weights = || all.iter().map(|upstream| u64::from(upstream.target.weight));
        let (weight, weight_min) = (weights().sum(), weights().min().unwrap_or(1));
        Self { all, worker, turns: Cell::new(turns), weight, weight_min }
    }

    /// The upstreams under new settings. An upstream for which nothing changes keeps its connections.
    pub(crate) fn next_generation(
        &self,
        targets: &[Arc<UpstreamTarget>],
        config: &Arc<Config>,
        timer: &Rc<CoarseTimer>,
        buffer_pool: &Rc<BufferPool>,
    ) -> Self {
        let kept = |target: &Arc<UpstreamTarget>| {
            self.all.iter().find(|upstream| Arc::ptr_eq(&upstream.target, target) && upstream.is_as_in(config))
        };
        let made =
            |target: &Arc<_>| Rc::new(Upstream::new(Arc::clone(target), self.worker, config, timer, buffer_pool));
        let all = targets.iter().map(|target| kept(target).cloned().unwrap_or_else(|| made(target))).collect();
        Self::of(all, self.worker, self.turns.get())
    }

    /// Closes the idle connections to upstreams that are not among these successors any more.
    pub(crate) fn close_missing_from(&self, successors: Option<&Self>) {
        for upstream in &self.all {
            let stays = |successors: &Self| successors.all.iter().any(|other| Rc::ptr_eq(other, upstream));
            if !successors.is_some_and(stays) {
                upstream.pool.close();
            }
        }
    }

    /// Closes connections that have been idle for too long.
    pub(crate) fn prune(&self) {
        self.all.iter().for_each(|upstream| upstream.pool.prune());
    }

    /// Whether one of the upstreams may be sent gRPC calls over HTTP/2.
    pub(crate) fn may_speak_http2(&self) -> bool {
        self.all.iter().any(|upstream| upstream.may_speak_http2())
    }

    /// The upstream for a new request. There is at least one: no gateway starts without.
    pub(crate) fn pick(&self) -> Picked {
        if let [only] = &*self.all {
            return Picked::new(only, 0, 1);
        }
        self.best(0..self.all.len()).unwrap_or_else(|| Picked::new(&self.all[0], 0, self.all.len()))
    }

    /// Another upstream, for a request that the upstreams tried so far have refused.
    pub(crate) fn pick_other(&self, tried: &[usize]) -> Option<Picked> {
        self.best((0..self.all.len()).filter(|index| !tried.contains(index)))
    }

    /// The best of these candidates. Upstreams that fail are a choice too, the last one: a request may find that they respond again.
    fn best(&self, candidates: impl Iterator<Item = usize>) -> Option<Picked> {
        let (now, turn) = (Instant::now(), self.turns.get().wrapping_add(1));
        self.turns.set(turn);
        let mut best: Option<(UpstreamRank, usize)> = None;
        for index in candidates {
            let upstream = &self.all[index];
            let (target, credit) = (&upstream.target, self.earn(upstream));
            let cost = || self.cost(target);
            let rank = match target.health.condition(now) {
                Condition::Due if target.health.begin_trial(now) => {
                    let picked = Picked::new(upstream, index, self.all.len());
                    picked.purpose.set(RequestPurpose::Trial);
                    return Some(picked);
                }
                Condition::Well(share) if is_within(share, turn) => UpstreamRank::Well(cost(), credit),
                Condition::Well(_) => UpstreamRank::Returning(cost(), credit),
                Condition::Due => UpstreamRank::Due,
                Condition::Out(since) => UpstreamRank::Out(since),
            };
            if best.is_none_or(|(found, _)| rank < found) {
                best = Some((rank, index));
            }
        }
        let (_, chosen) = best?;
        let upstream = &self.all[chosen];
        upstream.credit.set(upstream.credit.get() - self.credit_max());
        Some(Picked::new(upstream, chosen, self.all.len()))
    }

    /// How much an upstream has to do, in whole rounds: in each, it gets as many requests as its weight says.
    fn cost(&self, target: &UpstreamTarget) -> u64 {
        let load = target.load.load(Relaxed) as u64 + target.health.pace.handicap();
        load.saturating_mul(self.weight_min) / u64::from(target.weight.max(1))
    }

    /// The credit of an upstream that is a candidate once more. Of those with equally much to do, the one with the most is chosen,
    /// and pays, so that they take turns by their weights.
    fn earn(&self, upstream: &Upstream) -> Reverse<i64> {
        let most = self.credit_max();
        let credit = (upstream.credit.get() + i64::from(upstream.target.weight)).clamp(-most, most);
        upstream.credit.set(credit);
        Reverse(credit)
    }

    fn credit_max(&self) -> i64 {
        i64::try_from(self.weight).unwrap_or(i64::MAX)
    }
}

/// How good a choice an upstream is, the best first: by its load, then by its turn. Of those that are all out of the rotation it
/// is the one whose failure is the longest ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum UpstreamRank {
    Well(u64, Reverse<i64>),
    /// The share of the upstream is small as yet, and this request is not in it.
    Returning(u64, Reverse<i64>),
    Due,
    Out(Instant),
}

/// Whether the request with this number is in the share of an upstream, in thousandths. Such requests are spread evenly.
fn is_within(share: u32, turn: usize) -> bool {
    // The golden section of a thousand, and prime to it.
    const STEP: usize = 619;
    share >= FULL_SHARE || turn.wrapping_mul(STEP) % (FULL_SHARE as usize) < share as usize
}

// === impl Picked ===

impl Picked {
    fn new(upstream: &Rc<Upstream>, index: usize, of: usize) -> Self {
        Self {
            upstream: Rc::clone(upstream),
            index,
            purpose: Cell::new(RequestPurpose::Service),
            is_waiting: Cell::new(false),
            is_one_of_many: of > 1,
            started: Cell::new(None),
        }
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    /// The upstream has responded, with this head.
    pub(crate) fn note_response(&self, status: StatusCode, grpc: Option<GrpcStatus>) {
        let (upstream, target) = (&self.upstream, &self.upstream.target);
        let served = if error::is_error(status, grpc) { Served::Error } else { Served::Well };
        target.metrics.responded(upstream.worker, status);
        if served == Served::Error {
            target.metrics.errored(upstream.worker);
        }
        self.settle();
        let change = target.health.note_response(served, self.purpose.replace(RequestPurpose::Service));
        let elapsed = upstream.stopwatch.stop(self.started.take());
        if self.is_one_of_many {
            target.announce(change, upstream.worker);
            match (served, elapsed) {
                (Served::Error, _) => target.health.pace.note_failure(),
                (Served::Well, Some(elapsed)) => target.health.pace.note(elapsed),
                (Served::Well, None) => {}
            }
        }
    }

    /// The upstream did not respond, and is to blame for that. One that fails too often is taken out of the rotation, unless
    /// there is no other.
    pub(crate) fn note_unanswered(&self, unanswered: Unanswered) {
        let (upstream, target) = (&self.upstream, &self.upstream.target);
        target.metrics.unanswered(upstream.worker);
        self.settle();
        let purpose = self.purpose.replace(RequestPurpose::Service);
        let change = target.health.note_unanswered(unanswered, purpose, Instant::now());
        if self.is_one_of_many {
            target.announce(change, upstream.worker);
            target.health.pace.note_failure();
        }
    }

    /// How long a request may wait before that is suspicious, if there are others to compare the upstream with.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let patience = if self.is_one_of_many { self.upstream.target.health.patience()? } else { return None };
        // A probe costs its client that time, and only has to show that the upstream responds at all.
        Some(if self.purpose.get() == RequestPurpose::Trial { patience / 2 } else { patience })
    }

    /// Whether the upstream is silent while others respond.
    pub(crate) fn is_silent(&self) -> bool {
        self.upstream.target.health.is_silent()
    }

    /// The request that was sent no longer waits for a response.
    fn settle(&self) {
        if self.is_waiting.replace(false) {
            self.upstream.target.metrics.settled(self.upstream.worker);
        }
    }

    /// The upstream gets the request to work on.
    pub(crate) fn begin(&self) -> InFlight {
        let upstream = &self.upstream;
        self.started.set(upstream.stopwatch.start(upstream.timer.now()));
        self.settle();
        self.is_waiting.set(true);
        upstream.target.metrics.begun(upstream.worker);
        if self.is_one_of_many {
            upstream.target.load.fetch_add(1, Relaxed);
        }
        let counted = CountedInFlight { upstream: Rc::clone(upstream), is_one_of_many: self.is_one_of_many };
        InFlight { _counted: counted, timing: None, _stream: None }
    }
}

impl Drop for Picked {
    fn drop(&mut self) {
        self.settle();
        if self.purpose.get() == RequestPurpose::Trial {
            self.upstream.target.health.abandon_trial();
        }
    }
}

// === impl InFlight ===

impl InFlight {
    /// Keeps the request's place on a connection for as long as the upstream works on the request.
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

// === impl CountedInFlight ===

impl Drop for CountedInFlight {
    fn drop(&mut self) {
        let upstream = &self.upstream;
        upstream.target.metrics.ended(upstream.worker);
        if self.is_one_of_many {
            upstream.target.load.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_spread_over_the_requests() {
        for share in [0, 100, 333, 999, FULL_SHARE] {
            let within: Vec<_> = (0..1000).filter(|turn| is_within(share, *turn)).collect();
            assert_eq!(within.len(), share as usize);
        }
        let tenth: Vec<_> = (0..1000).filter(|turn| is_within(100, *turn)).collect();
        assert!(tenth.windows(2).all(|pair| pair[1] - pair[0] <= 21), "{tenth:?}");
    }
}
