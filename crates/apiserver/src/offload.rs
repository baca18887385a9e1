//! `Offload`: heavy work runs where it does not delay other requests.
//!
//! Most requests take microseconds, and run on the thread that serves them. Work on large objects, lists and patches takes
//! milliseconds: the thread hands over its other tasks first, and only a few threads do so at a time.

use std::num::NonZero;
use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Where work on some number of bytes runs.
#[derive(Debug)]
pub(crate) enum Offload {
    /// On this thread: the work is light, or there is no other thread.
    Inline,
    /// On this thread, after its other tasks have moved to other threads.
    Blocking(#[expect(dead_code, reason = "held until the work is done")] SemaphorePermit<'static>),
}

/// Work on fewer bytes is light.
const BYTES_MIN: usize = 64 * 1024;

/// One permit for each core.
static BLOCKING: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, NonZero::get)));

// === impl Offload ===

impl Offload {
    /// Waits for a permit if work on so many bytes needs one.
    pub(crate) async fn of(bytes: usize) -> Self {
        let is_alone = || Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        if bytes < BYTES_MIN || is_alone() {
            return Self::Inline;
        }
        // The semaphore is never closed.
        BLOCKING.acquire().await.map_or(Self::Inline, Self::Blocking)
    }

    /// Does the work.
    pub(crate) fn run<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Self::Inline => work(),
            Self::Blocking(_) => tokio::task::block_in_place(work),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_go_on_while_heavy_work_is_done() {
        let (other_ran, heavy_waits) = mpsc::channel();
        let (heavy_began, began) = tokio::sync::oneshot::channel();
        let heavy = tokio::spawn(async move {
            Offload::of(BYTES_MIN).await.run(|| {
                heavy_began.send(()).unwrap();
                heavy_waits.recv_timeout(PATIENCE)
            })
        });
        // There is one thread, so that the work is done when this line has run on it.
        let other = tokio::spawn(async move {
            began.await.unwrap();
            tokio::spawn(async move { other_ran.send(()).unwrap() }).await.unwrap();
        });
        assert_eq!(heavy.await.unwrap(), Ok(()));
        other.await.unwrap();
    }

    #[tokio::test]
    async fn light_work_and_work_without_other_threads_is_done_at_once() {
        assert!(matches!(Offload::of(usize::MAX).await, Offload::Inline));
        assert_eq!(Offload::of(1).await.run(|| 7), 7);
    }
}
