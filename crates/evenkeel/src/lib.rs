//! Priority and fairness for any Rust service.
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod control;
mod layer;
mod observe;
mod sync;

pub use control::admit::{Admit, Arrived};
pub use control::builder::Builder;
pub use control::class::Class;
pub use control::clock::ManualClock;
pub use control::flow_control::{FlowControl, Report};
pub use control::into_objects::IntoObjects;
pub use control::long_running::LongRunning;
pub use control::permit::{Permit, SharedPermit};
pub use control::rejected::Rejected;
pub use control::request::{Details, Patience, Request};
pub use layer::admitted::{
    Admitted, AdmittedRequest, HandOver, InsertAdmitted, PassAdmitted, RequestHead, RequestOnly,
};
pub use layer::body::FlowBody;
pub use layer::digest::{Digest, Digested, PresetDigest};
pub use layer::flow_layer::FlowLayer;
pub use layer::future::FlowFuture;
#[doc(hidden)]
pub use layer::grpc;
pub use layer::identify::{self, Identify};
pub use layer::occupancy::Occupancy;
pub use layer::refusal::Refusal;
pub use layer::response::RejectionForm;
pub use layer::service::FlowService;
pub use layer::work::{EstimateWork, KubernetesWork, Watch, WorkInput};
pub use observe::debug;
pub use observe::explain::{
    ExpectedWait, ExplainedQueuing, ExplainedRequest, ExplainedSeats, Explanation, LiveLevel, TriedSchema, WaitOutcome,
};
pub use observe::flows::{FlowDelay, FlowFigures, FlowId, FlowUsage, LevelFlows};
pub use observe::metrics::{DurationCounts, LevelQueuing, LevelReading, RatioCounts, Reading, SchemaReading};
pub use observe::status::{LevelStatus, SeatLimits};

pub use evenkeel_api as api;
pub use evenkeel_api::Preset;
pub use evenkeel_api::decode::Problems;
pub use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
pub use evenkeel_engine::controller::{Borrowing, Dangling, Objects, UnknownBorrowing, Unusable};
pub use evenkeel_engine::queue_set::{QueuingDiscipline, Rejection};
pub use evenkeel_engine::work::{EstimatorConfig, ListCosting};
pub use evenkeel_engine::{Attributes, LevelInfo, RequestInfo, User, WorkEstimate};

#[cfg(feature = "metrics")]
pub mod metrics {
    //! Metrics: the page that a scrape gets, what is declared, and those of the process.

    pub use crate::observe::metrics::{
        Metric, MetricKind, MetricsPage, RegisterError, declared, register_named, register_process,
    };
    /// The crate whose registries are used here.
    pub use prometheus_client;
}

pub mod division {
    //! How seats are divided among the levels: what [`Builder::divide_seats`](crate::Builder::divide_seats) takes.

    pub use evenkeel_engine::borrowing::{
        AdjustedLevel, Adjustment, DivideSeats, ExactDivision, FaithfulDivision, LevelDemand,
    };
}

pub mod observer {
    //! Learn of arrivals, starts, ends and rejections: what [`Builder::observe`](crate::Builder::observe) takes.

    pub use evenkeel_engine::level::{NewRequest, Observer};
    pub use evenkeel_engine::queue_set::RequestId;
    pub use evenkeel_engine::time::Instant;
    pub use evenkeel_engine::{Flow, LevelId};
}

pub mod digest {
    //! What requests ask for: ready-made [digests](crate::Digest), and their parts.

    pub use evenkeel_engine::digest::routes::{Attribute, Route, RouteError, RouteErrors, RouteTable, TemplateFault};
    pub use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths, Query};
}

#[cfg(test)]
mod tests {
    /// The page of the crate is shown by a registry too, which does not hide lines as rustdoc does.
    const PAGE: &str = include_str!("../README.md");

    #[test]
    fn the_page_has_the_dependency_and_no_hidden_lines() {
        let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
        assert!(PAGE.contains(&format!("[dependencies]\nevenkeel = \"{version}\"\n")));
        // What stands between fences is code.
        let code = PAGE.split("```").skip(1).step_by(2);
        let hidden: Vec<_> = code.flat_map(str::lines).filter(|line| *line == "#" || line.starts_with("# ")).collect();
        assert_eq!(hidden, [""; 0]);
    }
}
