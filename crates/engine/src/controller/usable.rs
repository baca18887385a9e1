//! Whether a priority level object can be used, and what its queue set is to be (CC-7, CC-8).

use evenkeel_api::annotations;
use evenkeel_api::bootstrap::EXEMPT;
use evenkeel_api::v1::{LimitResponseType, PriorityLevelConfiguration, PriorityLevelEnablement, QueuingConfiguration};

use crate::deal::InvalidDeal;
use crate::queue_set::{FlowLimits, Mode, QueuingDiscipline};
use crate::time::Nanos;

/// Why a priority level object is left aside (CC-8). Validation refuses most of these; objects may come from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unusable {
    /// `type` and `limited` do not go together.
    #[error("spec.limited must be there if and only if spec.type is Limited")]
    Limited,
    /// `type` and `exempt` do not go together.
    #[error("spec.exempt must be there if and only if spec.type is Exempt")]
    Exempt,
    /// `type` and the name do not go together.
    #[error("spec.type must be Exempt if and only if the object is named exempt")]
    Name,
    /// `type` is none that is known.
    #[error("spec.type must be Exempt or Limited")]
    Type,
    /// The limit response and `queuing` do not go together.
    #[error("spec.limited.limitResponse.queuing must be there unless spec.limited.limitResponse.type is Reject")]
    Queuing,
    /// The queues cannot be dealt.
    #[error("spec.limited.limitResponse.queuing: {0}")]
    Deal(#[from] InvalidDeal),
}

/// What the queue set of a level is to be, if the object can be used.
pub(super) fn mode(level: &PriorityLevelConfiguration, newcomer_wait: Nanos) -> Result<Mode, Unusable> {
    let spec = &level.spec;
    let is_exempt = spec.enablement == PriorityLevelEnablement::Exempt;
    if spec.limited.is_some() != (spec.enablement == PriorityLevelEnablement::Limited) {
        return Err(Unusable::Limited);
    }
    if spec.exempt.is_some() != is_exempt {
        return Err(Unusable::Exempt);
    }
    if is_exempt != (level.name() == EXEMPT) {
        return Err(Unusable::Name);
    }
    let limited = match &spec.limited {
        Some(limited) => limited,
        None if is_exempt => return Ok(Mode::Exempt),
        // The reference has no word on this; a level that nothing limits must not come from a misspelt type.
        None => return Err(Unusable::Type),
    };
    let rejects = limited.limit_response.response == LimitResponseType::Reject;
    match &limited.limit_response.queuing {
        None if rejects => Ok(Mode::Reject),
        Some(queuing) if !rejects => {
            let mode = queue_mode(queuing)?.with_discipline(discipline(level));
            Ok(mode.with_flow_limits(flow_limits(level, newcomer_wait)))
        }
        _ => Err(Unusable::Queuing),
    }
}

fn discipline(level: &PriorityLevelConfiguration) -> QueuingDiscipline {
    match annotations::queuing(&level.metadata.annotations) {
        annotations::Queuing::ShuffleSharded => QueuingDiscipline::ShuffleSharded,
        annotations::Queuing::PerFlow => QueuingDiscipline::PerFlow,
    }
}

/// What one flow may take of the level, if each has a queue of its own (PF-10, PF-11).
fn flow_limits(level: &PriorityLevelConfiguration, newcomer_wait: Nanos) -> FlowLimits {
    let annotations = &level.metadata.annotations;
    FlowLimits {
        newcomer_seats: annotations::newcomer_seats(annotations),
        newcomer_wait,
        flow_seats_max: annotations::flow_seats_max(annotations),
    }
}

/// A number of queues below one is what the reference takes for an exempt or a rejecting level; here as there, only a
/// positive number has to be one that can be dealt from.
fn queue_mode(queuing: &QueuingConfiguration) -> Result<Mode, Unusable> {
    match queuing.queues {
        ..0 => Ok(Mode::Exempt),
        0 => Ok(Mode::Reject),
        queues => {
            let (hand_size, length_limit) = (i64::from(queuing.hand_size), i64::from(queuing.queue_length_limit));
            Ok(Mode::queue(i64::from(queues), hand_size, length_limit)?)
        }
    }
}
