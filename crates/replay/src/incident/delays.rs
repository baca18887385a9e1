//! Who delayed whom: flows that waited, and those that had the seats of their level meanwhile.

use std::collections::HashMap;

use evenkeel_engine::time::Nanos;

use super::Delay;
use super::spans::{Parts, Spans};
use super::time_line::heaviest;

/// The time is divided into so many parts, for which the seats of a level are compared with those that wait.
const PARTS: Nanos = 500;
/// How many flows that waited are reported.
const WAITING_MAX: usize = 10;
/// How many flows that had seats of a level are told apart.
const HOLDERS_MAX: usize = 50;
/// How many of those are reported for each flow that waited.
const TOLD_MAX: usize = 3;

/// A flow in a level.
type LevelFlow = (u16, usize);

/// The flows that waited for longest. The wait of a flow is divided among the other flows by the part of the level's seats that
/// each had then.
pub(super) fn delays(spans: &Spans<'_>) -> Vec<Delay> {
    let length = spans.end - spans.begin;
    let width = length.div_euclid(PARTS).max(1);
    let count = usize::try_from((length - 1) / width + 1).unwrap_or(1);
    let new_parts = || Parts::new(spans.begin, width, count);
    let (mut waited, mut held): (HashMap<LevelFlow, i128>, HashMap<LevelFlow, i128>) = Default::default();
    for record in &spans.flight.records {
        let flow = (record.level, spans.flow_of(record));
        *waited.entry(flow).or_default() += i128::from(spans.waiting(record).length());
        if let Some(running) = spans.running(record) {
            *held.entry(flow).or_default() += i128::from(running.length()) * i128::from(record.work.max_seats());
        }
    }
    let waiting = heaviest(waited.iter().map(|(flow, time)| (*flow, *time)), WAITING_MAX);
    let mut levels: HashMap<u16, Parts> = waiting.iter().map(|(level, _)| (*level, new_parts())).collect();
    let mut holders: HashMap<LevelFlow, Parts> = HashMap::new();
    for level in levels.keys() {
        let of_level = held.iter().filter(|((one, _), _)| one == level).map(|(flow, time)| (*flow, *time));
        holders.extend(heaviest(of_level, HOLDERS_MAX).into_iter().map(|flow| (flow, new_parts())));
    }
    let mut waits: HashMap<LevelFlow, Parts> = waiting.iter().map(|flow| (*flow, new_parts())).collect();
    for record in &spans.flight.records {
        let flow = (record.level, spans.flow_of(record));
        if let Some(parts) = waits.get_mut(&flow) {
            parts.add(spans.waiting(record), 1);
        }
        if let (Some(running), Some(level)) = (spans.running(record), levels.get_mut(&record.level)) {
            level.add(running, record.work.max_seats());
            if let Some(parts) = holders.get_mut(&flow) {
                parts.add(running, record.work.max_seats());
            }
        }
    }
    let sums = |parts: &Parts| parts.sums();
    let levels: HashMap<u16, Vec<i128>> = levels.iter().map(|(level, parts)| (*level, sums(parts))).collect();
    let holders: HashMap<LevelFlow, Vec<i128>> = holders.iter().map(|(flow, parts)| (*flow, sums(parts))).collect();
    let told = waiting.into_iter().filter_map(|flow| {
        let (waits, all) = (waits.get(&flow)?.sums(), levels.get(&flow.0)?);
        let of_level = holders.iter().filter(|((level, _), _)| *level == flow.0);
        let parts: HashMap<usize, i128> = of_level.map(|((_, by), held)| (*by, part_of(&waits, held, all))).collect();
        let by = heaviest(parts.iter().map(|(by, time)| (*by, *time)), TOLD_MAX);
        let nanos = |time: i128| Nanos::try_from(time).unwrap_or(Nanos::MAX);
        Some(Delay {
            flow: spans.flow_name(flow.1).to_owned(),
            level: spans.level_name(flow.0).to_owned(),
            waited: nanos(waited.get(&flow).copied().unwrap_or(0)),
            by: by.into_iter().map(|by| (spans.flow_name(by).to_owned(), nanos(parts[&by]))).collect(),
        })
    });
    told.collect()
}

/// The part of the waits in which seats were held by one flow.
fn part_of(waits: &[i128], held: &[i128], all: &[i128]) -> i128 {
    let parts = waits.iter().zip(held).zip(all);
    parts.map(|((wait, held), all)| wait.saturating_mul(*held).checked_div(*all).unwrap_or(0)).sum()
}
