//! Version `v1beta2`: like `v1`, except that the shares are called `assuredConcurrencyShares` and cannot be zero.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use crate::schema::{TypeName, Union, declare_type};
use crate::v1::{
    CONCURRENCY_SHARES_DEFAULT, ExemptPriorityLevelConfiguration, FlowSchemaSpec, LENDABLE_PERCENT_DEFAULT,
    LimitResponse, PriorityLevelEnablement, declare_priority_level,
};
use crate::{InVersion, List, Object, Version};

/// The mark of an object of version `v1beta2`.
#[deprecated(note = "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use `v1::V1`")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct V1beta2;

impl InVersion for V1beta2 {
    const VERSION: Version = Version::V1beta2;
}

/// A flow schema as this version writes it.
#[deprecated(note = "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use `v1::FlowSchema`")]
pub type FlowSchema = Object<V1beta2, FlowSchemaSpec>;

/// A list of flow schemas as this version writes it.
#[deprecated(note = "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use `v1::FlowSchemaList`")]
pub type FlowSchemaList = List<V1beta2, FlowSchemaSpec>;

/// A priority level as this version writes it.
#[deprecated(
    note = "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use `v1::PriorityLevelConfiguration`"
)]
pub type PriorityLevelConfiguration = Object<V1beta2, PriorityLevelConfigurationSpec>;

/// A list of priority levels as this version writes it.
#[deprecated(
    note = "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use `v1::PriorityLevelConfigurationList`"
)]
pub type PriorityLevelConfigurationList = List<V1beta2, PriorityLevelConfigurationSpec>;

declare_priority_level! {
    deprecated {
        spec: "v1beta1 and v1beta2 are deprecated and gone since Kubernetes 1.29: use `v1::PriorityLevelConfigurationSpec`",
        limited: "v1beta1 and v1beta2 are deprecated and gone since Kubernetes 1.29: use `v1::LimitedPriorityLevelConfiguration`"
    }
    /// The level's share of the server's seats, in proportion to the shares of all levels. 0 stands for the default.
    assured_concurrency_shares "assuredConcurrencyShares": i32 [always_written default(CONCURRENCY_SHARES_DEFAULT)]
}
