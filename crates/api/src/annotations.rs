//! The annotations by which objects choose what Kubernetes does not have (BM-1). Kubernetes ignores them.
//!
//! An invalid value does not make an object invalid: the default is used, and the program that stores or reads the object
//! warns (BM-2).

mod cost;
mod header_match;
mod rate;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::{Kind, duration};

pub use cost::{CostUnit, LearntSeats, NotCostUnit};
pub use header_match::{HeaderMatch, HeaderValues, check_name as check_header_name};
pub use rate::{Excess, NotRate, Rate, RatePeriod, RateUnit};

/// On priority levels: how requests wait, `shuffle-sharded` or `per-flow`.
pub const QUEUING: &str = "evenkeel.dev/queuing";
/// On priority levels: how many seats a level borrows for each one of a level of weight 1, where levels borrow at once.
pub const BORROWING_WEIGHT: &str = "evenkeel.dev/borrowing-weight";
/// On priority levels: how many long-running requests a level lets in at a time.
pub const MAX_LONG_RUNNING: &str = "evenkeel.dev/max-long-running";
/// On priority levels that queue per flow: how many seats are kept for flows of which nothing runs.
pub const NEWCOMER_SEATS: &str = "evenkeel.dev/newcomer-seats";
/// On priority levels that queue per flow: how many seats one flow may hold.
pub const FLOW_SEATS_MAX: &str = "evenkeel.dev/flow-seats-max";
/// On flow schemas: how many seats each of their flows gets for each one of a flow of weight 1, in levels that queue per flow.
pub const FLOW_WEIGHT: &str = "evenkeel.dev/flow-weight";

/// On flow schemas: the headers that requests must have to match, as an object of JSON (SF-2).
pub const MATCH_HEADERS: &str = "evenkeel.dev/match-headers";
/// On flow schemas: how `nonResourceURLs` match. With `exact`, `/a` stands for itself and not for what is below it.
pub const MATCH_PATHS: &str = "evenkeel.dev/match-paths";
/// On flow schemas: what tells their flows apart: `address`, `path` or `header:NAME`.
pub const FLOW_BY: &str = "evenkeel.dev/flow-by";
/// On flow schemas: how many seats each of their requests takes; `learnt`: by what such requests have cost.
pub const SEATS: &str = "evenkeel.dev/seats";
/// On flow schemas: what the cost of their requests is counted in: `time`, `bytes`, `header:NAME` or `tokens`.
pub const COST: &str = "evenkeel.dev/cost";
/// On flow schemas with learnt seats: how much of the cost is one seat.
pub const COST_PER_SEAT: &str = "evenkeel.dev/cost-per-seat";
/// On flow schemas with learnt seats: the most seats that a request takes.
pub const LEARNT_SEATS_MAX: &str = "evenkeel.dev/seats-max";
/// On flow schemas: a rate for each of their flows, such as `100/s`.
pub const RATE: &str = "evenkeel.dev/rate";
/// On priority levels: whether their requests end when requests of another level wait for seats of its own: `true` or `false`.
pub const REVOCABLE: &str = "evenkeel.dev/revocable";
/// On priority levels: how long their requests wait for a seat, if they have no deadline of their own.
pub const WAIT_LIMIT: &str = "evenkeel.dev/wait-limit";

/// On objects of both kinds: the rules of `evenkeel check` that are silent about the object, separated by commas.
pub const IGNORE: &str = "evenkeel.dev/ignore";

/// On objects of both kinds: `audit` for an object that does not govern, and decides in the shadow only; `promote` lets all of them govern, in
/// one step (SH-5).
pub const MODE: &str = "evenkeel.dev/mode";
/// On objects of the mode `audit`: the name of the object in whose place they are in the shadow.
pub const REPLACES: &str = "evenkeel.dev/replaces";

/// The prefix of all names.
const PREFIX: &str = "evenkeel.dev/";
/// The largest weight.
pub(crate) const WEIGHT_MAX: u16 = 10_000;
/// The most seats that a request may take.
pub(crate) const SEATS_MAX: u32 = 1_000_000;
/// The longest time that requests of a level may wait.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(3600);
/// The prefix of a header's name in [`FLOW_BY`].
const HEADER: &str = "header:";
/// The value of [`MODE`] of objects that do not govern.
const AUDIT: &str = "audit";
/// The value of [`MODE`] of an object of the shadow by which all objects of the shadow govern.
pub const PROMOTE: &str = "promote";
/// The value of [`SEATS`] for seats that follow from the cost.
const LEARNT: &str = "learnt";

