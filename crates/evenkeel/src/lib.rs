//! Priority and fairness for any Rust service.
#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod control;
mod layer;
mod observe;
mod sync;

pub use control::builder::FlowControlBuilder;
pub use control::flow_control::FlowControl;
pub use control::permit::Permit;
pub use control::rejected::Rejected;
pub use layer::admitted::Admitted;
pub use layer::flow_layer::FlowLayer;
#[doc(hidden)]
pub use layer::grpc;
pub use layer::identify;
pub use observe::debug;

pub use evenkeel_api as api;
#[doc(inline)]
pub use evenkeel_api::Preset;
#[doc(inline)]
pub use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
#[doc(inline)]
pub use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};

pub mod objects {
    //! Flow schemas and priority levels: what a flow control accepts as its objects, and what comes of them.
    //!
    //! [`FlowSchema`](crate::FlowSchema) and [`PriorityLevelConfiguration`](crate::PriorityLevelConfiguration) themselves are at the
    //! root of the crate; their builders are in [`api::build`](crate::api::build).

    pub use crate::control::flow_control::ObjectsReport;
    pub use crate::control::into_objects::IntoObjects;
    pub use crate::control::object_problems::{InvalidObjects, ObjectProblem};
    #[doc(inline)]
    pub use evenkeel_api::decode::Problems;
    #[doc(inline)]
    pub use evenkeel_engine::controller::{Dangling, Objects, TooFewSeats, Unusable};
}

#[cfg(feature = "check")]
pub mod check {
    //! Findings in objects that work, but probably not as they are meant: the results of
    //! [`FlowControl::findings`](crate::FlowControl::findings).

    #[doc(inline)]
    pub use evenkeel_check::{Assumptions, Finding, ObjectName, Rule, Severity, Witness};
}

pub mod request {
    //! Requests that do not come through the layer: what [`FlowControl::admit`](crate::FlowControl::admit) and
    //! [`FlowControl::arrive`](crate::FlowControl::arrive) take and give.

    pub use crate::control::admit::{Admit, Arrived};
    pub use crate::control::class::Class;
    pub use crate::control::long_running::LongRunning;
    pub use crate::control::permit::SharedPermit;
    pub use crate::control::request::{Details, FlowRequest, Patience};
    pub use crate::control::seat_times::{RequestCost, SeatTimes};
    #[doc(inline)]
    pub use evenkeel_engine::queue_set::Rejection;
}

pub mod service {
    //! The service that [`FlowLayer`](crate::FlowLayer) makes, and what it is told and tells.
    //!
    //! Most services need two of these: [`Occupancy`] for responses that go on for long, and [`Refusal`] for responses in an error
    //! format of their own.

    pub use crate::layer::admitted::{
        AdmittedRequest, HandOver, InsertAdmitted, PassAdmitted, RequestHead, RequestOnly,
    };
    pub use crate::layer::body::FlowBody;
    pub use crate::layer::boxed::{BoxDigest, BoxIdentify, BoxWork, BoxedFlowLayer};
    #[cfg(feature = "axum")]
    pub use crate::layer::extract::NotAdmitted;
    pub use crate::layer::future::{FlowFuture, NotFailed};
    pub use crate::layer::occupancy::Occupancy;
    pub use crate::layer::refusal::Refusal;
    pub use crate::layer::response::RejectionForm;
    pub use crate::layer::service::FlowService;
}

pub mod digest {
    //! What requests ask for: [`Digest`], and ready-made digests with their parts.

    pub use crate::layer::digest::{Digest, Digested, PresetDigest};
    pub use crate::layer::head::PartsHead;
    #[doc(inline)]
    pub use evenkeel_engine::digest::routes::{Attribute, Route, RouteError, RouteErrors, RouteTable, TemplateFault};
    #[doc(inline)]
    pub use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths, Query};
}

pub mod work {
    //! How many seats requests take: what [`FlowLayer::work`](crate::FlowLayer::work) takes.

    pub use crate::control::work::{EstimateWork, KubernetesWork, Watch, WorkInput};
    #[doc(inline)]
    pub use evenkeel_engine::LevelInfo;
    #[doc(inline)]
    pub use evenkeel_engine::work::{EstimatorConfig, ListCosting};
}

pub mod cost {
    //! What requests cost: sources of costs, and the costs of routes. [`Permit`](crate::Permit) has the rest.

