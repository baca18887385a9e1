//! The gateway: a reverse proxy that stands in front of any HTTP service and keeps it upright.

mod answer_body;
mod answers;
mod client_body;
mod connection;
mod exchange;
mod forward;
mod gateway;
mod h1;
mod peer;
mod readiness;
mod serve;
mod stream;
mod ticks;
mod tls;
mod upstream;
mod watch;
mod worker;

pub mod admin;
pub mod config;
pub mod host;
pub mod identity;
pub mod log;
pub mod metrics;
pub mod objects;
pub mod requests;

pub use config::Config;
pub use gateway::{Drained, Gateway, StartError};
pub use peer::{ClientCertificate, Peer, Transport};
pub use readiness::{Phase, Readiness};
pub use tls::TlsError;
