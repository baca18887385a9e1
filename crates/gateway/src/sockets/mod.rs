//! Listening sockets: those that the gateway binds, those that systemd passes to it, and those that it takes over from the
//! process before it.

mod bind;
mod inherited;
mod listen_socket;
mod socket_file;
mod takeover;

pub(crate) use bind::{bind_tcp, bind_unix, distribute};
pub(crate) use listen_socket::ListenSocket;
pub(crate) use socket_file::SocketFile;

pub use inherited::{InheritedSockets, SystemdError};
pub use takeover::{Offer, Predecessor, Successor, TakeoverError};
