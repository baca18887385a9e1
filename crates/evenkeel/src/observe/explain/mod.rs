//! `FlowControl::explain`: why a request goes where it goes, as a structure for tools.

mod clauses;
mod cost;
mod hash_text;
mod wait;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use evenkeel_api::v1::FlowSchema;
use evenkeel_api::{annotations, bootstrap};
use evenkeel_engine::classify::match_order;
use evenkeel_engine::controller::ControlledLevel;
use evenkeel_engine::deal::Dealer;
use evenkeel_engine::digest::Query;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::{Attributes, Configuration, RequestInfo, User, WorkEstimate};
use serde::{Deserialize, Serialize};

use crate::control::flow_control::FlowControl;
use crate::control::request::Patience;
use crate::control::work::{EstimateWork, WorkInput};
use crate::observe::status::{LevelStatus, SeatLimits};
use clauses::Outcome;
use cost::ExplainedCost;

pub use wait::{ExpectedWait, WaitOutcome};

/// Why a request goes where it goes. Made by [`FlowControl::explain`].
///
/// Serialised, its fields are those that `evenkeel explain -o json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// The service of the flow control, if it has a [name](crate::FlowControlBuilder::service_name): each service has seats of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// How the request is understood.
    pub request: ExplainedRequest,
    /// The flow schemas that were tried before the one that the request belongs to, in order.
    pub tried: Vec<TriedSchema>,
    /// The flow schemas before that one that are not in use, because their priority level does not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dangling: Vec<DanglingSchema>,
    /// The flow schema that the request belongs to.
    pub flow_schema: String,
    /// Its precedence: flow schemas with a lower one are tried earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precedence: Option<i32>,
    /// The rule of that flow schema that matched, such as `spec.rules[0].resourceRules[1]`; `None` if no flow schema matched
    /// and the request went to `catch-all` (FM-4).
    pub matched: Option<String>,
    /// The priority level that the request goes to.
    pub priority_level: String,
    /// What tells the flow of the request from others of its flow schema; empty where there is nothing to tell apart.
    pub flow: String,
    /// The hash of the flow, which its queues are dealt by; 0 where there is nothing to tell apart. Serialised, it is text such as
    /// `0x00c0ffee00c0ffee`: many readers of JSON round numbers of 64 bits.
    #[serde(with = "hash_text")]
    pub flow_hash: u64,
    /// How requests of the level wait.
    pub queuing: ExplainedQueuing,
    /// The queues that the request may wait in; none if its level has no queues, or a queue for each flow.
    pub hand: Vec<u32>,
    /// How many seats the request takes.
    pub seats: ExplainedSeats,
    /// The rate of its flow, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<ExplainedRate>,
    /// The seats of the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<SeatLimits>,
    /// How many seats all other levels lend: the level cannot borrow more, whatever its limit is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lent_by_others: Option<i64>,
    /// What the level is doing now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveLevel>,
    /// The fleet whose seats the instance shares, if it has joined one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<ExplainedFleet>,
}

/// What a level is doing now, and what that means for a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LiveLevel {
    /// What the level is doing.
    #[serde(flatten)]
    pub status: LevelStatus,
    /// How long the request would wait.
    pub wait: ExpectedWait,
}

/// How the requests of a level wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ExplainedQueuing {
    /// Requests do not wait: the level is exempt, and all of them start at once.
    Exempt,
    /// Requests do not wait: a request that finds no seat is rejected.
    Reject,
    /// In queues that flows share; each flow has a hand of them.
    ShuffleSharded,
    /// In a queue for each flow. There is no hand.
    PerFlow,
}

/// A request as flow schemas see it. What it does not name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedRequest {
    /// The user.
    pub user: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// The verb.
    pub verb: String,
    /// Whether flow control applies to the request; a Kubernetes API does not limit `exec`, `log` and the like (HF-3). If not, the
    /// rest says where it would go otherwise.
    #[serde(default = "limited")]
    pub is_limited: bool,
    /// Whether the request is about a resource; otherwise it is about a path.
    pub is_resource_request: bool,
    /// The path.
    pub path: String,
    /// The API group.
    pub api_group: String,
    /// The API version.
    pub api_version: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

