//! The condition `Dangling`: whether the level that a schema names exists (CC-18).

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{Condition, FlowSchema};

/// The type of the condition.
pub const DANGLING: &str = "Dangling";

/// Whether the level that a schema names exists.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dangling {
    /// The schema's name.
    pub schema: String,
    /// The name of the level that it refers to.
    pub level: String,
    /// Whether there is no such level.
    pub is_dangling: bool,
}

// === impl Dangling ===

impl Dangling {
    /// Whether the level of that name, which the schema refers to, is missing.
    pub fn new(schema: impl Into<String>, level: impl Into<String>, is_dangling: bool) -> Self {
        Self { schema: schema.into(), level: level.into(), is_dangling }
    }

    /// The condition to write into the status of the schema.
    ///
    /// ```
    /// use evenkeel_engine::controller::Dangling;
    ///
    /// let dangling = Dangling::new("a", "b", true);
    /// let condition = dangling.condition("2024-01-02T03:04:05Z".parse()?);
    /// assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("True", "NotFound"));
    /// # Ok::<(), evenkeel_api::meta::InvalidTime>(())
    /// ```
    pub fn condition(&self, now: Time) -> Condition {
        let (status, reason, end) = if self.is_dangling {
            ("True", "NotFound", "but there is no such object")
        } else {
            ("False", "Found", "and it exists")
        };
        let level = &self.level;
        Condition {
            condition: DANGLING.to_owned(),
            status: status.to_owned(),
            last_transition_time: Some(now),
            reason: reason.to_owned(),
            message: format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?} {end}"),
        }
    }

    /// Whether the status of the schema says so already, whenever it began to.
    pub fn is_told_by(&self, schema: &FlowSchema) -> bool {
        let Some(told) = schema.status.condition(DANGLING) else { return false };
        let wanted = self.condition(Time::from_unix_seconds(0));
        (&told.status, &told.reason, &told.message) == (&wanted.status, &wanted.reason, &wanted.message)
    }
}
