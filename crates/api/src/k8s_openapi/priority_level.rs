//! `PriorityLevelConfiguration` and its parts.

use ::k8s_openapi::api::flowcontrol::v1 as k8s;

use super::{same_object, same_type};
use crate::v1::{self, Condition, Status};

same_object!(v1::PriorityLevelConfiguration = k8s::PriorityLevelConfiguration, k8s::PriorityLevelConfigurationSpec);

same_type!(v1::PriorityLevelConfigurationSpec = k8s::PriorityLevelConfigurationSpec {
    enablement = type_: choice,
    limited = limited: optional,
    exempt = exempt: optional,
});

same_type!(v1::LimitedPriorityLevelConfiguration = k8s::LimitedPriorityLevelConfiguration {
    nominal_concurrency_shares = nominal_concurrency_shares: same,
    limit_response = limit_response: part,
    lendable_percent = lendable_percent: same,
    borrowing_limit_percent = borrowing_limit_percent: same,
});

same_type!(v1::ExemptPriorityLevelConfiguration = k8s::ExemptPriorityLevelConfiguration {
    nominal_concurrency_shares = nominal_concurrency_shares: same,
    lendable_percent = lendable_percent: same,
});

same_type!(v1::LimitResponse = k8s::LimitResponse {
    response = type_: choice,
    queuing = queuing: optional,
});

same_type!(v1::QueuingConfiguration = k8s::QueuingConfiguration {
    queues = queues: number,
    hand_size = hand_size: number,
    queue_length_limit = queue_length_limit: number,
});

same_type!(Status = k8s::PriorityLevelConfigurationStatus {
    conditions = conditions: list_unless_empty,
});

same_type!(Condition = k8s::PriorityLevelConfigurationCondition {
    condition = type_: text,
    status = status: unless_empty,
    last_transition_time = last_transition_time: optional,
    reason = reason: unless_empty,
    message = message: unless_empty,
});

// `limitResponse` is optional up to Kubernetes 1.36 and required since.

impl From<v1::LimitResponse> for Option<k8s::LimitResponse> {
    fn from(ours: v1::LimitResponse) -> Self {
        Some(ours.into())
    }
}

impl From<Option<k8s::LimitResponse>> for v1::LimitResponse {
    fn from(theirs: Option<k8s::LimitResponse>) -> Self {
        theirs.map(Into::into).unwrap_or_default()
    }
}
