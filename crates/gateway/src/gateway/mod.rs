//! Puts the parts together: listeners, workers, flow control, objects, and the admin endpoint.

mod findings;
pub(crate) mod flow_controls;
pub(crate) mod generation;
mod governing;
mod listen;
mod reconfigure;
mod shadowing;

use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel_api::short::ShortForm;
use evenkeel_engine::controller::{Objects, TooFewSeats};
use evenkeel_identity::RequestRulesError;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Config, ListenAddress};
use crate::fleet::{self, FleetError};
use crate::flight;
use crate::identity::IdentityError;
use crate::limit;
use crate::llm::ModelReading;
use crate::observe::ServiceFlow;
use crate::observe::admin::{self, Admin, AdminToken, AdminTokenError, InEffect, SettingsInEffect, TOKEN_VARIABLE};
use crate::observe::dashboard::{Frames, Recording, Sources, UpstreamReading};
use crate::proxy::buffers::BufferedBytes;
use findings::Findings;
use flow_controls::FlowControls;
use generation::{Generation, ServicePool};
use governing::Governing;
use listen::ListeningAddresses;
use shadowing::ShadowFiles;

pub use reconfigure::Reconfigured;

use crate::objects::{ObjectSource, ObjectsError};
use crate::observe::log::RejectionLog;
use crate::observe::metrics::GatewayMetrics;
use crate::observe::spans::TracingError;
use crate::observe::{Ended, Phase, Readiness};
use crate::proxy::upstream::{compare_upstreams, follow_names};
use crate::proxy::worker::{ClientQuotas, SharedByWorkers, WorkerStage, WorkerThread};
use crate::sockets::{InheritedSockets, ListenSocket, Offer, SocketFile, TakeoverError};
use crate::timeouts::Elapsed;
use crate::tls::{TlsError, keep_fresh};

/// A gateway that runs, until it is drained or dropped.
#[derive(Debug)]
pub struct Gateway {
    flows: Arc<FlowControls>,
    readiness: Readiness,
    addresses: ListeningAddresses,
    /// The files of the Unix sockets that the gateway listens on.
    socket_files: Vec<SocketFile>,
    /// The sockets that a successor may take over, if there may be one.
    offered: Vec<ListenSocket>,
    admin_address: Option<SocketAddr>,
    /// Whether the objects are those of the levels and matches in the settings.
    follows_settings: bool,
    pub(crate) shared: Arc<SharedByWorkers>,
    pub(crate) generations: watch::Sender<Arc<Generation>>,
    /// Looks after the certificates of the upstreams that there are.
    pub(crate) upstream_files: BackgroundTask,
    /// Look after limits that find themselves.
    limit_tasks: Vec<BackgroundTask>,
    /// Follows the files of the shadow, if it has any.
    shadow_task: Option<BackgroundTask>,
    /// The threads and tasks that wrote the access log or exported spans under earlier settings, and may not have ended.
    pub(crate) replaced: Vec<Ended>,
    stage: watch::Sender<WorkerStage>,
    workers: Vec<WorkerThread>,
    /// Serves the admin endpoint.
    admin_pages: Vec<BackgroundTask>,
    /// Further tasks on the caller's runtime.
    _background: Vec<BackgroundTask>,
}

/// How long the last log lines and spans under earlier settings are waited for when the gateway shuts down.
const REPLACED_FLUSH_TIME: Duration = Duration::from_secs(5);

/// A task beside the requests, which is aborted when its handle is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundTask(pub(crate) JoinHandle<()>);

