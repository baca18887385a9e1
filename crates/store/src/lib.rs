//! Where the objects of Evenkeel live: one trait, [`Store`], and two implementations of it.

mod cache;
mod embedded;
mod error;
mod etcd;
mod event;
mod object;
mod read;
mod store;
mod watch;

pub use cache::HistoryLimits;
pub use embedded::EmbeddedStore;
pub use error::Error;
pub use etcd::{EtcdConfig, EtcdIdentity, EtcdLogin, EtcdStore, EtcdTls};
pub use event::{Change, Event};
pub use object::{NAME_BYTES_MAX, Object, PAYLOAD_BYTES_MAX};
pub use read::{At, Freshness, List, ListOptions};
pub use store::{Answer, Store};
pub use watch::{Watch, WatchOptions};
