//! Where the objects of Evenkeel live: one trait, [`Store`], and two implementations of it.
//!
//! | | [`EmbeddedStore`] | [`EtcdStore`] |
//! |---|---|---|
//! | for | one process | several processes that share their objects |
//! | needs | one file | an etcd, 3.4 or newer |
//! | an acknowledged write survives | the end of the process and a loss of power | what etcd survives |
//! | [`At::Cached`] is | always the newest | as old as [`Store::freshness`] says |
//!
//! Both keep all objects and the latest writes in memory, and serve reads and watches from there. The objects themselves
//! mean nothing to a store: it keeps a kind, a name and bytes, which are the object as canonical `v1` JSON.
//!
//! Every write has a *revision*, and revisions are one increasing sequence across both kinds. A list says which revision
//! it shows; a watch from there on returns every later write, once and in order. Writes are conditional on the revision that
//! the writer has seen, so that no writer overwrites changes that it has not seen.
//!
//! ```
//! use evenkeel_api::Kind;
//! use evenkeel_store::{EmbeddedStore, Error, HistoryLimits, ListOptions, Store, WatchOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = EmbeddedStore::in_memory(HistoryLimits::default())?;
//! let start = store.list(Kind::FlowSchema, ListOptions::default()).await?;
//! let mut watch = store.watch(WatchOptions::of(Kind::FlowSchema, start.revision)).await?;
//!
//! let first = store.create(Kind::FlowSchema, "probes", "{}".into()).await?;
//! let second = store.update(Kind::FlowSchema, "probes", first.revision, "{ }".into()).await?;
//! let late = store.update(Kind::FlowSchema, "probes", first.revision, "[]".into()).await;
//! assert!(matches!(late, Err(Error::Conflict { current, .. }) if current == second));
//!
//! assert_eq!(watch.next().await?.object(), Some(&first));
//! assert_eq!(watch.next().await?.previous(), Some(&first));
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```

mod cache;
mod embedded;
mod error;
mod etcd;
mod event;
mod location;
mod object;
mod read;
mod store;
mod watch;

pub use cache::HistoryLimits;
pub use embedded::EmbeddedStore;
pub use error::Error;
pub use etcd::{
    CoordinationKey, EtcdConfig, EtcdIdentity, EtcdLogin, EtcdStore, EtcdTls, EtcdTransactions, KeyChange,
    KeyCondition, KeyWatch, KeyWrite, LeaseId, Transacted,
};
pub use event::{Change, Event};
pub use location::Location;
pub use object::{NAME_BYTES_MAX, Object, PAYLOAD_BYTES_MAX};
pub use read::{At, Freshness, List, ListOptions};
pub use store::{Store, StoreFuture};
pub use watch::{Watch, WatchOptions};

/// Tests the example of the page.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
