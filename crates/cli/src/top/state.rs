//! `Top`: the state of the screen: the latest frame, the selection, and the connection.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use evenkeel_gateway::observe::frame::{Frame, PastLevel};

use super::queues::Queue;
use super::source::{ServerKind, Update, Wanted};
use super::tabs::Tab;

/// The state of the screen.
#[derive(Debug)]
pub(super) struct Top {
    /// The URL of the server.
    pub(super) url: String,
    pub(super) kind: ServerKind,
    pub(super) connection: Connection,
    /// Why something is not shown.
    pub(super) notice: Option<String>,
    pub(super) queues: Result<Vec<Queue>, String>,
    latest: Option<Frame>,
    /// The frame that is shown while the screen is paused.
    paused: Option<Frame>,
    /// How much of its limit each level used lately, the latest last.
    trends: BTreeMap<String, VecDeque<f32>>,
    pub(super) tab: Tab,
    pub(super) mode: Mode,
    pub(super) filter: String,
    /// The selected row of each tab, by its key.
    selected: [Option<String>; Tab::ALL.len()],
}

/// The state of the source's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Connection {
    /// Nothing has been received yet.
    Connecting,
    Live,
    Lost {
        why: String,
        retry_in: Duration,
    },
}

/// The mode of the screen, which decides what keys do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Browse,
    /// A filter is typed.
    Filter,
    /// The selected row is explained.
    Explain,
    Help,
}

/// How many values of a trend are kept: more than a screen shows.
const TREND_MAX: usize = 60;
const FILTER_CHARS_MAX: usize = 100;

// === impl Top ===

impl Top {
    pub(super) fn new(url: &str, kind: ServerKind) -> Self {
        Self {
            url: url.to_owned(),
            kind,
            connection: Connection::Connecting,
            notice: None,
            queues: Ok(Vec::new()),
            latest: None,
            paused: None,
            trends: BTreeMap::new(),
            tab: Tab::Levels,
            mode: Mode::Browse,
            filter: String::new(),
            selected: Default::default(),
        }
    }

    /// Takes in what the source reports.
    pub(super) fn update(&mut self, update: Update) {
        match update {
            Update::Past(past) => self.add_past(past),
            Update::Frame(frame) => {
                self.connection = Connection::Live;
                if frame.levels.iter().any(|level| !level.flows.is_empty()) {
                    self.notice = None;
                }
                self.add_trends(&frame);
                self.latest = Some(*frame);
            }
            Update::Queues(queues) if self.paused.is_none() => self.queues = queues,
            Update::Queues(_) => {}
            Update::Notice(notice) => self.notice = Some(notice),
            Update::Lost { why, retry_in } => self.connection = Connection::Lost { why, retry_in },
        }
    }

    /// The frame that is shown.
    pub(super) fn frame(&self) -> Option<&Frame> {
        self.paused.as_ref().or(self.latest.as_ref())
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Stops the screen at the latest frame, or lets it go on.
    pub(super) fn toggle_pause(&mut self) {
        self.paused = if self.paused.is_some() { None } else { self.latest.clone() };
    }

    /// How much of its limit a level used lately.
    pub(super) fn trend(&self, level: &str) -> Option<&VecDeque<f32>> {
        self.trends.get(level)
    }

    /// The data that the source has to ask for.
    pub(super) fn wanted(&self) -> Wanted {
        Wanted { queues: self.tab == Tab::Queues && self.paused.is_none() }
    }

    /// Which of these rows is selected: the first one unless another was chosen.
    pub(super) fn selected(&self, tab: Tab, keys: &[&str]) -> Option<usize> {
        let chosen = self.selected[tab as usize].as_deref();
        let found = chosen.and_then(|chosen| keys.iter().position(|key| *key == chosen));
        found.or(if keys.is_empty() { None } else { Some(0) })
    }

    pub(super) fn select(&mut self, tab: Tab, key: &str) {
        self.selected[tab as usize] = Some(key.to_owned());
    }

    pub(super) fn type_filter(&mut self, character: char) {
        if self.filter.chars().count() < FILTER_CHARS_MAX && !character.is_control() {
            self.filter.push(character);
        }
    }

    fn add_past(&mut self, past: PastLevel) {
        #[expect(clippy::cast_precision_loss, reason = "numbers of seats are small")]
        let ratio = |(in_use, current): (&f32, &u32)| in_use / (*current).max(1) as f32;
        let ratios: VecDeque<f32> = past.in_use.iter().zip(&past.current).map(ratio).collect();
        let skipped = ratios.len().saturating_sub(TREND_MAX);
        self.trends.insert(past.name, ratios.into_iter().skip(skipped).collect());
    }

    fn add_trends(&mut self, frame: &Frame) {
        self.trends.retain(|name, _| frame.level(name).is_some());
        for level in &frame.levels {
            let Some(used) = level.utilisation else { continue };
            let trend = self.trends.entry(level.name.clone()).or_default();
            #[expect(clippy::cast_possible_truncation, reason = "a ratio needs no more digits")]
            trend.push_back(used.mean as f32);
            if trend.len() > TREND_MAX {
                trend.pop_front();
            }
        }
    }
}
