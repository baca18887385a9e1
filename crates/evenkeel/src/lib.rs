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
pub use control::seat_times::SeatTimes;
pub use control::work::{EstimateWork, KubernetesWork, Watch, WorkInput};
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
pub use observe::debug;
pub use observe::explain::{
    ExpectedWait, ExplainedQueuing, ExplainedRequest, ExplainedSeats, Explanation, LiveLevel, TriedSchema, WaitOutcome,
};
pub use observe::flows::{FlowDelay, FlowFigures, FlowId, FlowMoment, FlowUsage, LevelFlows};
pub use observe::metrics::{DurationCounts, LevelQueuing, LevelReading, RatioCounts, Reading, SchemaReading};
pub use observe::status::{LevelStatus, SeatLimits};

pub use evenkeel_api as api;
#[doc(inline)]
pub use evenkeel_api::Preset;
#[doc(inline)]
pub use evenkeel_api::decode::Problems;
#[doc(inline)]
pub use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
#[doc(inline)]
pub use evenkeel_engine::controller::{Borrowing, Dangling, Objects, TooFewSeats, UnknownBorrowing, Unusable};
#[doc(inline)]
pub use evenkeel_engine::queue_set::{QueuingDiscipline, Rejection};
#[doc(inline)]
pub use evenkeel_engine::work::{EstimatorConfig, ListCosting};
#[doc(inline)]
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

    #[doc(inline)]
    pub use evenkeel_engine::borrowing::{
        AdjustedLevel, Adjustment, DivideSeats, ExactDivision, FaithfulDivision, LevelDemand,
    };
}

pub mod observer {
    //! Learn of arrivals, starts, ends and rejections: what [`Builder::observe`](crate::Builder::observe) takes.

    #[doc(inline)]
    pub use evenkeel_engine::level::{NewRequest, Observer};
    #[doc(inline)]
    pub use evenkeel_engine::queue_set::RequestId;
    #[doc(inline)]
    pub use evenkeel_engine::time::Instant;
    #[doc(inline)]
    pub use evenkeel_engine::{Flow, LevelId};
}

pub mod digest {
    //! What requests ask for: ready-made [digests](crate::Digest), and their parts.

    #[doc(inline)]
    pub use evenkeel_engine::digest::routes::{Attribute, Route, RouteError, RouteErrors, RouteTable, TemplateFault};
    #[doc(inline)]
    pub use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths, Query};
}

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
                // Inlined from the crate of the API.
                Some(("type", name)) => text.contains("evenkeel_api::v1::{") && text.contains(name),
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