/// A flow schema that does not match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TriedSchema {
    /// The flow schema.
    pub schema: String,
    /// Its precedence.
    #[serde(default)]
    pub precedence: i32,
    /// The first part of it that does not match, such as `spec.rules[0].subjects`. Of several rules, it is about the one of
    /// which most matches.
    pub failed: String,
}

/// A flow schema that is not in use, because its priority level does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DanglingSchema {
    /// The flow schema.
    pub schema: String,
    /// Its precedence.
    pub precedence: i32,
    /// The priority level that it names.
    pub priority_level: String,
    /// Whether it would match the request.
    pub would_match: bool,
}

/// The seats that a request takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedSeats {
    /// Seats while the request runs; 0 if it takes none and never waits.
    pub initial: u32,
    /// Seats while it lingers.
    #[serde(rename = "final")]
    pub lingering: u32,
    /// How long it lingers, in nanoseconds.
    pub additional_latency_ns: i64,
    /// The most seats that Kubernetes' estimate of a request may have at this level (WE-4), if there is such a cap. Other
    /// estimates, such as those of a gateway's routes, are not bound by it.
    pub cap: Option<u32>,
    /// Where the estimate comes from.
    pub rule: String,
}

/// The rate of a flow, and how much of it is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedRate {
    /// The rate, as the flow schema has it.
    pub rate: String,
    /// How much the flow may take at once now.
    pub left: u64,
    /// How much a request takes.
    pub taken: u64,
    /// How long the request would wait for its rate, in nanoseconds; it is rejected if that is longer than it may wait.
    pub wait_ns: i64,
    /// In a fleet, the part of the rate that the flow has on this instance, in percent; `None` if it has all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_percent: Option<u32>,
}

/// The fleet whose seats the instance shares: all limits of an explanation are those of this instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedFleet {
    /// The name that the instances share.
    pub service: String,
    /// The seats that this instance may use now.
    pub seats: u64,
    /// The seats of the service, all instances together; 0 if that is not known yet.
    pub total: u64,
    /// How many instances there are.
    pub instances: usize,
    /// What this instance lives on: `grant`, or `floor` or `nothing` because it is cut off from etcd.
    pub footing: String,
}

fn limited() -> bool {
    true
}

// === impl FlowControl ===

impl FlowControl {
    /// Explains where a request would go at this moment, and why. Nothing is counted, and nothing changes.
    ///
    /// It is meant for people and tools: it takes far longer than to let a request in.
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// let flow = FlowControl::builder().exempt_paths(["/healthz"]).drive_by_hand().build();
    /// let user = User::new("alice", ["system:authenticated"]);
    /// let request = RequestInfo { verb: "get".into(), path: "/orders".into(), ..RequestInfo::default() };
    /// let explanation = flow.explain(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT);
    /// assert_eq!((&*explanation.flow_schema, &*explanation.flow), ("everyone", "alice"));
    /// let tried = &explanation.tried[1];
    /// assert_eq!((&*tried.schema, &*tried.failed), ("exempt-paths", "spec.rules[0].nonResourceRules[0].nonResourceURLs"));
    /// println!("{}", serde_json::to_string_pretty(&explanation).unwrap());
    /// ```
    #[expect(clippy::needless_pass_by_value, reason = "as `admit` has it")]
    pub fn explain(&self, attributes: Attributes<'_>, work: impl EstimateWork) -> Explanation {
        self.explain_digested(attributes, Query::new(""), &work, &(), None)
    }

