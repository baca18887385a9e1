//! The time line of an incident: requests that arrived, waited and ran in each part of its time.

use std::collections::{BTreeMap, HashMap};

use evenkeel::flight::FlightEnd;
use evenkeel_engine::time::{MILLISECOND, Nanos};

use super::IncidentPart;
use super::spans::{Parts, Spans};

/// The time is divided into so many parts, and perhaps one more.
const PARTS: Nanos = 20;
/// So many levels are told apart.
const LEVELS_MAX: usize = 4;
/// One of so many flows has most seats.
const FLOWS_MAX: usize = 100;

/// The levels whose seats were taken for longest, how long a part is, and the parts.
pub(super) fn time_line(spans: &Spans<'_>) -> (Vec<String>, Nanos, Vec<IncidentPart>) {
    let length = spans.end - spans.begin;
    let width = length.div_euclid(PARTS).max(MILLISECOND);
    let count = usize::try_from((length - 1) / width + 1).unwrap_or(1);
    let new_parts = || Parts::new(spans.begin, width, count);
    let after = |part: usize| Nanos::try_from(part).unwrap_or(0) * width;
    let mut line: Vec<IncidentPart> =
        (0..count).map(|part| IncidentPart { after: after(part), ..IncidentPart::default() }).collect();
    let place = |at: Nanos| usize::try_from((at - spans.begin) / width).unwrap_or(0).min(count - 1);
    let mut by_level: BTreeMap<u16, i128> = BTreeMap::new();
    let mut by_flow: HashMap<usize, i128> = HashMap::new();
    for record in &spans.flight.records {
        line[place(record.at)].arrived += 1;
        let waiting = spans.waiting(record);
        let part = &mut line[place(waiting.until)];
        part.longest_wait = part.longest_wait.max(waiting.length());
        part.rejected += u64::from(matches!(record.end, FlightEnd::Rejected(_)));
        if let Some(running) = spans.running(record) {
            let time = i128::from(running.length()) * i128::from(record.work.max_seats());
            *by_level.entry(record.level).or_default() += time;
            *by_flow.entry(spans.flow_of(record)).or_default() += time;
        }
    }
    let levels = heaviest(by_level, LEVELS_MAX);
    let flows = heaviest(by_flow, FLOWS_MAX);
    let mut level_parts: HashMap<u16, Parts> = levels.iter().map(|level| (*level, new_parts())).collect();
    let mut flow_parts: HashMap<usize, Parts> = flows.iter().map(|flow| (*flow, new_parts())).collect();
    for record in &spans.flight.records {
        let Some(running) = spans.running(record) else { continue };
        let seats = record.work.max_seats();
        if let Some(parts) = level_parts.get_mut(&record.level) {
            parts.add(running, seats);
        }
        if let Some(parts) = flow_parts.get_mut(&spans.flow_of(record)) {
            parts.add(running, seats);
        }
    }
    for level in &levels {
        let sums = level_parts.get(level).map(Parts::sums).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "seats for people")]
        line.iter_mut().zip(sums).for_each(|(part, sum)| part.seats.push(sum as f64 / width as f64));
    }
    let mut most = vec![0; count];
    for flow in &flows {
        let sums = flow_parts.get(flow).map(Parts::sums).unwrap_or_default();
        for ((part, sum), most) in line.iter_mut().zip(sums).zip(&mut most) {
            if sum > *most {
                *most = sum;
                part.most_seats = Some(spans.flow_name(*flow).to_owned());
            }
        }
    }
    let names = levels.iter().map(|level| spans.level_name(*level).to_owned());
    (names.collect(), width, line)
}

/// The keys with the largest numbers, the largest first.
pub(super) fn heaviest<K: Ord + Copy>(all: impl IntoIterator<Item = (K, i128)>, count: usize) -> Vec<K> {
    let mut all: Vec<(K, i128)> = all.into_iter().filter(|(_, number)| *number > 0).collect();
    all.sort_by_key(|(key, number)| (std::cmp::Reverse(*number), *key));
    all.truncate(count);
    all.into_iter().map(|(key, _)| key).collect()
}
