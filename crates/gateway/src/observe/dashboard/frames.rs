//! `Frames`: looks once a second, and keeps the latest frame for all viewers.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use evenkeel::FlowControl;
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, interval};

use super::history::History;
use super::recorder::{Observation, Recorder, UpstreamReading};
use super::viewer::{TooManyViewers, Viewer};
use crate::llm::ModelReading;
use crate::objects::SourceStatus;
use crate::observe::ServiceFlow;
use crate::observe::frame::{Frame, Level, PastLevel};
use crate::observe::metrics::GatewayMetrics;
use crate::observe::readiness::Readiness;

/// The frames of a gateway, for the dashboard. Clones share them.
#[derive(Debug, Clone)]
pub struct Frames(Arc<FrameStore>);

#[derive(Debug)]
struct FrameStore {
    latest: watch::Sender<Arc<Latest>>,
    history: Mutex<History>,
    viewers: Arc<Semaphore>,
}

/// A frame, and its JSON once a viewer has asked for it.
#[derive(Debug)]
pub(super) struct Latest {
    frame: Frame,
    text: OnceLock<Bytes>,
}

/// Makes the frames.
#[derive(Debug)]
pub struct Recording {
    frames: Frames,
    recorder: Recorder,
    sources: Sources,
}

/// The sources of a frame.
pub(crate) struct Sources {
    /// The flow controls that requests go through.
    pub(crate) flows: Box<dyn Fn() -> Vec<ServiceFlow> + Send>,
    pub(crate) metrics: GatewayMetrics,
    pub(crate) upstreams: Box<dyn Fn() -> Vec<UpstreamReading> + Send>,
    pub(crate) models: Box<dyn Fn() -> Vec<ModelReading> + Send>,
    pub(crate) readiness: Readiness,
    /// How many bytes may be buffered, by the settings in effect.
    pub(crate) buffer_limit: Box<dyn Fn() -> u64 + Send>,
}

/// The longest frame.
const FRAME_BYTES_MAX: usize = 64 * 1024;
/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// How many levels show their flows, and how many flows by each figure.
const LEVELS_WITH_FLOWS: usize = 10;
const FLOWS_BY_FIGURE: usize = 8;
/// Viewers at a time.
const VIEWERS_MAX: usize = 16;

// === impl Frames ===

impl Frames {
    /// A body of server-sent events: the past of every level (`past`), then frames (`frame`).
    pub fn watch(&self) -> Result<Viewer, TooManyViewers> {
        let permit = Arc::clone(&self.0.viewers).try_acquire_owned().map_err(|_| TooManyViewers)?;
        Ok(Viewer::new(self.clone(), self.0.latest.subscribe(), permit))
    }

    /// The latest frame.
    pub fn latest(&self) -> Frame {
        self.0.latest.borrow().frame.clone()
    }

    /// The latest frame as viewers get it: an event of bounded length.
    pub fn latest_event(&self) -> Bytes {
        self.0.latest.borrow().text()
    }

    /// The names of the levels that have a past.
    pub(super) fn names(&self) -> Vec<String> {
        self.history().names()
    }

    pub(super) fn past(&self, name: &str) -> Option<PastLevel> {
        self.history().of(name)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.0.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Frames {
    fn default() -> Self {
        let latest = Arc::new(Latest { frame: Frame::new(now_ms(), 0), text: OnceLock::new() });
        let viewers = Arc::new(Semaphore::new(VIEWERS_MAX));
        Self(Arc::new(FrameStore { latest: watch::Sender::new(latest), history: Mutex::default(), viewers }))
    }
}

// === impl Recording ===

impl Recording {
    pub(crate) fn new(frames: Frames, sources: Sources) -> Self {
        Self { frames, recorder: Recorder::default(), sources }
    }

    /// Frames of a flow control without a gateway.
    pub fn alone(frames: Frames, flow: FlowControl) -> Self {
        let alone = ServiceFlow { service: None, flow };
        let sources = Sources {
            flows: Box::new(move || vec![alone.clone()]),
            metrics: GatewayMetrics::new(1),
            upstreams: Box::new(Vec::new),
            models: Box::new(Vec::new),
            readiness: Readiness::default(),
            buffer_limit: Box::new(|| 0),
        };
        Self::new(frames, sources)
    }

    /// Looks once a second, for as long as the future lives.
    pub async fn run(mut self) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look();
        }
    }