    /// The same for a request with a query, and for a digest that finds more than the [`RequestInfo`]: see
    /// [`Digest::Extra`](crate::digest::Digest::Extra) and [`Digest::wait_limit`](crate::digest::Digest::wait_limit).
    pub fn explain_digested<X>(
        &self,
        attributes: Attributes<'_>,
        query: Query<'_>,
        work: &impl EstimateWork<X>,
        extra: &X,
        wait_limit: Option<Duration>,
    ) -> Explanation {
        // Configurations change under this lock, so that the objects are those of the configuration. It is held for as long as
        // it takes to copy what is needed: neither the clauses nor the estimate, which is the caller's, are tried under it.
        let (control, snapshot) = self.shared().controlled();
        let class = snapshot.configuration.classify(attributes);
        let level = &class.schema.level;
        let found = control.level(&level.name);
        let (mode, limits) = (found.map(ControlledLevel::mode), found.map(SeatLimits::new));
        let status = found.and_then(|found| {
            let known = snapshot.levels.get(found.id())?;
            Some((known, LevelStatus::new(&level.name, found, control.borrowing(), known)))
        });
        let lent_by_others = found.map(|found| {
            let others = control.levels().map(|(_, other)| other).filter(|other| other.id() != found.id());
            others.fold(0_i64, |sum, other| sum.saturating_add(lent_by(other)))
        });
        let mut objects = control.objects().flow_schemas.clone();
        drop(control);
        objects.sort_by(|one, other| match_order(one, other));
        let watches = work.interested_watches(attributes.request, extra);
        let input = WorkInput { attributes, level, query, watches, extra };
        let route = work.route_cost(extra);
        let of_route = route.unit.and_then(|unit| snapshot.destination(class.index).of_route(unit));
        let of_route = of_route.as_ref().and_then(|destination| destination.accounts.as_ref());
        let accounts = of_route.or_else(|| snapshot.accounts_of(class.index));
        let cost = accounts.map(|accounts| ExplainedCost::new(accounts, &class, attributes, route.route));
        let otherwise = || class.schema.seats.map_or_else(|| work.estimate(&input), WorkEstimate::seats);
        let estimate = cost.as_ref().and_then(ExplainedCost::work).unwrap_or_else(otherwise);
        let rule = match (class.schema.seats, cost.as_ref().and_then(ExplainedCost::rule)) {
            (Some(_), _) => format!("annotation {} of the flow schema", annotations::SEATS),
            (None, Some(rule)) => rule,
            (None, None) => work.rule(&input).into_owned(),
        };
        let rate = cost.and_then(|cost| cost.rate(self.shared().now()));
        let live = status.map(|(known, status)| {
            let patience = Patience { wait_limit, ..Patience::default() };
            let limit = patience.limit(self.shared().wait_limit_of(level), self.preset());
            let limit = Duration::from_nanos(limit.unsigned_abs());
            let now = self.shared().now();
            let listeners = known.listeners();
            let core = known.lock();
            let (now, seats) = (now.max(core.latest), estimate.max_seats());
            let wait = ExpectedWait::new(&core, &listeners, now, class.flow(), seats, limit);
            LiveLevel { status, wait }
        });
        let schemas = in_order(&snapshot.configuration, &objects, class.index + 1);
        let winner = schemas.get(class.index);
        let matched = match winner.map(|schema| clauses::outcome(schema, attributes)) {
            Some(Outcome::Matched(rule)) => Some(rule),
            _ => None,
        };
        let tried = schemas.iter().take(class.index).map(|schema| TriedSchema {
            schema: schema.name().to_owned(),
            precedence: schema.spec.matching_precedence,
            failed: match clauses::outcome(schema, attributes) {
                Outcome::Failed(clause) | Outcome::Matched(clause) => clause,
            },
        });
        let dangling = dangling(&snapshot.configuration, &objects, winner).map(|schema| DanglingSchema {
            schema: schema.name().to_owned(),
            precedence: schema.spec.matching_precedence,
            priority_level: schema.spec.priority_level_configuration.name.clone(),
            would_match: matches!(clauses::outcome(schema, attributes), Outcome::Matched(_)),
        });
        Explanation {
            service: self.shared().service().map(ToOwned::to_owned),
            request: ExplainedRequest::new(attributes.user, attributes.request),
            tried: tried.collect(),
            dangling: dangling.collect(),
            flow_schema: class.schema.name.to_string(),
            precedence: winner.map(|schema| schema.spec.matching_precedence),
            matched,
            priority_level: level.name.to_string(),
            flow: class.distinguisher.to_owned(),
            flow_hash: class.flow_hash,
            queuing: mode.map_or(ExplainedQueuing::Reject, ExplainedQueuing::of),
            hand: mode.map(|mode| hand(mode, class.flow_hash)).unwrap_or_default(),
            seats: ExplainedSeats::new(estimate, level.seat_cap(), rule),
            rate,
            limits,
            lent_by_others,
            live,
            fleet: self.explained_fleet(),
        }
    }

