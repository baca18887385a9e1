//! Version `v1beta1`: the same as `v1beta2` but for its name.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use crate::v1::FlowSchemaSpec;
use crate::{InVersion, List, Object, Version};

pub use crate::v1beta2::{LimitedPriorityLevelConfiguration, PriorityLevelConfigurationSpec};

/// The mark of an object of version `v1beta1`.
#[deprecated(note = "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use `v1::V1`")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct V1beta1;

impl InVersion for V1beta1 {
    const VERSION: Version = Version::V1beta1;
}

/// A flow schema as this version writes it.
#[deprecated(note = "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use `v1::FlowSchema`")]
pub type FlowSchema = Object<V1beta1, FlowSchemaSpec>;

/// A list of flow schemas as this version writes it.
#[deprecated(note = "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use `v1::FlowSchemaList`")]
pub type FlowSchemaList = List<V1beta1, FlowSchemaSpec>;

/// A priority level as this version writes it.
#[deprecated(
    note = "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use `v1::PriorityLevelConfiguration`"
)]
pub type PriorityLevelConfiguration = Object<V1beta1, PriorityLevelConfigurationSpec>;

/// A list of priority levels as this version writes it.
#[deprecated(
    note = "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use `v1::PriorityLevelConfigurationList`"
)]
pub type PriorityLevelConfigurationList = List<V1beta1, PriorityLevelConfigurationSpec>;
