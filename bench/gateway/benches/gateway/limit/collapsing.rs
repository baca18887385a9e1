//! A service that does less the more it has inside: so many slots, and a collapse beyond them. Its capacity changes while it serves.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// The service, on a thread of its own until this is dropped.
#[derive(Debug)]
pub(super) struct Collapsing {
    pub(super) address: SocketAddr,
    capacity: Arc<Capacity>,
    /// The thread ends when this is dropped.
    _running: oneshot::Sender<Infallible>,
}

/// What it can do.
#[derive(Debug)]
struct Capacity {
    slots: AtomicU32,
    work_ms: AtomicU32,
}

/// A request inside, with the seconds of work that are left.
type Inside = (f64, oneshot::Sender<()>);

/// How much each request beyond the slots costs all others: `x(n) = min(n, slots) / (1 + 0.02 (n - slots))`.
const COLLAPSE: f64 = 0.02;
/// How often the work goes on.
const STEP: Duration = Duration::from_millis(1);

// === impl Collapsing ===

impl Collapsing {
    pub(super) fn start(slots: u32, work_ms: u32) -> io::Result<Self> {
        let capacity = Arc::new(Capacity { slots: slots.into(), work_ms: work_ms.into() });
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let shared = Arc::clone(&capacity);
        let (running, stopped) = oneshot::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    served = serve(listener, shared) => served,
                    _ = stopped => Ok(()),
                }
            })
        });
        Ok(Self { address, capacity, _running: running })
    }

    /// It has so many slots from now on, and each request takes so long in one of them.
    pub(super) fn set(&self, slots: u32, work_ms: u32) {
        self.capacity.slots.store(slots, Ordering::Relaxed);
        self.capacity.work_ms.store(work_ms, Ordering::Relaxed);
    }
}

async fn serve(listener: std::net::TcpListener, capacity: Arc<Capacity>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (sender, arrived) = mpsc::unbounded_channel();
    drop(tokio::spawn(work(arrived, Arc::clone(&capacity))));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (sender, capacity) = (sender.clone(), Arc::clone(&capacity));
        let answer = service_fn(move |_| {
            let (done, is_done) = oneshot::channel();
            let seconds = f64::from(capacity.work_ms.load(Ordering::Relaxed)) / 1e3 * spread();
            // The worker lives as long as the service.
            let _ = sender.send((seconds, done));
            async move {
                let _ = is_done.await;
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"done"))))
            }
        });
        drop(tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer)));
    }
}

/// How much longer than usual a request takes: a mean of 1, and a deviation of a half.
fn spread() -> f64 {
    let sum: f64 = (0..4).map(|_| fastrand::f64()).sum();
    (1.0 + (sum - 2.0) * 0.87).max(0.1)
}

/// All requests inside make progress, each as much as the others.
async fn work(mut arrived: mpsc::UnboundedReceiver<Inside>, capacity: Arc<Capacity>) {
    let (mut inside, mut last): (Vec<Inside>, _) = (Vec::new(), Instant::now());
    let mut steps = tokio::time::interval(STEP);
    loop {
        steps.tick().await;
        let passed = last.elapsed().as_secs_f64();
        last = Instant::now();
        let (count, slots) = (inside.len() as f64, f64::from(capacity.slots.load(Ordering::Relaxed)));
        let speed = count.min(slots) / (1.0 + COLLAPSE * (count - slots).max(0.0)) / count.max(1.0);
        for (left, _) in &mut inside {
            *left -= passed * speed;
        }
        for index in (0..inside.len()).rev() {
            // A client that has gone does not stop the work.
            if inside[index].0 <= 0.0 {
                let _ = inside.swap_remove(index).1.send(());
            }
        }
        while let Ok(next) = arrived.try_recv() {
            inside.push(next);
        }
    }
}
