//! Priority and fairness for any Rust service.
#![doc = include_str!("../README.md")]

mod admission;
mod admit;
mod body;
mod builder;
mod clock;
mod deadline;
mod digest;
mod digests;
mod events;
mod flow_control;
mod future;
mod kept_details;
mod known_levels;
mod layer;
mod level;
mod metrics;
mod occupancy;
mod permit;
mod rejected;
mod request;
mod response;
mod rules;
mod service;
mod snapshot;
mod status;
mod sync;
mod trace;
mod uid_headers;
mod upkeep;
mod work;

pub mod debug;
pub mod identify;

pub use admit::Admit;
pub use body::FlowBody;
pub use builder::{Builder, IntoObjects};
pub use clock::ManualClock;
pub use digest::{Digest, PresetDigest};
pub use flow_control::{FlowControl, Report};
pub use future::FlowFuture;
pub use identify::Identify;
pub use layer::FlowLayer;
pub use occupancy::Occupancy;
pub use permit::{Permit, SharedPermit};
pub use rejected::Rejected;
pub use request::{Details, EstimateWork, Patience, Request};
pub use response::RejectionForm;
pub use service::FlowService;
pub use status::LevelStatus;
pub use work::{HttpWork, KubernetesWork, Watch};

pub use evenkeel_api as api;
pub use evenkeel_api::Preset;
pub use evenkeel_engine as engine;

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
