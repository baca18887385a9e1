//! The signals that a running command listens to.

use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// Signals within so short a time are one wish: a supervisor often tells a process and its group.
const ONE_WISH: Duration = Duration::from_millis(500);

/// The signals that ask for something. None of them ends the process by itself once this exists.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user_1: Signal,
}

/// The request that a signal stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalWish {
    /// Stop: SIGTERM or SIGINT.
    Stop,
    /// Read the settings again: SIGHUP.
    Reload,
    /// Dump the flight recorder: SIGUSR1.
    Dump,
}

// === impl Signals ===

impl Signals {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: listen(SignalKind::hangup())?,
            user_1: listen(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> SignalWish {
        tokio::select! {
            _ = self.terminate.recv() => SignalWish::Stop,
            _ = self.interrupt.recv() => SignalWish::Stop,
            _ = self.hang_up.recv() => SignalWish::Reload,
            _ = self.user_1.recv() => SignalWish::Dump,
        }
    }

    /// Waits for a signal to stop.
    pub(crate) async fn stop(&mut self) {
        while self.next().await != SignalWish::Stop {}
    }

    /// Waits for a signal that ends commands that have no settings to look at again, and end with their terminal (SIGHUP).
    pub(crate) async fn end(&mut self) {
        while self.next().await == SignalWish::Dump {}
    }

    /// Waits for a second signal to stop.
    pub(crate) async fn insist(&mut self) {
        let earliest = Instant::now() + ONE_WISH;
        loop {
            self.stop().await;
            if Instant::now() >= earliest {
                return;
            }
        }
    }
}
