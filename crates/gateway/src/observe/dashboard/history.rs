//! The last ten minutes of each level, within a bound.

use std::collections::{BTreeMap, VecDeque};

use crate::observe::frame::{PastLevel, VERSION, rounded};

/// How many intervals are remembered: ten minutes.
pub(super) const INTERVALS_MAX: usize = 600;
/// How many levels are remembered. With 16 bytes for each interval, all of them take 2.5 MB.
const LEVELS_MAX: usize = 256;

/// The past of all levels.
#[derive(Debug, Default)]
pub(super) struct History {
    levels: BTreeMap<String, Past>,
}

#[derive(Debug, Default)]
struct Past {
    until_ms: u64,
    interval_ms: u64,
    points: VecDeque<Point>,
}

/// A level in one interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Point {
    pub(super) in_use: f32,
    pub(super) current: u32,
    pub(super) waiting: u32,
    pub(super) wait_p99_ms: f32,
}

// === impl History ===

impl History {
    /// An interval of a level has ended.
    pub(super) fn note(&mut self, name: &str, until_ms: u64, interval_ms: u64, point: Point) {
        if !self.levels.contains_key(name) {
            if self.levels.len() >= LEVELS_MAX {
                return;
            }
            self.levels.insert(name.to_owned(), Past::default());
        }
        let Some(past) = self.levels.get_mut(name) else { return };
        // A level that was gone for a while begins anew.
        if until_ms.saturating_sub(past.until_ms) > 3 * interval_ms.max(1) {
            past.points.clear();
        }
        (past.until_ms, past.interval_ms) = (until_ms, interval_ms);
        if past.points.len() >= INTERVALS_MAX {
            past.points.pop_front();
        }
        past.points.push_back(point);
    }

    /// Forgets levels that ended before this time.
    pub(super) fn forget_before(&mut self, time_ms: u64) {
        self.levels.retain(|_, past| past.until_ms >= time_ms);
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.levels.keys().cloned().collect()
    }

    pub(super) fn of(&self, name: &str) -> Option<PastLevel> {
        let Past { until_ms, interval_ms, points } = self.levels.get(name)?;
        Some(PastLevel {
            version: VERSION,
            name: name.to_owned(),
            until_ms: *until_ms,
            interval_ms: *interval_ms,
            in_use: points.iter().map(|point| point.in_use).collect(),
            current: points.iter().map(|point| point.current).collect(),
            waiting: points.iter().map(|point| point.waiting).collect(),
            wait_p99_ms: points.iter().map(|point| point.wait_p99_ms).collect(),
        })
    }
}

// === impl Point ===

impl Point {
    /// A number as it is kept: with few digits.
    #[expect(clippy::cast_possible_truncation, reason = "few digits are enough for a picture")]
    pub(super) fn number(value: f64) -> f32 {
        rounded(value) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_of_a_bounded_number_of_levels_are_kept() {
        let mut history = History::default();
        for second in 1..=700_u64 {
            let point = Point { waiting: u32::try_from(second).unwrap(), ..Point::default() };
            history.note("busy", second * 1000, 1000, point);
        }
        let past = history.of("busy").unwrap();
        assert_eq!((past.waiting.len(), past.waiting[0], past.until_ms), (600, 101, 700_000));
        for index in 0..300 {
            history.note(&format!("level-{index}"), 700_000, 1000, Point::default());
        }
        assert_eq!(history.names().len(), LEVELS_MAX);
        history.note("busy", 720_000, 1000, Point::default());
        assert_eq!(history.of("busy").unwrap().waiting, [0]);
        history.forget_before(710_000);
        assert_eq!(history.names(), ["busy"]);
    }
}
