//! `Spans`: when the requests of a dump waited, and when they had seats.

use std::collections::HashMap;

use evenkeel::flight::{Flight, FlightEnd, FlightRecord};
use evenkeel_engine::time::Nanos;

/// The requests of a dump, and its flows by numbers.
pub(super) struct Spans<'a> {
    pub(super) flight: &'a Flight,
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    /// The flow of each request of the header, and the names of flows.
    flows: Vec<usize>,
    names: Vec<&'a str>,
}

/// A time from one moment until another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: Nanos,
    pub(super) until: Nanos,
}

// === impl Spans ===

impl<'a> Spans<'a> {
    /// `None` if there are no requests.
    pub(super) fn new(flight: &'a Flight) -> Option<Self> {
        let begin = flight.records.first()?.at;
        let end_of = |record: &FlightRecord| {
            let ran = if let FlightEnd::Finished { ran } = record.end { ran } else { 0 };
            record.at.saturating_add(record.waited).saturating_add(ran)
        };
        let ends = flight.records.iter().map(end_of);
        // Requests that have not ended go on until the dump. Without them, nothing happened after the last end.
        let is_open = |record: &FlightRecord| matches!(record.end, FlightEnd::Open { .. });
        let dumped = flight.records.iter().any(is_open).then(|| begin.saturating_add(flight.header.length));
        let end = ends.chain(dumped).max()?.max(begin.saturating_add(1));
        let (mut numbers, mut names) = (HashMap::new(), Vec::new());
        let mut number = |schema: &'a str, flow: &'a str| {
            *numbers.entry((schema, flow)).or_insert_with(|| {
                names.push(if flow.is_empty() { schema } else { flow });
                names.len() - 1
            })
        };
        let flows = flight.header.requests.iter().map(|request| number(&request.flow_schema, &request.flow)).collect();
        Some(Self { flight, begin, end, flows, names })
    }

    /// When a request waited.
    pub(super) fn waiting(&self, record: &FlightRecord) -> Span {
        let until = match record.end {
            FlightEnd::Open { has_started: false } => self.end,
            _ => record.at.saturating_add(record.waited),
        };
        Span { from: record.at, until }
    }

    /// When a request had its seats, if it ever had any.
    pub(super) fn running(&self, record: &FlightRecord) -> Option<Span> {
        let from = record.at.saturating_add(record.waited);
        match record.end {
            FlightEnd::Finished { ran } => Some(Span { from, until: from.saturating_add(ran) }),
            FlightEnd::Open { has_started: true } => Some(Span { from, until: self.end }),
            FlightEnd::Open { has_started: false } | FlightEnd::Rejected(_) => None,
        }
    }

    /// The number of the flow of a request.
    pub(super) fn flow_of(&self, record: &FlightRecord) -> usize {
        self.flows.get(record.request as usize).copied().unwrap_or(0)
    }

    pub(super) fn flow_name(&self, flow: usize) -> &'a str {
        match self.names.get(flow) {
            Some(name) if !name.is_empty() => name,
            _ => "unknown",
        }
    }

    pub(super) fn level_name(&self, level: u16) -> &'a str {
        self.flight.header.levels.get(usize::from(level)).map_or("", String::as_str)
    }
}

// === impl Span ===

impl Span {
    pub(super) fn length(self) -> Nanos {
        self.until.saturating_sub(self.from).max(0)
    }
}

/// A time that is divided into parts of one length, and how much of something was in each.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    begin: Nanos,
    width: Nanos,
    /// The amounts that are only in one part.
    within: Vec<i128>,
    /// The amounts that begin or end with this part.
    changes: Vec<i128>,
}

// === impl Parts ===

impl Parts {
    pub(super) fn new(begin: Nanos, width: Nanos, parts: usize) -> Self {
        Self { begin, width: width.max(1), within: vec![0; parts], changes: vec![0; parts + 1] }
    }

    /// Something that happens so often at a time during a span, in a number of steps that does not depend on its length.
    pub(super) fn add(&mut self, span: Span, times: u32) {
        let last = self.within.len().saturating_sub(1);
        let times = i128::from(times);
        let place = |at: Nanos| usize::try_from((at - self.begin) / self.width).unwrap_or(0).min(last);
        let (first_part, last_part) = (place(span.from), place(span.until));
        let edge = |part: usize| self.begin + Nanos::try_from(part).unwrap_or(0) * self.width;
        if first_part == last_part {
            self.within[last_part] += i128::from(span.length()) * times;
            return;
        }
        self.within[first_part] += i128::from(edge(first_part + 1) - span.from) * times;
        self.within[last_part] += i128::from(span.until - edge(last_part)) * times;
        self.changes[first_part + 1] += times;
        self.changes[last_part] -= times;
    }

    /// How much there was in each part, in nanoseconds times numbers.
    pub(super) fn sums(&self) -> Vec<i128> {
        let mut level = 0;
        let sum = |(within, change): (&i128, &i128)| {
            level += change;
            within + level * i128::from(self.width)
        };
        self.within.iter().zip(&self.changes).map(sum).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_is_in_every_part_that_it_touches() {
        let mut parts = Parts::new(100, 10, 4);
        parts.add(Span { from: 105, until: 132 }, 2);
        parts.add(Span { from: 111, until: 113 }, 5);
        parts.add(Span { from: 120, until: 130 }, 1);
        assert_eq!(parts.sums(), [10, 30, 30, 4]);
        // The end belongs to the last part.
        let mut parts = Parts::new(0, 10, 2);
        parts.add(Span { from: 0, until: 20 }, 1);
        assert_eq!(parts.sums(), [10, 10]);
    }
}
