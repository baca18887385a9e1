//! A reverse proxy with flow control for any HTTP service: `evenkeel` lets every request through, lets it wait or rejects it,
//! so that one noisy client cannot starve the others.
//!
//! [`Gateway::start`] takes a [`Config`] and a source of [objects], and returns when connections are accepted.
//! Requests are served by threads of the gateway's own, one for each core. They speak HTTP/1.1, HTTP/2, gRPC and `WebSocket`,
//! with TLS or without; who is calling is found out by the sources of [`identity`]. [`Gateway::drain`] ends it without losing
//! a request. What operators see is in [`observe`]; [`host`] puts a service of our own behind the same
//! TLS and the same identities.
//!
//! `evenkeel serve` is this, with a command line. In a program of one's own:
//!
//! ```
//! use evenkeel_gateway::config::{AdminConfig, ListenConfig, UpstreamConfig};
//! use evenkeel_gateway::{Config, Drained, Gateway, objects};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::{TcpListener, TcpStream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A service that responds to one request.
//! let service = TcpListener::bind("127.0.0.1:0").await?;
//! let url = format!("http://{}", service.local_addr()?);
//! tokio::spawn(async move {
//!     let (mut stream, _) = service.accept().await?;
//!     stream.read_buf(&mut Vec::with_capacity(4096)).await?;
//!     stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await
//! });
//!
//! // A gateway in front of it, on a port that the system chooses: all requests share all seats.
//! let config = Config {
//!     listen: vec![ListenConfig { address: "127.0.0.1:0".parse()?, ..ListenConfig::default() }],
//!     admin: AdminConfig { address: None, ..AdminConfig::default() },
//!     upstreams: vec![UpstreamConfig::new(&url)?],
//!     ..Config::default()
//! };
//! let objects = objects::source(&config);
//! let gateway = Gateway::start(config, objects).await?;
//!
//! let mut client = TcpStream::connect(gateway.addresses()[0]).await?;
//! client.write_all(b"GET / HTTP/1.1\r\nhost: shop.example\r\nconnection: close\r\n\r\n").await?;
//! let mut response = String::new();
//! client.read_to_string(&mut response).await?;
//! assert!(response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("hello"));
//!
//! assert_eq!(gateway.drain().await, Drained { requests_cut: 0 });
//! # Ok(())
//! # }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod dns;
mod fleet;
mod flight;
mod gateway;
mod http1;
mod limit;
mod llm;
mod net;
mod proxy;
mod timeouts;
mod tls;

pub mod config;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod host;
pub mod identity;
pub mod objects;
pub mod observe;
pub mod sockets;

pub use config::Config;
pub use evenkeel_identity::{AskedModel, RequestRules, RequestRulesError, RouteMatch};
pub use fleet::FleetError;
pub use gateway::{Drained, Gateway, Reconfigured, StartError};
pub use identity::{ClientCertificate, Peer, Transport};
pub use net::fetch::{Connection, FetchLimits, Fetcher};
pub use observe::{Phase, Readiness};
pub use tls::{ServingPair, TlsError, TlsFile};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
