//! `FlowControl::status`: the state of every level, as a structure for tools.

use evenkeel_engine::controller::{Borrowing, ControlledLevel};
use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::queue_set::QueuingDiscipline;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::control::flow_control::FlowControl;
use crate::control::level::Level;

/// The state of a level, and its modes. Made by [`FlowControl::status`](crate::FlowControl::status); it can be serialised.
///
/// ```
/// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
///
/// let flow = FlowControl::builder().drive_by_hand().build();
/// let (user, request) = (User::default(), RequestInfo::default());
/// let arrived = flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT);
/// let busy: Vec<_> = flow.status().into_iter().filter(|level| !level.is_idle()).collect();
/// assert_eq!((busy[0].name.as_str(), busy[0].seats_in_use), ("everyone", 1));
/// drop(arrived);
/// assert!(flow.status().iter().all(|level| level.is_idle()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LevelStatus {
    /// The name of the level.
    pub name: String,
    /// Whether its object is gone, and it stays only until its last request has ended.
    pub is_quiescing: bool,
    /// Whether flows share its queues (the annotation `evenkeel.dev/queuing`); `None` for a level without queues.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "queuing_name",
        deserialize_with = "queuing_of_name"
    )]
    pub queuing: Option<QueuingDiscipline>,
    /// When it borrows seats from other levels: the same for all of them.
    #[serde(serialize_with = "borrowing_name", deserialize_with = "borrowing_of_name")]
    pub borrowing: Borrowing,
    /// The seats that it may use now, with those that it has borrowed and without those that it has lent. Where levels borrow at
    /// once, the seats that it uses and could use in addition at this moment: a seat that two levels could use counts for both.
    pub current_limit: i64,
    /// How many requests wait.
    pub waiting: usize,
    /// How many requests run; those that linger do not.
    pub executing: usize,
    /// How many of them take no seat.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seatless: u32,
    /// The seats of requests that run or linger.
    pub seats_in_use: i64,
    /// The seats that waiting requests ask for. A request that got fewer seats than it asked for, because the level
    /// has not as many, leaves the difference behind here.
    pub seats_waiting: i64,
    /// How many long-running requests (watches, upgrades, streams, and those that take no seat) wait or run, with or without
    /// seats.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub long_running: u32,
    /// How many of them there may be (the annotation `evenkeel.dev/max-long-running`); `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_long_running: Option<u32>,
    /// The seats that are kept at present for clients of which nothing runs (the annotation `evenkeel.dev/newcomer-seats`).
    #[serde(default, skip_serializing_if = "is_none")]
    pub kept_seats: i64,
    /// The seats that its configuration gives it.
    pub limits: SeatLimits,
}

/// The seats that the configuration gives a level (CL-3 to CL-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SeatLimits {
    /// The seats that the level has of its own.
    pub nominal: i64,
    /// How many of them others may borrow.
    pub lendable: i64,
    /// How many seats it may borrow from others.
    pub borrowing: i64,
    /// The seats that nobody can take from it.
    pub min: i64,
    /// The seats that it can have at most.
    pub max: i64,
    /// The seats that it may use now.
    pub current: i64,
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn queuing_name<S: Serializer>(queuing: &Option<QueuingDiscipline>, serializer: S) -> Result<S::Ok, S::Error> {
    queuing.map(QueuingDiscipline::name).serialize(serializer)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn borrowing_name<S: Serializer>(borrowing: &Borrowing, serializer: S) -> Result<S::Ok, S::Error> {
    borrowing.name().serialize(serializer)
}

fn queuing_of_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<QueuingDiscipline>, D::Error> {
    let Some(name) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let all = [QueuingDiscipline::ShuffleSharded, QueuingDiscipline::PerFlow];
    let found = all.into_iter().find(|queuing| queuing.name() == name);
    found.map(Some).ok_or_else(|| D::Error::custom(format!("there is no queuing {name:?}")))
}

fn borrowing_of_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Borrowing, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(seats: &i64) -> bool {
    *seats == 0
}

// === impl FlowControl ===

impl FlowControl {
    /// The state of every level, in ascending byte order of their names.
    pub fn status(&self) -> Vec<LevelStatus> {
        let (controller, snapshot) = self.shared().controlled();
        let borrowing = controller.borrowing();
        let status = |(name, level): (&str, &ControlledLevel)| {
            Some(LevelStatus::new(name, level, borrowing, snapshot.levels.get(level.id())?))
        };
        controller.levels().filter_map(status).collect()
    }
}

// === impl LevelStatus ===

impl LevelStatus {
    pub(crate) fn new(name: &str, control: &ControlledLevel, borrowing: Borrowing, level: &Level) -> Self {
        let long_running = level.listeners().metrics.long_running.running();
        let core = level.lock();
        let current_limit = core.current_limit();
        Self {
            name: name.to_owned(),
            is_quiescing: control.is_quiescing(),
            queuing: control.mode().discipline(),
            borrowing,
            current_limit,
            waiting: core.queue_set().waiting(),
            executing: core.queue_set().executing(),
            seatless: u32::try_from(core.queue_set().seatless()).unwrap_or(u32::MAX),
            seats_in_use: core.queue_set().seats_in_use(),
            seats_waiting: core.queue_set().seats_waiting(),
            long_running,
            max_long_running: control.max_long_running(),
            kept_seats: core.queue_set().kept_seats(),
            limits: SeatLimits { current: current_limit, ..SeatLimits::new(control) },
        }
    }

    /// Whether nothing waits, runs or lingers.
    pub fn is_idle(&self) -> bool {
        self.waiting == 0 && self.executing == 0 && self.seats_in_use == 0
    }
}

// === impl SeatLimits ===

impl SeatLimits {
    pub(crate) fn new(level: &ControlledLevel) -> Self {
        let LevelLimits { nominal, lendable, borrowing, min, max } = level.limits();
        Self { nominal, lendable, borrowing, min, max, current: level.current_limit() }
    }
}
