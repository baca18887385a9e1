//! The mandatory objects: a level without limits for those who must always get through, and a last resort.

use crate::v1::{FlowSchema, PriorityLevelConfiguration};

#[rustfmt::skip] // a table
pub(super) fn priority_levels() -> Vec<PriorityLevelConfiguration> {
    use PriorityLevelConfiguration as Level;
    vec![
        Level::builder("exempt").exempt(|e| e).build(),
        Level::builder("catch-all").limited(|l| l.shares(5).reject()).build(),
    ]
}

#[rustfmt::skip] // a table
pub(super) fn flow_schemas() -> Vec<FlowSchema> {
    vec![
        FlowSchema::builder("exempt")
            .priority_level("exempt").matching_precedence(1)
            .rule(|r| r.group("system:masters").everything())
            .build(),
        FlowSchema::builder("catch-all")
            .priority_level("catch-all").matching_precedence(10_000).by_user()
            .rule(|r| r.group("system:unauthenticated").group("system:authenticated").everything())
            .build(),
    ]
}
