//! Version `v1`: the hub, to and from which all other versions are converted.

mod flow_schema;
mod priority_level;
mod status;

pub use flow_schema::{
    FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchemaSpec, GroupSubject, MATCHING_PRECEDENCE_DEFAULT,
    MATCHING_PRECEDENCE_MAX, NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfigurationReference,
    ResourcePolicyRule, ServiceAccountSubject, Subject, SubjectKind, UserSubject,
};
pub use priority_level::{
    CONCURRENCY_SHARES_DEFAULT, EXEMPT_CONCURRENCY_SHARES_DEFAULT, ExemptPriorityLevelConfiguration, HAND_SIZE_DEFAULT,
    LENDABLE_PERCENT_DEFAULT, LimitResponse, LimitResponseType, LimitedPriorityLevelConfiguration,
    PriorityLevelConfigurationSpec, PriorityLevelEnablement, QUEUE_LENGTH_LIMIT_DEFAULT, QUEUES_DEFAULT, QUEUES_MAX,
    QueuingConfiguration,
};
pub use status::{Condition, Status};

pub(crate) use priority_level::declare_priority_level;

use crate::{InVersion, List, Object, Version};

/// The mark of an object of version `v1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct V1;

impl InVersion for V1 {
    const VERSION: Version = Version::V1;
}

/// Defines which requests match, and which priority level they go to.
pub type FlowSchema = Object<V1, FlowSchemaSpec>;

/// A list of flow schemas.
pub type FlowSchemaList = List<V1, FlowSchemaSpec>;

/// Defines how many seats a priority level has, and what happens when all of them are taken.
pub type PriorityLevelConfiguration = Object<V1, PriorityLevelConfigurationSpec>;

/// A list of priority levels.
pub type PriorityLevelConfigurationList = List<V1, PriorityLevelConfigurationSpec>;
