//! The lists of both kinds.

use ::k8s_openapi::List;
use ::k8s_openapi::api::flowcontrol::v1 as k8s;

use super::same_type;
use crate::v1;

same_type!(v1::FlowSchemaList = List<k8s::FlowSchema> { metadata = metadata: part, items = items: list, });

same_type!(v1::PriorityLevelConfigurationList = List<k8s::PriorityLevelConfiguration> {
    metadata = metadata: part,
    items = items: list,
});
