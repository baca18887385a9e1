//! A frame from two readings: what happened between them.

use std::time::Duration;

use evenkeel::division::Borrowing;
use evenkeel::status::{DurationCounts, LevelQueuing, LevelReading, RatioCounts, Reading};

use crate::observe::frame::{
    FlowRate, Frame, Level, Percentiles, Queuing, Schema, Server, Utilisation, percentiles, rounded, utilisation,
};

/// How many flow schemas a frame lists in all. Those of later levels are left out.
const SCHEMAS_MAX: usize = 300;

/// The levels and the server between two readings. Without a first one, nothing has happened yet.
pub(super) fn frame(before: Option<&Reading>, after: &Reading, time_ms: u64) -> Frame {
    let since = before.map_or(after.at_ns, |before| before.at_ns);
    let elapsed = Duration::from_nanos(u64::try_from(after.at_ns - since).unwrap_or(0));
    let interval_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let mut frame = Frame::new(time_ms, interval_ms);
    let mut schemas_left = SCHEMAS_MAX;
    let levels = after.levels.iter().map(|level| {
        let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        Interval { before: before.and_then(|before| before.level(&level.name)).unwrap_or(level), after: level, seconds }
            .level(&mut schemas_left)
    });
    frame.levels = levels.collect();
    cap_limits(&mut frame.levels, after.concurrency);
    if after.borrowing == Borrowing::Immediate {
        divide_lent(&mut frame.levels);
    }
    let in_use =
        |is_exempt| frame.levels.iter().filter(move |level| level.is_exempt() == is_exempt).map(|one| one.in_use);
    frame.server = Server {
        program: env!("CARGO_PKG_VERSION").to_owned(),
        concurrency: after.concurrency,
        in_use: in_use(false).sum(),
        exempt: in_use(true).sum(),
        borrowing: after.borrowing.name().to_owned(),
        ..Server::default()
    };
    frame
}

/// A frame names no more dangling flow schemas than this.
const DANGLING_MAX: usize = 3;

/// The dangling flow schemas: the first of them, and how many there are.
pub(super) fn dangling(reading: &Reading) -> (Vec<[String; 2]>, usize) {
    let named = reading.dangling.iter().take(DANGLING_MAX).map(|one| [one.schema.clone(), one.level.clone()]);
    (named.collect(), reading.dangling.len())
}

/// One level between two readings.
struct Interval<'a> {
    before: &'a LevelReading,
    after: &'a LevelReading,
    seconds: f64,
}

// === impl Interval ===

impl Interval<'_> {
    fn level(&self, schemas_left: &mut usize) -> Level {
        let (before, after) = (self.before, self.after);
        let limits = after.limits;
        let is_exempt = after.queuing == LevelQueuing::Exempt;
        let current = limits.current;
        let rejected = after.rejected.iter().zip(&before.rejected);
        let rejected =
            rejected.map(|((reason, after), (_, before))| (reason.as_str().to_owned(), self.rate(*before, *after)));
        let schemas = after.schemas.iter().take(*schemas_left).map(|schema| {
            let known = before.schemas.iter().find(|known| known.name == schema.name);
            let hits_before = known.map_or(schema.hits, |known| known.hits);
            let flow_rate = schema.rate.map(|rate| FlowRate {
                policy: rate.rate.to_string(),
                delayed: self.rate(known.and_then(|known| known.rate).map_or(0, |known| known.delayed), rate.delayed),
                waiting: rate.waiting,
            });
            Schema {
                name: schema.name.to_string(),
                hits: schema.hits,
                rate: self.rate(hits_before, schema.hits),
                flow_rate,
            }
        });
        let schemas: Vec<_> = schemas.collect();
        *schemas_left -= schemas.len();
        Level {
            name: after.name.to_string(),
            queuing: Some(queuing(after.queuing)),
            is_quiescing: after.is_quiescing,
            nominal: limits.nominal,
            floor: limits.min,
            limit: if is_exempt { 0 } else { limits.max },
            current: if is_exempt { 0 } else { current },
            in_use: after.seats_in_use,
            in_use_mean: mean_seats(before, after).map(rounded).unwrap_or_default(),
            borrowed: if is_exempt { 0 } else { (current - limits.nominal).max(0) },
            lent: if is_exempt { 0 } else { (limits.nominal - current).max(0) },
            kept: after.kept_seats,
            waiting: i64::try_from(after.waiting).unwrap_or(i64::MAX),
            long_running: after.long_running.into(),
            long_running_limit: after.max_long_running.map(i64::from),
            long_running_seats: after.long_running_seats,
            wait_ms: durations(&before.waits, &after.waits),
            execution_ms: durations(&before.executions, &after.executions),
            dispatched: self.rate(before.dispatched, after.dispatched),
            revoked: self.rate(before.revoked, after.revoked),
            rejected: rejected.filter(|(_, rate)| *rate > 0.0).collect(),
            utilisation: if is_exempt { None } else { utilised(before, after) },
            schemas,
            ..Level::default()
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "an interval is short")]
    fn rate(&self, before: u64, after: u64) -> f64 {
        rounded(after.saturating_sub(before) as f64 / self.seconds)
    }
}

