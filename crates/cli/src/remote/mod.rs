//! Other servers that tools ask: API servers and the admin endpoints of gateways.

pub(crate) mod kubeconfig;
mod server;

pub(crate) use kubeconfig::{Access, Pem};
pub(crate) use server::{Link, Server};