    pub use crate::control::cost_source::{CostMeter, CountCost, Counted, RouteCost};
    #[doc(inline)]
    pub use evenkeel_api::annotations::CostUnit;
}

pub mod division {
    //! How seats are divided among the levels, and lent: what
    //! [`FlowControlBuilder::divide_seats`](crate::FlowControlBuilder::divide_seats) and
    //! [`FlowControlBuilder::borrowing`](crate::FlowControlBuilder::borrowing) take.

    #[doc(inline)]
    pub use evenkeel_engine::borrowing::{
        AdjustedLevel, Adjustment, DivideSeats, ExactDivision, FaithfulDivision, LevelDemand,
    };
    #[doc(inline)]
    pub use evenkeel_engine::controller::{Borrowing, UnknownBorrowing};
}

pub mod clock {
    //! Time that is set by hand: what [`FlowControlBuilder::manual_clock`](crate::FlowControlBuilder::manual_clock) takes.

    pub use crate::control::clock::ManualClock;
}

pub mod limit {
    //! How many seats a server has, and how it finds that out: what
    //! [`FlowControlBuilder::server_concurrency_auto`](crate::FlowControlBuilder::server_concurrency_auto) turns on and
    //! [`FlowControl::limit_state`](crate::FlowControl::limit_state) tells.

    pub use crate::control::limit::{LimitState, LimitStep};
    #[doc(inline)]
    pub use evenkeel_engine::auto_limit::{
        AUTO_BOUNDS, CeilingCause, Concurrency, ConcurrencyError, Elasticity, Learnt, LimitChange, LimitReason,
        LimitStatus, Load, Phase, SearchCause,
    };
}

pub mod flight {
    //! What was decided about the last requests: what [`FlowControl::record`](crate::FlowControl::record) keeps and
    //! [`FlowControl::flight`](crate::FlowControl::flight) gives, and the format of its files.

    pub use crate::control::flight::{
        DamagedFlight, Flight, FlightChange, FlightEnd, FlightFact, FlightHeader, FlightNote, FlightRate, FlightRecord,
        FlightRequest, MAGIC, RateOutcome, VERSION,
    };
}

pub mod shadow {
    //! A second configuration that decides about the same requests without any effect on them: what
    //! [`FlowControl::shadow`](crate::FlowControl::shadow) starts and [`FlowControl::shadow_report`](crate::FlowControl::shadow_report) tells.

    pub use crate::control::shadow::{
        Moved, Observed, ShadowFigures, ShadowFlow, ShadowReport, ShadowSettings, ShadowWait, Sides,
    };
}

pub mod canary {
    //! A second configuration that decides about a part of the flows, for real: what
    //! [`FlowControl::canary`](crate::FlowControl::canary) takes and [`FlowControl::canary_state`](crate::FlowControl::canary_state) tells.

    pub use crate::control::canary::{CanaryBounds, CanaryError, CanaryPhase, CanarySettings, CanaryState};
}

pub mod status {
    //! What levels and flows are doing: the structures that [`FlowControl::status`](crate::FlowControl::status),
    //! [`FlowControl::flows`](crate::FlowControl::flows) and [`FlowControl::reading`](crate::FlowControl::reading) give.

    pub use crate::observe::flows::{FlowCost, FlowDelay, FlowFigures, FlowId, FlowMoment, FlowUsage, LevelFlows};
    pub use crate::observe::metrics::{
        DurationCounts, LevelQueuing, LevelReading, RateReading, RatioCounts, Reading, SchemaReading,
    };
    pub use crate::observe::status::{LevelStatus, SeatLimits};
    #[doc(inline)]
    pub use evenkeel_engine::queue_set::QueuingDiscipline;
}

pub mod explain {
    //! Why a request goes where it goes: the structures that [`FlowControl::explain`](crate::FlowControl::explain) gives.

    pub use crate::observe::explain::{
        DanglingSchema, ExpectedWait, ExplainedFleet, ExplainedQueuing, ExplainedRate, ExplainedRequest,
        ExplainedSeats, Explanation, LiveLevel, TriedSchema, WaitOutcome,
    };
}

pub mod events {
    //! The events of levels: what [`FlowControlBuilder::listen`](crate::FlowControlBuilder::listen) and
    //! [`FlowControlBuilder::listen_to_arrivals`](crate::FlowControlBuilder::listen_to_arrivals) take.
    //!
    //! The metrics, the drain meter behind `Retry-After`, and [who uses a level](crate::FlowControl::flows) listen to the same events.

