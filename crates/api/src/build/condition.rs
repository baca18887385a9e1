//! `ConditionBuilder`: builds a condition of a status.

use crate::meta::Time;
use crate::v1::Condition;

/// Builds a condition of a status.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
///
/// let schema = FlowSchema::builder("batch")
///     .priority_level("nowhere")
///     .condition("Dangling", |c| c.is_true().reason("NotFound").message("there is no level of that name"))
///     .build();
/// assert_eq!(schema.status.condition("Dangling").unwrap().status, "True");
/// ```
#[derive(Debug, Clone)]
#[must_use = "a condition does nothing unless it is returned from the closure"]
pub struct ConditionBuilder(Condition);

// === impl ConditionBuilder ===

impl ConditionBuilder {
    pub(super) fn new(condition: String) -> Self {
        Self(Condition { condition, status: "Unknown".to_owned(), ..Condition::default() })
    }

    /// The condition holds.
    pub fn is_true(self) -> Self {
        self.status("True")
    }

    /// The condition does not hold.
    pub fn is_false(self) -> Self {
        self.status("False")
    }

    fn status(mut self, status: &str) -> Self {
        status.clone_into(&mut self.0.status);
        self
    }

    /// The reason, as one word for programs.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = reason.into();
        self
    }

    /// The reason, as a sentence for people.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// When the status last changed.
    pub fn since(mut self, time: Time) -> Self {
        self.0.last_transition_time = Some(time);
        self
    }

    pub(super) fn into_condition(self) -> Condition {
        self.0
    }
}
