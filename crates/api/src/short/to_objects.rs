//! The objects that a short form stands for (SF-2).
//!
//! A level becomes a priority level of the same name, with a queue for each client. A match becomes a flow schema: the first of
//! a level `batch` is `batch-1`, the next one `batch-2`. Precedences follow the order of the matches.

use std::collections::{BTreeMap, HashMap};

use super::level::Part;
use super::rule::RuleSeats;
use super::{Per, ShortForm, ShortLevel, ShortRule};
use crate::annotations::{self, Queuing};
use crate::bootstrap::{BootstrapObjects, EXEMPT};
use crate::decode::{ManifestEntry, Node};
use crate::duration;
use crate::meta::ObjectMeta;
use crate::model_namespace;
use crate::v1::{
    FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchema, FlowSchemaSpec, GroupSubject, LimitResponse,
    LimitResponseType, LimitedPriorityLevelConfiguration, NonResourcePolicyRule, PolicyRulesWithSubjects,
    PriorityLevelConfiguration, PriorityLevelConfigurationReference, PriorityLevelConfigurationSpec,
    PriorityLevelEnablement, QueuingConfiguration, ResourcePolicyRule, Subject, SubjectKind, UserSubject,
};

/// The precedence of the first match, and the distance to the next one: room for objects in between.
const PRECEDENCE_FIRST: i32 = 100;
const PRECEDENCE_STEP: i32 = 10;
/// Stands for everything.
const EVERY: &str = "*";

// === impl ShortForm ===

impl ShortForm {
    /// The objects that it stands for, each at the place of its line in the tree that it was read from. None if something is wrong
    /// with it.
    pub fn entries(&self, root: &Node) -> Vec<ManifestEntry> {
        if !self.problems().is_empty() {
            return Vec::new();
        }
        let BootstrapObjects { priority_levels, flow_schemas } = objects(self);
        let level = |level: PriorityLevelConfiguration| {
            let at = root.position_of(&format!("levels.{}", level.name()));
            ManifestEntry::made(level.into(), at)
        };
        let levels: Vec<ManifestEntry> = priority_levels.into_iter().map(level).collect();
        let schemas = flow_schemas.into_iter().enumerate();
        let schemas = schemas
            .map(|(index, schema)| ManifestEntry::made(schema.into(), root.position_of(&format!("match[{index}]"))));
        levels.into_iter().chain(schemas).collect()
    }
}

/// The objects of a form that has no problems.
pub(super) fn objects(form: &ShortForm) -> BootstrapObjects {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut flow_schemas = Vec::with_capacity(form.rules.len());
    for (index, rule) in form.rules.iter().enumerate() {
        let level = rule.level.as_deref().unwrap_or(EXEMPT);
        let count = counts.entry(level).or_default();
        *count += 1;
        flow_schemas.push(schema(rule, index, format!("{level}-{count}"), level));
    }
    let priority_levels = form.levels.0.iter().map(|(name, level)| priority_level(name, level)).collect();
    BootstrapObjects { priority_levels, flow_schemas }
}

fn named(name: String, annotations: BTreeMap<String, String>) -> ObjectMeta {
    ObjectMeta { name, annotations, ..ObjectMeta::default() }
}

