//! `FlowControl::record`: how a recorder begins and what its dumps have.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::control::flight::{Flight, FlightHeader};
use evenkeel_engine::controller::Borrowing;

use super::Recorder;
use super::join::join;
use super::listener::RecordingListener;
use super::records::{ArrivalRecord, EventRecord};
use crate::control::clock::nanos;
use crate::control::flow_control::FlowControl;
use crate::sync::PoisonError;

// === impl FlowControl ===

impl FlowControl {
    /// Keeps what is decided about the last requests in so many bytes of memory: a flight recorder (FR-1). 32 MB hold some 400,000
    /// requests. It replaces the recorder before; with 0 bytes there is none.
    ///
    /// [`flight`](Self::flight) gives what it has kept. `evenkeel replay` reads it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// let flow = FlowControl::builder().server_concurrency(40).drive_by_hand().build();
    /// flow.record(32 << 20);
    /// let (user, request) = (User::default(), RequestInfo::for_path("get", "/orders"));
    /// drop(flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT));
    /// let flight = flow.flight(Duration::from_secs(120), "by hand").unwrap();
    /// assert_eq!(flight.records.len(), 1);
    /// # let folder = std::env::temp_dir().join(format!("evenkeel-flight-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let file = folder.join("incident.ekf");
    /// std::fs::write(&file, flight.to_bytes())?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn record(&self, bytes: usize) {
        let shared = self.shared();
        if bytes == 0 {
            shared.recorder.set(None);
            return;
        }
        let has_listened = std::mem::replace(&mut shared.recorder.levels().listens, true);
        if !has_listened {
            let tap = Arc::clone(&shared.recorder);
            self.listen(move |id, name| {
                let mut levels = tap.levels();
                if levels.names.len() <= id.index() {
                    levels.names.resize(id.index() + 1, String::new());
                }
                name.clone_into(&mut levels.names[id.index()]);
                drop(levels);
                RecordingListener::new(&tap, id.index())
            });
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let recorder = Recorder::new(bytes, threads, shared.now(), self.is_busy());
        shared.recorder.set(Some(Arc::new(recorder)));
    }

    /// What was decided about the requests of the last time; `None` if [nothing is recorded](Self::record). `cause` is why somebody wants to
    /// know.
    pub fn flight(&self, last: Duration, cause: &str) -> Option<Flight> {
        let shared = self.shared();
        let recorder = shared.recorder.recorder()?;
        self.deliver_events();
        let now = shared.now();
        let (mut events, mut arrivals) = (Vec::new(), Vec::new());
        let missed_events = recorder.events.read(&mut Vec::new(), &mut events);
        let missed = missed_events + recorder.arrivals.read(&mut Vec::new(), &mut arrivals);
        let from = now.as_nanos().saturating_sub(nanos(last));
        let arrivals = arrivals.into_iter().map(ArrivalRecord::from_words);
        let arrivals = arrivals.filter(|arrival| arrival.at.as_nanos() >= from).collect();
        let records = join(arrivals, events.into_iter().map(EventRecord::from_words));
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos);
        let begin = records.first().map_or(now.as_nanos(), |first| first.at);
        let (controller, _) = shared.controlled();
        let objects = controller.objects();
        let levels = objects.priority_levels.iter().filter_map(|level| serde_json::to_value(&**level).ok());
        let schemas = objects.flow_schemas.iter().filter_map(|schema| serde_json::to_value(&**schema).ok());
        let borrowing = match controller.borrowing() {
            Borrowing::Immediate => "immediate",
            Borrowing::Periodic => "periodic",
        };
        let changes = recorder.changes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut names = shared.recorder.levels().names.clone();
        // A level may be younger than its first request here.
        let levels_max = records.iter().map(|record| usize::from(record.level) + 1).max().unwrap_or(0);
        names.resize(names.len().max(levels_max), String::new());
        let header = FlightHeader {
            epoch: unix - now.as_nanos(),
            length: now.as_nanos() - begin,
            preset: shared.preset.to_string(),
            seats: controller.server_limit(),
            borrowing: borrowing.to_owned(),
            wait_limit: shared.wait_limit_default().max(0),
            cause: cause.to_owned(),
            hides_users: false,
            is_complete: missed == 0 && !recorder.was_busy && from <= recorder.began.as_nanos(),
            objects: levels.chain(schemas).collect(),
            levels: names,
            requests: recorder.requests.all(),
            changes: changes.into_iter().filter(|change| change.at >= from).collect(),
        };
        Some(Flight { header, records })
    }
}
