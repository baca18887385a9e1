//! Who sends a request, and what the request asks for and costs, as settings say it.
#![doc = include_str!("../README.md")]
//!
//! # How sources are asked
//!
//! The sources of [`IdentityConfig`](config::IdentityConfig) are tried one after the other. A source that finds no credential of
//! its kind leaves the question to the next one. A credential that is there and wrong ends the search with 401: a client with a
//! forged or expired token must not pass for another user, not even for an anonymous one. Only a source that looks at the same
//! header may still accept the credential, so that there can be two issuers of bearer tokens. Requests to open paths need no
//! credential, and a wrong one is ignored there.

mod client_certificate;
mod counts;
mod denial;
mod der;
mod extension_identity;
mod identification;
mod key_server;
mod open_paths;
mod peer;
mod peer_identity;
mod request_rules;
mod sanitize_headers;
mod sources;

pub mod config;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod header_names;

pub use counts::IdentityCounts;
pub use denial::Denial;
pub use extension_identity::ExtensionIdentity;
pub use identification::{Identification, IdentityError};
pub use key_server::{ConnectKeyServer, KeyResponse, KeyServer};
pub use peer::{ClientCertificate, Peer, Transport};
pub use peer_identity::{Denied, PeerIdentity};
pub use request_rules::{AskedModel, RequestRules, RequestRulesError, RouteMatch, RoutedRequest, Target, set_path};
