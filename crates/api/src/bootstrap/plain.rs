//! The suggested objects of an ordinary HTTP service: everyone shares all seats, and users take turns.

use crate::annotations;
use crate::v1::{FlowSchema, PriorityLevelConfiguration};

/// The name of the level and of the flow schema.
const EVERYONE: &str = "everyone";

/// The level lends its idle seats, so that it does not stand in the way of levels that are added later.
///
/// Each user has a queue of its own (decision 50): 200 of its requests wait at most, and 204,800 of all users. The numbers are
/// those of decision 22, so that the level works with shuffle sharding too.
pub(super) fn priority_levels() -> Vec<PriorityLevelConfiguration> {
    let queuing = |l: crate::build::LimitedBuilder<_>| {
        l.shares(100).lendable_percent(100).queue(|q| q.queues(1024).hand_size(1).queue_length_limit(200))
    };
    let level = PriorityLevelConfiguration::builder(EVERYONE).limited(queuing);
    vec![level.annotation(annotations::QUEUING, annotations::Queuing::PerFlow.name()).build()]
}

pub(super) fn flow_schemas() -> Vec<FlowSchema> {
    let schema = FlowSchema::builder(EVERYONE).priority_level(EVERYONE).matching_precedence(9900).by_user();
    vec![schema.rule(|r| r.user("*").everything()).build()]
}

/// The same, with seats by what requests cost. A seat is room for an ordinary chat; the longest prompts take eight.
pub(super) fn flow_schemas_by_cost() -> Vec<FlowSchema> {
    let mut schemas = flow_schemas();
    let noted =
        [(annotations::SEATS, "learnt"), (annotations::COST_PER_SEAT, "4000"), (annotations::LEARNT_SEATS_MAX, "8")];
    for schema in &mut schemas {
        schema.metadata.annotations.extend(noted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    schemas
}
