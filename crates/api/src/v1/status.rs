//! The status of both kinds: a list of conditions.

use crate::meta::Time;
use crate::schema::{ListType, PatchRule, TypeName, declare_type};

declare_type! {
    /// The status of an object, set by the server.
    pub struct Status(TypeName::OfKind("Status"), Flowcontrol) {
        /// The conditions, at most one of each type.
        conditions "conditions" = 1: Vec<Condition>
            [list(ListType::Map("type")) patch(PatchRule::MergeSinceV1beta3)],
    }
}

declare_type! {
    /// A condition that is true, false or unknown.
    pub struct Condition(TypeName::OfKind("Condition"), Flowcontrol) {
        /// The type of the condition, for example `Dangling`.
        condition "type" = 1: String [required text_type(TypeName::OfKind("ConditionType"))],
        /// The value of the condition: `True`, `False` or `Unknown`.
        status "status" = 2: String [text_type(TypeName::Fixed("ConditionStatus"))],
        /// When `status` last changed.
        last_transition_time "lastTransitionTime" = 3: Option<Time> [always_written zero_if_absent],
        /// The reason, as one word for programs.
        reason "reason" = 4: String [],
        /// The reason, as a sentence for people.
        message "message" = 5: String [],
    }
}

impl Status {
    /// The condition of that type.
    pub fn condition(&self, condition: &str) -> Option<&Condition> {
        self.conditions.iter().find(|candidate| candidate.condition == condition)
    }
}