    #[cfg(feature = "fleet")]
    fn explained_fleet(&self) -> Option<ExplainedFleet> {
        let state = self.fleet_state()?;
        Some(ExplainedFleet {
            service: state.service,
            seats: state.seats,
            total: state.status.seats,
            instances: state.status.instances,
            footing: state.footing.as_str().to_owned(),
        })
    }

    #[cfg(not(feature = "fleet"))]
    #[expect(clippy::unused_self, reason = "as with fleets")]
    fn explained_fleet(&self) -> Option<ExplainedFleet> {
        None
    }
}

/// The seats that others can borrow from a level. An exempt level keeps none: its own seats are divided too (CL-15).
fn lent_by(level: &ControlledLevel) -> i64 {
    let limits = level.limits();
    if level.mode() == Mode::Exempt { limits.nominal } else { limits.lendable }
}

/// The flow schemas that are not in use because their priority level does not exist, as far as they come before the winner.
fn dangling<'o>(
    configuration: &Configuration,
    objects: &'o [Arc<FlowSchema>],
    winner: Option<&Arc<FlowSchema>>,
) -> impl Iterator<Item = &'o Arc<FlowSchema>> {
    let in_use: HashSet<&str> = configuration.schemas().iter().map(|schema| &*schema.name).collect();
    let is_earlier = move |object: &FlowSchema| winner.is_none_or(|winner| match_order(object, winner).is_lt());
    objects.iter().filter(move |object| !in_use.contains(object.name()) && is_earlier(object))
}

/// The objects of the first schemas in use, in the order in which they are tried, which is that of `objects`.
fn in_order(configuration: &Configuration, objects: &[Arc<FlowSchema>], count: usize) -> Vec<Arc<FlowSchema>> {
    // A program may give two objects of one name.
    let mut by_name: HashMap<&str, VecDeque<&Arc<FlowSchema>>> = HashMap::with_capacity(objects.len());
    for object in objects {
        by_name.entry(object.name()).or_default().push_back(object);
    }
    let object = |name: &str| match by_name.get_mut(name).and_then(VecDeque::pop_front) {
        Some(object) => Some(Arc::clone(object)),
        // A mandatory schema that is not among the objects is built in (CC-12).
        None => bootstrap::mandatory_flow_schema(name).map(|schema| Arc::new(schema.clone())),
    };
    let names = configuration.schemas().iter().take(count).map(|schema| &*schema.name);
    names.filter_map(object).collect()
}

/// The queues that a flow may use.
fn hand(mode: Mode, flow_hash: u64) -> Vec<u32> {
    let Mode::Queue(queuing) = mode else { return Vec::new() };
    if mode.is_per_flow() {
        return Vec::new();
    }
    let size = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let dealer = Dealer::new(size(queuing.deal.deck()), size(queuing.deal.hand()));
    dealer.map(|dealer| dealer.deal(flow_hash).cards().to_vec()).unwrap_or_default()
}

// === impl ExplainedQueuing ===

impl ExplainedQueuing {
    fn of(mode: Mode) -> Self {
        match mode {
            Mode::Exempt => Self::Exempt,
            Mode::Reject | Mode::Closed => Self::Reject,
            Mode::Queue(_) if mode.is_per_flow() => Self::PerFlow,
            Mode::Queue(_) => Self::ShuffleSharded,
        }
    }
}

// === impl ExplainedRequest ===

impl ExplainedRequest {
    fn new(user: &User, request: &RequestInfo<'_>) -> Self {
        Self {
            user: user.name.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            verb: request.verb.to_string(),
            is_limited: limited(),
            is_resource_request: request.is_resource_request,
            path: request.path.to_string(),
            api_group: request.api_group.to_string(),
            api_version: request.api_version.to_string(),
            resource: request.resource.to_string(),
            subresource: request.subresource.to_string(),
            namespace: request.namespace.to_string(),
            name: request.name.to_string(),
        }
    }
}

// === impl ExplainedSeats ===

impl ExplainedSeats {
    fn new(work: WorkEstimate, cap: Option<u32>, rule: String) -> Self {
        let WorkEstimate { initial_seats, final_seats, additional_latency } = work;
        Self { initial: initial_seats, lingering: final_seats, additional_latency_ns: additional_latency, cap, rule }
    }
}
