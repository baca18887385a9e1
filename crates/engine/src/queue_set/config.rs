//! `QueueSetConfig`: the configuration of a queue set (FQ-7, CC-7).

use evenkeel_api::annotations;

use super::FlowLimits;
use crate::deal::{DealSize, InvalidDeal};

/// The configuration of a queue set.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueSetConfig {
    /// What happens to requests that find no seat.
    pub mode: Mode,
    /// How many seats may be in use at a time. Below zero is the same as zero.
    pub concurrency_limit: i64,
}

/// What happens to requests that find no seat.
///
/// Not `#[non_exhaustive]`: code that shows a level has to know every mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Requests beyond the limit run all the same.
    Exempt,
    /// Requests beyond the limit are rejected. One that needs more seats than there are runs while no other does (FQ-21), so that even without
    /// seats one runs at a time.
    Reject,
    /// Every request that arrives is rejected, whatever the seats.
    Closed,
    /// Requests beyond the limit wait in a queue.
    Queue(Queuing),
}

/// The queues of a queue set.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queuing {
    /// How many queues there are, and how many of them are dealt to each flow.
    pub deal: DealSize,
    /// How many requests may wait in one queue.
    pub queue_length_limit: i64,
    /// Which requests share a queue.
    pub discipline: QueuingDiscipline,
    /// What one flow may take, where each has a queue of its own.
    pub flow_limits: FlowLimits,
}

/// Whether flows share queues, and with that which request is next.
///
/// Not `#[non_exhaustive]`: code that queues requests has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QueuingDiscipline {
    /// A fixed number of queues is shared by all flows, as in Kubernetes.
    #[default]
    ShuffleSharded,
    /// Each flow has a queue of its own (PF-1). The three numbers limit how many requests may wait (PF-7).
    PerFlow,
}

// === impl QueuingDiscipline ===

impl QueuingDiscipline {
    /// The word for it, as annotations, metrics and tools use it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShuffleSharded => annotations::Queuing::ShuffleSharded.name(),
            Self::PerFlow => annotations::Queuing::PerFlow.name(),
        }
    }
}

// === impl Mode ===

impl Mode {
    /// Requests wait in that many queues.
    ///
    /// Up to 4096 queues take about 120 bytes each, whether they are used or not. Of more queues only those in use take memory,
    /// and finding one takes the logarithm of their number.
    pub fn queue(queues: i64, hand_size: i64, queue_length_limit: i64) -> Result<Self, InvalidDeal> {
        let deal = DealSize::new(queues, hand_size)?;
        let (discipline, flow_limits) = (QueuingDiscipline::ShuffleSharded, FlowLimits::NONE);
        Ok(Self::Queue(Queuing { deal, queue_length_limit, discipline, flow_limits }))
    }

    /// The same, but requests wait in a queue for each flow if that is what the discipline says. A mode without queues stays
    /// as it is.
    #[must_use]
    pub fn with_discipline(self, discipline: QueuingDiscipline) -> Self {
        match self {
            Self::Queue(queuing) => Self::Queue(Queuing { discipline, ..queuing }),
            Self::Exempt | Self::Reject | Self::Closed => self,
        }
    }

    /// The same, but one flow may take no more than that where each has a queue of its own (PF-10, PF-11). Nothing changes
    /// where flows share queues, or where there are none.
    #[must_use]
    pub fn with_flow_limits(self, flow_limits: FlowLimits) -> Self {
        match self {
            Self::Queue(queuing) if queuing.discipline == QueuingDiscipline::PerFlow => {
                Self::Queue(Queuing { flow_limits, ..queuing })
            }
            _ => self,
        }
    }

    /// Whether flows are told apart: in more than one queue (FM-14), or in one for each flow (PF-1).
    pub fn has_flows(self) -> bool {
        match self {
            Self::Exempt | Self::Reject | Self::Closed => false,
            Self::Queue(queuing) => queuing.deal.deck() > 1 || queuing.discipline == QueuingDiscipline::PerFlow,
        }
    }

    /// Whether each flow has a queue of its own (PF-1).
    pub fn is_per_flow(self) -> bool {
        self.discipline() == Some(QueuingDiscipline::PerFlow)
    }

    /// Whether flows share queues; `None` if there are no queues.
    pub fn discipline(self) -> Option<QueuingDiscipline> {
        match self {
            Self::Queue(queuing) => Some(queuing.discipline),
            Self::Exempt | Self::Reject | Self::Closed => None,
        }
    }

    /// How many queues are wanted.
    pub fn queues(self) -> usize {
        match self {
            Self::Exempt | Self::Reject | Self::Closed => 0,
            Self::Queue(queuing) => queuing.deal.deck(),
        }
    }
}
