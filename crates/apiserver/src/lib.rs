//! The REST API of `flowcontrol.apiserver.k8s.io` over a store, in all four versions, as a kube-apiserver serves it.

mod access;
mod body;
mod clock;
mod continue_token;
mod controllers;
mod data_dir;
mod denials;
mod discovery;
mod document;
mod failure;
mod follow;
mod gzip;
mod http;
mod in_flight;
mod log_once;
mod negotiate;
mod offload;
mod openapi;
mod options;
mod other_metrics;
mod output;
mod owners;
mod registry;
mod request_context;
mod response_data;
mod review;
mod route;
mod server;
mod service;
mod strconv;
mod target;
mod verbs;
mod warning;
mod watch;
mod websocket;

pub mod managed_fields;
pub mod patch;

pub use data_dir::{DataDir, DataDirError, ObjectsCopy};
pub use denials::declared_metrics;
pub use failure::Failure;
pub use follow::{ObjectState, ObjectStream};
pub use http::{Api, ApiBody};
pub use other_metrics::OtherMetrics;
pub use server::{ApiServer, ApiServerOptions, StatusController};
pub use service::ApiService;
