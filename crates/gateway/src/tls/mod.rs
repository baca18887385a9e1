//! TLS on both sides, with certificates that are read again when their files change.

mod client;
mod files;
mod server;

pub(crate) use client::{ClientTls, Offer};
pub(crate) use files::{Refresh, keep_fresh};
pub use files::{TlsError, TlsFile};
pub use server::ServingPair;
pub(crate) use server::{AcceptedTls, ListenerTls};
