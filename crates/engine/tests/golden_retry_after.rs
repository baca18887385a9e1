//! Replays every recorded sequence of drops (HF-13, HF-14).

use std::collections::HashMap;

use evenkeel_engine::retry_after::RetryAfter;
use evenkeel_engine::time::SECOND;
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    base_unix_seconds: i64,
    events: Vec<Event>,
}

#[derive(Deserialize, Debug)]
#[serde(rename_all = "camelCase")]
struct Event {
    t: i64,
    level: String,
    drops: u32,
    retry_after: u8,
}

#[test]
fn suggestions_are_those_of_kubernetes() {
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/retry_after.jsonl");
    let recorded: Vec<Row> = rows(&file);
    let mut compared = 0;
    for (row, recorded) in recorded.iter().enumerate() {
        let mut levels: HashMap<&str, RetryAfter> = HashMap::new();
        for (step, event) in recorded.events.iter().enumerate() {
            let level = levels.entry(&event.level).or_default();
            for _ in 0..event.drops {
                level.record_drop(recorded.base_unix_seconds + event.t.div_euclid(SECOND));
            }
            assert_eq!(
                event.retry_after,
                level.seconds(),
                "{}, row {} ({}), step {step}, {event:?}: recorded on the left, actual on the right",
                file.display(),
                row + 1,
                recorded.name
            );
            compared += 1;
        }
    }
    assert_eq!((recorded.len(), compared), (60, 9960));
}
