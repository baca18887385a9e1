//! `ListenSocket`: a listening socket before a worker has it.

use std::fmt;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use socket2::{Domain, SockRef, Socket};

use crate::net::Listener;

/// A listening socket.
#[derive(Debug)]
pub(crate) struct ListenSocket {
    kind: SocketKind,
    /// The address, as a setting has it: `127.0.0.1:8080` or `unix:/run/evenkeel.sock`.
    name: String,
    /// Whether another process keeps it: connections that wait to be accepted are left to the next process.
    pub(crate) is_kept: bool,
}

#[derive(Debug)]
enum SocketKind {
    Tcp(TcpListener),
    Unix(UnixListener),
}

// === impl ListenSocket ===

impl ListenSocket {
    pub(crate) fn tcp(listener: TcpListener) -> io::Result<Self> {
        let name = listener.local_addr()?.to_string();
        Ok(Self { kind: SocketKind::Tcp(listener), name, is_kept: false })
    }

    pub(crate) fn unix(listener: UnixListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let path = address.as_pathname().ok_or_else(|| io::Error::other("a Unix socket without a file"))?;
        let name = format!("unix:{}", path.display());
        Ok(Self { kind: SocketKind::Unix(listener), name, is_kept: false })
    }

    /// A descriptor that another process has passed.
    pub(super) fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        if !socket.is_listener()? {
            return Err(io::Error::other("it is not a listening socket"));
        }
        socket.set_nonblocking(true)?;
        match socket.local_addr()?.domain() {
            Domain::UNIX => Self::unix(OwnedFd::from(socket).into()),
            Domain::IPV4 | Domain::IPV6 => Self::tcp(OwnedFd::from(socket).into()),
            _ => Err(io::Error::other("it is neither of TCP nor a Unix socket")),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn kept(self) -> Self {
        Self { is_kept: true, ..self }
    }

    /// Another descriptor of the same socket.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let kind = match &self.kind {
            SocketKind::Tcp(listener) => SocketKind::Tcp(listener.try_clone()?),
            SocketKind::Unix(listener) => SocketKind::Unix(listener.try_clone()?),
        };
        Ok(Self { kind, name: self.name.clone(), is_kept: self.is_kept })
    }

    /// Accepts connections on the runtime of this thread.
    pub(crate) fn into_listener(self) -> io::Result<Listener> {
        SockRef::from(&self).set_nonblocking(true)?;
        Ok(match self.kind {
            SocketKind::Tcp(listener) => Listener::Tcp(tokio::net::TcpListener::from_std(listener)?),
            SocketKind::Unix(listener) => Listener::Unix(tokio::net::UnixListener::from_std(listener)?),
        })
    }
}

impl AsFd for ListenSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            SocketKind::Tcp(listener) => listener.as_fd(),
            SocketKind::Unix(listener) => listener.as_fd(),
        }
    }
}

impl fmt::Display for ListenSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
