//! Warnings about priority levels whose zero shares become the default, because an older version has no way to say zero (API-25,
//! API-63).
//!
//! A kube-apiserver has no such warnings, so they are sent only where the objects are those of an ordinary service.

use std::any::Any;

use evenkeel_api::v1::{PriorityLevelConfiguration, V1};
use evenkeel_api::{GROUP, HubSpec, Kind, Object, Version};

use crate::options::Moment;
use crate::registry::{Record, Registry};

/// A level that has zero shares, before it is written in an older version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ZeroShares {
    version: Version,
}

// === impl ZeroShares ===

impl ZeroShares {
    /// The level of this name, if it is one whose zero a write in this version may lose.
    pub(super) async fn at_risk<S: HubSpec>(registry: &Registry<S>, version: Version, name: &str) -> Option<Self> {
        if registry.preset().is_kubernetes() || version == Version::V1 || S::KIND != Kind::PriorityLevelConfiguration {
            return None;
        }
        let stored = registry.get(name, Moment::Any).await.ok()?;
        (shares(&stored.object) == Some(0)).then_some(Self { version })
    }

    /// A warning with the new shares, if they are not zero any more.
    pub(super) fn warning<S: HubSpec>(self, written: &Record<S>) -> Option<String> {
        let shares = shares(&written.object).filter(|shares| *shares > 0)?;
        let (name, version) = (written.object.name(), self.version);
        Some(format!(
            "priority level {name:?} had 0 concurrency shares and has {shares} now: {version} takes 0 for the default; to keep 0, \
             write the level in {GROUP}/v1"
        ))
    }
}

fn shares<S: HubSpec>(object: &Object<V1, S>) -> Option<i32> {
    let level = (object as &dyn Any).downcast_ref::<PriorityLevelConfiguration>()?;
    level.spec.limited.as_ref()?.nominal_concurrency_shares
}
