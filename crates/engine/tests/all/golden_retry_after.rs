//! Replays every recorded sequence of drops (HF-13, HF-14).

use std::collections::HashMap;

use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::SECOND;
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    name: String,
    base_unix_seconds: i64,
    events: Vec<Event>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Event {
    t: i64,
    level: String,
    drops: u32,
    retry_after: u8,
}

#[test]
fn suggestions_are_those_of_kubernetes() {
    let recorded = golden_rows::<Row>(Golden::RetryAfter);
    let mut events = 0;
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            let mut levels: HashMap<&str, RetryAfter> = HashMap::new();
            for (number, event) in recorded.events.iter().enumerate() {
                let level = levels.entry(&event.level).or_default();
                for _ in 0..event.drops {
                    level.record_drop(recorded.base_unix_seconds + event.t.div_euclid(SECOND));
                }
                let mut comparison = SideBySide::default();
                comparison.same("seconds", &event.retry_after, &level.seconds());
                let place = format_args!("{}, row {} ({})", file.display(), row + 1, recorded.name);
                comparison.assert(format_args!("{place}, event {number}, {event:?}"));
                events += 1;
            }
        }
    }
    compared("suggestions of Retry-After", events);
}