/// Why a gateway could not start. Each error says in one sentence what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// No upstream was named.
    #[error(
        "no upstream is configured; name one with `--upstream http://127.0.0.1:9000`, or let Envoy ask with `--ext-proc 127.0.0.1:9902`"
    )]
    NoUpstream,
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {error}; {}", Self::listen_advice(error, "--listen"))]
    Listen {
        /// The address.
        address: ListenAddress,
        /// The error of the system.
        error: io::Error,
    },
    /// A name to listen on has no address.
    #[error(
        "cannot listen on {address}: the name has no address: {error}; write an IP address of this machine instead"
    )]
    Name {
        /// The name and the port.
        address: ListenAddress,
        /// The error of the system.
        error: io::Error,
    },
    /// A Unix socket cannot be listened on.
    #[error("cannot listen on {address}: {error}; {}", Self::unix_advice(error))]
    ListenUnix {
        /// The socket.
        address: ListenAddress,
        /// The error of the system.
        error: io::Error,
    },
    /// systemd passes a socket that the settings do not name.
    #[error(
        "systemd passed a socket that listens on {0}, which neither `listen` nor `admin.address` names; set one of them to \
         that address, or remove it from evenkeel.socket"
    )]
    UnusedSocket(String),
    /// The gateway cannot be taken over.
    #[error(transparent)]
    Takeover(#[from] TakeoverError),
    /// The admin endpoint's address cannot be listened on.
    #[error("cannot listen on {address}: {error}; {}", Self::listen_advice(error, "--admin-listen"))]
    ListenAdmin {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// The admin endpoint has no token that can be used.
    #[error(transparent)]
    AdminToken(#[from] AdminTokenError),
    /// A thread could not be started.
    #[error("cannot start a thread to serve requests: {0}")]
    Thread(io::Error),
    /// The access log cannot be written.
    #[error("log.accessFile: cannot open {}: {error}; name a writable file", shown(file.as_deref()))]
    AccessLog {
        /// The file; standard output if there is none.
        file: Option<PathBuf>,
        /// The error of the system.
        error: io::Error,
    },
    /// Spans cannot be exported.
    #[error(transparent)]
    Tracing(#[from] TracingError),
    /// A certificate or key is not usable.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A source of identities is not usable.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The routes make no sense.
    #[error(transparent)]
    Requests(#[from] RequestRulesError),
    /// The objects to follow could not be read.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The seats cannot be shared with other gateways.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// There are fewer seats than levels that have to have one.
    #[error("concurrency: {}; set `concurrency` to at least {}, or remove levels", .0, .0.levels.len())]
    Seats(#[from] TooFewSeats),
    /// There are fewer seats for a service than levels that have to have one.
    #[error("services.{service}.concurrency: {error}; set it to at least {}, or remove levels", .error.levels.len())]
    SeatsOfService {
        /// The service.
        service: String,
        /// The number of seats, and the levels that need one.
        error: TooFewSeats,
    },
}

fn shown(file: Option<&Path>) -> String {
    file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string())
}

/// How a drain ended.
///
/// Not `#[non_exhaustive]`: it is one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How many requests were still running when the time was over, and were cut off.
    pub requests_cut: usize,
}

// === impl Gateway ===

impl Gateway {
    /// Starts a gateway, and returns when it accepts connections.
    ///
    /// Call it inside of a tokio runtime, which drives the flow control, the objects and the admin endpoint;
    /// requests have threads of their own.
    pub async fn start(config: Config, objects: Box<dyn ObjectSource>) -> Result<Self, StartError> {
        // In a box: the future is large, and would make those of callers large.
        Box::pin(Self::start_on(config, objects, InheritedSockets::default())).await
    }

    /// [`start`](Self::start) on sockets of another process, where the settings name their addresses.
    pub async fn start_on(
        config: Config,
        mut objects: Box<dyn ObjectSource>,
        mut inherited: InheritedSockets,
    ) -> Result<Self, StartError> {
        let workers = config.workers.unwrap_or_else(cores).max(1);
        let metrics = GatewayMetrics::new(workers);
        let flows = Arc::new(FlowControls::new(&config));
        let generation = Arc::new(Box::pin(Generation::open(config, None, &metrics, &flows)).await?);
        metrics.set_upstreams(generation.upstream_metrics());
        let config = Arc::clone(&generation.config);
        let readiness = Readiness::default();
        let mut governing = Governing {
            flows: Arc::clone(&flows),
            metrics: metrics.clone(),
            findings: Findings::default(),
            last: Objects::default(),
        };
        governing.apply(objects.next().await?)?;
        // After the first objects, so that the fleet is told of their levels.
        fleet::join(flows.default(), &config)?;
        let shadow_files = ShadowFiles::open(config.shadow.as_ref(), config.preset, &flows).await?;
        let follows_settings = objects.follows_settings();
        if let Some(source) = objects.status() {
            readiness.set_source(source);
        }
        let listen::Listeners { addresses, of_workers, tls_files, socket_files, mut offered } =
            listen::listen(&config, workers, &mut inherited)?;
        let rejections = Arc::new(RejectionLog::new(&config.log));
        let shared = Arc::new(SharedByWorkers {
            flows: Arc::clone(&flows),
            metrics: metrics.clone(),
            rejections: Arc::clone(&rejections),
            connections: Arc::default(),
            clients: ClientQuotas::new(config.limits.connections_per_client(), config.limits.streams_per_client()),
            buffered: BufferedBytes::default(),
        });
        let (stage, told) = watch::channel(WorkerStage::Serving);
        let upstream_files = BackgroundTask(tokio::spawn(keep_fresh(generation.files().collect())));
        let limit_tasks = look_after_limits(&flows, &config);
        let (generations, followed) = watch::channel(generation);
        let workers = (of_workers.into_iter().enumerate())
            .map(|(index, listening)| {
                WorkerThread::start(index, Arc::clone(&shared), listening, followed.clone(), told.clone())
            })
            .collect::<io::Result<Vec<_>>>()
            .map_err(StartError::Thread)?;
        let mut background = vec![
            BackgroundTask(tokio::spawn(follow(objects, governing, followed.clone()))),
            BackgroundTask(tokio::spawn(keep_fresh(tls_files))),
            BackgroundTask(tokio::spawn(flush_rejections(rejections))),
            BackgroundTask(tokio::spawn(flight::watch_triggers(recorded_flows_of(followed.clone())))),
            BackgroundTask(tokio::spawn(compare_upstreams(followed.clone()))),
            BackgroundTask(tokio::spawn(follow_names(generations.clone(), metrics.clone()))),
        ];
        let mut admin_pages = Vec::new();
        let admin_address = match &config.admin.address {
            Some(address) => {
                let token = AdminToken::open(&config.admin, std::env::var(TOKEN_VARIABLE).ok())?;
                let frames = Frames::default();
                let (flow, readiness) = (flows.default().clone(), readiness.clone());
                let sources = Sources {
                    flows: flows_of(followed.clone()),
                    metrics: metrics.clone(),
                    readiness: readiness.clone(),
                    buffer_limit: buffer_limit_of(followed.clone()),
                    upstreams: upstreams_of(followed.clone()),
                    models: models_of(followed.clone()),
                };
                let frames_in = frames.clone();
                let admin = Admin { flow, metrics, readiness, settings: settings_of(followed), frames, token };
                let (address, pages) = operate(address, admin, &mut inherited, &mut offered)?;
                admin_pages = pages;
                background.push(BackgroundTask(tokio::spawn(Recording::new(frames_in, sources).run())));
                address
            }
            None => None,
        };
        if let Some(unused) = inherited.unused() {
            return Err(StartError::UnusedSocket(unused.to_owned()));
        }
        if config.takeover_socket.is_none() {
            offered.clear();
        }
        readiness.enter(Phase::Ready);
        Ok(Self {
            flows,
            readiness,
            addresses,
            socket_files,
            offered,
            admin_address,
            follows_settings,
            shared,
            generations,
            upstream_files,
            limit_tasks,
            shadow_task: shadow_files.map(follow_shadow),
            replaced: Vec::new(),
            stage,
            workers,
            admin_pages,
            _background: background,
        })
    }

    /// The flow control that all requests go through, or with services those that belong to none.
    pub fn flow(&self) -> &FlowControl {
        self.flows.default()
    }

    /// The settings in effect.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.generations.borrow().config)
    }

    /// Whether the gateway wants more requests.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The addresses that the gateway listens on, in the order of the configuration, with the ports that the system has chosen.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses.for_clients
    }

    /// The addresses that Envoy asks at, if there are any.
    pub fn ext_proc_addresses(&self) -> &[SocketAddr] {
        &self.addresses.for_envoy
    }

    /// The Unix sockets that the gateway listens on.
    pub fn unix_sockets(&self) -> impl Iterator<Item = &Path> {
        self.socket_files.iter().map(SocketFile::path)
    }

    /// Lets another process take over, if the settings say where.
    pub fn offer(&mut self) -> Result<Option<Offer>, StartError> {
        let config = self.config();
        let sockets = std::mem::take(&mut self.offered);
        let offer = config.takeover_socket.as_ref().map(|path| Offer::new(path, sockets));
        offer.transpose().map_err(StartError::from)
    }

    /// The address of the admin endpoint; the first if there are several.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Writes what the flight recorder has kept into its folder, as SIGUSR1 asks for. The log says whether that worked.
    pub async fn dump_flight(&self) {
        let (config, flows) = recorded_flows_of(self.generations.subscribe())();
        flight::dump_all(&config, flows).await;
    }

    /// How many clients are connected.
    pub fn connections(&self) -> usize {
        self.shared.connections.count()
    }

    /// Shuts down: readiness turns false, then no connection is accepted any more. The future ends with the last request, or
    /// when the time for it is over.
    pub async fn drain(mut self) -> Drained {
        self.readiness.enter(Phase::Draining);
        let notice = self.config().timeouts.drain_notice;
        tokio::time::sleep(notice).await;
        // Without its file, no other process can connect to a Unix socket.
        self.socket_files.clear();
        self.stage.send_replace(WorkerStage::Draining);
        fleet::give_back(self.flow());
        self.end().await
    }

    /// Stops accepting connections, which another process does in its place. Requests go on until [`drain_rest`](Self::drain_rest).
    pub fn hand_over(&mut self) {
        self.readiness.enter(Phase::Draining);
        self.socket_files.drain(..).for_each(SocketFile::leave);
        self.admin_pages.clear();
        self.stage.send_replace(WorkerStage::HandedOver);
        fleet::give_back(self.flow());
    }

    /// Waits for the last request, or until the time for it is over, after [`hand_over`](Self::hand_over).
    pub async fn drain_rest(self) -> Drained {
        self.end().await
    }

    /// Waits for the last request, or until the time for it is over, and ends what runs beside the requests.
    async fn end(mut self) -> Drained {
        let timeouts = self.config().timeouts.clone();
        let all_ended = async {
            for worker in &mut self.workers {
                worker.ended().await;
            }
        };
        let result = tokio::time::timeout(timeouts.drain, all_ended).await.map_err(|_| Elapsed);
        let requests_cut = if result.is_ok() { 0 } else { self.workers.iter().map(WorkerThread::requests).sum() };
        self.stage.send_replace(WorkerStage::Stopped);
        for worker in &mut self.workers {
            if result.is_err() {
                worker.ended().await;
            }
        }
        fleet::leave(self.flow()).await;
        self.shared.rejections.flush();
        for (flow, limit) in self.flows.finding(&self.config()) {
            limit::keep_now(&flow, &limit);
        }
        let (access_log, spans) = {
            let generation = self.generations.borrow();
            (generation.access_log.clone(), generation.spans.clone())
        };
        if let Some(access_log) = access_log {
            access_log.flush().await;
        }
        if let Some(spans) = spans {
            spans.flush().await;
        }
        let replaced = std::mem::take(&mut self.replaced);
        let all_ended = async {
            for ended in replaced {
                ended.wait().await;
            }
        };
        if tokio::time::timeout(REPLACED_FLUSH_TIME, all_ended).await.is_err() {
            tracing::warn!(
                "the last log lines or spans under earlier settings could not be written in time, and are lost"
            );
        }
        Drained { requests_cut }
    }
}

/// Tasks for limits that find themselves: they keep the learnt limit in a file, and ask services whether the limit may rise.
fn look_after_limits(flows: &FlowControls, config: &Config) -> Vec<BackgroundTask> {
    let look_after = |(flow, limit)| BackgroundTask(tokio::spawn(limit::look_after(flow, limit)));
    flows.finding(config).into_iter().map(look_after).collect()
}

/// Binds all addresses of a name. Of several, those may fail that this machine does not have, such as `::1` without IPv6.
fn each_of<T>(
    listen: &ListenAddress,
    mut bind: impl FnMut(SocketAddr) -> io::Result<T>,
    fault: impl Fn(SocketAddr, io::Error) -> StartError,
) -> Result<Vec<T>, StartError> {
    let addresses = listen.resolve().map_err(|error| StartError::Name { address: listen.clone(), error })?;
    let (mut bound, mut absent) = (Vec::new(), None);
    for address in addresses {
        match bind(address) {
            Ok(socket) => bound.push(socket),
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => absent = Some(fault(address, error)),
            Err(error) => return Err(fault(address, error)),
        }
    }
    match absent {
        Some(fault) if bound.is_empty() => Err(fault),
        _ => Ok(bound),
    }
}

/// Serves the admin endpoint on all addresses of a name, and returns the first.
fn operate(
    listen: &ListenAddress,
    admin: Admin,
    inherited: &mut InheritedSockets,
    offered: &mut Vec<ListenSocket>,
) -> Result<(Option<SocketAddr>, Vec<BackgroundTask>), StartError> {
    let bind = |address: SocketAddr| {
        let socket = match inherited.take(&address.to_string()).pop() {
            Some(socket) => socket,
            None => ListenSocket::tcp(std::net::TcpListener::bind(address)?)?,
        };
        offered.push(socket.try_clone()?);
        let listener = socket.into_listener()?;
        Ok((listener.address()?, listener))
    };
    if let Some(address) = open_address(listen, admin.token.as_ref())? {
        return Err(AdminTokenError::Missing(address.to_string()).into());
    }
    let bound = each_of(listen, bind, |address, error| StartError::ListenAdmin { address, error })?;
    let (router, first) = (admin.router(), bound.first().map(|(address, _)| *address));
    let serve = |listener| BackgroundTask(tokio::spawn(admin::serve_on(listener, router.clone())));
    Ok((first, bound.into_iter().map(|(_, listener)| serve(listener)).collect()))
}

/// The address that other machines can reach although there is no token.
fn open_address(listen: &ListenAddress, token: Option<&AdminToken>) -> Result<Option<SocketAddr>, StartError> {
    let addresses = listen.resolve().map_err(|error| StartError::Name { address: listen.clone(), error })?;
    Ok(addresses.into_iter().find(|address| token.is_none() && !address.ip().to_canonical().is_loopback()))
}

/// A function that returns the counters of the present upstreams.
fn upstreams_of(generations: watch::Receiver<Arc<Generation>>) -> Box<dyn Fn() -> Vec<UpstreamReading> + Send> {
    Box::new(move || generations.borrow().upstreams().map(|upstream| upstream.reading()).collect())
}

/// A function that returns the counts of the language models of all services.
fn models_of(generations: watch::Receiver<Arc<Generation>>) -> Box<dyn Fn() -> Vec<ModelReading> + Send> {
    Box::new(move || {
        ModelReading::by_name(generations.borrow().pools.iter().flat_map(|pool| pool.llm.models.readings()))
    })
}

/// A function that returns the settings in effect.
fn settings_of(generations: watch::Receiver<Arc<Generation>>) -> SettingsInEffect {
    SettingsInEffect::new(move || {
        let generation = generations.borrow();
        InEffect {
            config: Arc::clone(&generation.config),
            rules: generation.rules.clone(),
            identification: Arc::clone(&generation.identification),
            services: services(&generation),
        }
    })
}

/// A function that returns the flow controls that requests go through.
fn flows_of(generations: watch::Receiver<Arc<Generation>>) -> Box<dyn Fn() -> Vec<ServiceFlow> + Send> {
    Box::new(move || services(&generations.borrow()))
}

/// A function that returns the settings and the flow controls whose requests are recorded.
fn recorded_flows_of(
    generations: watch::Receiver<Arc<Generation>>,
) -> impl Fn() -> (Arc<Config>, Vec<ServiceFlow>) + Send {
    move || {
        let generation = generations.borrow();
        (Arc::clone(&generation.config), services(&generation))
    }
}

fn services(generation: &Generation) -> Vec<ServiceFlow> {
    let service = |pool: &ServicePool| ServiceFlow { service: pool.service.clone(), flow: pool.flow.clone() };
    generation.pools.iter().map(service).collect()
}

fn buffer_limit_of(generations: watch::Receiver<Arc<Generation>>) -> Box<dyn Fn() -> u64 + Send> {
    Box::new(move || generations.borrow().config.limits.buffer_bytes as u64)
}

/// Follows the files of the shadow for as long as the gateway runs.
fn follow_shadow(files: ShadowFiles) -> BackgroundTask {
    BackgroundTask(tokio::spawn(files.follow()))
}

async fn follow(
    mut objects: Box<dyn ObjectSource>,
    mut governing: Governing,
    mut generations: watch::Receiver<Arc<Generation>>,
) {
    let follows_settings = objects.follows_settings();
    let mut form = generations.borrow_and_update().config.short_form();
    loop {
        let next = tokio::select! {
            next = objects.next() => next,
            new = changed_objects(&mut generations, &mut form), if follows_settings => Ok(new),
        };
        match next {
            Ok(new) => match governing.apply(new) {
                Ok(()) => tracing::info!("the objects changed and are in effect"),
                Err(error) => refuse(&governing.metrics, &error),
            },
            Err(error) => refuse(&governing.metrics, &error),
        }
    }
}

/// The objects of the next settings whose levels and matches differ. Dropping the future loses nothing.
async fn changed_objects(generations: &mut watch::Receiver<Arc<Generation>>, form: &mut Option<ShortForm>) -> Objects {
    loop {
        if generations.changed().await.is_err() {
            // The gateway is gone.
            return std::future::pending().await;
        }
        let config = Arc::clone(&generations.borrow_and_update().config);
        let now = config.short_form();
        if now != *form
            && let Some(objects) = config.short_objects()
        {
            *form = now;
            return objects.with_mandatory_levels();
        }
    }
}

fn refuse(metrics: &GatewayMetrics, error: &dyn std::error::Error) {
    metrics.objects_refused();
    tracing::error!(%error, "the objects cannot be used; the previous ones stay in effect");
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

// === impl BackgroundTask ===

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl StartError ===

impl StartError {
    /// The advice on an address that cannot be listened on, and that this flag chooses.
    pub fn listen_advice(error: &io::Error, flag: &str) -> String {
        let cause = match error.kind() {
            io::ErrorKind::AddrNotAvailable => {
                return format!(
                    "this machine does not have that address; choose one that it has with `{flag}`, \
                     or 0.0.0.0 or [::] to listen on all"
                );
            }
            io::ErrorKind::AddrInUse => "is another program using it? ",
            io::ErrorKind::PermissionDenied => "ports below 1024 need privileges; ",
            _ => "",
        };
        format!("{cause}choose another address with `{flag}`")
    }

    /// The advice on a Unix socket that cannot be listened on.
    fn unix_advice(error: &io::Error) -> &'static str {
        match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process listens on it; stop that, or choose another file with `--listen`"
            }
            io::ErrorKind::NotFound => "make its folder, or choose another file with `--listen`",
            io::ErrorKind::PermissionDenied => {
                "let the user that runs evenkeel write to its folder; under systemd, set `RuntimeDirectory=`"
            }
            _ => "choose another file with `--listen`",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_why_an_address_cannot_be_listened_on() {
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        for (kind, expected) in [
            (io::ErrorKind::AddrInUse, "; is another program using it? choose another address with `--listen`"),
            (
                io::ErrorKind::AddrNotAvailable,
                "; this machine does not have that address; choose one that it has with `--listen`, \
                 or 0.0.0.0 or [::] to listen on all",
            ),
            (
                io::ErrorKind::PermissionDenied,
                "; ports below 1024 need privileges; choose another address with `--listen`",
            ),
            (io::ErrorKind::OutOfMemory, "; choose another address with `--listen`"),
        ] {
            let error = io::Error::from(kind);
            let start = format!("cannot listen on 192.0.2.1:80: {error}");
            let error = StartError::Listen { address: address.into(), error }.to_string();
            assert_eq!(error.strip_prefix(&start), Some(expected), "{error}");
        }
        let error = StartError::ListenAdmin { address, error: io::ErrorKind::AddrInUse.into() }.to_string();
        assert!(
            error.ends_with("; is another program using it? choose another address with `--admin-listen`"),
            "{error}"
        );
    }
}
