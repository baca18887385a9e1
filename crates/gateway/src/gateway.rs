//! Puts the parts together: listeners, workers, flow control, objects, and the operators' listener.

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel_engine::controller::Objects;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::admin::{self, Admin};
use crate::config::Config;
use crate::identity::{Identification, IdentityError};
use crate::log::RejectionLog;
use crate::metrics::GatewayMetrics;
use crate::objects::{ObjectSource, ObjectsError};
use crate::readiness::{Phase, Readiness};
use crate::requests::{Requests, RequestsError};
use crate::ticks::Elapsed;
use crate::tls::{ClientTls, ListenerTls, TlsError, keep_fresh};
use crate::upstream::Known;
use crate::worker::{Clients, Connections, Listening, Shared, Stage, WorkerThread, bind};

/// A gateway that runs, until it is drained or dropped.
#[derive(Debug)]
pub struct Gateway {
    flow: FlowControl,
    readiness: Readiness,
    addresses: Vec<SocketAddr>,
    admin_address: Option<SocketAddr>,
    config: Arc<Config>,
    connections: Arc<Connections>,
    rejections: Arc<RejectionLog>,
    stage: watch::Sender<Stage>,
    workers: Vec<WorkerThread>,
    /// What runs on the caller's runtime.
    _control: Vec<Control>,
}

/// Something that runs beside the requests, until it is dropped.
#[derive(Debug)]
struct Control(JoinHandle<()>);

