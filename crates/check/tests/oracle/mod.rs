//! Random configurations, and all requests that they can tell apart: what the analysis is held against.

use evenkeel_api::bootstrap::{self, CATCH_ALL, EXEMPT};
use evenkeel_api::v1::{
    FlowSchema, GroupSubject, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule,
    ServiceAccountSubject, Subject, SubjectKind, UserSubject,
};
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::{Attributes, RequestInfo, User};
use fastrand::Rng;

const VERBS: [&str; 3] = ["get", "list", "create"];
const API_GROUPS: [&str; 2] = ["", "apps"];
const RESOURCES: [&str; 3] = ["pods", "pods/status", "nodes"];
const NAMESPACES: [&str; 2] = ["a", "b"];
const METHODS: [&str; 2] = ["get", "delete"];
const URLS: [&str; 9] = ["*", "/", "/x", "/x/*", "/x/y", "/x/y/*", "/z/", "/*", "/x/y/w"];
const PATHS: [&str; 10] = ["/", "/o", "/x", "/x/", "/x/o", "/x/y", "/x/y/o", "/x/y/w", "/z", "/z/o"];
const USERS: [&str; 4] = ["alice", "bob", "system:anonymous", "system:serviceaccount:a:one"];
const GROUPS: [&str; 3] = ["dev", "ops", "system:masters"];
const SPECIAL_GROUPS: [&str; 4] =
    ["system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:serviceaccounts:a"];

/// Schemas in match order, and the engine's classifier for them.
pub(crate) struct Server {
    pub(crate) schemas: Vec<FlowSchema>,
    classifier: Classifier,
}

/// Some of the entries, at least one; now and then `*` for all.
fn some(rng: &mut Rng, entries: &[&str]) -> Vec<String> {
    if rng.u8(..3) == 0 {
        return vec!["*".to_owned()];
    }
    let mut chosen: Vec<String> = entries.iter().filter(|_| rng.bool()).map(|entry| (*entry).to_owned()).collect();
    if chosen.is_empty() {
        chosen.extend(rng.choice(entries).map(|entry| (*entry).to_owned()));
    }
    chosen
}

fn subject(rng: &mut Rng) -> Subject {
    let one_of = |rng: &mut Rng, names: &[&str]| rng.choice(names).map_or(String::new(), |name| (*name).to_owned());
    match rng.u8(..8) {
        0 => Subject { kind: SubjectKind::User, user: Some(UserSubject { name: "*".into() }), ..Subject::default() },
        1 | 2 => Subject {
            kind: SubjectKind::User,
            user: Some(UserSubject { name: one_of(rng, &USERS) }),
            ..Subject::default()
        },
        3 | 4 => {
            let group = Some(GroupSubject { name: one_of(rng, &GROUPS) });
            Subject { kind: SubjectKind::Group, group, ..Subject::default() }
        }
        5 => {
            let group = Some(GroupSubject { name: one_of(rng, &SPECIAL_GROUPS) });
            Subject { kind: SubjectKind::Group, group, ..Subject::default() }
        }
        6 => Subject { kind: SubjectKind::Group, group: Some(GroupSubject { name: "*".into() }), ..Subject::default() },
        _ => {
            let (namespace, name) = (one_of(rng, &NAMESPACES), one_of(rng, &["one", "two", "*"]));
            let service_account = Some(ServiceAccountSubject { namespace, name });
            Subject { kind: SubjectKind::ServiceAccount, service_account, ..Subject::default() }
        }
    }
}

fn resource_rule(rng: &mut Rng) -> ResourcePolicyRule {
    let cluster_scope = rng.bool();
    let namespaces = if cluster_scope && rng.u8(..4) == 0 { Vec::new() } else { some(rng, &NAMESPACES) };
    ResourcePolicyRule {
        verbs: some(rng, &VERBS),
        api_groups: some(rng, &API_GROUPS),
        resources: some(rng, &RESOURCES),
        cluster_scope,
        namespaces,
    }
}

fn path_rule(rng: &mut Rng) -> NonResourcePolicyRule {
    let mut non_resource_urls = some(rng, &URLS);
    // `*` must be alone in its list.
    if non_resource_urls.len() > 1 {
        non_resource_urls.retain(|url| url != "*");
    }
    NonResourcePolicyRule { verbs: some(rng, &METHODS), non_resource_urls }
}

/// A schema. It leads to a level that is always there.
pub(crate) fn schema(rng: &mut Rng, name: &str) -> FlowSchema {
    let mut schema = FlowSchema::default();
    name.clone_into(&mut schema.metadata.name);
    let level = if rng.bool() { EXEMPT } else { CATCH_ALL };
    level.clone_into(&mut schema.spec.priority_level_configuration.name);
    schema.spec.matching_precedence = rng.i32(2..9);
    for _ in 0..rng.usize(1..3) {
        let mut rule = PolicyRulesWithSubjects::default();
        rule.subjects.extend((0..rng.usize(1..3)).map(|_| subject(rng)));
        let resources = rng.usize(0..3);
        rule.resource_rules.extend((0..resources).map(|_| resource_rule(rng)));
        let paths = rng.usize(usize::from(resources == 0)..3);
        rule.non_resource_rules.extend((0..paths).map(|_| path_rule(rng)));
        schema.spec.rules.push(rule);
    }
    if rng.u8(..10) == 0 {
        let everything = FlowSchema::builder(name).priority_level(level);
        schema.spec.rules = everything.rule(|r| r.group("system:authenticated").everything()).build().spec.rules;
    }
    schema
}

