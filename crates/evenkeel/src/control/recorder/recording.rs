//! `FlowControl::record` and `FlowControl::flight`: start a recorder and make its dumps.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::control::flight::{Flight, FlightHeader, LENGTH_MAX};

use super::Recorder;
use super::join::Joined;
use super::listener::RecordingListener;
use super::notes::ArrivalNote;
use super::records::{ArrivalRecord, EventRecord};
use crate::control::clock::nanos;
use crate::control::flow_control::FlowControl;
use crate::control::level_names::LevelKey;
use crate::sync::PoisonError;

// === impl FlowControl ===

impl FlowControl {
    /// Keeps the decisions about the last requests in so many bytes of memory: a flight recorder (FR-1). 32 MB hold some 350,000
    /// requests, from however many threads and in however many levels. It replaces the recorder before; with 0 bytes there is
    /// none.
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
                let level = LevelKey::new(id);
                tap.levels().names.add(level, name);
                RecordingListener::new(&tap, level)
            });
        }
        let recorder = Recorder::new(bytes, shared.now(), self.is_busy());
        shared.recorder.set(Some(Arc::new(recorder)));
    }

    /// The decisions about the requests of the given last time; `None` if [nothing is recorded](Self::record). `cause` says why
    /// the dump was made.
    pub fn flight(&self, last: Duration, cause: &str) -> Option<Flight> {
        let shared = self.shared();
        let recorder = shared.recorder.recorder()?;
        self.deliver_events();
        let now = shared.now();
        let (mut events, mut arrivals) = (Vec::new(), Vec::new());
        // Events are read before arrivals: a request that has ended has arrived.
        let overwritten = recorder.events.read(&mut events).max(recorder.arrivals.read(&mut arrivals));
        let asked = now.as_nanos().saturating_sub(nanos(last).min(LENGTH_MAX));
        // The events of requests that arrived before that may have been overwritten, and requests that ended would look as if they ran.
        let from = overwritten.map_or(asked, |last| asked.max(last.saturating_add(1)));
        let mut notes = Vec::new();
        let arrivals = arrivals.into_iter().filter_map(|words| {
            let note = ArrivalNote::from_words(words);
            notes.extend(note);
            note.is_none().then(|| ArrivalRecord::from_words(words))
        });
        let times = from..=now.as_nanos();
        let arrivals = arrivals.filter(|arrival| times.contains(&arrival.at.as_nanos())).collect();
        let events = events.into_iter().map(EventRecord::from_words);
        let mut joined = Joined::new(arrivals, notes, events, &shared.recorder.levels().names);
        for level in shared.snapshot().levels.iter() {
            let key = LevelKey::new(level.id);
            let of_level: Vec<_> = joined.open.extract_if(.., |(level, ..)| *level == key).collect();
            if of_level.is_empty() {
                continue;
            }
            let core = level.lock();
            for (_, id, place) in of_level {
                if let Some((arrived, started)) = core.queue_set().start(id) {
                    joined.start(place, started - arrived);
                }
            }
        }
        let Joined { records, notes, levels: names, .. } = joined;
        let missed = recorder.missed.load(Ordering::Relaxed);
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos);
        let begin = records.first().map_or(now.as_nanos(), |first| first.at);
        let (controller, _) = shared.controlled();
        let objects = controller.objects();
        let levels = objects.priority_levels.iter().filter_map(|level| serde_json::to_value(&**level).ok());
        let schemas = objects.flow_schemas.iter().filter_map(|schema| serde_json::to_value(&**schema).ok());
        let changes = recorder.changes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let header = FlightHeader {
            epoch: unix - now.as_nanos(),
            length: now.as_nanos() - begin,
            preset: shared.preset.to_string(),
            seats: controller.server_limit(),
            borrowing: controller.borrowing().to_string(),
            wait_limit: shared.wait_limit_default().clamp(0, LENGTH_MAX),
            cause: cause.to_owned(),
            newcomer_wait: Some(controller.newcomer_wait().clamp(0, LENGTH_MAX)),
            settings: None,
            hides_users: false,
            is_complete: missed == 0 && !recorder.was_busy && from <= recorder.began.as_nanos(),
            missed,
            objects: levels.chain(schemas).collect(),
            levels: names,
            requests: recorder.requests.all(),
            changes: changes.into_iter().filter(|change| change.at >= from).collect(),
        };
        Some(Flight { header, records, notes })
    }
}