/// Why a gateway could not start: in one sentence what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No upstream was named.
    #[error("there is no upstream to pass requests on to; name one with `--upstream http://127.0.0.1:9000`")]
    NoUpstream,
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}; is another program using it? choose another with `--listen`")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The operators' address cannot be listened on.
    #[error("cannot listen on {address}: {error}; is another program using it? choose another with `--admin-listen`")]
    ListenForOperators {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// A thread could not be started.
    #[error("cannot start a thread to serve requests: {0}")]
    Thread(io::Error),
    /// A certificate or key is not usable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A source of identities is not usable.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The routes make no sense.
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// The objects to follow could not be read.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How many requests were still running when the time was over, and were cut off.
    pub requests_cut: usize,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway, and returns when it accepts connections.
    ///
    /// Call it inside of a tokio runtime, which drives the flow control, the objects and the operators' listener;
    /// requests have threads of their own.
    pub async fn start(config: Config, mut objects: Box<dyn ObjectSource>) -> Result<Self, StartError> {
        if config.upstreams.is_empty() {
            return Err(StartError::NoUpstream);
        }
        let config = Arc::new(config);
        let routes = Requests::new(&config.requests, config.preset)?;
        let identification = Identification::open(&config.identity)?;
        let upstreams = config.upstreams.iter().map(|upstream| Known::new(upstream, &config).map(Arc::new));
        let upstreams = upstreams.collect::<Result<Vec<_>, TlsError>>()?;
        // Without objects at first: those that never govern leave nothing behind in the metrics.
        let flow = FlowControl::builder()
            .preset(config.preset)
            .server_concurrency(config.concurrency)
            .wait_limit(config.timeouts.queue);
        let flow = flow.objects(Objects::default()).unwrap_or_else(|never| match never {}).build();
        let workers = config.workers.unwrap_or_else(cores).max(1);
        let metrics = GatewayMetrics::new(workers);
        govern(&flow, &metrics, objects.next().await?);
        let (addresses, listening, mut files) = listen(&config, workers)?;
        files.extend(upstreams.iter().filter_map(|known| known.tls.as_ref().map(ClientTls::files)));
        let connections = Arc::<Connections>::default();
        let rejections = Arc::new(RejectionLog::new(&config.log));
        let shared = Arc::new(Shared {
            config: Arc::clone(&config),
            flow: flow.clone(),
            identification,
            routes,
            metrics: metrics.clone(),
            rejections: Arc::clone(&rejections),
            upstreams,
            connections: Arc::clone(&connections),
            clients: Clients::new(config.limits.connections_per_client(), config.limits.streams_per_client()),
            workers,
        });
        let (stage, told) = watch::channel(Stage::Serving);
        let workers = (listening.into_iter().enumerate())
            .map(|(index, listening)| WorkerThread::start(index, Arc::clone(&shared), listening, told.clone()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(StartError::Thread)?;
        let mut control = vec![
            Control(tokio::spawn(follow(objects, flow.clone(), metrics.clone()))),
            Control(tokio::spawn(keep_fresh(files))),
            Control(tokio::spawn(flush_rejections(Arc::clone(&rejections)))),
        ];
        let readiness = Readiness::default();
        let admin_address = match config.admin.address {
            Some(address) => {
                let admin =
                    Admin { flow: flow.clone(), metrics, readiness: readiness.clone(), config: Arc::clone(&config) };
                let (address, pages) = operate(address, admin).await?;
                control.push(pages);
                Some(address)
            }
            None => None,
        };
        readiness.enter(Phase::Ready);
        Ok(Self {
            flow,
            readiness,
            addresses,
            admin_address,
            config,
            connections,
            rejections,
            stage,
            workers,
            _control: control,
        })
    }

    /// The flow control that all requests go through.
    pub fn flow(&self) -> &FlowControl {
        &self.flow
    }

    /// Whether it wants more requests.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// Where it listens, in the order of the configuration, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where operators look.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.connections.count()
    }

    /// Stops: readiness turns false, then no connection is accepted any more, then it ends when the last request has, or
    /// when the time for it is over.
    pub async fn drain(mut self) -> Drained {
        self.readiness.enter(Phase::Draining);
        tokio::time::sleep(self.config.timeouts.drain_notice).await;
        self.stage.send_replace(Stage::Draining);
        let all_ended = async {
            for worker in &mut self.workers {
                worker.ended().await;
            }
        };
        let result = tokio::time::timeout(self.config.timeouts.drain, all_ended).await.map_err(|_| Elapsed);
        let requests_cut = if result.is_ok() { 0 } else { self.workers.iter().map(WorkerThread::requests).sum() };
        self.stage.send_replace(Stage::Stopped);
        for worker in &mut self.workers {
            if result.is_err() {
                worker.ended().await;
            }
        }
        self.rejections.flush();
        Drained { requests_cut }
    }
}

/// The sockets of every worker, and the addresses that they are on.
type Sockets = (Vec<SocketAddr>, Vec<Vec<Listening>>, Vec<Arc<dyn crate::tls::Refresh>>);

fn listen(config: &Config, workers: usize) -> Result<Sockets, StartError> {
    let (mut addresses, mut files) = (Vec::new(), Vec::new());
    let mut listening: Vec<Vec<Listening>> = (0..workers).map(|_| Vec::new()).collect();
    for listen in &config.listen {
        let tls = listen.tls.as_ref().map(ListenerTls::open).transpose()?.map(Arc::new);
        files.extend(tls.as_ref().map(|tls| tls.files()));
        let bound = bind(listen.address, workers);
        let (address, sockets) = bound.map_err(|error| StartError::Listen { address: listen.address, error })?;
        addresses.push(address);
        for (of_worker, socket) in listening.iter_mut().zip(sockets) {
            of_worker.push(Listening { socket, tls: tls.clone() });
        }
    }
    Ok((addresses, listening, files))
}

/// Serves the pages of the operators, and says where.
async fn operate(address: SocketAddr, admin: Admin) -> Result<(SocketAddr, Control), StartError> {
    let fault = |error| StartError::ListenForOperators { address, error };
    let listener = TcpListener::bind(address).await.map_err(fault)?;
    let address = listener.local_addr().map_err(fault)?;
    Ok((address, Control(tokio::spawn(admin::serve(listener, admin.router())))))
}

/// Follows what the source says, for as long as there is something to say.
async fn follow(mut objects: Box<dyn ObjectSource>, flow: FlowControl, metrics: GatewayMetrics) {
    loop {
        match objects.next().await {
            Ok(new) => {
                govern(&flow, &metrics, new);
                tracing::info!("the objects have changed, and govern from now on");
            }
            Err(error) => {
                metrics.objects_refused();
                tracing::error!(%error, "the objects cannot be used; those before stay");
            }
        }
    }
}

/// Lets these objects govern. The flow control warns of those that are of no use.
fn govern(flow: &FlowControl, metrics: &GatewayMetrics, objects: Objects) {
    flow.apply_stored(objects);
    metrics.objects_applied();
}

async fn flush_rejections(rejections: Arc<RejectionLog>) {
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    loop {
        seconds.tick().await;
        rejections.flush();
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

// === impl Control ===

impl Drop for Control {
    fn drop(&mut self) {
        self.0.abort();
    }
}
