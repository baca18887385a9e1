//! The gateway: a reverse proxy that stands in front of any HTTP service and keeps it upright.

mod gateway;
mod peer;
mod readiness;
mod watch;

pub mod admin;
pub mod config;
pub mod identity;
pub mod log;
pub mod metrics;
pub mod objects;
pub mod requests;

pub use config::Config;
pub use gateway::{Drained, Gateway, StartError};
pub use peer::{ClientCertificate, Peer, Transport};
pub use readiness::{Phase, Readiness};