/// The text does not say what tells flows apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be address, path or header:NAME")]
pub struct NotFlowBy;

/// How the requests of a priority level wait.
///
/// Not `#[non_exhaustive]`: code that queues requests has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Queuing {
    /// In queues that flows share, as in Kubernetes.
    #[default]
    ShuffleSharded,
    /// In a queue for each flow.
    PerFlow,
}

/// A part of the seats of a priority level.
///
/// Not `#[non_exhaustive]`: code that computes seats has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeatShare {
    /// This many seats.
    Seats(u32),
    /// This many percent, from 0 to 100.
    Percent(u8),
}

/// The seats of a priority level that are kept for newcomers: flows of which nothing runs.
///
/// Not `#[non_exhaustive]`: code that keeps seats has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NewcomerSeats {
    /// As many as needed, by how long requests hold theirs.
    #[default]
    Auto,
    /// Always this many.
    Share(SeatShare),
}

/// How the paths of a flow schema match.
///
/// Not `#[non_exhaustive]`: code that matches paths has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PathMatch {
    /// As in Kubernetes: `/a` stands for itself and everything below it (FM-13).
    #[default]
    Below,
    /// `/a` stands for itself alone, and `/a/*` for what is below it.
    Exact,
}

/// What tells the flows of a flow schema apart, if not what its distinguisher method says.
///
/// Not `#[non_exhaustive]`: code that tells flows apart has to know every way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FlowBy {
    /// The client's address.
    Address,
    /// The path.
    Path,
    /// The value of the header of this name.
    Header(String),
}

/// The headers that a schema asks for.
///
/// Not `#[non_exhaustive]`: code that matches headers has to know every way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderCondition {
    /// These.
    Headers(HeaderMatch),
    /// The annotation is not understood, so that nothing matches: a schema that was meant for few requests must not get all.
    NotUnderstood,
}

/// An annotation with an invalid value. The text says what is used instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("annotation {name}: {problem}")]
pub struct NotUnderstood {
    /// The name of the annotation.
    pub name: String,
    problem: String,
}

/// An annotation: its name, the kind of object that it is for, what is wrong with a value, and what the reference says of it.
pub(crate) struct KnownAnnotation {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    check: fn(&str) -> Result<(), String>,
    pub(crate) values: &'static str,
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
}

