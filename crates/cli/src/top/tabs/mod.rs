//! The tables of the screen: each is a function of the state.

mod delays;
mod events;
mod flows;
mod levels;
mod models;
mod queues;
mod schemas;
mod upstreams;

use evenkeel_gateway::observe::frame::{Flow, Frame, Level};

pub(super) use delays::behind;

use super::grid::Grid;
use super::state::Top;

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Levels,
    Flows,
    Delays,
    Queues,
    Schemas,
    Upstreams,
    Events,
    /// The last one, since it is only there where there are language models.
    Models,
}

/// Which levels a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope<'a> {
    All,
    Level(&'a str),
}

/// A row that can be explained.
#[derive(Debug, Clone, Copy)]
pub(super) enum SelectedRow<'a> {
    Level(&'a Level),
    /// A flow, by its place in its level.
    Flow(&'a Level, usize),
}

const NO_FRAME: &str = "Nothing has been received yet.";

// === impl Tab ===

impl Tab {
    pub(super) const ALL: [Self; 8] = [
        Self::Levels,
        Self::Flows,
        Self::Delays,
        Self::Queues,
        Self::Schemas,
        Self::Upstreams,
        Self::Events,
        Self::Models,
    ];

    /// The tables that there are. One that is on the screen stays, also if it gets empty.
    pub(super) fn shown(top: &Top) -> &'static [Self] {
        let all: &'static [Self] = &Self::ALL;
        let has_models = top.tab == Self::Models || top.frame().is_some_and(|frame| !frame.models.is_empty());
        if has_models { all } else { &all[..Self::Models as usize] }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Levels => "levels",
            Self::Flows => "flows",
            Self::Delays => "delays",
            Self::Queues => "queues",
            Self::Schemas => "schemas",
            Self::Upstreams => "upstreams",
            Self::Events => "events",
            Self::Models => "models",
        }
    }

    pub(super) fn next(self, top: &Top) -> Self {
        let shown = Self::shown(top);
        shown[(self as usize + 1) % shown.len()]
    }

    pub(super) fn previous(self, top: &Top) -> Self {
        let shown = Self::shown(top);
        shown[(self as usize + shown.len() - 1) % shown.len()]
    }

    /// The rows that the filter leaves.
    pub(super) fn grid(self, top: &Top) -> Grid {
        let mut grid = self.whole_grid(top, Scope::All);
        grid.filter(&top.filter);
        grid
    }

    /// All rows.
    pub(super) fn whole_grid(self, top: &Top, scope: Scope<'_>) -> Grid {
        let Some(frame) = top.frame() else {
            return Grid { empty: NO_FRAME.to_owned(), ..Grid::default() };
        };
        match self {
            Self::Levels => levels::grid(top, frame),
            Self::Flows => flows::grid(top, frame, scope),
            Self::Delays => delays::grid(top, frame, scope),
            Self::Queues => queues::grid(&top.queues),
            Self::Schemas => schemas::grid(frame),
            Self::Upstreams => upstreams::grid(top, frame),
            Self::Events => events::grid(frame),
            Self::Models => models::grid(frame),
        }
    }

    /// The subject of the selected row.
    pub(super) fn subject(self, top: &Top) -> Option<SelectedRow<'_>> {
        let frame = top.frame()?;
        let grid = self.grid(top);
        let keys: Vec<&str> = grid.rows.iter().map(|row| row.key.as_str()).collect();
        let key = *keys.get(top.selected(self, &keys)?)?;
        let level = |name: &str| frame.level(name).map(SelectedRow::Level);
        match self {
            Self::Levels => level(key),
            Self::Flows | Self::Delays => flow_of(frame, key.split('\n').next()?),
            Self::Queues | Self::Schemas => level(key.split('\t').next()?),
            Self::Upstreams | Self::Events | Self::Models => None,
        }
    }
}

// === impl Scope ===

impl Scope<'_> {
    fn levels(self, frame: &Frame) -> impl Iterator<Item = &Level> {
        frame.levels.iter().filter(move |level| match self {
            Self::All => true,
            Self::Level(name) => level.name == name,
        })
    }
}

/// The text for an empty table of flows: that there are none, or that they are not known.
fn unknown_or(top: &Top, nothing: &str) -> String {
    match &top.notice {
        Some(why) => format!("Unknown: {why}"),
        None => nothing.to_owned(),
    }
}

/// The name of a flow: its user or namespace, or its schema where all users share a flow.
pub(super) fn flow_name(flow: &Flow) -> &str {
    if flow.distinguisher.is_empty() { &flow.schema } else { &flow.distinguisher }
}

/// The key of a flow. Names of levels and schemas have neither tabs nor line ends; those of users are cut off from keys that
/// continue behind them.
fn flow_key(level: &Level, flow: &Flow) -> String {
    format!("{}\t{}\t{}", level.name, flow.schema, flow.distinguisher.replace('\n', " "))
}

fn flow_of<'a>(frame: &'a Frame, key: &str) -> Option<SelectedRow<'a>> {
    let level = frame.level(key.split('\t').next()?)?;
    let at = level.flows.iter().position(|flow| flow_key(level, flow) == key)?;
    Some(SelectedRow::Flow(level, at))
}
