//! `Assumptions`: what a check assumes of the server.

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::bootstrap::{self, BootstrapObjects, KubernetesVersion};
use evenkeel_engine::controller::Borrowing;

/// The properties that a check assumes of the server that the objects are for.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumptions {
    /// Which verbs rules may have, and how seats are divided.
    pub preset: Preset,
    /// The release of Kubernetes whose suggested objects a server of the preset `kubernetes` looks after.
    pub kubernetes: KubernetesVersion,
    /// How many seats the server has.
    pub seats: u32,
    /// How long a request may wait.
    pub wait_limit: Duration,
    /// How long a request runs.
    pub service_time: Duration,
    /// How many seats the widest request takes.
    pub widest: u32,
    /// When levels borrow from each other.
    pub borrowing: Borrowing,
    /// How many requests are classified at most before questions are left undecided.
    pub work_max: u64,
}

// === impl Assumptions ===

impl Assumptions {
    /// The suggested objects that the server looks after.
    pub(crate) fn suggested(&self) -> &'static BootstrapObjects {
        match self.preset {
            Preset::Plain | Preset::Llm => self.preset.suggested(),
            Preset::Kubernetes => bootstrap::suggested_by(self.kubernetes),
        }
    }
}

impl Default for Assumptions {
    /// A Kubernetes API server with its default flags.
    fn default() -> Self {
        Self {
            preset: Preset::Kubernetes,
            kubernetes: KubernetesVersion::NEWEST,
            seats: 600,
            wait_limit: Duration::from_secs(15),
            service_time: Duration::from_millis(100),
            widest: 10,
            borrowing: Borrowing::Periodic,
            work_max: 3_000_000,
        }
    }
}
