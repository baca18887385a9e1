//! The figures of instances that share seats, and beside them those of instances with a fixed part each.

use serde::Serialize;

use super::cluster::Cluster;
use crate::report::{MeanMax, rounded};
use crate::traffic::{Flow, Traffic};

/// Instances that shared the seats of a service.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FleetReport {
    /// The seats of the service; if the instances find that out, at the end.
    pub seats: i64,
    /// Whether the instances found that out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_found: bool,
    /// The seats that the service used, all instances together.
    pub in_use: MeanMax,
    /// The instances, by number.
    pub instances: Vec<InstanceReport>,
    /// Requests that were completed.
    pub completed: u64,
    /// How evenly flows got seats that wanted more of them: see [`JainReport::overall`](crate::report::JainReport::overall).
    pub jain: Option<f64>,
    /// How often instances have written what they could use.
    pub publications: u64,
    /// How often the division was written.
    pub divisions: u64,
    /// How often a write came too late, because another instance was faster.
    pub conflicts: u64,
    /// Messages that were lost, to etcd and back.
    pub lost_messages: u64,
    /// The same requests on instances that have a fixed part of the seats each.
    pub apart: ApartReport,
}

/// Instances with a fixed part of the seats each.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ApartReport {
    /// The seats that the service used, all instances together.
    pub in_use: MeanMax,
    /// The instances, by number.
    pub instances: Vec<InstanceReport>,
    /// Requests that were completed.
    pub completed: u64,
    /// How evenly flows got seats that wanted more of them.
    pub jain: Option<f64>,
}

/// One instance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstanceReport {
    /// The seats that it used.
    pub in_use: MeanMax,
}

// === impl FleetReport ===

impl FleetReport {
    pub(super) fn new(fleet: &Cluster, traffic: &Traffic<'_>, apart: &Cluster, beside: &Traffic<'_>) -> Self {
        let ApartReport { in_use, instances, completed, jain } = ApartReport::new(fleet, traffic);
        let (counts, lost_messages) = fleet.etcd_counts().unwrap_or_default();
        Self {
            seats: fleet.service_seats(),
            is_found: fleet.finds_seats(),
            in_use,
            instances,
            completed,
            jain,
            publications: counts.publications,
            divisions: counts.ledger_writes,
            conflicts: counts.conflicts,
            lost_messages,
            apart: ApartReport::new(apart, beside),
        }
    }
}

// === impl ApartReport ===

impl ApartReport {
    fn new(cluster: &Cluster, traffic: &Traffic<'_>) -> Self {
        Self {
            in_use: cluster.in_use(),
            instances: cluster.in_use_by_instance().map(|in_use| InstanceReport { in_use }).collect(),
            completed: traffic.flows().iter().map(Flow::counted).map(|tally| tally.completed).sum(),
            jain: traffic.overall().map(rounded),
        }
    }
}
