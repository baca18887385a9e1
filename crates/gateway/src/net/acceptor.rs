//! `Acceptor`: accepts the connections of a listener, and waits a little when the system has none to give.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::sleep;

use super::open_files::{OpenFiles, SHORTAGE, has_waiting_connection, is_shortage};
use super::{Listener, Socket};
use crate::observe::log::Throttle;

/// A listener for clients.
#[derive(Debug)]
pub(crate) struct Acceptor {
    listener: Listener,
    /// The name of the listener in log lines.
    name: String,
    open_files: OpenFiles,
    warnings: Throttle,
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) enum Accepted {
    Connection(Socket, SocketAddr),
    /// Too few file descriptors are left to serve it.
    NoDescriptor(Socket),
}

/// When no descriptor is left, this is how long it waits for some to be closed.
const PAUSE: Duration = Duration::from_millis(50);
/// How often it looks for connections while it cannot be woken by them, for the lack of descriptors. The descriptors that
/// `make_room` closed are free by then.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(5);

// === impl Acceptor ===

impl Acceptor {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { name: listener.name(), listener, open_files: OpenFiles::of_process(), warnings: Throttle::default() }
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// The next connection. Nothing is lost if the future is dropped.
    pub(crate) async fn accept(&mut self) -> Accepted {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) if self.open_files.are_short_for_client(&stream) => {
                    if self.warnings.may_log() {
                        tracing::warn!(listener = self.name, "connections are refused: {SHORTAGE}");
                    }
                    return Accepted::NoDescriptor(stream);
                }
                Ok((stream, address)) => return Accepted::Connection(stream, address),
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// The next connection, whatever descriptor it has. When the system has none left, `make_room` is asked to close
    /// something, and says whether it did.
    pub(crate) async fn accept_always(&mut self, mut make_room: impl FnMut() -> bool) -> Socket {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return stream,
                Err(error) if is_shortage(&error) => {
                    // Linux reports a shortage also when no connection waits.
                    if !has_waiting_connection(&self.listener) || make_room() {
                        sleep(SHORTAGE_PAUSE).await;
                    } else {
                        self.pause(&error).await;
                    }
                }
                Err(error) => self.pause(&error).await,
            }
        }
    }

    /// Retrying at once would fail again.
    async fn pause(&mut self, error: &io::Error) {
        if self.warnings.may_log() {
            tracing::warn!(%error, listener = self.name, "cannot accept a connection");
        }
        sleep(PAUSE).await;
    }
}