pub(crate) const KNOWN: [KnownAnnotation; 16] = [
    KnownAnnotation {
        name: QUEUING,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_queuing(value).map(drop),
        values: "`shuffle-sharded`, `per-flow`",
        default: "`shuffle-sharded`",
        about: "How requests wait: in queues that flows share, or in a queue for each flow.",
    },
    KnownAnnotation {
        name: BORROWING_WEIGHT,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_weight(value, "the nominal shares are").map(drop),
        values: "integer from 1 to 10000",
        default: "its nominal shares",
        about: "How many seats the level borrows for each one of a level of weight 1, where levels borrow at once.",
    },
    KnownAnnotation {
        name: MAX_LONG_RUNNING,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_count(value).map(drop),
        values: "integer from 0",
        default: "no limit",
        about: "How many long-running requests the level lets in at a time.",
    },
    KnownAnnotation {
        name: NEWCOMER_SEATS,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_newcomer_seats(value).map(drop),
        values: "`auto`, a number of seats, a percentage",
        default: "`auto`",
        about: "How many seats are kept for flows of which nothing runs, in a level that queues per flow.",
    },
    KnownAnnotation {
        name: FLOW_SEATS_MAX,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_flow_seats_max(value).map(drop),
        values: "a number of seats from 1, a percentage from `1%`",
        default: "no limit",
        about: "How many seats one flow may hold, in a level that queues per flow.",
    },
    KnownAnnotation {
        name: WAIT_LIMIT,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_wait_limit(value).map(drop),
        values: "a duration up to `1h`, as `30s`",
        default: "the server's limit",
        about: "How long requests wait for a seat, if they have no deadline and no limit of their own.",
    },
    KnownAnnotation {
        name: REVOCABLE,
        kind: Kind::PriorityLevelConfiguration,
        check: |value| read_yes_or_no(value).map(drop),
        values: "`true`, `false`",
        default: "`false`",
        about: "Whether the youngest requests of the level end when requests of another level wait for longer than `revokeAfter` although \
                that level uses fewer seats than its own. Where levels borrow at once.",
    },
    KnownAnnotation {
        name: FLOW_WEIGHT,
        kind: Kind::FlowSchema,
        check: |value| read_weight(value, "1 is").map(drop),
        values: "integer from 1 to 10000",
        default: "1",
        about: "How many seats each flow gets for each one of a flow of weight 1, in a level that queues per flow.",
    },
    KnownAnnotation {
        name: FLOW_BY,
        kind: Kind::FlowSchema,
        check: |value| read_flow_by(value).map(drop),
        values: "`address`, `path`, `header:NAME`",
        default: "the `distinguisherMethod`",
        about: "What tells flows apart. Requests without the header are one flow; where the address is not known, the user stands \
                for it.",
    },
    KnownAnnotation {
        name: MATCH_HEADERS,
        kind: Kind::FlowSchema,
        check: |value| read_headers(value).map(drop),
        values: "JSON: `{\"X-Plan\": [\"gold\", \"silver\"]}`, `{\"X-Plan\": \"*\"}`",
        default: "every request",
        about: "The headers that requests must have to match, beside the rules: at most 8 headers with 64 values each. A header that is \
                there twice counts as absent. If the value is not understood, no request matches.",
    },
    KnownAnnotation {
        name: MATCH_PATHS,
        kind: Kind::FlowSchema,
        check: |value| read_path_match(value).map(drop),
        values: "`exact`, `below`",
        default: "`below`",
        about: "Whether `/a` in `nonResourceURLs` stands for itself alone, or also for what is below it.",
    },
    KnownAnnotation {
        name: SEATS,
        kind: Kind::FlowSchema,
        check: |value| if value == LEARNT { Ok(()) } else { read_seats(value).map(drop) },
        values: "integer from 0 to 1000000, `learnt`",
        default: "what is estimated",
        about: "How many seats each request takes while it runs. `learnt`: by what requests of its kind have cost, which `cost-per-seat` has to \
                be there for.",
    },
    KnownAnnotation {
        name: COST,
        kind: Kind::FlowSchema,
        check: |value| read_cost(value).map(drop),
        values: "`time`, `bytes`, `header:NAME`, `header:NAME;keep`, `tokens`",
        default: "`time`",
        about: "What the cost of a request is counted in: seconds, bytes of the response, what the service says in a header or trailer of its \
                response (clients do not see it without `;keep`), or what whoever serves the request counts. Flows are charged by it.",
    },
    KnownAnnotation {
        name: COST_PER_SEAT,
        kind: Kind::FlowSchema,
        check: |value| read_cost_per_seat(value).map(drop),
        values: "a number above 0, in the unit of `cost`",
        default: "none",
        about: "How much of the cost is one seat, with `seats: learnt`.",
    },
    KnownAnnotation {
        name: LEARNT_SEATS_MAX,
        kind: Kind::FlowSchema,
        check: |value| read_learnt_seats_max(value).map(drop),
        values: "integer from 1 to 1000000",
        default: "the seats of the level",
        about: "The most seats that a request takes, with `seats: learnt`.",
    },
    KnownAnnotation {
        name: RATE,
        kind: Kind::FlowSchema,
        check: |value| read_rate(value).map(drop),
        values: "`100/s`, `100/m`, `100/h`; `100/s;burst=50;unit=bytes;excess=reject`",
        default: "no rate",
        about: "How much each flow may take: requests, or bytes of responses or tokens with `unit`. `burst` may pass at once, by default as much \
                as the rate says. A request over the rate waits without a seat until it conforms, if that is within its wait limit, and \
                is rejected otherwise; with `excess=reject` at once.",
    },
];

/// How the requests of a level with these annotations wait.
pub fn queuing(annotations: &BTreeMap<String, String>) -> Queuing {
    annotations.get(QUEUING).and_then(|value| read_queuing(value).ok()).unwrap_or_default()
}

/// The weight of a level with these annotations among those that borrow; `None`: its nominal shares.
pub fn borrowing_weight(annotations: &BTreeMap<String, String>) -> Option<u16> {
    annotations.get(BORROWING_WEIGHT).and_then(|value| read_weight(value, "").ok())
}

/// How many long-running requests a level with these annotations lets in at a time; `None` for no limit.
pub fn max_long_running(annotations: &BTreeMap<String, String>) -> Option<u32> {
    annotations.get(MAX_LONG_RUNNING).and_then(|value| read_count(value).ok())
}

