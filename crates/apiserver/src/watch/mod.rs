//! Watches: the changes to objects of a kind, as a response without an end (API-159 to API-172).

mod body;
mod counted;
mod limit;
mod stream;

pub(crate) use body::WatchBody;
pub(crate) use counted::CountedWatch;
pub(crate) use limit::{WatchLimit, WatchPermit};
pub(crate) use stream::WatchStream;