/// How much of its current limit a level used. The integrals are about the seats that its metrics are about, and with immediate
/// borrowing these are the nominal ones.
#[expect(clippy::cast_precision_loss, reason = "numbers of seats")]
fn utilised(before: &LevelReading, after: &LevelReading) -> Option<Utilisation> {
    let Utilisation { min, mean, max } = ratio(&before.utilisation, &after.utilisation)?;
    let scale = after.utilisation.denominator as f64 / after.limits.current.max(1) as f64;
    let [min, mean, max] = [min, mean, max].map(|ratio| rounded(ratio * scale));
    Some(Utilisation { min, mean, max })
}

/// The seats in use on average between two readings.
fn mean_seats(before: &LevelReading, after: &LevelReading) -> Option<f64> {
    let mean = ratio(&before.utilisation, &after.utilisation)?.mean;
    #[expect(clippy::cast_precision_loss, reason = "a number of seats")]
    let denominator = after.utilisation.denominator as f64;
    Some(mean * denominator)
}

#[expect(clippy::cast_precision_loss, reason = "bounds are round numbers")]
fn durations(before: &DurationCounts, after: &DurationCounts) -> Option<Percentiles> {
    let bounds_ms = DurationCounts::BOUNDS_NS.map(|ns| ns as f64 / 1e6);
    percentiles(&bounds_ms, &differences(&before.counts, &after.counts))
}

fn ratio(before: &RatioCounts, after: &RatioCounts) -> Option<Utilisation> {
    let spans = differences(&before.spans_ns, &after.spans_ns);
    utilisation(&RatioCounts::BOUNDS, &spans, after.sum_ns - before.sum_ns)
}

fn differences(before: &[u64; 14], after: &[u64; 14]) -> [u64; 14] {
    std::array::from_fn(|index| after[index].saturating_sub(before[index]))
}

/// Levels that borrow at once take seats from a pool, and it is not recorded whose they were. Each level with idle seats to lend
/// counts as the lender of its part.
fn divide_lent(levels: &mut [Level]) {
    for level in levels.iter_mut().filter(|level| !level.is_exempt()) {
        (level.borrowed, level.lent) = ((level.in_use - level.nominal).max(0), 0);
    }
    let limited = || levels.iter().enumerate().filter(|(_, level)| !level.is_exempt());
    let mut borrowed: i64 = limited().map(|(_, level)| level.borrowed).sum();
    let mut spare: Vec<(usize, i64)> =
        limited().map(|(index, level)| (index, (level.nominal - level.in_use.max(level.floor)).max(0))).collect();
    spare.sort_by_key(|(_, spare)| *spare);
    let mut total: i64 = spare.iter().map(|(_, spare)| spare).sum();
    for (index, spare) in spare {
        let part = if total > 0 { (borrowed * spare / total).min(spare) } else { 0 };
        levels[index].lent = part;
        (borrowed, total) = (borrowed - part, total - spare);
    }
}

/// A level cannot have more seats than the others can lend, whatever its object allows.
fn cap_limits(levels: &mut [Level], concurrency: i64) {
    let kept: i64 = levels.iter().map(|level| level.floor).sum();
    for level in levels.iter_mut().filter(|level| !level.is_exempt()) {
        let left = concurrency - (kept - level.floor);
        level.limit = level.limit.min(left.max(level.nominal).max(level.current));
    }
}

fn queuing(queuing: LevelQueuing) -> Queuing {
    match queuing {
        LevelQueuing::Exempt => Queuing::Exempt,
        LevelQueuing::ShuffleSharded => Queuing::ShuffleSharding,
        LevelQueuing::PerFlow => Queuing::PerFlow,
        _ => Queuing::Reject,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_no_more_than_others_can_lend() {
        let level = |nominal, floor, limit| Level { nominal, floor, limit, current: nominal, ..Level::default() };
        let mut levels = vec![level(8, 4, 28), level(11, 11, 31), level(1, 1, 1)];
        cap_limits(&mut levels, 20);
        assert_eq!(levels.iter().map(|level| level.limit).collect::<Vec<_>>(), [8, 15, 1]);
    }

    #[test]
    fn lent_seats_add_up_to_borrowed_ones_and_come_from_idle_ones() {
        let level = |nominal, floor, in_use| Level { nominal, floor, in_use, current: nominal, ..Level::default() };
        let mut levels = vec![level(100, 50, 170), level(100, 20, 10), level(100, 50, 60), level(100, 100, 0)];
        divide_lent(&mut levels);
        let found: Vec<_> = levels.iter().map(|level| (level.borrowed, level.lent)).collect();
        assert_eq!(found, [(70, 0), (0, 47), (0, 23), (0, 0)]);
    }
}
