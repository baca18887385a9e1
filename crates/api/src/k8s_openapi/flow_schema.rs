//! `FlowSchema` and its parts.

use ::k8s_openapi::api::flowcontrol::v1 as k8s;

use super::{same_object, same_type};
use crate::v1::{self, Condition, Status};

same_object!(v1::FlowSchema = k8s::FlowSchema, k8s::FlowSchemaSpec);

same_type!(v1::FlowSchemaSpec = k8s::FlowSchemaSpec {
    priority_level_configuration = priority_level_configuration: part,
    matching_precedence = matching_precedence: number,
    distinguisher_method = distinguisher_method: optional,
    rules = rules: list_unless_empty,
});

same_type!(v1::PriorityLevelConfigurationReference = k8s::PriorityLevelConfigurationReference {
    name = name: same,
});

same_type!(v1::FlowDistinguisherMethod = k8s::FlowDistinguisherMethod {
    method = type_: choice,
});

same_type!(v1::PolicyRulesWithSubjects = k8s::PolicyRulesWithSubjects {
    subjects = subjects: list,
    resource_rules = resource_rules: list_unless_empty,
    non_resource_rules = non_resource_rules: list_unless_empty,
});

same_type!(v1::Subject = k8s::Subject {
    kind = kind: choice,
    user = user: optional,
    group = group: optional,
    service_account = service_account: optional,
});

same_type!(v1::UserSubject = k8s::UserSubject {
    name = name: same,
});

same_type!(v1::GroupSubject = k8s::GroupSubject {
    name = name: same,
});

same_type!(v1::ServiceAccountSubject = k8s::ServiceAccountSubject {
    namespace = namespace: same,
    name = name: same,
});

same_type!(v1::ResourcePolicyRule = k8s::ResourcePolicyRule {
    verbs = verbs: same,
    api_groups = api_groups: same,
    resources = resources: same,
    cluster_scope = cluster_scope: unless_empty,
    namespaces = namespaces: unless_empty,
});

same_type!(v1::NonResourcePolicyRule = k8s::NonResourcePolicyRule {
    verbs = verbs: same,
    non_resource_urls = non_resource_urls: same,
});

same_type!(Status = k8s::FlowSchemaStatus {
    conditions = conditions: list_unless_empty,
});

same_type!(Condition = k8s::FlowSchemaCondition {
    condition = type_: text,
    status = status: unless_empty,
    last_transition_time = last_transition_time: optional,
    reason = reason: unless_empty,
    message = message: unless_empty,
});
