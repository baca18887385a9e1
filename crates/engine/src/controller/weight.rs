//! The weight of a level among those that borrow (BM-1).

use evenkeel_api::v1::PriorityLevelConfiguration;

use crate::limits;

/// The annotation of a level that says how much it borrows beside others.
pub const BORROWING_WEIGHT_ANNOTATION: &str = "evenkeel.dev/borrowing-weight";

/// A weight that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {BORROWING_WEIGHT_ANNOTATION}: {value:?} is not a whole number from 1 to 10000; \
     the level borrows by its nominal shares"
)]
pub struct InvalidWeight {
    /// What the annotation says.
    pub value: String,
}

/// The weight that the annotation of a level gives it, or else its nominal shares.
pub fn borrowing_weight(level: &PriorityLevelConfiguration) -> Result<i64, InvalidWeight> {
    let Some(value) = level.metadata.annotations.get(BORROWING_WEIGHT_ANNOTATION) else {
        return Ok(default_weight(level));
    };
    let is_plain = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    let weight = value.parse().ok().filter(|weight| is_plain && (1..=10_000).contains(weight));
    weight.ok_or_else(|| InvalidWeight { value: value.clone() })
}

/// The weight of a level whose annotation says nothing that is understood (BM-2).
pub(super) fn default_weight(level: &PriorityLevelConfiguration) -> i64 {
    i64::from(limits::shares(&level.spec)).max(1)
}
