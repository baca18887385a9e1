//! The gateways of the second table: the same objects, once in the modes of Kubernetes and once in Evenkeel's own.

use std::fs;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use evenkeel_gateway::config::{BorrowingConfig, FlowControlConfig};
use evenkeel_gateway::{Config, Gateway, objects};

use super::stage::Stage;
use crate::serve;

/// The objects, with the queuing of Kubernetes.
const OBJECTS: &str = include_str!("crowd.yaml");

/// The modes of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modes {
    /// Shuffle-sharded queues and periodic borrowing.
    Kubernetes,
    /// A queue for each flow and immediate borrowing.
    Evenkeel,
}

/// A gateway in front of the sample service, for one part.
#[derive(Debug)]
pub(crate) struct CrowdGateway {
    gateway: Gateway,
    address: SocketAddr,
}

// === impl Modes ===

impl Modes {
    fn file_name(self) -> &'static str {
        match self {
            Self::Kubernetes => "as-kubernetes.yaml",
            Self::Evenkeel => "with-evenkeel.yaml",
        }
    }

    /// The objects of both modes differ in one word.
    fn objects(self) -> String {
        match self {
            Self::Kubernetes => OBJECTS.to_owned(),
            Self::Evenkeel => OBJECTS.replace("shuffle-sharded", "per-flow"),
        }
    }

    fn borrowing(self) -> BorrowingConfig {
        match self {
            Self::Kubernetes => BorrowingConfig::Periodic,
            Self::Evenkeel => BorrowingConfig::Immediate,
        }
    }
}

// === impl CrowdGateway ===

impl CrowdGateway {
    pub(crate) async fn start(stage: &Stage, modes: Modes) -> Result<Self> {
        let manifest = stage.folder().join(modes.file_name());
        fs::write(&manifest, modes.objects()).context("cannot write the objects of the demo")?;
        let config = Config {
            objects: Some(manifest),
            flow_control: FlowControlConfig { borrowing: Some(modes.borrowing()), ..FlowControlConfig::default() },
            ..stage.config()?
        };
        let source = objects::source(&config);
        let gateway = serve::start_with(config, source).await?;
        let address = *gateway.addresses().first().context("the gateway has no address")?;
        Ok(Self { gateway, address })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) async fn stop(self) {
        self.gateway.drain().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_queuing_of_the_objects_is_different() {
        let [kubernetes, evenkeel] = [Modes::Kubernetes, Modes::Evenkeel].map(Modes::objects);
        let different: Vec<_> = kubernetes.lines().zip(evenkeel.lines()).filter(|(a, b)| a != b).collect();
        assert_eq!(different, [("    evenkeel.dev/queuing: shuffle-sharded", "    evenkeel.dev/queuing: per-flow")]);
    }
}
