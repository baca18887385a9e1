//! Connections as the system knows them: how they are accepted, streams with or without TLS, and the limit of open files;
//! and documents of other servers.

mod acceptor;
mod eager_writes;
pub(crate) mod fetch;
pub(crate) mod open_files;
mod stream;

pub(crate) use acceptor::{Accepted, Acceptor};
pub(crate) use eager_writes::{EagerWrites, WriteNow};
pub(crate) use stream::{Rewound, Stream};