/// Whether the requests of a level with these annotations end when requests of another level wait for seats of its own.
pub fn is_revocable(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(REVOCABLE).is_some_and(|value| read_yes_or_no(value) == Ok(true))
}

/// The seats that a level with these annotations keeps for newcomers, if it queues per flow.
pub fn newcomer_seats(annotations: &BTreeMap<String, String>) -> NewcomerSeats {
    annotations.get(NEWCOMER_SEATS).and_then(|value| read_newcomer_seats(value).ok()).unwrap_or_default()
}

/// The most seats that one flow holds of a level with these annotations, if it queues per flow; `None` for no limit.
pub fn flow_seats_max(annotations: &BTreeMap<String, String>) -> Option<SeatShare> {
    annotations.get(FLOW_SEATS_MAX).and_then(|value| read_flow_seats_max(value).ok())
}

/// The weight of each flow of a schema with these annotations.
pub fn flow_weight(annotations: &BTreeMap<String, String>) -> u16 {
    annotations.get(FLOW_WEIGHT).and_then(|value| read_weight(value, "").ok()).unwrap_or(1)
}

/// The headers that requests must have to match a schema with these annotations; `None` if it does not ask for any.
pub fn match_headers(annotations: &BTreeMap<String, String>) -> Option<HeaderCondition> {
    let value = annotations.get(MATCH_HEADERS)?;
    Some(read_headers(value).map_or(HeaderCondition::NotUnderstood, HeaderCondition::Headers))
}

/// How the paths of a schema with these annotations match.
pub fn path_match(annotations: &BTreeMap<String, String>) -> PathMatch {
    annotations.get(MATCH_PATHS).and_then(|value| read_path_match(value).ok()).unwrap_or_default()
}

/// What tells the flows of a schema with these annotations apart; `None`: what its distinguisher method says.
pub fn flow_by(annotations: &BTreeMap<String, String>) -> Option<FlowBy> {
    annotations.get(FLOW_BY).and_then(|value| read_flow_by(value).ok())
}

/// How many seats each request of a schema with these annotations takes; `None`: what is estimated.
pub fn seats(annotations: &BTreeMap<String, String>) -> Option<u32> {
    annotations.get(SEATS).and_then(|value| read_seats(value).ok())
}

/// How many seats each request of a schema with these annotations takes by what it costs; `None` if that does not matter.
pub fn learnt_seats(annotations: &BTreeMap<String, String>) -> Option<LearntSeats> {
    annotations.get(SEATS).filter(|value| *value == LEARNT)?;
    let cost_per_seat = annotations.get(COST_PER_SEAT).and_then(|value| read_cost_per_seat(value).ok())?;
    let seats_max = annotations.get(LEARNT_SEATS_MAX).and_then(|value| read_learnt_seats_max(value).ok());
    Some(LearntSeats { cost_per_seat, seats_max })
}

/// What the cost of requests of a schema with these annotations is counted in; `None`: nothing but the time matters.
pub fn cost(annotations: &BTreeMap<String, String>) -> Option<CostUnit> {
    annotations.get(COST).and_then(|value| read_cost(value).ok())
}

/// The rate of each flow of a schema with these annotations. One in another unit than that of the costs counts as none.
pub fn rate(annotations: &BTreeMap<String, String>) -> Option<Rate> {
    let rate = annotations.get(RATE).and_then(|value| read_rate(value).ok())?;
    let is_counted = rate.unit.cost_unit().is_none_or(|unit| cost(annotations).is_none_or(|cost| cost == unit));
    is_counted.then_some(rate)
}

/// Whether an object with these annotations is one of the shadow.
pub fn is_audit(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(MODE).is_some_and(|mode| mode == AUDIT || mode == PROMOTE)
}

/// Whether all objects of the shadow govern because of an object with these annotations.
pub fn is_promoted(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(MODE).is_some_and(|mode| mode == PROMOTE)
}

/// The name of the object in whose place one with these annotations is in the shadow; `None`: it has a place of its own.
pub fn replaces(annotations: &BTreeMap<String, String>) -> Option<&str> {
    annotations.get(REPLACES).map(String::as_str).filter(|_| is_audit(annotations))
}

/// The fault of a mode.
fn mode_problem(mode: &str) -> Option<String> {
    let is_known = [AUDIT, PROMOTE].contains(&mode);
    (!is_known).then(|| format!("invalid value {mode:?}: must be audit or promote; the object governs"))
}

