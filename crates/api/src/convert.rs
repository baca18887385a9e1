//! From any version to the hub and back (API-62, API-63).
//!
//! The versions differ in one member only: how the shares of a limited level are called, and how a zero is told
//! from an absent value there.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::v1::{self, FlowSchemaSpec, V1};
use crate::v1beta3::PRESERVE_ZERO_ANNOTATION;
use crate::{InVersion, Object, Spec, v1beta2, v1beta3};

/// An object as some version writes it, which can be turned into the hub's form and back.
///
/// Conversion fills in no defaults: [`Defaulted`](crate::Defaulted) comes first.
///
/// ```
/// use evenkeel_api::{Wire, v1, v1beta2};
///
/// let mut level = v1beta2::PriorityLevelConfiguration::default();
/// level.spec.limited.get_or_insert_default().assured_concurrency_shares = 7;
/// let hub: v1::PriorityLevelConfiguration = level.into_hub();
/// assert_eq!(hub.spec.limited.unwrap().nominal_concurrency_shares, Some(7));
/// ```
pub trait Wire: Serialize + DeserializeOwned {
    /// The specification of the same kind in the hub version.
    type HubSpec: Spec;

    /// The object in the hub version.
    fn into_hub(self) -> Object<V1, Self::HubSpec>;

    /// The object as this version writes it.
    fn from_hub(hub: Object<V1, Self::HubSpec>) -> Self;
}

impl<V: InVersion> Wire for Object<V, FlowSchemaSpec> {
    type HubSpec = FlowSchemaSpec;

    fn into_hub(self) -> v1::FlowSchema {
        self.rewrite(|spec| spec)
    }

    fn from_hub(hub: v1::FlowSchema) -> Self {
        hub.rewrite(|spec| spec)
    }
}

impl Wire for v1::PriorityLevelConfiguration {
    type HubSpec = v1::PriorityLevelConfigurationSpec;

    fn into_hub(self) -> v1::PriorityLevelConfiguration {
        self
    }

    fn from_hub(hub: v1::PriorityLevelConfiguration) -> Self {
        hub
    }
}

impl Wire for v1beta3::PriorityLevelConfiguration {
    type HubSpec = v1::PriorityLevelConfigurationSpec;

    fn into_hub(mut self) -> v1::PriorityLevelConfiguration {
        self.metadata.annotations.remove(PRESERVE_ZERO_ANNOTATION);
        self.rewrite(|spec| v1::PriorityLevelConfigurationSpec {
            enablement: spec.enablement,
            limited: spec.limited.map(|limited| v1::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(limited.nominal_concurrency_shares),
                limit_response: limited.limit_response,
                lendable_percent: limited.lendable_percent,
                borrowing_limit_percent: limited.borrowing_limit_percent,
            }),
            exempt: spec.exempt,
        })
    }

    fn from_hub(mut hub: v1::PriorityLevelConfiguration) -> Self {
        let shares = hub.spec.limited.as_ref().and_then(|limited| limited.nominal_concurrency_shares);
        if shares == Some(0) {
            hub.metadata.annotations.insert(PRESERVE_ZERO_ANNOTATION.to_owned(), String::new());
        }
        hub.rewrite(|spec| v1beta3::PriorityLevelConfigurationSpec {
            enablement: spec.enablement,
            limited: spec.limited.map(|limited| v1beta3::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: limited.nominal_concurrency_shares.unwrap_or_default(),
                limit_response: limited.limit_response,
                lendable_percent: limited.lendable_percent,
                borrowing_limit_percent: limited.borrowing_limit_percent,
            }),
            exempt: spec.exempt,
        })
    }
}

/// `v1beta2` and `v1beta1`, whose priority levels are of the same type.
impl<V: InVersion> Wire for Object<V, v1beta2::PriorityLevelConfigurationSpec> {
    type HubSpec = v1::PriorityLevelConfigurationSpec;

    fn into_hub(self) -> v1::PriorityLevelConfiguration {
        self.rewrite(|spec| v1::PriorityLevelConfigurationSpec {
            enablement: spec.enablement,
            limited: spec.limited.map(|limited| v1::LimitedPriorityLevelConfiguration {
                nominal_concurrency_shares: Some(limited.assured_concurrency_shares),
                limit_response: limited.limit_response,
                lendable_percent: limited.lendable_percent,
                borrowing_limit_percent: limited.borrowing_limit_percent,
            }),
            exempt: spec.exempt,
        })
    }

    fn from_hub(hub: v1::PriorityLevelConfiguration) -> Self {
        hub.rewrite(|spec| v1beta2::PriorityLevelConfigurationSpec {
            enablement: spec.enablement,
            limited: spec.limited.map(|limited| v1beta2::LimitedPriorityLevelConfiguration {
                assured_concurrency_shares: limited.nominal_concurrency_shares.unwrap_or_default(),
                limit_response: limited.limit_response,
                lendable_percent: limited.lendable_percent,
                borrowing_limit_percent: limited.borrowing_limit_percent,
            }),
            exempt: spec.exempt,
        })
    }
}
