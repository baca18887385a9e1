//! Where the builders of the older versions start. They are marked as deprecated, as the versions are.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use super::state::{NoPriorityLevel, NoType};
use super::{FlowSchemaBuilder, ListBuilder, Name, PriorityLevelBuilder};
use crate::v1::FlowSchemaSpec;
use crate::{v1beta1, v1beta2, v1beta3};

macro_rules! deprecated_builders {
    ($($version:ident::$Version:ident $note:literal, $zero:literal;)+) => {$(
        impl $version::FlowSchema {
            /// Starts a flow schema as this version writes it, with the same steps as
            /// [`v1::FlowSchema::builder`](crate::v1::FlowSchema::builder).
            #[deprecated(note = $note)]
            pub fn builder(name: impl Into<Name>) -> FlowSchemaBuilder<Self, NoPriorityLevel> {
                FlowSchemaBuilder::new(name.into())
            }
        }

        impl $version::PriorityLevelConfiguration {
            /// Starts a priority level as this version writes it, with the same steps as
            /// [`v1::PriorityLevelConfiguration::builder`](crate::v1::PriorityLevelConfiguration::builder).
            ///
            #[doc = $zero]
            #[deprecated(note = $note)]
            pub fn builder(name: impl Into<Name>) -> PriorityLevelBuilder<Self, NoType> {
                PriorityLevelBuilder::new(name.into())
            }
        }

        impl $version::FlowSchemaList {
            /// Starts a list of flow schemas as this version writes them.
            #[deprecated(note = $note)]
            pub fn builder() -> ListBuilder<$version::$Version, FlowSchemaSpec> {
                ListBuilder::new()
            }
        }

        impl $version::PriorityLevelConfigurationList {
            /// Starts a list of priority levels as this version writes them.
            #[deprecated(note = $note)]
            pub fn builder() -> ListBuilder<$version::$Version, $version::PriorityLevelConfigurationSpec> {
                ListBuilder::new()
            }
        }
    )+};
}

deprecated_builders! {
    v1beta3::V1beta3 "v1beta3 is deprecated since Kubernetes 1.29 and gone since 1.32: use the builder of the same type in `v1`",
        "Zero shares of a limited level are marked with the annotation by which this version tells them from the \
         default (API-63).";
    v1beta2::V1beta2 "v1beta2 is deprecated since Kubernetes 1.26 and gone since 1.29: use the builder of the same type in `v1`",
        "Zero shares of a limited level become the default, since this version cannot tell them from it (API-25).";
    v1beta1::V1beta1 "v1beta1 is deprecated since Kubernetes 1.23 and gone since 1.26: use the builder of the same type in `v1`",
        "Zero shares of a limited level become the default, since this version cannot tell them from it (API-25).";
}
