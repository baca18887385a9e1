//! From any version to the hub and back (API-62, API-63).
//!
//! The versions differ in one member only: how the shares of a limited level are called, and how a zero is told
//! from an absent value there.

#![expect(deprecated, reason = "the older versions are served as long as clients use them")]

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

use crate::schema::Described;
use crate::v1::{self, FlowSchemaSpec, V1};
use crate::v1beta3::PRESERVE_ZERO_ANNOTATION;
use crate::{Defaulted, InVersion, Object, Spec, Version, v1beta1, v1beta2, v1beta3};

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
pub trait Wire: Described + Serialize + DeserializeOwned {
    /// The specification of the same kind in the hub version.
    type HubSpec: Spec;

    /// The object in the hub version.
    fn into_hub(self) -> Object<V1, Self::HubSpec>;

    /// The object as this version writes it.
    fn from_hub(hub: Object<V1, Self::HubSpec>) -> Self;
}

/// The specification of a kind in the hub version: what code that serves both kinds and all versions is generic over.
pub trait HubSpec: Spec {
    /// The object as `v1` writes it.
    type V1: Wire<HubSpec = Self> + Defaulted;
    /// The object as `v1beta3` writes it.
    type V1beta3: Wire<HubSpec = Self> + Defaulted;
    /// The object as `v1beta2` writes it.
    type V1beta2: Wire<HubSpec = Self> + Defaulted;
    /// The object as `v1beta1` writes it.
    type V1beta1: Wire<HubSpec = Self> + Defaulted;
}

/// An object of the hub that is written in another version.
///
/// ```
/// use evenkeel_api::{Version, v1};
///
/// let mut level = v1::PriorityLevelConfiguration::default();
/// level.spec.limited.get_or_insert_default().nominal_concurrency_shares = Some(7);
/// let text = serde_json::to_string(&level.in_version(Version::V1beta1))?;
/// assert!(text.contains(r#""assuredConcurrencyShares":7"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct WrittenIn<'a, S: Spec> {
    object: &'a Object<V1, S>,
    version: Version,
}

// === impl HubSpec ===

impl HubSpec for FlowSchemaSpec {
    type V1 = v1::FlowSchema;
    type V1beta3 = v1beta3::FlowSchema;
    type V1beta2 = v1beta2::FlowSchema;
    type V1beta1 = v1beta1::FlowSchema;
}

impl HubSpec for v1::PriorityLevelConfigurationSpec {
    type V1 = v1::PriorityLevelConfiguration;
    type V1beta3 = v1beta3::PriorityLevelConfiguration;
    type V1beta2 = v1beta2::PriorityLevelConfiguration;
    type V1beta1 = v1beta1::PriorityLevelConfiguration;
}

impl<S: HubSpec> Object<V1, S> {
    /// The object to be written in that version.
    pub fn in_version(&self, version: Version) -> WrittenIn<'_, S> {
        WrittenIn { object: self, version }
    }
}

impl<S: HubSpec> WrittenIn<'_, S> {
    /// The version that the object is written in.
    pub fn version(&self) -> Version {
        self.version
    }
}

impl<S: HubSpec> Serialize for WrittenIn<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        match self.version {
            Version::V1 => self.object.serialize(serializer),
            Version::V1beta3 => S::V1beta3::from_hub(self.object.clone()).serialize(serializer),
            Version::V1beta2 => S::V1beta2::from_hub(self.object.clone()).serialize(serializer),
            Version::V1beta1 => S::V1beta1::from_hub(self.object.clone()).serialize(serializer),
        }
    }
}

// === impl Wire ===

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
