//! A second configuration that decides beside the first: without any effect on requests, and for a part of the flows for real.

use std::path::PathBuf;
use std::time::Duration;

use evenkeel::canary::{CanaryBounds, CanarySettings};
use evenkeel::shadow::ShadowSettings;
use serde::{Deserialize, Serialize};

use super::flow_control::BorrowingConfig;
use super::{Problem, duration};

/// A second configuration that decides about the same requests, and changes none of them unless `percent` says so. A setting that
/// is absent here is that of the configuration in effect.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ShadowConfig {
    /// A manifest or a folder of manifests with its objects.
    pub objects: Option<PathBuf>,
    /// How many seats it has.
    pub concurrency: Option<u32>,
    /// When its levels borrow seats from each other: `immediate` or `periodic`.
    pub borrowing: Option<BorrowingConfig>,
    /// A canary: so many percent of the flows, and of the seats, are its own for real. None: it has no effect.
    pub percent: Option<u8>,
    /// When the canary ends by itself.
    pub return_if: ReturnIfConfig,
}

/// A canary that is worse than this within a minute ends by itself.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ReturnIfConfig {
    /// More than so many percent of its requests are rejected.
    pub rejected_percent: f64,
    /// The 99th percentile of the waits is above this.
    #[serde(rename = "waitP99", with = "duration")]
    pub wait_p99: Duration,
}

// === impl ShadowConfig ===

impl ShadowConfig {
    /// The shadow's settings beside its objects.
    pub(crate) fn settings(&self) -> ShadowSettings {
        ShadowSettings { concurrency: self.concurrency, borrowing: self.borrowing.map(Into::into) }
    }

    /// The settings of the canary, if the shadow is to be one too.
    pub(crate) fn canary(&self) -> Option<CanarySettings> {
        let ReturnIfConfig { rejected_percent, wait_p99 } = self.return_if;
        let bounds = CanaryBounds { rejected: rejected_percent / 100.0, wait_p99 };
        let borrowing = self.borrowing.map(Into::into);
        self.percent.map(|percent| CanarySettings { percent, borrowing, bounds })
    }

    /// The problems of these settings.
    pub(super) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut add = |field: &str, message: &str| problems.push(Problem::new(format!("shadow.{field}"), message));
        if self.percent.is_some_and(|percent| !(1..=99).contains(&percent)) {
            add("percent", "must be from 1 to 99");
        }
        if self.percent.is_some() && self.objects.is_none() {
            add("percent", "needs `shadow.objects`, which decide about these flows");
        }
        if self.concurrency == Some(0) {
            add("concurrency", "must be at least 1");
        }
        if !(0.0..=100.0).contains(&self.return_if.rejected_percent) {
            add("returnIf.rejectedPercent", "must be a number from 0 to 100");
        }
        problems
    }
}

// === impl ReturnIfConfig ===

impl Default for ReturnIfConfig {
    fn default() -> Self {
        let CanaryBounds { rejected, wait_p99 } = CanaryBounds::default();
        Self { rejected_percent: rejected * 100.0, wait_p99 }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn sh_5_settings_of_a_canary() {
        let read = |text: &str| Config::parse("evenkeel.yaml", text).unwrap().shadow.unwrap();
        let shadow = read("shadow: {objects: new.yaml, percent: 10, returnIf: {rejectedPercent: 0.5, waitP99: 300ms}}");
        assert_eq!(shadow.check(), []);
        let canary = shadow.canary().unwrap();
        assert_eq!((canary.percent, canary.bounds.wait_p99.as_millis()), (10, 300));
        assert!((canary.bounds.rejected - 0.005).abs() < 1e-9);
        assert!(read("shadow: {objects: new.yaml}").canary().is_none());
        for (text, expected) in [
            ("{objects: a, percent: 0}", "shadow.percent: must be from 1 to 99"),
            ("{objects: a, percent: 100}", "shadow.percent: must be from 1 to 99"),
            ("{percent: 10}", "shadow.percent: needs `shadow.objects`, which decide about these flows"),
            ("{concurrency: 0}", "shadow.concurrency: must be at least 1"),
            ("{returnIf: {rejectedPercent: 101}}", "shadow.returnIf.rejectedPercent: must be a number from 0 to 100"),
        ] {
            let problems = read(&format!("shadow: {text}")).check();
            assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        }
    }
}
