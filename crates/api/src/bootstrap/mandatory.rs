//! The mandatory objects: a level without limits for those who must always get through, and a last resort.

use super::{CATCH_ALL, EXEMPT};
use crate::v1::{FlowSchema, PriorityLevelConfiguration};

#[rustfmt::skip] // a table
pub(super) fn priority_levels() -> Vec<PriorityLevelConfiguration> {
    use PriorityLevelConfiguration as Level;
    vec![
        Level::builder(EXEMPT).exempt(|e| e).build(),
        Level::builder(CATCH_ALL).limited(|l| l.shares(5).reject()).build(),
    ]
}

#[rustfmt::skip] // a table
pub(super) fn flow_schemas() -> Vec<FlowSchema> {
    vec![
        FlowSchema::builder(EXEMPT)
            .priority_level(EXEMPT).matching_precedence(1)
            .rule(|r| r.group("system:masters").everything())
            .build(),
        FlowSchema::builder(CATCH_ALL)
            .priority_level(CATCH_ALL).matching_precedence(10_000).by_user()
            .rule(|r| r.group("system:unauthenticated").group("system:authenticated").everything())
            .build(),
    ]
}
