//! `InheritedSockets`: listening sockets that another process has passed to this one.

use std::io;
use std::os::fd::OwnedFd;

use listenfd::ListenFd;

use super::ListenSocket;

/// Listening sockets of another process. A gateway accepts on those whose addresses its settings name instead of binding its
/// own.
#[derive(Debug, Default)]
pub struct InheritedSockets {
    sockets: Vec<ListenSocket>,
}

/// The sockets that systemd passes cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("systemd passed a descriptor that cannot be used: {0}; sockets of evenkeel.socket need `ListenStream=`")]
pub struct SystemdError(#[from] io::Error);

// === impl InheritedSockets ===

impl InheritedSockets {
    /// The sockets that systemd passes (`LISTEN_FDS`), if any. systemd keeps them: connections that wait to be accepted when the
    /// gateway shuts down are served by the next one. Call it before there are threads: it takes variables out of the
    /// environment.
    pub fn from_systemd() -> Result<Self, SystemdError> {
        let mut passed = ListenFd::from_env();
        let mut sockets = Vec::new();
        for index in 0..passed.len() {
            let descriptor = match passed.take_tcp_listener(index) {
                Ok(listener) => listener.map(OwnedFd::from),
                Err(_) => passed.take_unix_listener(index)?.map(OwnedFd::from),
            };
            if let Some(descriptor) = descriptor {
                sockets.push(ListenSocket::from_descriptor(descriptor)?.kept());
            }
        }
        Ok(Self { sockets })
    }

    pub(super) fn of(sockets: Vec<ListenSocket>) -> Self {
        Self { sockets }
    }

    /// Adds those of another.
    pub fn extend(&mut self, other: Self) {
        self.sockets.extend(other.sockets);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Takes those that listen there.
    pub(crate) fn take(&mut self, name: &str) -> Vec<ListenSocket> {
        let (found, left) = std::mem::take(&mut self.sockets).into_iter().partition(|socket| socket.name() == name);
        self.sockets = left;
        found
    }

    /// The address of a socket that systemd passed and no listener has taken.
    pub(crate) fn unused(&self) -> Option<&str> {
        self.sockets.iter().find(|socket| socket.is_kept).map(ListenSocket::name)
    }
}
