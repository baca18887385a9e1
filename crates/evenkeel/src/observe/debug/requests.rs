//! The dump of requests (OB-13, OB-14).

use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_api::v1::FlowDistinguisherMethod;
use evenkeel_engine::classify::distinguisher;
use evenkeel_engine::digest::{Kubernetes, PlainPaths};
use evenkeel_engine::queue_set::{Phase, RequestView};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, RequestInfo, WorkEstimate};

use super::table::Table;
use super::{RequestColumns, duration, timestamp};
use crate::control::core::LevelCore;
use crate::control::counts::{LevelMetrics, Mark};
use crate::control::digests::{self, DigestId, SharedDigest};
use crate::control::flow_control::FlowControlShared;
use crate::control::level::Level;
use crate::control::request::Details;

/// The figures that are copied of a request.
struct Row {
    schema: Arc<str>,
    /// What tells its flow from others; `None` at a level that makes no difference (OB-14).
    method: Option<FlowDistinguisherMethod>,
    queue: Option<usize>,
    index_in_queue: Option<usize>,
    details: Option<Details>,
    digest: DigestId,
    arrived: Instant,
    started: Option<Instant>,
    work: WorkEstimate,
}

/// The digest for requests that came without a layer.
fn digest_of(preset: Preset) -> Arc<SharedDigest> {
    match preset {
        Preset::Plain | Preset::Llm => Arc::new(PlainPaths),
        Preset::Kubernetes => Arc::new(Kubernetes::default()),
    }
}

const COLUMNS: [&str; 10] = [
    "PriorityLevelName",
    "FlowSchemaName",
    "QueueIndex",
    "RequestIndexInQueue",
    // Misspelt in Kubernetes, and part of its format.
    "FlowDistingsher",
    "ArriveTime",
    "InitialSeats",
    "FinalSeats",
    "AdditionalLatency",
    "StartTime",
];
const DETAIL_COLUMNS: [&str; 8] =
    ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

pub(super) fn dump(levels: &[(Arc<str>, Arc<Level>)], shared: &FlowControlShared, columns: RequestColumns) -> String {
    let header = match columns {
        RequestColumns::Basic => COLUMNS.to_vec(),
        RequestColumns::WithDetails => [&COLUMNS[..], &DETAIL_COLUMNS].concat(),
    };
    let mut table = Table::new(&header);
    let clock_start = shared.upkeep().clock.unix_start();
    for (name, level) in levels {
        let listeners = level.listeners();
        let mut rows = Row::all_of(&level.lock(), &listeners.metrics);
        drop(listeners);
        // Requests of one queue together, the waiting ones first; requests without a queue at the end.
        rows.sort_by_key(|row| {
            let queue = row.queue.unwrap_or(usize::MAX);
            (queue, row.index_in_queue.unwrap_or(usize::MAX), row.arrived)
        });
        for row in &rows {
            table.push(row.cells(name, shared, clock_start, columns));
        }
    }
    table.text()
}

// === impl Row ===

impl Row {
    fn all_of(core: &LevelCore, metrics: &LevelMetrics) -> Vec<Self> {
        let set = core.queue_set();
        let mut rows = Vec::with_capacity(set.waiting() + set.executing());
        for queue in 0..set.queues().len() {
            let waiting = set.waiting_in(queue).enumerate();
            rows.extend(waiting.map(|(index, request)| Self::of(core, metrics, &request, Some(index))));
        }
        let executing = set.requests().filter(|request| request.phase == Phase::Executing);
        rows.extend(executing.map(|request| Self::of(core, metrics, &request, None)));
        rows
    }

    fn of(
        core: &LevelCore,
        metrics: &LevelMetrics,
        request: &RequestView<'_, Mark>,
        index_in_queue: Option<usize>,
    ) -> Self {
        let series = metrics.series.get(request.payload.series as usize);
        let has_flows = core.queue_set().mode().has_flows();
        Self {
            schema: series.map_or_else(|| "".into(), |series| Arc::clone(&series.schema)),
            method: series.filter(|_| has_flows).and_then(|series| series.method.clone()),
            queue: request.queue,
            index_in_queue,
            details: core
                .belongings
                .get(request.id.slot())
                .and_then(|belongings| belongings.details.as_deref().cloned()),
            digest: request.payload.digest,
            arrived: request.arrived,
            started: request.started,
            work: request.work,
        }
    }

    fn cells(
        &self,
        level: &str,
        shared: &FlowControlShared,
        clock_start: Nanos,
        columns: RequestColumns,
    ) -> Vec<String> {
        let time = |at: Instant| timestamp::text(clock_start.saturating_add(at.as_nanos()));
        let digest = shared.digests.get(self.digest).unwrap_or_else(|| digest_of(shared.preset));
        let head = self.details.as_ref().map(|details| digests::head(details.method.clone(), details.uri.clone()));
        let info = head.as_ref().and_then(|head| digest.info(head)).unwrap_or_default();
        let index = |index: Option<usize>| index.map_or_else(|| "-1".to_owned(), |index| index.to_string());
        let mut cells = vec![
            level.to_owned(),
            self.schema.to_string(),
            index(self.queue),
            index(self.index_in_queue),
            self.distinguisher(&info),
            time(self.arrived),
            self.work.initial_seats.to_string(),
            self.work.final_seats.to_string(),
            duration::text(self.work.additional_latency),
            self.started.map_or_else(|| timestamp::NEVER.to_owned(), time),
        ];
        if columns == RequestColumns::WithDetails {
            cells.extend(self.detail_cells(&info));
        }
        cells
    }

    fn distinguisher(&self, info: &RequestInfo<'_>) -> String {
        let attributes = self.details.as_ref().map(|details| Attributes { user: &details.user, request: info });
        attributes.map(|attributes| distinguisher(self.method.as_ref(), attributes).to_owned()).unwrap_or_default()
    }

    fn detail_cells(&self, info: &RequestInfo<'_>) -> [String; 8] {
        let user = self.details.as_ref().map(|details| details.user.name.to_string()).unwrap_or_default();
        let version = match &*info.api_group {
            "" => info.api_version.to_string(),
            group => format!("{group}/{}", info.api_version),
        };
        [
            user,
            info.verb.to_string(),
            info.path.to_string(),
            info.namespace.to_string(),
            info.name.to_string(),
            version,
            info.resource.to_string(),
            info.subresource.to_string(),
        ]
    }
}
