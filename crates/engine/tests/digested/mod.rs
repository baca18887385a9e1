//! A digest of configurations that is enough for levels on which nothing runs (CC-1, CC-6 to CC-8, CC-13 to CC-16).

use std::collections::BTreeMap;

use evenkeel_api::bootstrap;
use evenkeel_api::v1::{
    LimitResponseType, PriorityLevelConfiguration, PriorityLevelConfigurationSpec, PriorityLevelEnablement,
};
use evenkeel_engine::borrowing::{
    Adjustment, DemandIntegrator, DemandStatistics, DivideSeats, FaithfulDivision, LevelDemand,
};
use evenkeel_engine::limits::{LevelLimits, ShareSum};
use evenkeel_engine::time::Instant;

/// The levels in effect, in ascending byte order of their names.
pub(crate) struct Levels {
    server_limit: i64,
    pub(crate) by_name: BTreeMap<String, Level>,
    division: FaithfulDivision,
    pub(crate) adjustment: Adjustment,
}

/// A level in effect.
pub(crate) struct Level {
    spec: PriorityLevelConfigurationSpec,
    pub(crate) limits: LevelLimits,
    pub(crate) demand: DemandIntegrator,
    pub(crate) statistics: DemandStatistics,
    pub(crate) current: Option<i64>,
    pub(crate) target: Option<f64>,
}

// === impl Levels ===

impl Levels {
    /// An engine that has digested nothing but the mandatory levels: the whole server is `catch-all`'s at first (CC-1),
    /// which is what CL-17 falls back to if the first configuration cannot be met.
    pub(crate) fn new(server_limit: i64) -> Self {
        let (division, adjustment) = Default::default();
        let mut levels = Self { server_limit, by_name: BTreeMap::new(), division, adjustment };
        levels.digest(Instant::default(), &[]);
        levels
    }

    /// Takes over a configuration, and adjusts limits.
    pub(crate) fn digest(&mut self, now: Instant, configured: &[PriorityLevelConfiguration]) {
        let mut previous = std::mem::take(&mut self.by_name);
        for object in configured.iter().filter(|object| is_usable(object)) {
            let mut level = previous.remove(object.name()).unwrap_or_else(|| Level::new(now));
            level.spec = object.spec.clone();
            self.by_name.insert(object.name().to_owned(), level);
        }
        for built_in in &bootstrap::mandatory().priority_levels {
            self.by_name.entry(built_in.name().to_owned()).or_insert_with(|| {
                let fresh = || Level { spec: built_in.spec.clone(), ..Level::new(now) };
                previous.remove(built_in.name()).unwrap_or_else(fresh)
            });
        }
        let all = ShareSum::of(self.by_name.values().map(|level| &level.spec));
        for level in self.by_name.values_mut() {
            level.limits = LevelLimits::new(&level.spec, self.server_limit, all);
            level.current.get_or_insert(level.limits.provisional());
        }
        self.adjust(now);
    }

    /// Ends the period of every level, and adjusts limits.
    pub(crate) fn adjust(&mut self, now: Instant) {
        let wishes: Vec<_> = self.by_name.values_mut().map(|level| level.end_period(now)).collect();
        self.division.divide(&wishes, &mut self.adjustment);
        assert_eq!(self.adjustment.levels.len(), self.by_name.len());
        for (level, adjusted) in self.by_name.values_mut().zip(&self.adjustment.levels) {
            (level.current, level.target) = (Some(adjusted.current), adjusted.target);
        }
    }
}

// === impl Level ===

impl Level {
    fn new(now: Instant) -> Self {
        Self {
            spec: PriorityLevelConfigurationSpec::default(),
            limits: LevelLimits::default(),
            demand: DemandIntegrator::new(now),
            statistics: DemandStatistics::default(),
            current: None,
            target: None,
        }
    }

    fn end_period(&mut self, now: Instant) -> LevelDemand {
        self.statistics.update(&self.demand.read_and_reset(now));
        LevelDemand {
            is_exempt: self.spec.enablement == PriorityLevelEnablement::Exempt,
            limits: self.limits,
            statistics: self.statistics,
            current: self.current.expect("a digest"),
        }
    }
}

/// CC-8.
fn is_usable(object: &PriorityLevelConfiguration) -> bool {
    let spec = &object.spec;
    let is_exempt = spec.enablement == PriorityLevelEnablement::Exempt;
    let is_limited = spec.enablement == PriorityLevelEnablement::Limited;
    let response_is_usable = spec.limited.as_ref().is_none_or(|limited| {
        let response = &limited.limit_response;
        (response.response == LimitResponseType::Reject) == response.queuing.is_none()
            && response.queuing.as_ref().is_none_or(|queuing| can_deal(queuing.queues, queuing.hand_size))
    });
    spec.limited.is_some() == is_limited
        && spec.exempt.is_some() == is_exempt
        && is_exempt == (object.name() == bootstrap::EXEMPT)
        && response_is_usable
}

/// SS-1, as far as the recorded objects go.
fn can_deal(queues: i32, hand_size: i32) -> bool {
    queues <= 0 || ((1..=queues).contains(&hand_size) && f64::from(queues).log2() * f64::from(hand_size) <= 60.0)
}
