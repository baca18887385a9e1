//! Listening sockets, one for each worker on the same port.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};

use crate::tls::ListenerTls;

/// A socket that a worker accepts connections on.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) socket: TcpListener,
    pub(crate) tls: Option<Arc<ListenerTls>>,
}

const BACKLOG: i32 = 4096;

/// As many sockets as there are workers, all on the same address. Where the port is left to the system, the first socket
/// gets one, and the others the same.
pub(crate) fn bind(address: SocketAddr, workers: usize) -> io::Result<(SocketAddr, Vec<TcpListener>)> {
    // Sockets that share a port would share it with another gateway, too; an ordinary one finds out that there is one.
    drop(TcpListener::bind(address)?);
    let first = bind_one(address)?;
    let address = first.local_addr()?;
    let mut all = vec![first];
    while all.len() < workers {
        all.push(bind_one(address)?);
    }
    Ok((address, all))
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
