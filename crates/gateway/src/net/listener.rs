//! `Listener`: accepts connections of TCP or of a Unix socket.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use tokio::net::{TcpListener, UnixListener};

use super::Socket;

/// A socket that connections are accepted on.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The address that a peer at a Unix socket counts for: it is a process of this machine.
const THIS_MACHINE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

// === impl Listener ===

impl Listener {
    /// The next connection, and where it comes from. Nothing is lost if the future is dropped.
    pub(crate) async fn accept(&self) -> io::Result<(Socket, SocketAddr)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok((Socket::Tcp(stream), address))
            }
            Self::Unix(listener) => Ok((Socket::Unix(listener.accept().await?.0), THIS_MACHINE)),
        }
    }

    /// The address that the listener is bound to. A Unix socket has none.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// The name of the listener for log lines.
    pub(super) fn name(&self) -> String {
        let unknown = |_| "unknown".to_owned();
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(unknown, |address| address.to_string()),
            Self::Unix(listener) => listener.local_addr().map_or_else(unknown, |address| {
                address.as_pathname().map_or_else(|| "unknown".to_owned(), |path| format!("unix:{}", path.display()))
            }),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(listener) => listener.as_fd(),
            Self::Unix(listener) => listener.as_fd(),
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}
