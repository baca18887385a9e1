//! `Attempts`: a write is retried after conflicts, until it succeeds or times out.

use std::time::Duration;

use evenkeel_api::HubSpec;
use tokio::time::{Instant, sleep};

use crate::failure::Failure;
use crate::registry::{Registry, WriteLock};

/// The attempts to write one object. Other writers of this process wait until it is dropped.
#[derive(Debug)]
pub(super) struct Attempts<'a> {
    name: &'a str,
    ends_at: Instant,
    pause: Duration,
    _lock: WriteLock,
}

/// How long a write is tried. Requests end earlier, by their own deadline.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Only writers of other processes cause conflicts. The pause between two attempts grows, so that few of them collide again.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(128);

// === impl Attempts ===

impl<'a> Attempts<'a> {
    /// Waits for this writer's turn.
    pub(super) async fn begin<S: HubSpec>(registry: &Registry<S>, name: &'a str) -> Self {
        let ends_at = Instant::now() + TIME_MAX;
        let lock = registry.write_locks().lock(name).await;
        Self { name, ends_at, pause: PAUSE_MIN, _lock: lock }
    }

    /// Waits a moment after a conflict. Fails after [`TIME_MAX`].
    pub(super) async fn again<S: HubSpec>(&mut self) -> Result<(), Failure> {
        if Instant::now() >= self.ends_at {
            return Err(Failure::modified(S::KIND, self.name));
        }
        sleep(self.pause.mul_f64(fastrand::f64())).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
