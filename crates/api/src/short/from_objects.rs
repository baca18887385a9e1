//! From objects back to a short form, where that says the same (SF-2).
//!
//! Names of flow schemas and distances between precedences are not kept; what a request meets is. The short form is for services
//! whose requests are methods and paths: a match without them stands for requests for resources too, and one with them for none.

use std::collections::BTreeMap;

use super::level::{Part, default_per_client};
use super::rule::RuleSeats;
use super::{Per, QUEUE_DEFAULT, ShortForm, ShortLevel, ShortLevels, ShortRule};
use crate::annotations::{self, HeaderCondition, PathMatch, Queuing};
use crate::bootstrap::{self, EXEMPT};
use crate::v1::{
    CONCURRENCY_SHARES_DEFAULT, FlowDistinguisherMethodType, FlowSchema, NonResourcePolicyRule,
    PolicyRulesWithSubjects, PriorityLevelConfiguration, ResourcePolicyRule, SubjectKind,
};
use crate::{AnyObject, Kind, model_namespace};

/// An object that cannot be said in short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {name:?} cannot be said in short: {reason}")]
#[non_exhaustive]
pub struct NotShort {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The annotations that have a word in the short form, or that change nothing for requests.
const SAID: [&str; 14] = [
    annotations::QUEUING,
    annotations::MAX_LONG_RUNNING,
    annotations::REVOCABLE,
    annotations::WAIT_LIMIT,
    annotations::FLOW_WEIGHT,
    annotations::FLOW_BY,
    annotations::SEATS,
    annotations::COST,
    annotations::COST_PER_SEAT,
    annotations::LEARNT_SEATS_MAX,
    annotations::RATE,
    annotations::MATCH_HEADERS,
    annotations::MATCH_PATHS,
    annotations::IGNORE,
];
const EVERY: &str = "*";

// === impl ShortForm ===

impl ShortForm {
    /// The form that stands for these objects, or those of them that cannot be said in short. Mandatory objects are left out: they
    /// are there anyway.
    pub fn from_objects(levels: &[PriorityLevelConfiguration], schemas: &[FlowSchema]) -> Result<Self, Vec<NotShort>> {
        let mut problems = Vec::new();
        let mut form = Self::default();
        for object in
            levels.iter().filter(|level| !bootstrap::is_mandatory(Kind::PriorityLevelConfiguration, level.name()))
        {
            match level(object) {
                Ok(level) => form.levels.0.push((object.name().to_owned(), level)),
                Err(reason) => problems.push(NotShort::new(&object.clone().into(), reason)),
            }
        }
        let mut ordered: Vec<&FlowSchema> =
            schemas.iter().filter(|schema| !bootstrap::is_mandatory(Kind::FlowSchema, schema.name())).collect();
        ordered.sort_by(|one, other| {
            let key = |schema: &FlowSchema| (schema.spec.matching_precedence, schema.name().to_owned());
            key(one).cmp(&key(other))
        });
        for object in ordered {
            match rule(object) {
                Ok(rule) => form.rules.push(rule),
                Err(reason) => problems.push(NotShort::new(&object.clone().into(), reason)),
            }
        }
        if problems.is_empty() {
            // A form that its own rules refuse is none, as a level without a definition.
            problems.extend(form.problems().into_iter().map(|problem| NotShort {
                kind: if problem.field.starts_with("match") {
                    Kind::FlowSchema
                } else {
                    Kind::PriorityLevelConfiguration
                },
                name: problem.field,
                reason: problem.message,
            }));
        }
        if problems.is_empty() { Ok(form) } else { Err(problems) }
    }