    /// Makes a frame as of now.
    pub fn look(&mut self) {
        let Some(seen) = self.sources.observe(&self.recorder) else { return };
        let frame = self.recorder.record(seen, now_ms(), &mut self.frames.history());
        self.frames.0.latest.send_replace(Arc::new(Latest { frame, text: OnceLock::new() }));
    }
}

// === impl Latest ===

impl Latest {
    /// Whether there is anything in it: the first look may not have been yet.
    pub(super) fn is_there(&self) -> bool {
        !self.frame.levels.is_empty()
    }

    /// The frame as an event, which is written when it is first asked for.
    pub(super) fn text(&self) -> Bytes {
        self.text.get_or_init(|| fitted(&self.frame)).clone()
    }
}

/// A frame as an event of bounded length. With hundreds of levels, the least important parts are left out.
fn fitted(frame: &Frame) -> Bytes {
    let mut text = event("frame", frame);
    if text.len() <= FRAME_BYTES_MAX {
        return text;
    }
    let mut brief = frame.clone();
    let cuts: [fn(&mut Level); 4] = [
        |level| level.execution_ms = None,
        |level| level.schemas.iter_mut().for_each(|schema| schema.rate = 0.0),
        |level| level.schemas.clear(),
        |level| (level.flows, level.delays) = (Vec::new(), Vec::new()),
    ];
    for cut in cuts {
        brief.levels.iter_mut().for_each(cut);
        text = event("frame", &brief);
        if text.len() <= FRAME_BYTES_MAX {
            break;
        }
    }
    text
}

/// A server-sent event.
pub(super) fn event(kind: &str, data: &impl serde::Serialize) -> Bytes {
    let mut text = format!("event: {kind}\ndata: ").into_bytes();
    // Names and numbers can always be written; if not, the reader gets an event without data, which it ignores.
    let _ = serde_json::to_writer(&mut text, data);
    text.extend_from_slice(b"\n\n");
    text.into()
}

pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

// === impl Sources ===

impl Sources {
    /// `None` if no flow control is there.
    fn observe(&self, recorder: &Recorder) -> Option<Observation> {
        let flows_of_services = (self.flows)();
        let reading = ServiceFlow::reading(&flows_of_services)?;
        let busiest = recorder.busiest(&reading, LEVELS_WITH_FLOWS).into_iter();
        let flows =
            busiest.filter_map(|level| ServiceFlow::flows_of(&flows_of_services, level, FLOWS_BY_FIGURE)).collect();
        let (objects_refused, settings_applied) = self.metrics.changes();
        Some(Observation {
            reading,
            flows,
            upstreams: (self.upstreams)(),
            models: (self.models)(),
            object_changes: self.metrics.take_object_changes(),
            objects_refused,
            settings_applied,
            upstream_failures: self.metrics.upstream_failures(),
            objects_stale: self.readiness.objects_stale(),
            store_problem: self.readiness.source().and_then(SourceStatus::store_problem),
            objects_are_refused: self.metrics.objects_are_refused(),
            buffered: self.metrics.buffered_bytes(),
            buffer_limit: (self.buffer_limit)(),
            limit: flows_of_services.iter().find_map(|one| one.flow.limit_state()),
            fleet: flows_of_services.iter().find_map(|one| one.flow.fleet_state()),
            has_shadow: flows_of_services.iter().any(|one| one.flow.has_shadow()),
            canary_returns: flows_of_services.iter().map(|one| one.flow.canary_returns()).sum(),
            canary_returned: flows_of_services.iter().find_map(|one| one.flow.canary_state()?.returned),
        })
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").finish_non_exhaustive()
    }
}