/// A number that has been checked.
fn int(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn priority_level(name: &str, level: &ShortLevel) -> PriorityLevelConfiguration {
    let mut noted = BTreeMap::new();
    let mut note = |name: &str, value: String| drop(noted.insert(name.to_owned(), value));
    let is_closed = level.shares() == 0;
    let limit_response = if level.reject || is_closed {
        LimitResponse { response: LimitResponseType::Reject, queuing: None }
    } else {
        let (queue, per_client) = level.waiting();
        note(annotations::QUEUING, Queuing::PerFlow.to_string());
        let queuing =
            QueuingConfiguration { queues: int(queue / per_client), hand_size: 1, queue_length_limit: int(per_client) };
        LimitResponse { response: LimitResponseType::Queue, queuing: Some(queuing) }
    };
    if is_closed {
        // Authors of short forms do not use old versions of the objects.
        note(annotations::IGNORE, "zero-shares-lost".to_owned());
    }
    if let Some(wait) = level.wait {
        note(annotations::WAIT_LIMIT, duration::text(wait));
    }
    if let Some(most) = level.max_long_running {
        note(annotations::MAX_LONG_RUNNING, most.to_string());
    }
    if level.revocable {
        note(annotations::REVOCABLE, true.to_string());
    }
    let lendable = match level.lend {
        Some(Part::All) => 100,
        Some(Part::Percent(percent)) => int(percent),
        None => 0,
    };
    let borrowing_limit_percent = match level.borrow {
        Some(Part::Percent(percent)) => Some(int(percent)),
        Some(Part::All) | None => None,
    };
    let limited = LimitedPriorityLevelConfiguration {
        nominal_concurrency_shares: Some(int(level.shares())),
        limit_response,
        lendable_percent: Some(lendable),
        borrowing_limit_percent,
    };
    let enablement = PriorityLevelEnablement::Limited;
    let spec = PriorityLevelConfigurationSpec { enablement, limited: Some(limited), exempt: None };
    PriorityLevelConfiguration::new(named(name.to_owned(), noted), spec)
}

fn schema(rule: &ShortRule, index: usize, name: String, level: &str) -> FlowSchema {
    let mut noted = BTreeMap::new();
    let mut note = |name: &str, value: String| drop(noted.insert(name.to_owned(), value));
    if let Some(weight) = rule.weight.filter(|weight| *weight != 1) {
        note(annotations::FLOW_WEIGHT, weight.to_string());
    }
    if let Some(by) = rule.per.as_ref().and_then(Per::flow_by) {
        note(annotations::FLOW_BY, by.to_string());
    }
    match rule.seats {
        Some(RuleSeats::Number(seats)) => note(annotations::SEATS, seats.to_string()),
        Some(RuleSeats::Learnt) => note(annotations::SEATS, "learnt".to_owned()),
        None => {}
    }
    if let Some(rate) = &rule.rate {
        note(annotations::RATE, rate.to_string());
    }
    if let Some(cost) = &rule.cost {
        note(annotations::COST, cost.to_string());
    }
    if let Some(cost) = &rule.cost_per_seat {
        note(annotations::COST_PER_SEAT, cost.clone());
    }
    if let Some(most) = rule.seats_max {
        note(annotations::LEARNT_SEATS_MAX, most.to_string());
    }
    if !rule.headers.is_empty() {
        note(annotations::MATCH_HEADERS, rule.headers.to_string());
    }
    if rule.paths.iter().any(|path| !path.ends_with("/*")) {
        note(annotations::MATCH_PATHS, "exact".to_owned());
    }
    if rule.per == Some(Per::Nobody) {
        // The rule asks for one flow.
        note(annotations::IGNORE, "one-flow".to_owned());
    }
    let has_flows = !rule.exempt && rule.per != Some(Per::Nobody);
    let by_user = FlowDistinguisherMethod { method: FlowDistinguisherMethodType::ByUser };
    let spec = FlowSchemaSpec {
        priority_level_configuration: PriorityLevelConfigurationReference { name: level.to_owned() },
        matching_precedence: PRECEDENCE_FIRST + PRECEDENCE_STEP * i32::try_from(index).unwrap_or(i32::MAX),
        distinguisher_method: has_flows.then_some(by_user),
        rules: vec![PolicyRulesWithSubjects {
            subjects: subjects(rule),
            resource_rules: resources(rule).into_iter().collect(),
            non_resource_rules: paths(rule).into_iter().collect(),
        }],
    };
    FlowSchema::new(named(name, noted), spec)
}

fn subjects(rule: &ShortRule) -> Vec<Subject> {
    let nobody = || Subject { kind: SubjectKind::User, user: None, group: None, service_account: None };
    let user = |name: &str| Subject { user: Some(UserSubject { name: name.to_owned() }), ..nobody() };
    let group = |name: &str| {
        let named = Some(GroupSubject { name: name.to_owned() });
        Subject { kind: SubjectKind::Group, group: named, ..nobody() }
    };
    let named = rule.users.iter().map(|name| user(name)).chain(rule.groups.iter().map(|name| group(name)));
    let named: Vec<Subject> = named.collect();
    if named.is_empty() { vec![user(EVERY)] } else { named }
}

/// Requests for resources have neither methods nor paths: a match that names some is not about them. Models are namespaces.
fn resources(rule: &ShortRule) -> Option<ResourcePolicyRule> {
    let every = || vec![EVERY.to_owned()];
    let (verbs, api_groups, resources) = (every(), every(), every());
    let models: Vec<String> = rule.models.iter().map(|model| model_namespace(model)).collect();
    let (cluster_scope, namespaces) = (models.is_empty(), every_or(&models));
    let rule = (rule.methods.is_empty() && rule.paths.is_empty()).then_some(());
    rule.map(|()| ResourcePolicyRule { verbs, api_groups, resources, cluster_scope, namespaces })
}

/// Requests for a model are no requests for paths.
fn paths(rule: &ShortRule) -> Option<NonResourcePolicyRule> {
    let (verbs, non_resource_urls) = (verbs(&rule.methods), every_or(&rule.paths));
    rule.models.is_empty().then_some(NonResourcePolicyRule { verbs, non_resource_urls })
}

/// The methods in lower case; that of `GET` comes with that of `HEAD`, which asks for the same without its body.
fn verbs(methods: &[String]) -> Vec<String> {
    let mut verbs: Vec<String> = Vec::new();
    let has_get = methods.iter().any(|method| method == "GET");
    for method in methods.iter().filter(|method| *method != "HEAD" || !has_get) {
        let with = (method == "GET").then(|| "head".to_owned());
        for verb in [method.to_lowercase()].into_iter().chain(with) {
            if !verbs.contains(&verb) {
                verbs.push(verb);
            }
        }
    }
    every_or(&verbs)
}

fn every_or(texts: &[String]) -> Vec<String> {
    if texts.is_empty() { vec![EVERY.to_owned()] } else { texts.to_vec() }
}
