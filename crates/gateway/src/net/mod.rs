//! Connections as the system knows them: how they are accepted, streams with or without TLS, over TCP or a Unix socket, the
//! PROXY protocol, and the limit of open files; and documents of other servers.

mod acceptor;
mod eager_writes;
pub(crate) mod fetch;
mod listener;
pub(crate) mod open_files;
pub(crate) mod proxy_protocol;
mod socket;
mod stream;

pub(crate) use acceptor::{Accepted, Acceptor};
pub(crate) use eager_writes::{EagerWrites, WriteNow};
pub(crate) use listener::Listener;
pub(crate) use socket::Socket;
pub(crate) use stream::{Rewound, Stream};
