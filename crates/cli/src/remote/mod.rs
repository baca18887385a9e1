//! Other servers that tools ask: API servers and the admin endpoints of gateways.

mod admin_page;
pub(crate) mod cluster;
mod credential_plugin;
mod gateway_flags;
pub(crate) mod kubeconfig;
mod runtime;
mod server;

pub(crate) use admin_page::{json_page, page, parsed};
pub(crate) use cluster::{ClusterFlags, ClusterObjects};
pub(crate) use gateway_flags::GatewayFlags;
pub(crate) use kubeconfig::{Access, Pem};
pub(crate) use runtime::runtime;
pub(crate) use server::{Link, Server};

/// The default URL of a gateway's admin endpoint.
pub(crate) const GATEWAY: &str = "http://127.0.0.1:9901";
