//! A level as the controller knows it: its object, its limits, and what it has asked for.

use std::sync::Arc;

use evenkeel_api::annotations;
use evenkeel_api::v1::{PriorityLevelConfiguration, PriorityLevelEnablement};

use crate::borrowing::{AdjustedLevel, DemandStatistics, LevelDemand, Stake};
use crate::configuration::{LevelId, LevelInfo, SeatCap};
use crate::limits::{LevelLimits, shares};
use crate::queue_set::{Mode, QueueSetConfig};
use crate::time::Nanos;
use crate::work::level_cap;

/// A level in play: configured, built in, or on its way out.
#[derive(Debug)]
pub struct ControlledLevel {
    pub(super) id: LevelId,
    pub(super) object: Arc<PriorityLevelConfiguration>,
    pub(super) mode: Mode,
    pub(super) quiescing: bool,
    /// Whether it has a queue set yet.
    pub(super) is_running: bool,
    pub(super) limits: LevelLimits,
    pub(super) statistics: DemandStatistics,
    pub(super) adjusted: AdjustedLevel,
    seat_cap: Arc<SeatCap>,
}

// === impl ControlledLevel ===

impl ControlledLevel {
    pub(super) fn new(id: LevelId, object: Arc<PriorityLevelConfiguration>, mode: Mode) -> Self {
        Self {
            id,
            object,
            mode,
            quiescing: false,
            is_running: false,
            limits: LevelLimits::default(),
            statistics: DemandStatistics::default(),
            adjusted: AdjustedLevel::default(),
            seat_cap: Arc::default(),
        }
    }

    /// Where the level is.
    pub fn id(&self) -> LevelId {
        self.id
    }

    /// The object that the level follows.
    pub fn object(&self) -> &PriorityLevelConfiguration {
        &self.object
    }

    /// What happens to requests that find no seat.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether its object is gone, and it stays only until its last request has ended (CC-15).
    pub fn is_quiescing(&self) -> bool {
        self.quiescing
    }

    /// The seats that its configuration gives it.
    pub fn limits(&self) -> LevelLimits {
        self.limits
    }

    /// What it has asked for lately, as of the last adjustment.
    pub fn statistics(&self) -> DemandStatistics {
        self.statistics
    }

    /// The seats that it may use now: `CurrentCL`.
    pub fn current_limit(&self) -> i64 {
        self.adjusted.current
    }

    /// What it was to get at the last adjustment: the target, or the least for an exempt level (OB-3).
    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    pub fn target(&self) -> f64 {
        self.adjusted.target.unwrap_or(self.adjusted.min_current as f64)
    }

    /// The most seats that the estimate of one request may give it (WE-4).
    pub fn seat_cap(&self) -> Option<u32> {
        self.seat_cap.get()
    }

    /// How many long-running requests it lets run at a time; `None` for no limit.
    pub fn max_long_running(&self) -> Option<u32> {
        annotations::max_long_running(&self.object.metadata.annotations)
    }

    /// Whether its requests end when requests of another level wait for seats of its own (LM-7).
    pub fn is_revocable(&self) -> bool {
        annotations::is_revocable(&self.object.metadata.annotations)
    }

    /// How long its requests wait, if they have no deadline of their own; `None`: as the server says.
    pub fn wait_limit(&self) -> Option<Nanos> {
        let limit = annotations::wait_limit(&self.object.metadata.annotations)?;
        Nanos::try_from(limit.as_nanos()).ok()
    }

    /// Takes over the limits that a digest has found (CC-16).
    pub(super) fn set_limits(&mut self, limits: LevelLimits) {
        self.limits = limits;
        if !self.is_running {
            self.adjusted.current = limits.provisional();
        }
        let queuing = self.object.spec.limited.as_ref().and_then(|limited| limited.limit_response.queuing.as_ref());
        // A level that no longer queues keeps the cap that it had (WE-4).
        if let Some(queuing) = queuing {
            self.seat_cap.set(level_cap(limits.nominal, queuing.hand_size));
        }
    }

    pub(super) fn demand(&self) -> LevelDemand {
        LevelDemand {
            // By the type: a limited level with a negative number of queues rejects nobody, but has its limits.
            is_exempt: self.object.spec.enablement == PriorityLevelEnablement::Exempt,
            limits: self.limits,
            statistics: self.statistics,
            current: self.adjusted.current,
        }
    }

    /// What it gets where a ledger grants the seats: its own, which others borrow while it does not use them.
    pub(super) fn undivided(&self) -> AdjustedLevel {
        let LevelLimits { nominal, min, .. } = self.limits;
        AdjustedLevel { current: nominal, min_current: min, target: None }
    }

    /// What it may use where a ledger grants the seats (LB-1).
    pub(super) fn stake(&self) -> Stake {
        self.stake_of(self.limits)
    }

    /// The stake of the level in the ledger, with these limits.
    pub(super) fn stake_of(&self, limits: LevelLimits) -> Stake {
        let LevelLimits { nominal, min, max, .. } = limits;
        let is_exempt = self.mode == Mode::Exempt;
        let weight = annotations::borrowing_weight(&self.object.metadata.annotations);
        let weight = weight.map_or_else(|| i64::from(shares(&self.object.spec)).max(1), i64::from);
        Stake { floor: min, nominal, max, weight, is_exempt }
    }

    pub(super) fn queue_set_config(&self, closes_if_empty: bool) -> QueueSetConfig {
        let is_closed = closes_if_empty && self.mode == Mode::Reject && self.adjusted.current <= 0;
        let mode = if is_closed { Mode::Closed } else { self.mode };
        QueueSetConfig { mode, concurrency_limit: self.adjusted.current }
    }

    pub(super) fn info(&self) -> LevelInfo {
        LevelInfo {
            id: self.id,
            name: self.object.name().into(),
            uid: self.object.metadata.uid.as_str().into(),
            has_flows: self.mode.has_flows(),
            seat_cap: Arc::clone(&self.seat_cap),
            is_exempt: self.mode == Mode::Exempt,
            max_long_running: self.max_long_running(),
            is_revocable: self.is_revocable(),
            wait_limit: self.wait_limit(),
        }
    }
}
