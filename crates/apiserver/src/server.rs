//! `ApiServer`: the API with its own flow control and its background tasks.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use evenkeel::FlowControl;
use evenkeel::division::Borrowing;
use evenkeel::work::KubernetesWork;
use evenkeel_api::decode::ManifestEntry;
use evenkeel_api::v1::FlowSchemaSpec;
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Kind, Preset};
use evenkeel_engine::controller::Objects;
use evenkeel_store::{Error, Store};
use http::StatusCode;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::audit_trail::AuditTrail;
use crate::clock::now;
use crate::controllers::{bootstrap, dangling, garbage};
use crate::failure::Failure;
use crate::follow::{Followed, ObjectStream, ObjectsAt};
use crate::http::Api;
use crate::in_flight::InFlight;
use crate::log_once::LogOnce;
use crate::managed_fields::{OnConflict, WriteTarget};
use crate::metrics::ApiMetrics;
use crate::options::{Persistence, WriteOptions};
use crate::other_metrics::OtherMetrics;
use crate::patch::{FieldValidation, json_of};
use crate::registry::Registry;
use crate::seats::{GovernedFlow, SeatCheck};
use crate::service::{ApiService, LimitedApi, limited};
use crate::verbs::{self, Write};

/// How an API server is set up.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone)]
pub struct ApiServerOptions {
    /// The initial objects, and the rules of validation. The API itself is that of Kubernetes.
    pub preset: Preset,
    /// How many seats the API has for its own requests.
    pub server_concurrency: u32,
    /// How many watches there may be at a time.
    pub watches_max: usize,
    /// How many bytes of responses may wait to be read by their clients, all together.
    pub response_bytes_max: usize,
    /// The limit for one connection. A larger response is alone on its connection.
    pub response_bytes_per_connection_max: usize,
    /// Whether the condition `Dangling` of flow schemas is kept up to date.
    pub status_controller: StatusController,
    /// Whether deletions that wait for a garbage collector are finished.
    pub garbage_collector: GarbageCollector,
    /// How many connections were rejected because their client has too many. The code that accepts connections counts them
    /// here.
    pub refused_connections: Arc<AtomicU64>,
    /// The flow control of the server that the objects govern: writes that would leave it with too few seats are rejected.
    pub governed: GovernedFlow,
    /// Metrics that `/metrics` shows beside those of the API's own flow control and of the process.
    pub other_metrics: OtherMetrics,
    /// Where changes by requests are told.
    pub audit_trail: AuditTrail,
}

/// Whether the condition `Dangling` is written to flow schemas (API-197).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StatusController {
    /// This server writes it.
    #[default]
    On,
    /// Another program writes it.
    Off,
}

/// The manager that removes the finalizers `orphan` and `foregroundDeletion` from deleted objects (API-70).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum GarbageCollector {
    /// This server.
    #[default]
    On,
    /// Another program or the client, as with a kube-apiserver that is alone.
    Off,
}

/// An API server over a store. Its background tasks end when it is dropped.
#[derive(Debug)]
pub struct ApiServer {
    api: Api,
    flow: FlowControl,
    limited: LimitedApi,
    _tasks: JoinSet<()>,
}

const UNTIDY: &str = "cannot restore the mandatory and suggested objects";

/// A store without history starts with a revision of at most this.
const NEW_STORE_REVISION_MAX: u64 = 2;

// === impl ApiServerOptions ===