    /// The same without what is the default: two forms that say the same are equal then.
    #[must_use]
    pub fn normal(&self) -> Self {
        let levels = self.levels.0.iter().map(|(name, level)| (name.clone(), level.normal())).collect();
        Self { levels: ShortLevels(levels), rules: self.rules.iter().map(ShortRule::normal).collect() }
    }
}

// === impl ShortLevel ===

impl ShortLevel {
    fn normal(&self) -> Self {
        let mut level = self.clone();
        if !self.reject && self.shares() != 0 {
            let (queue, per_client) = self.waiting();
            level.per_client = Some(per_client).filter(|per_client| *per_client != default_per_client(queue));
            level.queue = Some(queue).filter(|queue| *queue != QUEUE_DEFAULT || level.per_client.is_some());
        }
        level.share = Some(self.shares());
        level.lend = match self.lend {
            Some(Part::Percent(0)) => None,
            Some(Part::Percent(100)) => Some(Part::All),
            other => other,
        };
        level.borrow = self.borrow.filter(|part| *part != Part::All);
        level
    }
}

// === impl ShortRule ===

impl ShortRule {
    fn normal(&self) -> Self {
        let mut rule = self.clone();
        let has_get = self.methods.iter().any(|method| method == "GET");
        rule.methods.retain(|method| method != "HEAD" || !has_get);
        rule.methods = unique(rule.methods);
        rule.models = unique(rule.models.iter().map(|model| model_namespace(model)).collect());
        rule.weight = self.weight.filter(|weight| *weight != 1);
        rule.per = self.per.clone().filter(|per| *per != Per::User);
        let plain = |cost: &String| cost.parse().map_or_else(|_| cost.clone(), |cost: f64| cost.to_string());
        rule.cost_per_seat = self.cost_per_seat.as_ref().map(plain);
        rule
    }
}

fn unique(texts: Vec<String>) -> Vec<String> {
    let mut seen = Vec::with_capacity(texts.len());
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}

// === impl NotShort ===

impl NotShort {
    fn new(object: &AnyObject, reason: String) -> Self {
        Self { kind: object.kind(), name: object.name().to_owned(), reason }
    }
}

/// Checks that the short form has a word for each annotation, and that each is understood.
fn check_annotations(kind: Kind, noted: &BTreeMap<String, String>) -> Result<(), String> {
    if let Some(wrong) = annotations::not_understood(kind, noted).first() {
        return Err(wrong.to_string());
    }
    let unsaid = noted.keys().find(|name| annotations::is_known(name) && !SAID.contains(&name.as_str()));
    unsaid.map_or(Ok(()), |name| Err(format!("there is no word for the annotation {name}")))
}

fn level(object: &PriorityLevelConfiguration) -> Result<ShortLevel, String> {
    let noted = &object.metadata.annotations;
    check_annotations(Kind::PriorityLevelConfiguration, noted)?;
    let Some(limited) = &object.spec.limited else { return Err("it is not limited".to_owned()) };
    let shares = limited.nominal_concurrency_shares.unwrap_or(CONCURRENCY_SHARES_DEFAULT);
    let mut level = ShortLevel { share: Some(shares.into()), ..ShortLevel::default() };
    if shares == 0 {
        if limited.limit_response.queuing.is_some() {
            return Err(
                "it has no shares and lets requests wait for borrowed seats; `share: 0` rejects them".to_owned()
            );
        }
        // Whatever else it says, it has no seats.
        return Ok(level);
    }
    level.lend = limited.lendable_percent.map(|percent| Part::Percent(percent.into()));
    level.borrow = limited.borrowing_limit_percent.map(|percent| Part::Percent(percent.into()));
    level.revocable = annotations::is_revocable(noted);
    level.max_long_running = annotations::max_long_running(noted).map(Into::into);
    match &limited.limit_response.queuing {
        None => level.reject = true,
        Some(queuing) => {
            let (queues, hand) = (i64::from(queuing.queues), i64::from(queuing.hand_size));
            if annotations::queuing(noted) != Queuing::PerFlow {
                return Err(
                    "its clients share queues (shuffle sharding); in the short form each has one of its own".to_owned()
                );
            }
            if queues % hand != 0 {
                return Err("what one client may have waiting does not divide what all may".to_owned());
            }
            let length = i64::from(queuing.queue_length_limit);
            level.queue = Some(queues * length);
            level.per_client = Some(hand * length);
            level.wait = annotations::wait_limit(noted);
        }
    }
    Ok(level.normal())
}

fn rule(schema: &FlowSchema) -> Result<ShortRule, String> {
    let noted = &schema.metadata.annotations;
    check_annotations(Kind::FlowSchema, noted)?;
    let [only] = &*schema.spec.rules else { return Err("it does not have exactly one rule".to_owned()) };
    let mut rule = ShortRule::default();
    (rule.users, rule.groups) = subjects(only)?;
    match models(only) {
        Some(models) => rule.models = models,
        None => {
            let paths = path_rule(only)?;
            (rule.methods, rule.paths) = (methods(&paths.verbs)?, short_paths(&paths.non_resource_urls, noted));
            check_resources(&rule, &only.resource_rules)?;
        }
    }
    if let Some(HeaderCondition::Headers(headers)) = annotations::match_headers(noted) {
        rule.headers = headers;
    }
    if schema.spec.priority_level_configuration.name == EXEMPT {
        rule.exempt = true;
        return Ok(rule.normal());
    }
    rule.level = Some(schema.spec.priority_level_configuration.name.clone());
    rule.weight = Some(annotations::flow_weight(noted).into());
    rule.seats = annotations::seats(noted).map(|seats| RuleSeats::Number(seats.into()));
    if let Some(learnt) = annotations::learnt_seats(noted) {
        rule.seats = Some(RuleSeats::Learnt);
        rule.cost_per_seat = Some(learnt.cost_per_seat.to_string());
        rule.seats_max = learnt.seats_max.map(Into::into);
    }
    (rule.rate, rule.cost) = (annotations::rate(noted), annotations::cost(noted));
    rule.per = Some(match (annotations::flow_by(noted), &schema.spec.distinguisher_method) {
        (Some(by), _) => by.into(),
        (None, None) => Per::Nobody,
        (None, Some(method)) if method.method == FlowDistinguisherMethodType::ByUser => Per::User,
        (None, Some(_)) => return Err("its flows are told apart by namespace".to_owned()),
    });
    Ok(rule.normal())
}

fn subjects(rule: &PolicyRulesWithSubjects) -> Result<(Vec<String>, Vec<String>), String> {
    let (mut users, mut groups) = (Vec::new(), Vec::new());
    for subject in &rule.subjects {
        match (&subject.kind, &subject.user, &subject.group) {
            (SubjectKind::User, Some(user), _) => users.push(user.name.clone()),
            (SubjectKind::Group, _, Some(group)) => groups.push(group.name.clone()),
            _ => return Err("a subject is a service account".to_owned()),
        }
    }
    if users.iter().chain(&groups).any(|name| name == EVERY) {
        return Ok(Default::default());
    }
    if users.is_empty() || groups.is_empty() {
        Ok((users, groups))
    } else {
        Err("it names users and groups".to_owned())
    }
}

/// The models that a rule is about, if it is about nothing else.
fn models(rule: &PolicyRulesWithSubjects) -> Option<Vec<String>> {
    let ([only], []) = (&*rule.resource_rules, &*rule.non_resource_rules) else { return None };
    let is_every = |texts: &[String]| texts.iter().any(|text| text == EVERY);
    let fits = [&only.verbs, &only.api_groups, &only.resources].into_iter().all(|texts| is_every(texts));
    (fits && !only.cluster_scope && !is_every(&only.namespaces)).then(|| only.namespaces.clone())
}

/// Checks that the rules for resources say the same as the match does without them.
fn check_resources(rule: &ShortRule, resources: &[ResourcePolicyRule]) -> Result<(), String> {
    if resources.is_empty() {
        return Ok(());
    }
    if !rule.methods.is_empty() || !rule.paths.is_empty() {
        let fault =
            "it is about resources beside methods and paths; remove its resourceRules, or write a schema for either";
        return Err(fault.to_owned());
    }
    let is_every = |texts: &[String]| texts.iter().any(|text| text == EVERY);
    let is_everything = |rule: &ResourcePolicyRule| {
        let lists = [&rule.verbs, &rule.api_groups, &rule.resources, &rule.namespaces];
        rule.cluster_scope && lists.into_iter().all(|texts| is_every(texts))
    };
    if resources.iter().any(is_everything) {
        return Ok(());
    }
    Err("it is about every path but not about every resource; remove its resourceRules, or write a schema for either"
        .to_owned())
}

fn path_rule(rule: &PolicyRulesWithSubjects) -> Result<&NonResourcePolicyRule, String> {
    match &*rule.non_resource_rules {
        [only] => Ok(only),
        [] => Err("it is about resources".to_owned()),
        _ => Err("it has several nonResourceRules".to_owned()),
    }
}

fn methods(verbs: &[String]) -> Result<Vec<String>, String> {
    if verbs.iter().any(|verb| verb == EVERY) {
        return Ok(Vec::new());
    }
    let has = |wanted: &str| verbs.iter().any(|verb| verb == wanted);
    if has("get") && !has("head") {
        return Err("it matches GET without HEAD; add the verb head".to_owned());
    }
    Ok(verbs.iter().map(|verb| verb.to_uppercase()).collect())
}

fn short_paths(entries: &[String], noted: &BTreeMap<String, String>) -> Vec<String> {
    if entries.iter().any(|entry| entry == EVERY) {
        return Vec::new();
    }
    match annotations::path_match(noted) {
        PathMatch::Exact => entries.to_vec(),
        PathMatch::Below => unique(entries.iter().flat_map(|entry| below(entry)).collect()),
    }
}

/// The paths that an entry stands for in Kubernetes: itself and everything below it (FM-13).
fn below(entry: &str) -> Vec<String> {
    match entry {
        "/" => vec!["/*".to_owned()],
        _ if entry.ends_with("/*") => vec![entry.to_owned()],
        _ if entry.ends_with('/') => vec![format!("{entry}*")],
        _ => vec![entry.to_owned(), format!("{entry}/*")],
    }
}
