//! The thread of a worker, from its start to its end.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, oneshot, watch};

use super::accept::accept_all;
use super::listener::Listening;
use super::{RunningRequests, SharedByWorkers, Worker};
use crate::gateway::generation::Generation;
use crate::proxy::upstream::check_upstreams;

/// The stage that the workers are told to enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkerStage {
    /// The workers accept connections.
    Serving,
    /// The workers end what they have begun.
    Draining,
    /// The workers end what they have begun, and another process accepts connections on their sockets.
    HandedOver,
    /// The workers end at once.
    Stopped,
}

/// A worker's thread.
#[derive(Debug)]
pub(crate) struct WorkerThread {
    /// Fires when the thread ends. None once that has been received: a receiver must not be polled after that.
    ended: Option<oneshot::Receiver<()>>,
    requests: Arc<RunningRequests>,
}

/// Counts the connections of one worker: every clone but the first stands for a connection.
#[derive(Debug, Clone)]
pub(super) struct ConnectionGuard {
    _last: Rc<NotifyWhenLast>,
}

/// Tells when the last connection is gone.
#[derive(Debug)]
struct NotifyWhenLast(Rc<Notify>);

/// How often idle connections to upstreams are looked at, and lines of the access log are handed over.
const TIDY_PERIOD: Duration = Duration::from_millis(500);

// === impl WorkerThread ===

impl WorkerThread {
    pub(crate) fn start(
        index: usize,
        shared: Arc<SharedByWorkers>,
        listening: Vec<Listening>,
        generations: watch::Receiver<Arc<Generation>>,
        stage: watch::Receiver<WorkerStage>,
    ) -> io::Result<Self> {
        let (ending, ended) = oneshot::channel();
        let requests = Arc::<RunningRequests>::default();
        let counted = Arc::clone(&requests);
        let run = move || {
            match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
                Ok(runtime) => runtime.block_on(run(index, &shared, counted, listening, generations, stage)),
                Err(error) => tracing::error!(%error, "cannot start a worker"),
            }
            // If this fails, nobody waits for the end of the worker any more.
            let _ = ending.send(());
        };
        thread::Builder::new().name(format!("evenkeel-{index}")).spawn(run)?;
        Ok(Self { ended: Some(ended), requests })
    }

    /// How many requests the worker is serving.
    pub(crate) fn requests(&self) -> usize {
        self.requests.count()
    }

    /// Waits until the worker has ended. May be called again, also after a call that was cancelled.
    pub(crate) async fn ended(&mut self) {
        if let Some(ended) = &mut self.ended {
            let _ = ended.await;
            self.ended = None;
        }
    }
}

/// Serves until there is nothing left to do, or it is told to stop.
async fn run(
    index: usize,
    shared: &SharedByWorkers,
    requests: Arc<RunningRequests>,
    listening: Vec<Listening>,
    mut generations: watch::Receiver<Arc<Generation>>,
    mut stage: watch::Receiver<WorkerStage>,
) {
    let settings = Arc::clone(&generations.borrow_and_update());
    let (worker, abandoned_work) = Worker::new(index, shared, &settings, requests);
    drop(settings);
    let finishing = tokio::task::spawn_local(abandoned_work.run());
    let ticking = tokio::task::spawn_local(Rc::clone(&worker.timer).run());
    // One worker checks the upstreams for all.
    let checking =
        (index == 0).then(|| tokio::task::spawn_local(check_upstreams(generations.clone(), Rc::clone(&worker.timer))));
    let following = tokio::task::spawn_local(follow(Rc::clone(&worker), generations));
    let tidying = tokio::task::spawn_local(tidy(Rc::clone(&worker)));
    let last_gone = Rc::new(Notify::new());
    let connection_guard = ConnectionGuard { _last: Rc::new(NotifyWhenLast(Rc::clone(&last_gone))) };
    let mut accepting = Vec::new();
    for Listening { socket, rules } in listening {
        let is_kept = socket.is_kept;
        match socket.into_listener() {
            Ok(listener) => {
                let accept =
                    accept_all(Rc::clone(&worker), (listener, is_kept), rules, connection_guard.clone(), stage.clone());
                accepting.push(tokio::task::spawn_local(accept));
            }
            Err(error) => tracing::error!(%error, "a worker cannot listen"),
        }
    }
    // If the gateway itself is gone, `wait_for` returns too.
    let _ = stage.wait_for(|stage| *stage != WorkerStage::Serving).await;
    if let Some(checking) = checking {
        checking.abort();
    }
    let end = async {
        worker.start_draining();
        for accept in accepting {
            let _ = accept.await;
        }
        drop(connection_guard);
        last_gone.notified().await;
    };
    let is_draining = matches!(*stage.borrow(), WorkerStage::Draining | WorkerStage::HandedOver);
    if is_draining {
        tokio::select! {
            () = end => {}
            _ = stage.wait_for(|stage| *stage == WorkerStage::Stopped) => {}
        }
    }
    worker.is_stopped.set(true);
    ticking.abort();
    following.abort();
    tidying.abort();
    finishing.abort();
}

/// Begins the next generation of the worker whenever the settings change.
async fn follow(mut worker: Rc<Worker>, mut generations: watch::Receiver<Arc<Generation>>) {
    while generations.changed().await.is_ok() {
        let settings = Arc::clone(&generations.borrow_and_update());
        worker = worker.next_generation(&settings);
    }
}

async fn tidy(mut worker: Rc<Worker>) {
    let mut interval = tokio::time::interval(TIDY_PERIOD);
    loop {
        interval.tick().await;
        worker = worker.latest();
        worker.tidy();
    }
}

// === impl NotifyWhenLast ===

impl Drop for NotifyWhenLast {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