impl Default for ApiServerOptions {
    fn default() -> Self {
        Self {
            preset: Preset::Kubernetes,
            server_concurrency: 600,
            watches_max: 10_000,
            response_bytes_max: 128 * 1024 * 1024,
            response_bytes_per_connection_max: 4 * 1024 * 1024,
            status_controller: StatusController::default(),
            garbage_collector: GarbageCollector::default(),
            refused_connections: Arc::default(),
            governed: GovernedFlow::default(),
            other_metrics: OtherMetrics::default(),
            audit_trail: AuditTrail::default(),
        }
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// Starts over that store, inside of a tokio runtime: creates the bootstrap objects, and restores them from
    /// now on.
    pub async fn start(store: Arc<dyn Store>, options: &ApiServerOptions) -> Result<Self, Failure> {
        let (followed, follow_store) = Followed::new();
        let in_flight = InFlight::new(options.response_bytes_max, options.response_bytes_per_connection_max);
        let flow = FlowControl::builder().kubernetes().server_concurrency(options.server_concurrency);
        // A Kubernetes API divides idle seats every ten seconds; before the first time, a level that lends all of its seats
        // has none. With other presets, no request and no health check should wait for that.
        let borrowing = (!options.preset.is_kubernetes()).then_some(Borrowing::Immediate);
        let flow = flow.borrowing(borrowing).build();
        let api = Api::new(&store, options, in_flight, followed.clone(), flow.clone());
        let revision = store.revision().await.map_err(Registry::<FlowSchemaSpec>::failure)?;
        let (levels, schemas) = (bootstrap::tidy(api.levels()).await, bootstrap::tidy(api.schemas()).await);
        match levels.and(schemas) {
            // A store that was used before can be served as it is; creating the objects is tried again every minute.
            Err(failure) if revision > NEW_STORE_REVISION_MAX && failure.status == StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(problem = %failure, "{UNTIDY}");
            }
            tidied => tidied?,
        }
        if revision <= NEW_STORE_REVISION_MAX {
            compact_initial_history(&*store).await.map_err(Registry::<FlowSchemaSpec>::failure)?;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(follow_store.run(Arc::clone(api.schemas()), Arc::clone(api.levels())));
        let mut objects = followed.stream_for_flow_control();
        let first = objects.next().await.ok_or_else(|| Failure::unavailable("the store is closed"))?;
        let work = KubernetesWork::default();
        work.set_consistent_cache(true);
        follow(&flow, &work, &first.objects);
        tasks.spawn(keep_followed(objects, flow.clone(), work.clone()));
        tasks.spawn(keep_tidy(api.clone()));
        if options.status_controller == StatusController::On {
            let (schemas, states) = (Arc::clone(api.schemas()), followed.states());
            tasks.spawn(async move { dangling::run(&schemas, states).await });
        }
        if options.garbage_collector == GarbageCollector::On {
            let (schemas, states) = (Arc::clone(api.schemas()), followed.states());
            tasks.spawn(async move { garbage::run(&schemas, states, ObjectsAt::flow_schemas).await });
            let (levels, states) = (Arc::clone(api.levels()), followed.states());
            tasks.spawn(async move { garbage::run(&levels, states, ObjectsAt::priority_levels).await });
        }
        let limited = limited(&api, &flow, work);
        Ok(Self { api, flow, limited, _tasks: tasks })
    }

    /// The objects now and after each change. No write waits for readers of this stream.
    pub fn objects(&self) -> ObjectStream {
        self.api.followed().stream()
    }

    /// The same for a flow control other than the API's own: responses to writes wait until it asks for the next objects.
    pub fn objects_for_flow_control(&self) -> ObjectStream {
        self.api.followed().stream_for_flow_control()
    }

    /// The flow control that the API's own requests go through.
    pub fn flow(&self) -> &FlowControl {
        &self.flow
    }

    /// The API's own metrics, without those of its flow control: a gateway in the same process has metrics with the same
    /// names.
    pub fn metrics(&self) -> ApiMetrics {
        self.api.metrics()
    }

    /// Applies the fields of an object in a manifest, as the manager of that name, which takes over fields from
    /// others: what `--objects` does.
    pub async fn apply(&self, entry: &ManifestEntry, manager: &str) -> Result<(), Failure> {
        let seats = self.api.seats();
        match entry.object.kind() {
            Kind::FlowSchema => apply(self.api.schemas(), seats, entry, manager).await,
            Kind::PriorityLevelConfiguration => apply(self.api.levels(), seats, entry, manager).await,
        }
    }

    /// A `tower` service for the requests of one connection, which `identity` authenticates. It has to run on tasks of a
    /// runtime, and not on a `LocalSet`: work on large objects moves the thread's other tasks elsewhere.
    pub fn service<I: evenkeel::identify::Identify>(&self, identity: I) -> ApiService<I> {
        let (in_flight, denials) = (self.api.in_flight().connection(), self.api.denials().clone());
        ApiService::new(self.limited.clone(), in_flight, denials, identity)
    }

    /// The API itself, without authentication and flow control.
    pub fn api(&self) -> &Api {
        &self.api
    }
}

/// Compacts the history of a new store: no watch starts before the bootstrap objects (API-168).
async fn compact_initial_history(store: &dyn Store) -> Result<(), Error> {
    let current = store.revision().await?;
    match store.compact(current).await {
        // Another instance did it at the same time, or our etcd user may not compact.
        Err(Error::TooOld { .. } | Error::Denied(_)) => Ok(()),
        compacted => compacted,
    }
}

async fn apply<S: HubSpec + ValidSpec>(
    registry: &Registry<S>,
    seats: SeatCheck<'_>,
    entry: &ManifestEntry,
    manager: &str,
) -> Result<(), Failure> {
    let tree = json_of(&entry.tree).map_err(|number| Failure::bad_request(format!("{number} is too large")))?;
    let Value::Object(mut body) = tree else { return Err(Failure::bad_request("a manifest is an object")) };
    // An item of a list may lack its kind and version.
    body.insert("apiVersion".to_owned(), entry.version.api_version().into());
    body.insert("kind".to_owned(), S::KIND.name().into());
    let body = Value::Object(body).to_string();
    let options = WriteOptions {
        persistence: Persistence::Stored,
        validation: FieldValidation::Ignore,
        manager: manager.to_owned(),
        on_conflict: OnConflict::Force,
    };
    let write = Write {
        version: entry.version,
        name: entry.object.name(),
        endpoint: WriteTarget::Object,
        options: &options,
        now: now(),
        weight: body.len(),
        seats: Some(seats),
    };
    verbs::apply(registry, body.as_bytes(), &write, &mut Vec::new()).await.map(|_| ())
}

async fn keep_followed(mut objects: ObjectStream, flow: FlowControl, work: KubernetesWork) {
    while let Some(state) = objects.next().await {
        follow(&flow, &work, &state.objects);
    }
}

/// Applies the objects to the flow control, and tells the estimates how many there are.
fn follow(flow: &FlowControl, work: &KubernetesWork, objects: &Objects) {
    for (kind, count) in [
        (Kind::FlowSchema, objects.flow_schemas.len()),
        (Kind::PriorityLevelConfiguration, objects.priority_levels.len()),
    ] {
        let key = format!("{}.{}", kind.resource(), evenkeel_api::GROUP);
        work.set_objects(&key, i64::try_from(count).unwrap_or(i64::MAX), OBJECT_BYTES);
    }
    flow.apply_stored(objects.clone());
}

/// The typical size of an object.
const OBJECT_BYTES: i64 = 1024;

async fn keep_tidy(api: Api) {
    let mut ticks = interval(bootstrap::PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    let mut log_once = LogOnce::new(UNTIDY);
    loop {
        ticks.tick().await;
        // A failure is retried at the next tick.
        let (levels, schemas) = (bootstrap::tidy(api.levels()).await, bootstrap::tidy(api.schemas()).await);
        log_once.note(&**api.schemas().store(), &levels.and(schemas)).await;
    }
}