    pub use crate::control::events::{
        Arrival, ArrivalListener, CostKind, Event, EventKind, LevelNumbers, Listener, RunEnd,
    };
    #[doc(inline)]
    pub use evenkeel_engine::LevelId;
    #[doc(inline)]
    pub use evenkeel_engine::queue_set::{Rejection, RequestId};
}

#[cfg(feature = "fleet")]
pub mod fleet {
    //! Several instances that share the seats of one service: see [`FlowControlBuilder::fleet`](crate::FlowControlBuilder::fleet).

    #[doc(inline)]
    pub use crate::control::fleet::{FleetState, FleetStep, JoinFleetError};
    #[doc(inline)]
    pub use evenkeel_fleet::{
        Allowance, FleetConfig, FleetSettings, FleetStatus, Footing, FoundLimit, FoundSeats, InstanceId, JoinError,
        MemberEvent, Terms,
    };
    #[doc(inline)]
    pub use evenkeel_store::{EtcdConfig, EtcdIdentity, EtcdLogin, EtcdTls};
}

#[cfg(feature = "metrics")]
pub mod metrics {
    //! Metrics: the page that a scrape gets, what is declared, and those of the process.

    pub use crate::observe::metrics::{
        Metric, MetricKind, MetricsPage, RegisterError, declared, register_labelled, register_named, register_process,
    };
    /// The crate whose registries are used here.
    pub use prometheus_client;
}

/// Not below `control`, which another test compiles with other locks.
#[cfg(all(test, feature = "fleet"))]
#[path = "control/fleet/tests.rs"]
mod fleet_tests;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// The page of the crate is shown by a registry too, which does not hide lines as rustdoc does.
    const PAGE: &str = include_str!("../README.md");

    #[test]
    fn the_page_has_the_dependency_and_no_hidden_lines() {
        let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
        assert!(PAGE.contains(&format!("[dependencies]\nevenkeel = \"{version}\"\n")));
        assert!(PAGE.contains(concat!("version of Rust is ", env!("CARGO_PKG_RUST_VERSION"), ".\n")));
        // What stands between fences is code.
        let code = PAGE.split("```").skip(1).step_by(2);
        let hidden: Vec<_> = code.flat_map(str::lines).filter(|line| *line == "#" || line.starts_with("# ")).collect();
        assert_eq!(hidden, [""; 0]);
    }

    #[test]
    fn control_is_the_bottom_and_layer_and_observe_do_not_know_each_other() {
        for (folder, others) in [
            ("control", &["crate::layer", "crate::observe"][..]),
            ("layer", &["crate::observe"]),
            ("observe", &["crate::layer"]),
        ] {
            let mut text = String::new();
            source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder), &mut text);
            assert!(text.len() > 10_000, "{folder} has been moved");
            for other in others {
                let found: Vec<_> = text.lines().filter(|line| line.contains(other)).collect();
                assert_eq!(found, [""; 0], "in `{folder}`");
            }
        }
    }

    fn source(folder: &Path, text: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                source(&path, text);
            } else {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }

    /// A registry cannot resolve links by the names of items, so the page has addresses, which rustdoc does not check.
    #[test]
    fn the_page_links_to_items_that_exist() {
        let mut text = String::new();
        source(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let declared = |kind: &str, name: &str| {
            ["(", "<", " ", ";", "{", ":"].iter().any(|end| text.contains(&format!("pub {kind} {name}{end}")))
        };
        let addresses = PAGE.lines().filter_map(|line| line.split_once("]: https://docs.rs/evenkeel/latest/evenkeel/"));
        let mut links = 0;
        for (_, address) in addresses {
            links += 1;
            let (page, method) = address.split_once("#method.").unwrap_or((address, ""));
            let page = page.strip_suffix(".html").unwrap();
            let item = page.rsplit_once('/').map_or(page, |(_, item)| item);
            let is_found = match item.split_once('.') {
                Some((kind, name)) => declared(kind, name) && (method.is_empty() || declared("fn", method)),
                None => item == "index" && declared("mod", page.strip_suffix("/index").unwrap()),
            };
            assert!(is_found, "{address}");
        }
        assert!(links > 30, "only {links} links were found");
        let by_name: Vec<_> =
            PAGE.match_indices("](").filter(|(at, _)| !PAGE[at + 2..].starts_with(['#', 'h'])).collect();
        assert_eq!(by_name, [], "links in parentheses that no registry can resolve");
    }
}
