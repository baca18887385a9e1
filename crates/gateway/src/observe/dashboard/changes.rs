//! Events: what changed from one look to the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use evenkeel::status::Reading;

use super::recorder::{Observation, UpstreamReading};
use crate::observe::frame::{Event, EventKind};
use crate::observe::metrics::{Edit, ObjectChange};

/// How many events are kept.
const EVENTS_MAX: usize = 16;
/// Changes of the limit that follow each other within this time are one event.
const LIMIT_CHANGES_MS: u64 = 10_000;
/// The most names in a text.
const NAMED_MAX: usize = 3;

/// The last events, the latest first.
#[derive(Debug, Default)]
pub(super) struct Events {
    latest: VecDeque<Event>,
}

// === impl Events ===

impl Events {
    /// Notes what changed between two looks.
    pub(super) fn compare(&mut self, before: &Observation, after: &Observation, time_ms: u64) {
        if !after.object_changes.is_empty() {
            let what = object_changes(&before.reading, &after.reading, &after.object_changes);
            self.note(time_ms, EventKind::ObjectsChanged, what);
        }
        if after.objects_refused > before.objects_refused {
            let text = "the changed objects have errors and the old ones stay in effect; see the log";
            self.note(time_ms, EventKind::ObjectsRefused, text.to_owned());
        }
        if after.settings_applied > before.settings_applied {
            self.note(time_ms, EventKind::SettingsChanged, "the settings changed and are in effect".to_owned());
        }
        if after.canary_returns > before.canary_returns {
            let why = after.canary_returned.as_deref().unwrap_or("it was worse than its bounds");
            self.note(time_ms, EventKind::ObjectsChanged, format!("the canary has returned: {why}"));
        }
        let (old, new) = (before.reading.concurrency, after.reading.concurrency);
        if old != new {
            self.note_limit(time_ms, old, new);
        }
        for upstream in &after.upstreams {
            let known = before.upstreams.iter().find(|known| known.name == upstream.name);
            let UpstreamReading { name, out, .. } = upstream;
            match (known.and_then(|known| known.out), out) {
                (None, Some(cause)) => {
                    // A sole upstream still gets requests.
                    let consequence = if after.upstreams.len() == 1 { "" } else { " and gets no requests" };
                    let text = format!("the upstream {name} {}{consequence}", cause.words());
                    self.note(time_ms, EventKind::UpstreamOut, text);
                }
                (Some(_), None) => {
                    self.note(time_ms, EventKind::UpstreamBack, format!("the upstream {name} serves again"));
                }
                _ => {}
            }
        }
    }

    pub(super) fn all(&self) -> Vec<Event> {
        self.latest.iter().cloned().collect()
    }

    fn note(&mut self, time_ms: u64, kind: EventKind, text: String) {
        self.push(Event { time_ms, kind, text, seats: None });
    }

    fn push(&mut self, event: Event) {
        self.latest.truncate(EVENTS_MAX - 1);
        self.latest.push_front(event);
    }

    /// A limit that finds itself changes all the time, and must not push all other events out.
    fn note_limit(&mut self, time_ms: u64, old: i64, new: i64) {
        let latest = self.latest.front_mut().filter(|event| event.kind == EventKind::LimitChanged);
        if let Some(event) = latest.filter(|event| time_ms.saturating_sub(event.time_ms) < LIMIT_CHANGES_MS) {
            // The same event goes on: from what there was before it.
            let old = event.seats.map_or(old, |[before, _]| before);
            *event = limit_event(time_ms, old, new);
        } else {
            self.push(limit_event(time_ms, old, new));
        }
    }
}

fn limit_event(time_ms: u64, old: i64, new: i64) -> Event {
    let text = format!("all levels together have {old} → {new} seats");
    Event { time_ms, kind: EventKind::LimitChanged, text, seats: Some([old, new]) }
}

/// What changed in the levels and schemas, in a few words.
fn object_changes(before: &Reading, after: &Reading, changes: &BTreeSet<ObjectChange>) -> String {
    let mut words = Vec::new();
    let mut groups: BTreeMap<(Edit, &str), Vec<&str>> = BTreeMap::new();
    for ObjectChange { edit, kind, name } in changes {
        groups.entry((*edit, kind)).or_default().push(name);
    }
    for ((edit, kind), names) in groups {
        words.push(match names.len() {
            few if few <= NAMED_MAX => format!("{kind} {} {}", names.join(", "), edit.word()),
            many => format!("{many} {kind}s {}", edit.word()),
        });
    }
    let seats = after.levels.iter().filter_map(|level| {
        let known = before.level(&level.name)?;
        let (old, new) = (known.limits.nominal, level.limits.nominal);
        (old != new).then(|| format!("{} has {old} → {new} seats", level.name))
    });
    let seats: Vec<_> = seats.collect();
    match seats.len() {
        0 => {}
        few if few <= NAMED_MAX => words.extend(seats),
        many => words.push(format!("{many} levels have other numbers of seats")),
    }
    format!("the objects changed: {}", words.join("; "))
}
