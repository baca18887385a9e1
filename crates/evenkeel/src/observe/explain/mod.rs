//! `FlowControl::explain`: why a request goes where it goes, as a structure for tools.

mod clauses;

use std::sync::Arc;

use evenkeel_api::bootstrap;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::classify::match_order;
use evenkeel_engine::controller::ControlledLevel;
use evenkeel_engine::deal::Dealer;
use evenkeel_engine::digest::Query;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::{Attributes, Configuration, RequestInfo, User, WorkEstimate};
use serde::Serialize;

use crate::control::flow_control::FlowControl;
use crate::layer::work::{EstimateWork, WorkInput};
use crate::observe::status::{LevelStatus, SeatLimits};
use clauses::Outcome;

/// Why a request goes where it goes. Made by [`FlowControl::explain`].
///
/// Serialised, its fields are those that `evenkeel explain -o json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Explanation {
    /// How the request is understood.
    pub request: ExplainedRequest,
    /// The flow schemas that were tried before the one that the request belongs to, in order.
    pub tried: Vec<TriedSchema>,
    /// The flow schema that the request belongs to.
    pub flow_schema: String,
    /// The rule of that flow schema that matched, such as `spec.rules[0].resourceRules[1]`; `None` if no flow schema matched
    /// and the request went to `catch-all` (FM-4).
    pub matched: Option<String>,
    /// The priority level that the request goes to.
    pub priority_level: String,
    /// What tells the flow of the request from others of its flow schema; empty where there is nothing to tell apart.
    pub flow: String,
    /// The hash of the flow, which its queues are dealt by; 0 where there is nothing to tell apart.
    pub flow_hash: u64,
    /// The queues that the request may wait in; none if its level has no queues.
    pub hand: Vec<u32>,
    /// How many seats the request takes.
    pub seats: ExplainedSeats,
    /// The seats of the level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<SeatLimits>,
    /// What the level is doing now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LevelStatus>,
}

/// A request as flow schemas see it. What it does not name is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedRequest {
    /// The user.
    pub user: String,
    /// The groups of the user.
    pub groups: Vec<String>,
    /// The verb.
    pub verb: String,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TriedSchema {
    /// The flow schema.
    pub schema: String,
    /// The first part of it that does not match, such as `spec.rules[0].subjects`. Of several rules, it is about the one of
    /// which most matches.
    pub failed: String,
}

/// The seats that a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExplainedSeats {
    /// Seats while the request runs.
    pub initial: u32,
    /// Seats while it lingers.
    #[serde(rename = "final")]
    pub lingering: u32,
    /// How long it lingers, in nanoseconds.
    pub additional_latency_ns: i64,
    /// The most seats that the estimate of a request may have at this level (WE-4), if there is such a cap.
    pub cap: Option<u32>,
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
        // Configurations change under this lock, so that the objects are those of the configuration.
        let (control, snapshot) = self.shared().controlled();
        let class = snapshot.configuration.classify(attributes);
        let level = &class.schema.level;
        let found = control.level(&level.name);
        let schemas = in_order(&snapshot.configuration, &control.objects().flow_schemas);
        let tried = schemas.iter().take(class.index).map(|schema| TriedSchema {
            schema: schema.name().to_owned(),
            failed: match clauses::outcome(schema, attributes) {
                Outcome::Failed(clause) | Outcome::Matched(clause) => clause,
            },
        });
        let matched = match schemas.get(class.index).map(|schema| clauses::outcome(schema, attributes)) {
            Some(Outcome::Matched(rule)) => Some(rule),
            _ => None,
        };
        let watches = work.interested_watches(attributes.request, &());
        let input = WorkInput { attributes, level, query: Query::new(""), watches, extra: &() };
        Explanation {
            request: ExplainedRequest::new(attributes.user, attributes.request),
            tried: tried.collect(),
            flow_schema: class.schema.name.to_string(),
            matched,
            priority_level: level.name.to_string(),
            flow: class.distinguisher.to_owned(),
            flow_hash: class.flow_hash,
            hand: found.map(|found| hand(found, class.flow_hash)).unwrap_or_default(),
            seats: ExplainedSeats::new(work.estimate(&input), level.seat_cap),
            limits: found.map(SeatLimits::new),
            live: found.and_then(|found| {
                let in_play = snapshot.levels.get(found.id())?;
                Some(LevelStatus::new(&level.name, found, control.borrowing(), in_play))
            }),
        }
    }
}

/// The objects of the schemas in use, in the order in which they are tried.
fn in_order<'a>(configuration: &Configuration, objects: &'a [Arc<FlowSchema>]) -> Vec<&'a FlowSchema> {
    let mut left: Vec<&FlowSchema> = objects.iter().map(|schema| &**schema).collect();
    left.sort_by(|one, other| match_order(one, other));
    let object = |name: &str| match left.iter().position(|schema| schema.name() == name) {
        Some(place) => Some(left.remove(place)),
        // A mandatory one that nobody gave is built in (CC-12).
        None => bootstrap::mandatory_flow_schema(name),
    };
    let names: Vec<_> = configuration.schemas().iter().map(|schema| &*schema.name).collect();
    names.into_iter().filter_map(object).collect()
}

/// The queues that a flow may use.
fn hand(level: &ControlledLevel, flow_hash: u64) -> Vec<u32> {
    let Mode::Queue(queuing) = level.mode() else { return Vec::new() };
    if level.mode().is_per_flow() {
        return Vec::new();
    }
    let size = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let dealer = Dealer::new(size(queuing.deal.deck()), size(queuing.deal.hand()));
    dealer.map(|dealer| dealer.deal(flow_hash).cards().to_vec()).unwrap_or_default()
}

// === impl ExplainedRequest ===

impl ExplainedRequest {
    fn new(user: &User, request: &RequestInfo<'_>) -> Self {
        Self {
            user: user.name.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            verb: request.verb.to_string(),
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
    fn new(work: WorkEstimate, cap: Option<u32>) -> Self {
        let WorkEstimate { initial_seats, final_seats, additional_latency } = work;
        Self { initial: initial_seats, lingering: final_seats, additional_latency_ns: additional_latency, cap }
    }
}
