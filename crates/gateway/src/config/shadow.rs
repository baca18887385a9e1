//! A second configuration that decides beside the first, without any effect on requests.

use std::path::PathBuf;

use evenkeel::shadow::ShadowSettings;
use serde::{Deserialize, Serialize};

use super::flow_control::BorrowingConfig;

/// A second configuration that decides about the same requests, and changes none of them. What is not said here is as it is in effect.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ShadowConfig {
    /// A manifest or a folder of manifests with its objects.
    pub objects: Option<PathBuf>,
    /// How many seats it has.
    pub concurrency: Option<u32>,
    /// When its levels borrow seats from each other: `immediate` or `periodic`.
    pub borrowing: Option<BorrowingConfig>,
}

// === impl ShadowConfig ===

impl ShadowConfig {
    /// What it has beside its objects.
    pub(crate) fn settings(&self) -> ShadowSettings {
        ShadowSettings { concurrency: self.concurrency, borrowing: self.borrowing.map(Into::into) }
    }
}
