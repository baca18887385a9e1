//! The report of a replay.

use std::collections::BTreeSet;

use evenkeel_engine::time::Nanos;
use evenkeel_sim::report::LimitReport;
use evenkeel_sim::{LevelRecord, Simulator};

use crate::damage::Damaged;
use crate::flows::{Flow, Token};
use crate::formats::Format;
use crate::logged_head::LookedAtHead;
use crate::truth::Comparison;

/// The report of a replay.
#[derive(Debug)]
pub struct Report {
    /// How many lines or events were read.
    pub lines: u64,
    /// How many requests were replayed.
    pub requests: u64,
    /// The lines that could not be read.
    pub damaged: Damaged,
    /// How our classification compares with the server's.
    pub comparison: Comparison,
    /// The flows, those that differ most first.
    pub flows: Vec<Flow>,
    /// The facts that the log did not have, and the requests that were left out.
    pub notes: Notes,
    pub(crate) ended: Nanos,
    pub(crate) simulators: Vec<Simulator<Token>>,
}

/// How many requests lacked facts in the log or were left out, by the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes {
    /// The kinds of the logs.
    pub formats: Vec<String>,
    /// Whether a log does not name users, so that requests stay in the flow schemas that they were in.
    pub without_users: bool,
    /// Left out: the server did not accept their credentials, so that flow control never saw them.
    pub unauthenticated: u64,
    /// Left out: long-running requests that flow control does not limit.
    pub not_limited: u64,
    /// Left out: their ends are not in the log.
    pub unfinished: u64,
    /// Left out: their paths cannot be understood.
    pub not_understood: u64,
    /// Left out: the log does not name their users, and the configuration does not have their schemas.
    pub unplaced: u64,
    /// They were rejected when they were recorded, so that their service times are those of others.
    pub rejected: u64,
    /// The log does not tell their service times, which are those of others.
    pub untimed: u64,
    /// The log does not tell how long they waited, which counts as part of their service times.
    pub unknown_waits: u64,
    /// Lists of an unknown number of objects: each takes one seat.
    pub lists: u64,
    /// The log does not tell their seats: each takes one.
    pub unknown_seats: u64,
    /// They took more seats than their level can have, so that they run on fewer.
    pub narrowed: u64,
    /// Left out: they took no seats.
    pub seatless: u64,
    /// Flow schemas asked for headers of theirs, and the log does not tell these: they count as requests without them.
    pub untold_headers: u64,
    /// The names of these headers.
    pub untold_header_names: BTreeSet<String>,
    /// Flows are told apart by the addresses of clients, and the log does not tell theirs: they are one flow.
    pub untold_addresses: u64,
    /// Their flow schemas count costs in a unit in which the log does not tell them: they cost what is expected of their kind, if anything is.
    pub untold_costs: u64,
    /// They were written down too late to be put in their place.
    pub late: u64,
}

// === impl Report ===

impl Report {
    /// How many configurations were compared.
    pub fn sides(&self) -> usize {
        self.simulators.len()
    }

    /// The levels under a configuration.
    pub fn levels(&self, side: usize) -> &[LevelRecord] {
        self.simulators[side].levels()
    }

    /// The limit that found itself under a configuration, if none was set.
    pub fn limit(&self, side: usize) -> Option<LimitReport> {
        self.simulators[side].auto_limit().map(LimitReport::new)
    }

    /// How long it took from the first arrival to the last end, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn seconds(&self) -> f64 {
        self.ended as f64 / 1e9
    }
}

// === impl Notes ===

impl Notes {
    /// Notes the headers that flow schemas asked for, that the log does not have, and that made a difference.
    pub(crate) fn add_untold(&mut self, head: &LookedAtHead<'_>, depends_on: impl Fn(&str) -> bool) {
        let mut untold = head.untold_headers().filter(|name| depends_on(name)).peekable();
        self.untold_headers += u64::from(untold.peek().is_some());
        for name in untold {
            if !self.untold_header_names.contains(name) {
                self.untold_header_names.insert(name.to_owned());
            }
        }
        self.untold_addresses += u64::from(head.is_address_untold());
    }

    pub(crate) fn add_format(&mut self, format: &Format) {
        let name = format.to_string();
        if !self.formats.contains(&name) {
            self.formats.push(name);
        }
        self.without_users |= matches!(format, Format::HttpLog);
    }
}
