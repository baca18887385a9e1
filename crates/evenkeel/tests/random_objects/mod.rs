//! Random flow schemas and requests that meet often, and whether an explanation is true of them.

#![allow(dead_code, unreachable_pub, reason = "every test uses a part of it")]

use std::sync::Arc;

use evenkeel::explain::Explanation;
use evenkeel::objects::Objects;
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_api::bootstrap;
use evenkeel_api::v1::{
    FlowSchema, GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule,
    ServiceAccountSubject, Subject, SubjectKind, UserSubject,
};
use evenkeel_engine::classify::{Classifier, SchemaIndex, match_order};

/// Draws by `SplitMix64`, so that a seed gives the same everywhere.
pub struct Random(pub u64);

/// A flow control, and its flow schemas in the order in which they are tried.
pub struct Configured {
    pub flow: FlowControl,
    schemas: Vec<FlowSchema>,
    classifier: Classifier,
}

const USERS: [&str; 5] = ["alice", "bob", "system:serviceaccount:a:x", "system:serviceaccount:b:x", ""];
const GROUPS: [&str; 5] = ["dev", "ops", "system:masters", "system:authenticated", "system:unauthenticated"];
const VERBS: [&str; 5] = ["get", "list", "create", "watch", "post"];
const API_GROUPS: [&str; 3] = ["", "apps", "batch"];
const RESOURCES: [&str; 3] = ["pods", "jobs", "nodes"];
const SUBRESOURCES: [&str; 3] = ["", "log", "status"];
const NAMESPACES: [&str; 4] = ["", "a", "b", "kube-system"];
const PATHS: [&str; 6] = ["/", "/metrics", "/livez", "/api", "/api/x", "/healthz"];
const URLS: [&str; 6] = ["*", "/metrics", "/api/*", "/livez", "/api", "/"];

// === impl Random ===

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count.max(1) as u64).unwrap_or(0)
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// One or two of them, or all.
    fn some(&mut self, of: &[&str]) -> Vec<String> {
        if self.one_in(4) {
            return vec!["*".to_owned()];
        }
        (0..=self.below(2)).map(|_| self.one(of).to_owned()).collect()
    }

    fn subject(&mut self) -> Subject {
        let mut subject = Subject { kind: SubjectKind::User, user: None, group: None, service_account: None };
        let name = |all: bool, name: &str| if all { "*".to_owned() } else { name.to_owned() };
        match self.below(3) {
            0 => subject.user = Some(UserSubject { name: name(self.one_in(6), self.one(&USERS[..4])) }),
            1 => {
                subject.kind = SubjectKind::Group;
                subject.group = Some(GroupSubject { name: name(self.one_in(6), self.one(&GROUPS)) });
            }
            _ => {
                let namespace = self.one(&["a", "b"]).to_owned();
                let account = ServiceAccountSubject { namespace, name: name(self.one_in(2), "x") };
                (subject.kind, subject.service_account) = (SubjectKind::ServiceAccount, Some(account));
            }
        }
        subject
    }

    fn rule(&mut self) -> PolicyRulesWithSubjects {
        let subjects = (0..=self.below(2)).map(|_| self.subject()).collect();
        let resource_rules = (0..self.below(3)).map(|_| {
            let resources =
                if self.one_in(3) { vec!["pods/log".to_owned(), "pods".to_owned()] } else { self.some(&RESOURCES) };
            let cluster_scope = self.one_in(2);
            let namespaces = if cluster_scope && self.one_in(2) { Vec::new() } else { self.some(&NAMESPACES[1..]) };
            let (verbs, api_groups) = (self.some(&VERBS), self.some(&API_GROUPS));
            ResourcePolicyRule { verbs, api_groups, resources, cluster_scope, namespaces }
        });
        let resource_rules = resource_rules.collect();
        let non_resource_rules = (0..self.below(3))
            .map(|_| NonResourcePolicyRule { verbs: self.some(&VERBS), non_resource_urls: self.some(&URLS) })
            .collect();
        PolicyRulesWithSubjects { subjects, resource_rules, non_resource_rules }
    }

    fn schema(&mut self, number: usize) -> FlowSchema {
        let level = if self.one_in(3) { "exempt" } else { "catch-all" };
        let mut schema = FlowSchema::builder(&*format!("schema-{number}")).priority_level(level).build();
        schema.spec.matching_precedence = i32::try_from(self.below(9) * 1000 + 2).unwrap_or(2);
        schema.spec.rules = (0..=self.below(3)).map(|_| self.rule()).collect();
        schema
    }

    pub fn user(&mut self) -> User {
        let groups: Vec<&str> = GROUPS.into_iter().filter(|_| self.one_in(3)).collect();
        User::new(self.one(&USERS), groups)
    }

    pub fn request(&mut self) -> RequestInfo<'static> {
        let verb = self.one(&VERBS).into();
        if self.one_in(3) {
            return RequestInfo { verb, path: self.one(&PATHS).into(), ..RequestInfo::default() };
        }
        RequestInfo {
            is_resource_request: true,
            verb,
            api_group: self.one(&API_GROUPS).into(),
            resource: self.one(&RESOURCES).into(),
            subresource: self.one(&SUBRESOURCES).into(),
            namespace: self.one(&NAMESPACES).into(),
            ..RequestInfo::default()
        }
    }
}

// === impl Configured ===

impl Configured {
    /// Up to that many flow schemas, with the mandatory ones.
    pub fn new(random: &mut Random, schemas_max: usize) -> Self {
        let mut schemas: Vec<FlowSchema> =
            (0..=random.below(schemas_max)).map(|number| random.schema(number)).collect();
        let flow_schemas = schemas.iter().cloned().map(Arc::new).collect();
        let objects = Objects { flow_schemas, priority_levels: Vec::new() };
        let flow =
            FlowControl::builder().kubernetes().server_concurrency(100).drive_by_hand().stored_objects(objects).build();
        schemas.extend(["exempt", "catch-all"].into_iter().filter_map(bootstrap::mandatory_flow_schema).cloned());
        schemas.sort_by(match_order);
        let classifier = Classifier::compile(&schemas);
        Self { flow, schemas, classifier }
    }

    /// What is not true of the explanation of a request, if anything is not.
    pub fn fault(&self, user: &User, request: &RequestInfo<'_>) -> Option<String> {
        let attributes = Attributes { user, request };
        let explained = self.flow.explain(attributes, WorkEstimate::ONE_SEAT);
        let Explanation { flow_schema, tried, matched, .. } = &explained;
        let fault = |what: String| Some(format!("{what}: {user:?} {request:?}: {explained:?}"));
        let index = self.classifier.classify(attributes).map(SchemaIndex::get);
        let winner = index.map_or("catch-all", |index| self.schemas[index].name());
        if flow_schema != winner {
            return fault(format!("{winner} wins"));
        }
        if matched.is_some() != index.is_some() {
            return fault("the clause that matched".to_owned());
        }
        let place = self.schemas.iter().position(|schema| schema.name() == winner);
        let before = self.schemas.iter().take(place.unwrap_or(0)).map(FlowSchema::name);
        if !before.eq(tried.iter().map(|tried| tried.schema.as_str())) {
            return fault("the order".to_owned());
        }
        // A path of a rule that matched ends in `]`, and one of a clause that did not has a name at its end.
        let wrong = tried.iter().find(|tried| tried.failed.ends_with(']'))?;
        fault(format!("{} matches", wrong.schema))
    }
}
