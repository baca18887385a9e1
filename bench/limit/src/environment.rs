//! A service and its load, both of which change over time.

use evenkeel_sim::ServiceCurve;

/// A number that changes at some times: each has effect from its time on, in seconds.
#[derive(Debug, Clone)]
pub struct Steps(Vec<(f64, f64)>);

/// A service, and who asks it for what.
#[derive(Debug, Clone)]
pub struct Environment {
    /// How fast it is. The slots are those of [`slots`](Self::slots).
    pub curve: ServiceCurve,
    /// How many requests it works on at a time; 0 for no limit of its own.
    pub slots: Steps,
    /// The requests a second that it can do at best.
    pub capacity: f64,
    /// The load, as a multiple of the capacity.
    pub load: Steps,
    /// How long a request takes on average, in seconds, when the service is idle.
    pub work: Steps,
    /// The standard deviation of its logarithm.
    pub sigma: f64,
    /// How long a request takes elsewhere, in seconds, without a slot.
    pub elsewhere: Steps,
    /// The share of requests that take nine times the work elsewhere.
    pub slow_share: f64,
    /// Whether all requests fail: 1 or 0.
    pub failing: Steps,
}

// === impl Steps ===

impl Steps {
    /// A number that never changes.
    pub fn constant(value: f64) -> Self {
        Self(vec![(0.0, value)])
    }

    /// A number that changes once or more.
    pub fn new(steps: &[(f64, f64)]) -> Self {
        Self(steps.to_vec())
    }

    /// The number at a time.
    pub fn at(&self, seconds: f64) -> f64 {
        let reached = self.0.iter().take_while(|(from, _)| *from <= seconds).last();
        reached.or(self.0.first()).map_or(0.0, |(_, value)| *value)
    }

    /// When it changes, and to what.
    pub fn changes(&self) -> impl Iterator<Item = (f64, f64)> {
        self.0.iter().copied()
    }
}

// === impl Environment ===

impl Environment {
    /// Twenty slots of 10 ms, whose throughput collapses with more requests inside, at three times its capacity.
    pub fn collapse() -> Self {
        let mut curve = ServiceCurve::default();
        (curve.degradation, curve.sharing) = (0.4, evenkeel_sim::Sharing::Processor);
        Self {
            curve,
            slots: Steps::constant(20.0),
            capacity: 2000.0,
            load: Steps::constant(3.0),
            work: Steps::constant(0.01),
            sigma: 0.5,
            elsewhere: Steps::constant(0.0),
            slow_share: 0.0,
            failing: Steps::constant(0.0),
        }
    }

    /// Twenty slots of 10 ms, and a queue before them that costs nothing but time.
    pub fn servers() -> Self {
        Self { curve: ServiceCurve::default(), ..Self::collapse() }
    }

    /// A service as the universal scalability law has it, with its peak at 20.
    pub fn scalability() -> Self {
        let (contention, coherence) = (0.05, 0.95 / 400.0);
        let mut curve = ServiceCurve::default();
        (curve.contention, curve.coherence, curve.sharing) = (contention, coherence, evenkeel_sim::Sharing::Processor);
        let capacity = 20.0 / (1.0 + contention * 19.0 + coherence * 380.0) / 0.01;
        Self { curve, slots: Steps::constant(0.0), capacity, ..Self::collapse() }
    }

    /// Collapse, with times that vary a lot: one in twenty takes ten times as long.
    pub fn noisy() -> Self {
        Self { sigma: 1.0, slow_share: 0.05, ..Self::collapse() }
    }

    /// The same with another load.
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        Self { load: Steps::constant(load), ..self }
    }
}