pub(crate) fn schemas(rng: &mut Rng) -> Vec<FlowSchema> {
    (0..rng.usize(1..9)).map(|number| schema(rng, &format!("s{number}"))).collect()
}

/// Everybody who can send requests, with every combination of ordinary groups.
pub(crate) fn callers() -> Vec<User> {
    let mut callers = vec![User::new("system:anonymous", ["system:unauthenticated"])];
    for bits in 0_u8..16 {
        let others = ["dev", "ops", "system:masters", "others"];
        let extra = others.iter().enumerate().filter(|(bit, _)| bits & 1 << bit != 0);
        let extra: Vec<String> = extra.map(|(_, group)| (*group).to_owned()).collect();
        let with = |groups: &[&str]| {
            extra.iter().cloned().chain(groups.iter().map(|group| (*group).to_owned())).collect::<Vec<_>>()
        };
        for name in ["alice", "bob", "carol"] {
            callers.push(User::new(name, with(&["system:authenticated"])));
        }
        let accounts =
            ["a", "b"].into_iter().flat_map(|namespace| ["one", "two", "three"].map(|name| (namespace, name)));
        for (namespace, account) in accounts.chain([("c", "four")]) {
            let own = format!("system:serviceaccounts:{namespace}");
            let groups = ["system:authenticated", "system:serviceaccounts", &own];
            let name = format!("system:serviceaccount:{namespace}:{account}");
            callers.push(User::new(name, with(&groups)));
        }
    }
    callers
}

/// Every request that the rules can tell apart, and some that they cannot.
pub(crate) fn requests() -> Vec<RequestInfo<'static>> {
    let mut requests = Vec::new();
    for verb in VERBS.into_iter().chain(["watch"]) {
        for api_group in API_GROUPS.into_iter().chain(["example.com"]) {
            for resource in RESOURCES.into_iter().chain(["jobs"]) {
                for namespace in NAMESPACES.into_iter().chain(["", "c"]) {
                    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                    requests.push(RequestInfo {
                        is_resource_request: true,
                        verb: verb.into(),
                        api_group: api_group.into(),
                        resource: resource.into(),
                        subresource: subresource.into(),
                        namespace: namespace.into(),
                        ..RequestInfo::default()
                    });
                }
            }
        }
    }
    for verb in METHODS.into_iter().chain(["put"]) {
        requests.extend(PATHS.iter().map(|path| RequestInfo {
            verb: verb.into(),
            path: (*path).into(),
            ..RequestInfo::default()
        }));
    }
    requests
}

// === impl Server ===

impl Server {
    pub(crate) fn new(mut schemas: Vec<FlowSchema>) -> Self {
        schemas.sort_by(match_order);
        let [exempt, catch_all] =
            [EXEMPT, CATCH_ALL].map(|name| bootstrap::mandatory_flow_schema(name).expect("it is mandatory"));
        schemas.insert(0, exempt.clone());
        schemas.push(catch_all.clone());
        let classifier = Classifier::compile(&schemas);
        Self { schemas, classifier }
    }

    pub(crate) fn classify(&self, user: &User, request: &RequestInfo<'_>) -> usize {
        self.classifier.classify(Attributes { user, request }).expect("catch-all matches").get()
    }
}

/// Whether a rule matches a request, as the specification has it (FM-3).
pub(crate) fn rule_matches(rule: &PolicyRulesWithSubjects, user: &User, request: &RequestInfo<'_>) -> bool {
    rule.subjects.iter().any(|subject| subject_matches(subject, user))
        && (rule.resource_rules.iter().any(|rule| resource_rule_matches(rule, request))
            || rule.non_resource_rules.iter().any(|rule| path_rule_matches(rule, request)))
}

fn subject_matches(subject: &Subject, user: &User) -> bool {
    match (&subject.user, &subject.group, &subject.service_account) {
        (Some(named), _, _) => named.name == "*" || *named.name == *user.name,
        (_, Some(named), _) => named.name == "*" || user.groups.iter().any(|group| **group == *named.name),
        (_, _, Some(account)) => {
            let prefix = format!("system:serviceaccount:{}:", account.namespace);
            user.name.strip_prefix(&*prefix).is_some_and(|name| account.name == "*" || account.name == name)
        }
        _ => false,
    }
}

fn in_list(text: &str, list: &[String]) -> bool {
    (list.len() == 1 && list[0] == "*") || list.iter().any(|entry| entry == text)
}

/// FM-11
pub(crate) fn resource_rule_matches(rule: &ResourcePolicyRule, request: &RequestInfo<'_>) -> bool {
    let resource = match &*request.subresource {
        "" => request.resource.to_string(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    request.is_resource_request
        && in_list(&request.verb, &rule.verbs)
        && in_list(&resource, &rule.resources)
        && in_list(&request.api_group, &rule.api_groups)
        && if request.namespace.is_empty() { rule.cluster_scope } else { in_list(&request.namespace, &rule.namespaces) }
}

/// FM-12, FM-13
pub(crate) fn path_rule_matches(rule: &NonResourcePolicyRule, request: &RequestInfo<'_>) -> bool {
    let covers = |entry: &String| {
        let mut prefix = entry.strip_suffix('*').unwrap_or(entry).to_owned();
        if !prefix.ends_with('/') {
            prefix.push('/');
        }
        entry == "*" || *entry == request.path || request.path.starts_with(&prefix)
    };
    !request.is_resource_request && in_list(&request.verb, &rule.verbs) && rule.non_resource_urls.iter().any(covers)
}
