//! Binds listening sockets, and spreads them over the workers.

use std::fs::{Permissions, set_permissions};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::socket_file::remove_stale;
use super::{ListenSocket, SocketFile};
use crate::config::SocketMode;

const BACKLOG: i32 = 4096;

/// As many sockets as there are workers, all on the same address. Where the port is left to the system, the first socket
/// gets one, and the others the same.
pub(crate) fn bind_tcp(address: SocketAddr, workers: usize) -> io::Result<Vec<ListenSocket>> {
    // Sockets that share a port would share it with another gateway, too; an ordinary one finds out that there is one.
    drop(TcpListener::bind(address)?);
    let first = bind_one(address)?;
    let address = first.local_addr()?;
    let mut all = vec![ListenSocket::tcp(first)?];
    while all.len() < workers {
        all.push(ListenSocket::tcp(bind_one(address)?)?);
    }
    Ok(all)
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

/// A Unix socket with these permissions, and its file.
pub(crate) fn bind_unix(path: &Path, mode: SocketMode) -> io::Result<(ListenSocket, SocketFile)> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::of(path)?;
    // Clients cannot connect before the socket listens.
    set_permissions(path, Permissions::from_mode(mode.bits()))?;
    socket.listen(BACKLOG)?;
    Ok((ListenSocket::unix(OwnedFd::from(socket).into())?, file))
}

/// Spreads the sockets over the workers: each worker gets one at least, and with fewer sockets than workers, some share one.
pub(crate) fn distribute(sockets: Vec<ListenSocket>, workers: usize) -> io::Result<Vec<Vec<ListenSocket>>> {
    let mut of_workers: Vec<Vec<ListenSocket>> = (0..workers.max(1)).map(|_| Vec::new()).collect();
    for number in sockets.len()..workers {
        of_workers[number].push(sockets[number % sockets.len()].try_clone()?);
    }
    for (number, socket) in sockets.into_iter().enumerate() {
        of_workers[number % workers.max(1)].push(socket);
    }
    Ok(of_workers)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn every_worker_accepts_and_every_socket_is_accepted_on() {
        for (sockets, workers) in [(1, 1), (1, 4), (4, 4), (4, 1), (3, 2), (2, 3)] {
            let bound = bind_tcp("127.0.0.1:0".parse().unwrap(), sockets).unwrap();
            assert_eq!(bound.len(), sockets);
            let spread = distribute(bound, workers).unwrap();
            assert!(spread.len() == workers && spread.iter().all(|of_worker| !of_worker.is_empty()));
            assert_eq!(spread.iter().flatten().count(), sockets.max(workers));
        }
    }

    #[test]
    fn a_unix_socket_has_its_permissions_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (socket, file) = bind_unix(&path, "0640".parse().unwrap()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(socket.name(), format!("unix:{}", path.display()));
        UnixStream::connect(&path).unwrap();
        let error = bind_unix(&path, SocketMode::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        // A process that was killed leaves its file.
        drop(socket);
        file.leave();
        let (_socket, file) = bind_unix(&path, SocketMode::default()).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_not_a_socket_of_ones_own_is_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        std::fs::write(&path, "precious").unwrap();
        let error = bind_unix(&path, SocketMode::default()).unwrap_err();
        assert_eq!(error.to_string(), "the file exists and is not a socket");
        std::fs::remove_file(&path).unwrap();
        let (socket, file) = bind_unix(&path, SocketMode::default()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let (_other, _file) = bind_unix(&path, SocketMode::default()).unwrap();
        drop((socket, file));
        assert!(path.exists(), "it is another's now");
    }
}
