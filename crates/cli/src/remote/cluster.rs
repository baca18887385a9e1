//! A cluster: which one a tool is about, and the objects of its API server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_api::{AnyObject, GROUP, Kind, Preset, Version};
use evenkeel_gateway::FetchLimits;
use http::StatusCode;
use tokio::runtime;

use super::{Access, Server, kubeconfig};
use crate::exit::WrongUsage;
use crate::usage::is_kubectl_plugin;

/// All objects of a cluster are some hundred kilobytes.
pub(crate) const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 64 << 20 };

/// The flags that name a cluster.
#[derive(Debug, Default, Args)]
pub(crate) struct ClusterFlags {
    /// A kubeconfig that names an API server, whose objects are read [default: $KUBECONFIG, or ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig, whose objects are read [default: the current one].
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// The objects of a cluster, and where they are from.
#[derive(Debug)]
pub(crate) struct ClusterObjects {
    pub(crate) url: String,
    pub(crate) objects: Vec<AnyObject>,
    /// Such as `v1.33.2`, unless the server does not tell.
    pub(crate) kubernetes: Option<String>,
}

// === impl ClusterFlags ===

impl ClusterFlags {
    /// Whether a flag names a cluster.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some()
    }

    /// Whether the tool is about a cluster: a flag names one, or kubectl runs this and nothing else was named.
    pub(crate) fn is_meant(&self, is_other_named: bool) -> bool {
        self.is_given() || !is_other_named && is_kubectl_plugin()
    }

    /// How its API server is reached.
    pub(crate) fn access(&self) -> Result<Access> {
        kubeconfig::read(&kubeconfig::paths(self.kubeconfig.as_deref())?, self.context.as_deref())
    }

    /// Reads the objects of the cluster.
    pub(crate) fn read(&self, preset: Preset) -> Result<ClusterObjects> {
        let read = || -> Result<ClusterObjects> {
            let access = self.access()?;
            let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
            runtime.block_on(ClusterObjects::fetch(&access, preset))
        };
        read().map_err(|error| WrongUsage(format!("{error:#}")).into())
    }
}

// === impl ClusterObjects ===

impl ClusterObjects {
    /// Asks an API server for all its flow schemas and priority levels.
    pub(crate) async fn fetch(access: &Access, preset: Preset) -> Result<Self> {
        let server = Server::new(access, LIMITS)?;
        let mut objects = Vec::new();
        for kind in [Kind::PriorityLevelConfiguration, Kind::FlowSchema] {
            objects.extend(list(&server, kind, preset).await?);
        }
        let kubernetes = version(&server).await;
        Ok(Self { url: server.url().to_owned(), objects, kubernetes })
    }
}

/// All objects of a kind, in the newest version that the server has.
async fn list(server: &Server, kind: Kind, preset: Preset) -> Result<Vec<AnyObject>> {
    for version in Version::ALL {
        let target = format!("/apis/{GROUP}/{version}/{}", kind.resource());
        let (status, body) = server.get(&target).await?;
        match status {
            StatusCode::OK => {
                let name = format!("{}{target}", server.url());
                let read = Manifest::read_for(preset, &name, &body, Strictness::Lenient)?;
                return Ok(read.entries.into_iter().map(|entry| entry.object).collect());
            }
            // An older server.
            StatusCode::NOT_FOUND => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                bail!(
                    "{} does not allow listing {} ({status}); grant the user that (deploy/cluster-reader.yaml), or name a context of another user with --context",
                    server.url(),
                    kind.resource()
                )
            }
            _ => bail!("cannot list {} of {}: the response has status {status}", kind.resource(), server.url()),
        }
    }
    bail!("{} has no {GROUP}; is it the address of an API server?", server.url())
}

/// The server's version. A server that does not tell it is no error.
async fn version(server: &Server) -> Option<String> {
    let (status, body) = server.get("/version").await.ok()?;
    let version: serde_json::Value = serde_json::from_slice(&body).ok().filter(|_| status == StatusCode::OK)?;
    version.get("gitVersion")?.as_str().map(ToOwned::to_owned)
}
