//! The queues of a priority level: how many, how long, and how large a hand of them a flow is dealt (API-48).

use super::{FieldError, Path, Value};
use crate::v1::{QUEUES_MAX, QueuingConfiguration};

/// A hand is dealt by the bits of a hash of 64 bits, of which a few stay unused so that all hands are about as likely.
const ENTROPY_BITS_MAX: f64 = 60.0;

pub(super) fn check(queuing: &QueuingConfiguration, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut invalid = |field, value: i32, detail: &str| {
        errors.push(FieldError::invalid(path.child(field), &Value::json(&value), detail));
    };
    let (queues, hand_size, length) = (queuing.queues, queuing.hand_size, queuing.queue_length_limit);
    if length <= 0 {
        invalid("queueLengthLimit", length, "must be positive");
    }
    if queues <= 0 {
        invalid("queues", queues, "must be positive");
    } else if queues > QUEUES_MAX {
        invalid("queues", queues, &format!("must not be greater than {QUEUES_MAX}"));
    }
    if hand_size <= 0 {
        invalid("handSize", hand_size, "must be positive");
    } else if hand_size > queues {
        invalid("handSize", hand_size, &format!("should not be greater than queues ({queues})"));
    } else if entropy_bits(queues, hand_size) > ENTROPY_BITS_MAX {
        let detail = format!(
            "required entropy bits of deckSize {queues} and handSize {hand_size} should not be greater than \
             {ENTROPY_BITS_MAX}"
        );
        invalid("handSize", hand_size, &detail);
    }
}

/// How many bits of a hash it takes to deal a hand of queues.
fn entropy_bits(queues: i32, hand_size: i32) -> f64 {
    (f64::from(queues).log2() * f64::from(hand_size)).ceil()
}