/// The faults of annotations that are valid one by one, and contradict each other.
fn together(annotations: &BTreeMap<String, String>) -> Option<NotUnderstood> {
    let problem = |name: &str, problem: String| Some(NotUnderstood { name: name.to_owned(), problem });
    let is_learnt = annotations.get(SEATS).is_some_and(|value| value == LEARNT);
    if is_learnt && !annotations.contains_key(COST_PER_SEAT) {
        let missing = format!("learnt seats need {COST_PER_SEAT}, the cost of one seat; what is estimated is used");
        return problem(SEATS, missing);
    }
    let rate = annotations.get(RATE).and_then(|value| read_rate(value).ok())?;
    let (unit, counted) = (rate.unit.cost_unit()?, cost(annotations)?);
    if unit == counted {
        return None;
    }
    problem(
        RATE,
        format!("a rate of {unit} needs {COST}: {unit}, but costs are counted in {counted}; there is no rate"),
    )
}

/// How long requests wait in a level with these annotations; `None`: as the server says.
pub fn wait_limit(annotations: &BTreeMap<String, String>) -> Option<Duration> {
    annotations.get(WAIT_LIMIT).and_then(|value| read_wait_limit(value).ok())
}

/// The annotations of an object that are meant for Evenkeel and whose values are not understood, or that are for the other kind.
pub fn not_understood(kind: Kind, annotations: &BTreeMap<String, String>) -> Vec<NotUnderstood> {
    let ours = annotations.range(PREFIX.to_owned()..).take_while(|(name, _)| name.starts_with(PREFIX));
    let problem = |name: &str, value: &str| match KNOWN.iter().find(|known| known.name == name) {
        Some(known) if known.kind == kind => (known.check)(value).err(),
        None if name == MODE => mode_problem(value),
        Some(known) => Some(format!("has no effect here, only on objects of kind {}", known.kind)),
        None => None,
    };
    let alone =
        ours.filter_map(|(name, value)| Some(NotUnderstood { name: name.clone(), problem: problem(name, value)? }));
    alone.chain(if kind == Kind::FlowSchema { together(annotations) } else { None }).collect()
}

/// Whether the name of an annotation is one of Evenkeel's.
pub fn is_ours(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Whether Evenkeel has an annotation of that name, for objects of either kind.
pub fn is_known(name: &str) -> bool {
    [IGNORE, MODE, REPLACES].contains(&name) || KNOWN.iter().any(|known| known.name == name)
}

fn read_queuing(value: &str) -> Result<Queuing, String> {
    [Queuing::ShuffleSharded, Queuing::PerFlow]
        .into_iter()
        .find(|queuing| queuing.name() == value)
        .ok_or_else(|| format!("invalid value {value:?}: must be shuffle-sharded or per-flow; shuffle-sharded is used"))
}

fn read_yes_or_no(value: &str) -> Result<bool, String> {
    value.parse().map_err(|_| format!("invalid value {value:?}: must be true or false; false is used"))
}

fn read_count(value: &str) -> Result<u32, String> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let count = value.parse().ok().filter(|_| is_plain);
    count
        .ok_or_else(|| format!("invalid value {value:?}: must be an integer from 0 to {}; there is no limit", u32::MAX))
}

fn read_headers(value: &str) -> Result<HeaderMatch, String> {
    value
        .parse()
        .map_err(|problem: String| format!("invalid value {value:?}: {problem}; no request matches the schema"))
}

fn read_path_match(value: &str) -> Result<PathMatch, String> {
    match value {
        "exact" => Ok(PathMatch::Exact),
        "below" => Ok(PathMatch::Below),
        _ => Err(format!("invalid value {value:?}: must be exact or below; below is used")),
    }
}

fn read_flow_by(value: &str) -> Result<FlowBy, String> {
    value
        .parse()
        .map_err(|problem: NotFlowBy| format!("invalid value {value:?}: {problem}; the distinguisherMethod is used"))
}

fn read_seats(value: &str) -> Result<u32, String> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let seats = value.parse().ok().filter(|seats| is_plain && *seats <= SEATS_MAX);
    seats.ok_or_else(|| {
        format!(
            "invalid value {value:?}: must be an integer from 0 to {SEATS_MAX} or learnt; what is estimated is used"
        )
    })
}

