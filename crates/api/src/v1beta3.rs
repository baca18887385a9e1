//! Version `v1beta3`: like `v1`, except that zero shares mean the default unless an annotation says otherwise (API-63).

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use crate::schema::{TypeName, Union, declare_type};
use crate::v1::{
    CONCURRENCY_SHARES_DEFAULT, ExemptPriorityLevelConfiguration, FlowSchemaSpec, LENDABLE_PERCENT_DEFAULT,
    LimitResponse, PriorityLevelEnablement, declare_priority_level,
};
use crate::{InVersion, List, Object, Version};

/// The annotation by which this version tells zero shares from absent ones (API-63). It is never stored.
pub const PRESERVE_ZERO_ANNOTATION: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

/// The mark of an object of version `v1beta3`.
#[deprecated(note = "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::V1`")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct V1beta3;

impl InVersion for V1beta3 {
    const VERSION: Version = Version::V1beta3;
}

/// A flow schema as this version writes it.
#[deprecated(note = "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::FlowSchema`")]
pub type FlowSchema = Object<V1beta3, FlowSchemaSpec>;

/// A list of flow schemas as this version writes it.
#[deprecated(note = "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::FlowSchemaList`")]
pub type FlowSchemaList = List<V1beta3, FlowSchemaSpec>;

/// A priority level as this version writes it.
#[deprecated(
    note = "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::PriorityLevelConfiguration`"
)]
pub type PriorityLevelConfiguration = Object<V1beta3, PriorityLevelConfigurationSpec>;

/// A list of priority levels as this version writes it.
#[deprecated(
    note = "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::PriorityLevelConfigurationList`"
)]
pub type PriorityLevelConfigurationList = List<V1beta3, PriorityLevelConfigurationSpec>;

declare_priority_level! {
    deprecated {
        spec: "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::PriorityLevelConfigurationSpec`",
        limited: "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use `v1::LimitedPriorityLevelConfiguration`"
    }
    /// The level's share of the server's seats, in proportion to the shares of all levels. 0 stands for the default,
    /// unless the object carries the annotation `flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares`.
    nominal_concurrency_shares "nominalConcurrencyShares": i32 [always_written default(CONCURRENCY_SHARES_DEFAULT)]
}
