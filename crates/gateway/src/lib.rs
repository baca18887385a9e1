//! The gateway: a reverse proxy that stands in front of any HTTP service and keeps it upright.

mod gateway;
mod peer;
mod readiness;

pub mod config;
pub mod identity;
pub mod objects;

pub use config::Config;
pub use gateway::{Drained, Gateway, StartError};
pub use peer::{ClientCertificate, Peer, Transport};
pub use readiness::{Phase, Readiness};