fn read_cost(value: &str) -> Result<CostUnit, String> {
    value.parse().map_err(|problem: NotCostUnit| format!("invalid value {value:?}: {problem}; time is used"))
}

/// Whether a text can be the cost of a seat.
pub(crate) fn check_cost_per_seat(value: &str) -> Result<(), String> {
    read_cost_per_seat(value).map(drop)
}

fn read_cost_per_seat(value: &str) -> Result<f64, String> {
    let read = cost::read_cost_per_seat(value);
    read.ok_or_else(|| format!("invalid value {value:?}: must be a number above 0, as 0.5; what is estimated is used"))
}

fn read_learnt_seats_max(value: &str) -> Result<u32, String> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let seats = value.parse().ok().filter(|seats| is_plain && (1..=SEATS_MAX).contains(seats));
    seats.ok_or_else(|| {
        format!("invalid value {value:?}: must be an integer from 1 to {SEATS_MAX}; the seats of the level are used")
    })
}

fn read_rate(value: &str) -> Result<Rate, String> {
    value.parse().map_err(|problem: NotRate| format!("invalid value {value:?}: {problem}; there is no rate"))
}

fn read_wait_limit(value: &str) -> Result<Duration, String> {
    let read = duration::parse(value).ok().filter(|wait| !wait.is_zero() && *wait <= WAIT_MAX);
    read.ok_or_else(|| {
        format!("invalid value {value:?}: must be a duration up to 1h, as 30s; the server's limit is used")
    })
}

fn read_newcomer_seats(value: &str) -> Result<NewcomerSeats, String> {
    let read = if value == "auto" { Some(NewcomerSeats::Auto) } else { read_share(value).map(NewcomerSeats::Share) };
    read.ok_or_else(|| {
        format!("invalid value {value:?}: must be auto, a number of seats, or a percentage such as 25%; auto is used")
    })
}

fn read_flow_seats_max(value: &str) -> Result<SeatShare, String> {
    read_share(value).filter(|share| !share.is_none()).ok_or_else(|| {
        let problem = "must be a number of seats from 1, or a percentage from 1% to 100%; there is no limit";
        format!("invalid value {value:?}: {problem}")
    })
}

/// A number, or a percentage of at most 100.
fn read_share(value: &str) -> Option<SeatShare> {
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    match value.strip_suffix('%') {
        Some(digits) if plain(digits) => digits.parse().ok().filter(|percent| *percent <= 100).map(SeatShare::Percent),
        None if plain(value) => value.parse().ok().map(SeatShare::Seats),
        _ => None,
    }
}

/// `otherwise` says what is used instead of an invalid value.
fn read_weight(value: &str, otherwise: &str) -> Result<u16, String> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let weight = value.parse().ok().filter(|weight| is_plain && (1..=WEIGHT_MAX).contains(weight));
    weight
        .ok_or_else(|| format!("invalid value {value:?}: must be an integer from 1 to {WEIGHT_MAX}; {otherwise} used"))
}

// === impl FlowBy ===

impl std::str::FromStr for FlowBy {
    type Err = NotFlowBy;

    fn from_str(text: &str) -> Result<Self, NotFlowBy> {
        match (text, text.strip_prefix(HEADER)) {
            ("address", _) => Ok(Self::Address),
            ("path", _) => Ok(Self::Path),
            (_, Some(name)) if check_header_name(name).is_ok() => Ok(Self::Header(name.to_owned())),
            _ => Err(NotFlowBy),
        }
    }
}

impl fmt::Display for FlowBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address => f.write_str("address"),
            Self::Path => f.write_str("path"),
            Self::Header(name) => write!(f, "{HEADER}{name}"),
        }
    }
}

// === impl Queuing ===

impl Queuing {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShuffleSharded => "shuffle-sharded",
            Self::PerFlow => "per-flow",
        }
    }
}

// === impl SeatShare ===

impl SeatShare {
    /// Whether it is no seats at all.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::Seats(0) | Self::Percent(0))
    }
}

impl fmt::Display for SeatShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seats(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

// === impl NewcomerSeats ===

impl NewcomerSeats {
    /// None are kept.
    pub const NONE: Self = Self::Share(SeatShare::Seats(0));

    /// Whether none are kept, whatever the requests are like.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::Share(share) if share.is_none())
    }
}

impl fmt::Display for NewcomerSeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Share(share) => share.fmt(f),
        }
    }
}

impl fmt::Display for Queuing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests;
