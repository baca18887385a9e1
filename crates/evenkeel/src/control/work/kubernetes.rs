//! `KubernetesWork`: the work of requests to a service that is like Kubernetes: lists by their size, changes by the number of
//! watches.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use evenkeel_engine::digest::Query;
use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{
    Circumstances, Estimator, EstimatorConfig, ObjectCounts, ObjectStatistics, Statistics, WatchCounts, WatchInterest,
};
use evenkeel_engine::{RequestInfo, WorkEstimate};

use super::{EstimateWork, Watch, WorkInput};
use crate::control::clock::{Clock, ManualClock};

/// Estimates the work of requests as Kubernetes does (WE-1 to WE-23): a list costs what it loads, and a change costs
/// more the more watches have to be told of it. Clones share everything.
///
/// The service has to [report](Self::set_objects) about once a minute how many objects there are; a list of a resource that was
/// never reported costs one seat. Watches are counted by the layer while they run.
///
/// ```
/// use evenkeel::FlowControl;
/// use evenkeel::identify::Anonymous;
/// use evenkeel::work::KubernetesWork;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let work = KubernetesWork::default();
/// work.set_objects("pods", 399, 10_000);
/// work.set_objects("deployments.apps", 20, 4_000);
/// let layer = FlowControl::builder().build().layer(Anonymous).work(work.clone());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KubernetesWork {
    shared: Arc<SharedWork>,
    watches: Arc<Mutex<WatchCounts>>,
}

#[derive(Debug)]
struct SharedWork {
    estimator: Estimator,
    has_consistent_cache: AtomicBool,
    clock: Clock,
    objects: RwLock<Objects>,
}

#[derive(Debug, Default)]
struct Objects {
    counts: ObjectCounts,
    pruned: Instant,
}

/// Looks the numbers up only when an estimate asks for them: most requests take neither lock.
struct Lookup<'a> {
    work: &'a KubernetesWork,
    /// The number of watches that was counted before: it may have changed by now.
    watches: Option<u64>,
}

// === impl KubernetesWork ===

impl KubernetesWork {
    /// Estimates with these parameters. The [default](Self::default) ones are those of Kubernetes.
    ///
    /// Numbers of objects grow old by the clock of the machine, also if the flow control has a clock that is set by hand:
    /// see [`with_manual_clock`](Self::with_manual_clock).
    pub fn new(config: EstimatorConfig) -> Self {
        Self::with_clock(config, Clock::of_tokio())
    }

    /// The same for a flow control with a [clock that is set by hand](crate::FlowControlBuilder::manual_clock): numbers of objects
    /// grow old by this clock.
    pub fn with_manual_clock(config: EstimatorConfig, clock: ManualClock) -> Self {
        Self::with_clock(config, Clock::Manual(clock))
    }

    fn with_clock(config: EstimatorConfig, clock: Clock) -> Self {
        let shared = SharedWork {
            estimator: Estimator::new(config),
            has_consistent_cache: AtomicBool::new(false),
            clock,
            objects: RwLock::default(),
        };
        Self { shared: Arc::new(shared), watches: Arc::default() }
    }

    /// Says whether the storage is known to give consistent reads from its cache, which makes lists cheaper (WE-9).
    pub fn set_consistent_cache(&self, is_known: bool) {
        self.shared.has_consistent_cache.store(is_known, Ordering::Relaxed);
    }

    /// Takes note of how many objects of a resource there are, and of how large they are on average. The key is the
    /// resource, followed by a dot and the API group if there is one. A number is used for three minutes.
    pub fn set_objects(&self, key: &str, count: i64, average_bytes: i64) {
        let now = self.shared.clock.now();
        let mut objects = self.shared.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.counts.set(key, count, average_bytes, now);
        if now - objects.pruned >= ObjectCounts::PRUNE_PERIOD {
            objects.counts.prune(now);
            objects.pruned = now;
        }
    }

    fn rule_of_list(&self, request: &RequestInfo<'_>, what: &str) -> String {
        let lookup = Lookup { work: self, watches: None };
        match lookup.statistics(&request.resource, &request.api_group, self.shared.clock.now()) {
            Statistics::NeverRecorded => {
                format!("{what} of {}, whose number of objects is not known", request.resource)
            }
            Statistics::Stale => {
                format!("{what} of {}, whose number of objects is out of date", request.resource)
            }
            Statistics::Fresh { count, .. } => {
                format!("{what} of a resource with {count} objects")
            }
        }
    }

    /// How many watches have to be told when this request changes something.
    pub fn interested(&self, request: &RequestInfo<'_>) -> u64 {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner).interested(request)
    }
}

impl Default for KubernetesWork {
    fn default() -> Self {
        Self::new(EstimatorConfig::default())
    }
}

impl<X> EstimateWork<X> for KubernetesWork {
    fn estimate(&self, request: &WorkInput<'_, X>) -> WorkEstimate {
        let lookup = Lookup { work: self, watches: request.watches };
        let circumstances = Circumstances {
            now: self.shared.clock.now(),
            level_cap: request.level.seat_cap(),
            objects: &lookup,
            watches: &lookup,
            consistent_reads_from_cache: self.shared.has_consistent_cache.load(Ordering::Relaxed),
        };
        self.shared.estimator.estimate(Some(request.attributes.request), request.query, &circumstances)
    }

    fn rule(&self, request: &WorkInput<'_, X>) -> Cow<'static, str> {
        let info = request.attributes.request;
        let config = self.shared.estimator.config();
        let rule = match &*info.verb {
            "list" => self.rule_of_list(info, "a list"),
            "watch" if config.watch_costs_like_list => self.rule_of_list(info, "a watch that begins like a list"),
            "create" | "update" | "patch" | "delete" if self.shared.estimator.depends_on_watches(info) => {
                let watches = request.watches.unwrap_or_else(|| self.interested(info));
                format!("a change that {watches} watches receive")
            }
            verb => return format!("the least that a request takes: {verb} costs no more").into(),
        };
        match request.level.seat_cap() {
            Some(cap) => format!("{rule}; at most {cap} in this level").into(),
            None => rule.into(),
        }
    }

    fn watch(&self, request: &RequestInfo<'_>, query: Query<'_>, _extra: &X) -> Option<Watch> {
        (request.verb == "watch").then(|| Watch::new(Arc::clone(&self.watches), request, query))
    }

    fn interested_watches(&self, request: &RequestInfo<'_>, _extra: &X) -> Option<u64> {
        self.shared.estimator.depends_on_watches(request).then(|| self.interested(request))
    }
}

// === impl Lookup ===

impl ObjectStatistics for Lookup<'_> {
    fn statistics(&self, resource: &str, api_group: &str, now: Instant) -> Statistics {
        let objects = self.work.shared.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.counts.statistics(resource, api_group, now)
    }
}

impl WatchInterest for Lookup<'_> {
    fn interested(&self, request: &RequestInfo<'_>) -> u64 {
        self.watches.unwrap_or_else(|| self.work.interested(request))
    }
}
