//! Sixty-eight faults, each put into a configuration in which nothing is wrong: every one is found, at the object that has it.

use evenkeel_api::decode::{Document, Node, parse_yaml};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{AnyObject, Preset, Version};
use evenkeel_check::{
    Assumptions, Borrowing, Call, Checked, ClassificationTest, Endpoint, Expectation, Located, Report, Request, Rule,
    SourceLocation, check_all,
};

/// What a fault does to the good configuration.
enum Edit {
    /// Replaces a text.
    Replace(&'static str, &'static str),
    /// Adds a schema: name, level, precedence, a subject, and the rest of the rule.
    Schema(&'static str, &'static str, i32, &'static str, &'static str),
    /// Adds an object of that kind: its metadata and its specification.
    Object(&'static str, &'static str, &'static str),
    /// Declares a call.
    Call(&'static str, &'static str),
    /// Adds a test of a request of alice, in the group tenants: method, path, and the schema that is expected.
    Test(&'static str, &'static str, &'static str),
}

use Edit::{Object, Replace, Schema};

const LEVEL: &str = "PriorityLevelConfiguration";

/// The good configuration: metadata and specification of each object.
#[rustfmt::skip] // a table
const GOOD: [(&str, &str, &str); 7] = [
    (LEVEL, "{name: tenants}", "{type: Limited, limited: {nominalConcurrencyShares: 40, lendablePercent: 25, limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}}}"),
    (LEVEL, "{name: etl}", "{type: Limited, limited: {nominalConcurrencyShares: 20, lendablePercent: 50, limitResponse: {type: Queue, queuing: {queues: 128, handSize: 6, queueLengthLimit: 50}}}}"),
    (LEVEL, "{name: hooks}", "{type: Limited, limited: {nominalConcurrencyShares: 10, limitResponse: {type: Reject}}}"),
    ("FlowSchema", "{name: health}", "{priorityLevelConfiguration: {name: exempt}, matchingPrecedence: 10, rules: [{subjects: [{kind: User, user: {name: '*'}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/healthz, /livez]}]}]}"),
    ("FlowSchema", "{name: webhooks}", "{priorityLevelConfiguration: {name: hooks}, matchingPrecedence: 100, distinguisherMethod: {type: ByUser}, rules: [{subjects: [{kind: ServiceAccount, serviceAccount: {namespace: infra, name: webhook}}], resourceRules: [{verbs: [get], apiGroups: [''], resources: [secrets], namespaces: [infra]}]}]}"),
    ("FlowSchema", "{name: tenants-flow}", "{priorityLevelConfiguration: {name: tenants}, matchingPrecedence: 1000, distinguisherMethod: {type: ByUser}, rules: [{subjects: [{kind: Group, group: {name: tenants}}], nonResourceRules: [{verbs: [get, delete], nonResourceURLs: [/orders, /carts/*]}]}]}"),
    ("FlowSchema", "{name: etl-flow}", "{priorityLevelConfiguration: {name: etl}, matchingPrecedence: 2000, distinguisherMethod: {type: ByNamespace}, rules: [{subjects: [{kind: User, user: {name: loader}}], resourceRules: [{verbs: [create, get], apiGroups: [batch], resources: [jobs, jobs/status], namespaces: [night, day]}]}]}"),
];

const EVERY_RESOURCE: &str =
    "resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]";
const EVERYTHING: &str = "nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}], \
                          resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true}]";

#[rustfmt::skip] // a table
const FAULTS: [(Edit, Rule, &str); 68] = [
    // One object is wrong in itself.
    (Replace("matchingPrecedence: 1000", "matchingPrecedence: 10001"), Rule::InvalidObject, "tenants-flow"),
    (Replace("matchingPrecedence: 1000", "matchingPrecedence: -5"), Rule::InvalidObject, "tenants-flow"),
    (Replace("matchingPrecedence: 100,", "matchingPrecedence: 1,"), Rule::InvalidObject, "webhooks"),
    (Replace("type: ByNamespace", "type: ByTenant"), Rule::InvalidObject, "etl-flow"),
    (Replace("queues: 64, handSize: 6", "queues: 64, handSize: 65"), Rule::InvalidObject, "tenants"),
    (Replace("lendablePercent: 25", "lendablePercent: 125"), Rule::InvalidObject, "tenants"),
    (Replace("nominalConcurrencyShares: 10", "nominalConcurrencyShares: -10"), Rule::InvalidObject, "hooks"),
    (Replace("{type: Reject}", "{type: Drop}"), Rule::InvalidObject, "hooks"),
    (Replace("verbs: [get, delete]", "verbs: [get, post]"), Rule::InvalidObject, "tenants-flow"),
    (Replace("[/orders, /carts/*]", "[orders]"), Rule::InvalidObject, "tenants-flow"),
    (Replace("[/orders, /carts/*]", "[/orders/*/lines]"), Rule::InvalidObject, "tenants-flow"),
    (Replace("[/orders, /carts/*]", "['*', /orders]"), Rule::InvalidObject, "tenants-flow"),
    (Replace("namespaces: [night, day]", "namespaces: []"), Rule::InvalidObject, "etl-flow"),
    (Replace("{kind: Group, group: {name: tenants}}", "{kind: Group, user: {name: tenants}}"), Rule::InvalidObject, "tenants-flow"),
    (Replace("namespace: infra, name: webhook", "namespace: infra, name: webhook, account: x"), Rule::InvalidObject, "webhooks"),
    (Object("FlowSchema", "{name: etl-flow}", "{priorityLevelConfiguration: {name: etl}, rules: []}"), Rule::InvalidObject, "etl-flow"),
    // Requests that never arrive.
    (Schema("late", "hooks", 3000, "{kind: Group, group: {name: tenants}}", "nonResourceRules: [{verbs: [get], nonResourceURLs: [/orders/*]}]"), Rule::UnreachableSchema, "late"),
    (Schema("late", "hooks", 3000, "{kind: User, user: {name: loader}}", "resourceRules: [{verbs: [create], apiGroups: [batch], resources: [jobs], namespaces: [day]}]"), Rule::UnreachableSchema, "late"),
    (Schema("late", "hooks", 10, "{kind: User, user: {name: prober}}", "nonResourceRules: [{verbs: [get], nonResourceURLs: [/livez/ping]}]"), Rule::UnreachableSchema, "late"),
    (Schema("admins", "hooks", 20, "{kind: Group, group: {name: 'system:masters'}}", EVERYTHING), Rule::UnreachableSchema, "admins"),
    (Schema("accounts", "hooks", 50, "{kind: Group, group: {name: 'system:serviceaccounts:infra'}}", EVERY_RESOURCE), Rule::UnreachableSchema, "webhooks"),
    (Schema("accounts", "hooks", 50, "{kind: Group, group: {name: 'system:serviceaccounts'}}", EVERY_RESOURCE), Rule::UnreachableSchema, "webhooks"),
    (Schema("accounts", "hooks", 50, "{kind: ServiceAccount, serviceAccount: {namespace: infra, name: '*'}}", EVERY_RESOURCE), Rule::UnreachableSchema, "webhooks"),
    (Schema("accounts", "hooks", 50, "{kind: User, user: {name: 'system:serviceaccount:infra:webhook'}}", EVERY_RESOURCE), Rule::UnreachableSchema, "webhooks"),
    (Schema("everybody", "hooks", 500, "{kind: Group, group: {name: 'system:authenticated'}}", EVERY_RESOURCE), Rule::UnreachableSchema, "etl-flow"),
    (Schema("everybody", "hooks", 500, "{kind: User, user: {name: '*'}}", "nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/]}]"), Rule::UnreachableSchema, "tenants-flow"),
    (Object("FlowSchema", "{name: empty}", "{priorityLevelConfiguration: {name: hooks}, rules: []}"), Rule::UnreachableSchema, "empty"),
    (Replace("[/orders, /carts/*]", "[/orders, /carts/*]}, {verbs: [get], nonResourceURLs: [/healthz/etcd]"), Rule::UnreachableRule, "tenants-flow"),
    (Schema("deletes", "hooks", 500, "{kind: Group, group: {name: '*'}}", "nonResourceRules: [{verbs: [get, delete], nonResourceURLs: [/x]}]}, {subjects: [{kind: User, user: {name: prober}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/livez]}]"), Rule::UnreachableRule, "deletes"),
    (Schema("nights", "hooks", 3000, "{kind: User, user: {name: loader}}", "resourceRules: [{verbs: [get], apiGroups: [batch], resources: [jobs/status], namespaces: [night]}, {verbs: [get], apiGroups: [''], resources: [pods], namespaces: ['*']}]"), Rule::UnreachableRule, "nights"),
    (Schema("vips", "hooks", 1000, "{kind: Group, group: {name: vips}}", "nonResourceRules: [{verbs: [get], nonResourceURLs: [/carts/vip]}]"), Rule::PrecedenceTie, "vips"),
    (Schema("accounts", "hooks", 100, "{kind: Group, group: {name: 'system:serviceaccounts:infra'}}", "resourceRules: [{verbs: ['*'], apiGroups: [''], resources: [secrets], namespaces: ['*']}]"), Rule::PrecedenceTie, "webhooks"),
    (Schema("all", "hooks", 5000, "{kind: User, user: {name: '*'}}", EVERYTHING), Rule::CatchesEverything, "all"),
    (Schema("all", "hooks", 5000, "{kind: Group, group: {name: 'system:authenticated'}}", "nonResourceRules: [{verbs: ['*'], nonResourceURLs: [/]}], resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*']}]}, {subjects: [{kind: Group, group: {name: '*'}}], resourceRules: [{verbs: ['*'], apiGroups: ['*'], resources: ['*'], clusterScope: true, namespaces: []}]"), Rule::CatchesEverything, "all"),
    // Names that lead nowhere.
    (Replace("priorityLevelConfiguration: {name: tenants}", "priorityLevelConfiguration: {name: tenant}"), Rule::DanglingLevel, "tenants-flow"),
    (Replace("priorityLevelConfiguration: {name: hooks}", "priorityLevelConfiguration: {name: workload-low}"), Rule::DanglingLevel, "webhooks"),
    (Replace("priorityLevelConfiguration: {name: hooks}", "priorityLevelConfiguration: {name: tenants}"), Rule::UnusedLevel, "hooks"),
    (Object(LEVEL, "{name: spare}", "{type: Limited, limited: {nominalConcurrencyShares: 20, limitResponse: {type: Reject}}}"), Rule::UnusedLevel, "spare"),
    // The objects of the server.
    (Object(LEVEL, "{name: catch-all}", "{type: Limited, limited: {nominalConcurrencyShares: 50, limitResponse: {type: Reject}}}"), Rule::MandatoryEdited, "catch-all"),
    (Object("FlowSchema", "{name: exempt}", "{priorityLevelConfiguration: {name: exempt}, matchingPrecedence: 1, rules: []}"), Rule::MandatoryEdited, "exempt"),
    (Schema("service-accounts", "hooks", 9000, "{kind: Group, group: {name: 'system:serviceaccounts'}}", "nonResourceRules: [{verbs: [get], nonResourceURLs: [/version]}]"), Rule::SuggestedEdited, "service-accounts"),
    (Object(LEVEL, "{name: system, annotations: {apf.kubernetes.io/autoupdate-spec: 'true'}}", "{type: Limited, limited: {nominalConcurrencyShares: 20, limitResponse: {type: Reject}}}"), Rule::SuggestedEdited, "system"),
    // Flows.
    (Replace("matchingPrecedence: 1000, distinguisherMethod: {type: ByUser}, ", "matchingPrecedence: 1000, "), Rule::OneFlow, "tenants-flow"),
    (Replace("matchingPrecedence: 2000, distinguisherMethod: {type: ByNamespace}, ", "matchingPrecedence: 2000, "), Rule::OneFlow, "etl-flow"),
    (Replace("matchingPrecedence: 1000, distinguisherMethod: {type: ByUser}", "matchingPrecedence: 1000, distinguisherMethod: {type: ByNamespace}"), Rule::UselessDistinguisher, "tenants-flow"),
    (Replace("namespaces: [night, day]", "namespaces: [], clusterScope: true"), Rule::UselessDistinguisher, "etl-flow"),
    (Replace("queues: 64, handSize: 6", "queues: 16, handSize: 4"), Rule::HandCollision, "tenants"),
    (Replace("queues: 64, handSize: 6", "queues: 64, handSize: 1"), Rule::HandCollision, "tenants"),
    // Seats.
    (Replace("nominalConcurrencyShares: 40", "nominalConcurrencyShares: 3"), Rule::HandTooWide, "tenants"),
    (Replace("nominalConcurrencyShares: 20, lendablePercent: 50, limitResponse: {type: Queue, queuing: {queues: 128, handSize: 6", "nominalConcurrencyShares: 3, lendablePercent: 50, limitResponse: {type: Queue, queuing: {queues: 128, handSize: 8"), Rule::HandTooWide, "etl"),
    (Replace("nominalConcurrencyShares: 40", "nominalConcurrencyShares: 4000"), Rule::FewSeats, "hooks"),
    (Replace("nominalConcurrencyShares: 40", "nominalConcurrencyShares: 40000"), Rule::ZeroSeats, "etl"),
    (Replace("nominalConcurrencyShares: 10", "nominalConcurrencyShares: 0"), Rule::RejectJail, "hooks"),
    (Replace("queues: 128, handSize: 6, queueLengthLimit: 50", "queues: 128, handSize: 6, queueLengthLimit: 500"), Rule::Bufferbloat, "etl"),
    (Replace("queues: 128, handSize: 6", "queues: 10000000, handSize: 2"), Rule::ManyQueues, "etl"),
    (Replace("lendablePercent: 50", "lendablePercent: 100"), Rule::LendsEverything, "etl"),
    (Replace("nominalConcurrencyShares: 10", "nominalConcurrencyShares: 0"), Rule::ZeroSharesLost, "hooks"),
    // Calls, annotations, tests.
    (Edit::Call("tenants-flow", "tenants-flow"), Rule::Inversion, "tenants-flow"),
    (Edit::Call("webhooks", "etl-flow"), Rule::Inversion, "etl-flow"),
    (Replace("{name: etl}, spec: {type: Limited", "{name: etl, annotations: {evenkeel.dev/queuing: each}}, spec: {type: Limited"), Rule::UnknownAnnotation, "etl"),
    (Replace("{name: health}", "{name: health, annotations: {evenkeel.dev/ignore: 'one-flow,no-such-rule'}}"), Rule::UnknownAnnotation, "health"),
    (Replace("{name: etl}, spec: {type: Limited", "{name: etl, annotations: {evenkeel.dev/newcomer-seats: '3'}}, spec: {type: Limited"), Rule::UselessAnnotation, "etl"),
    (Replace("{name: hooks}, spec: {type: Limited", "{name: hooks, annotations: {evenkeel.dev/queuing: per-flow, evenkeel.dev/flow-seats-max: '50%'}}, spec: {type: Limited"), Rule::UselessAnnotation, "hooks"),
    (Replace("{name: tenants-flow}", "{name: tenants-flow, annotations: {evenkeel.dev/flow-weight: '2'}}"), Rule::UselessAnnotation, "tenants-flow"),
    (Replace("{name: tenants-flow}", "{name: tenants-flow, annotations: {evenkeel.dev/rate: 7000/s}}"), Rule::RateUnreachable, "tenants-flow"),
    (Replace("{name: tenants-flow}", "{name: tenants-flow, annotations: {evenkeel.dev/rate: 100000/m, evenkeel.dev/seats: '7'}}"), Rule::RateUnreachable, "tenants-flow"),
    (Replace("{name: etl}, spec: {type: Limited", "{name: etl, annotations: {evenkeel.dev/revocable: 'true'}}, spec: {type: Limited"), Rule::RevocableInVain, "etl"),
    (Edit::Test("GET", "/healthz", "tenants-flow"), Rule::ClassificationTest, "a-test"),
];

fn document((kind, metadata, spec): (&str, &str, &str)) -> String {
    format!("{{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: {kind}, metadata: {metadata}, spec: {spec}}}")
}

fn located(node: &Node) -> Located<'_> {
    let whole = Document { root: node.clone(), duplicates: Vec::new(), format: evenkeel_api::decode::Format::Yaml };
    let (object, unknown): (AnyObject, _) = match node.get("kind").and_then(Node::as_str) {
        Some("FlowSchema") => {
            let decoded = whole.decode::<FlowSchemaSpec>(Version::V1).expect("a flow schema");
            (decoded.object.into(), decoded.dropped)
        }
        _ => {
            let decoded = whole.decode::<PriorityLevelConfigurationSpec>(Version::V1).expect("a level");
            (decoded.object.into(), decoded.dropped)
        }
    };
    let faults = unknown.unknown().iter().map(|unknown| (unknown.at, format!("{}: unknown field", unknown.path)));
    Located { object, version: Version::V1, file: "objects.yaml", tree: Some(node), faults: faults.collect() }
}

fn report(text: &str, calls: &[Call], tests: &[ClassificationTest]) -> Report {
    let documents = parse_yaml(text.as_bytes()).expect("YAML");
    let objects: Vec<Located<'_>> = documents.iter().map(|document| located(&document.root)).collect();
    check_all(Checked { objects: &objects, calls, tests }, &Assumptions::default())
}

fn good() -> String {
    GOOD.map(document).join("\n---\n")
}

#[test]
fn nothing_is_wrong_with_the_good_configuration() {
    assert_eq!(report(&good(), &[], &[]), Report::default());
}

/// TL-10
#[test]
fn every_fault_is_found() {
    let mut missed = Vec::new();
    for (number, (edit, rule, object)) in FAULTS.iter().enumerate() {
        let good = good();
        let (mut text, mut calls, mut tests) = (good.clone(), Vec::new(), Vec::new());
        match edit {
            Replace(from, to) => text = good.replacen(from, to, 1),
            Object(kind, metadata, spec) => text += &format!("\n---\n{}", document((kind, metadata, spec))),
            Schema(name, level, precedence, subject, rest) => {
                let spec = format!(
                    "{{priorityLevelConfiguration: {{name: {level}}}, matchingPrecedence: {precedence}, \
                     distinguisherMethod: {{type: ByUser}}, rules: [{{subjects: [{subject}], {rest}}}]}}"
                );
                text += &format!("\n---\n{}", document(("FlowSchema", &format!("{{name: {name}}}"), &spec)));
            }
            Edit::Call(outer, inner) => {
                let end = |name: &str| Endpoint::FlowSchema(name.to_owned());
                calls.push(Call { caller: end(outer), callee: end(inner), place: SourceLocation::default() });
            }
            Edit::Test(method, path, schema) => tests.push(ClassificationTest {
                name: "a-test".to_owned(),
                request: Request {
                    user: "alice".to_owned(),
                    groups: vec!["tenants".to_owned(), "system:authenticated".to_owned()],
                    method: Some((*method).to_owned()),
                    path: Some((*path).to_owned()),
                    ..Request::default()
                },
                expect: Expectation { schema: Some((*schema).to_owned()), ..Expectation::default() },
                place: SourceLocation::default(),
            }),
        }
        assert!(text != good || !calls.is_empty() || !tests.is_empty(), "fault {number} changes nothing");
        let report = report(&text, &calls, &tests);
        let is_found = |finding: &&evenkeel_check::Finding| finding.rule == *rule && finding.object.name == *object;
        match report.findings.iter().find(is_found) {
            Some(finding) => {
                assert!(!finding.message.is_empty() && !finding.help.is_empty());
                let has_place = finding.place.at.is_some_and(|at| at.line > 0);
                assert!(has_place || !calls.is_empty() || !tests.is_empty(), "fault {number}: {finding:?}");
            }
            None => missed.push((number, rule, object, report)),
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

/// An annotation silences a rule for its object, and for no other (TL-15).
#[test]
fn objects_can_be_silenced() {
    let text = good().replacen("lendablePercent: 50", "lendablePercent: 100", 1);
    let rules =
        |text: &str| report(text, &[], &[]).findings.into_iter().map(|finding| finding.rule).collect::<Vec<_>>();
    assert_eq!(rules(&text), [Rule::LendsEverything]);
    let silent = text.replacen(
        "{name: etl}, spec: {type",
        "{name: etl, annotations: {evenkeel.dev/ignore: 'one-flow, lends-everything'}}, spec: {type",
        1,
    );
    assert_eq!(rules(&silent), []);
    let other = text.replacen(
        "{name: tenants}, spec: {type",
        "{name: tenants, annotations: {evenkeel.dev/ignore: lends-everything}}, spec: {type",
        1,
    );
    assert_eq!(rules(&other), [Rule::LendsEverything]);
}

/// LM-7: others have to be able to wait for seats of the level.
#[test]
fn revocable_levels_are_accused_where_no_request_can_ever_end() {
    let in_vain = |edits: &[(&str, &str)], borrowing: Borrowing| {
        let revocable = "{name: etl, annotations: {evenkeel.dev/revocable: 'true'}}, spec: {type: Limited";
        let text = good().replacen("{name: etl}, spec: {type: Limited", revocable, 1);
        let text = edits.iter().fold(text, |text, (from, to)| text.replacen(from, to, 1));
        let documents = parse_yaml(text.as_bytes()).expect("YAML");
        let objects: Vec<Located<'_>> = documents.iter().map(|document| located(&document.root)).collect();
        let assumptions = Assumptions { borrowing, ..Assumptions::default() };
        let report = check_all(Checked { objects: &objects, ..Checked::default() }, &assumptions);
        let found = report.findings.into_iter().find(|finding| finding.rule == Rule::RevocableInVain);
        found.map(|finding| finding.message.rsplit(": ").next().unwrap_or_default().to_owned())
    };
    let (keeps, nobody_lends) = (("lendablePercent: 50", "borrowingLimitPercent: 0"), ("lendablePercent: 25, ", ""));
    assert_eq!(in_vain(&[], Borrowing::Immediate), None);
    assert_eq!(in_vain(&[("lendablePercent: 50, ", "")], Borrowing::Immediate), None, "it borrows what tenants lend");
    let why = |edits: &[(&str, &str)], borrowing| in_vain(edits, borrowing).expect("a finding");
    assert!(why(&[], Borrowing::Periodic).contains("from time to time"));
    assert!(why(&[keeps], Borrowing::Immediate).starts_with("it keeps all"));
    assert!(why(&[nobody_lends], Borrowing::Immediate).starts_with("no other level lends"));
}

/// The same annotations where they mean something.
#[test]
fn annotations_about_flows_are_at_home_in_levels_that_queue_per_flow() {
    let seats = "evenkeel.dev/newcomer-seats: '3', evenkeel.dev/flow-seats-max: '50%'";
    let annotated = |queuing: &str| {
        let level = format!("{{name: tenants, annotations: {{{queuing}{seats}}}}}, spec: {{type");
        let schema = "{name: tenants-flow, annotations: {evenkeel.dev/flow-weight: '2'}}";
        good().replacen("{name: tenants}, spec: {type", &level, 1).replacen("{name: tenants-flow}", schema, 1)
    };
    let found = report(&annotated(""), &[], &[]).findings;
    let messages: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
    let why = "has no effect: the level does not queue per flow";
    assert_eq!(
        messages,
        [
            format!("annotation evenkeel.dev/newcomer-seats {why}").as_str(),
            &format!("annotation evenkeel.dev/flow-seats-max {why}"),
            "annotation evenkeel.dev/flow-weight has no effect: the level \"tenants\" does not queue per flow",
        ]
    );
    assert_eq!(report(&annotated("evenkeel.dev/queuing: per-flow, "), &[], &[]), Report::default());
}

/// What the server has by itself is not accused, whatever it says (TL-13).
#[test]
fn nothing_is_found_in_the_objects_of_the_server() {
    for preset in evenkeel_api::Preset::ALL {
        let objects: Vec<_> = preset.objects().to_objects().map(Located::without_place).collect();
        let report = evenkeel_check::check(&objects, &Assumptions { preset, ..Assumptions::default() });
        assert_eq!(report, Report::default(), "{preset}");
    }
}

/// Whatever release a cluster has or had, what its servers have made is not accused, and under another release neither.
#[test]
fn stock_objects_of_any_release_are_not_accused() {
    use evenkeel_api::bootstrap::{self, KubernetesVersion};
    for made_by in KubernetesVersion::all() {
        let suggested = bootstrap::suggested_by(made_by).to_objects();
        let objects: Vec<_> =
            bootstrap::mandatory().to_objects().chain(suggested).map(Located::without_place).collect();
        for kubernetes in KubernetesVersion::all() {
            for seats in [20, 600] {
                let assumptions = Assumptions { kubernetes, seats, ..Assumptions::default() };
                let report = evenkeel_check::check(&objects, &assumptions);
                assert_eq!(report.findings, [], "made by {made_by}, checked for {kubernetes}");
            }
        }
    }
    let edited = |kubernetes: &str| {
        let mut schema =
            bootstrap::suggested_by("1.33".parse().unwrap()).flow_schema("endpoint-controller").unwrap().clone();
        schema.spec.matching_precedence = 151;
        let levels = bootstrap::suggested().priority_levels.iter().cloned().map(Located::without_place);
        let objects: Vec<_> = levels.chain([Located::without_place(schema)]).collect();
        let assumptions = Assumptions { kubernetes: kubernetes.parse().unwrap(), ..Assumptions::default() };
        let report = evenkeel_check::check(&objects, &assumptions);
        report.findings.iter().any(|finding| finding.rule == Rule::SuggestedEdited)
    };
    assert!(edited("1.33") && !edited("1.34"), "from 1.34 on, nobody puts it back");
}

/// The seats that a request can take in its level, and the flows that can be there, are known.
#[test]
fn hands_are_judged_by_what_can_happen() {
    use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
    let found = |queues: u32, hand: u32, seats: u32, preset, users: &[&str]| {
        let level = PriorityLevelConfiguration::builder("shop").limited(|l| {
            l.shares(95).lendable_percent(10).queue(|q| {
                q.queues(i32::try_from(queues).unwrap()).hand_size(i32::try_from(hand).unwrap()).queue_length_limit(1)
            })
        });
        let mut schema = FlowSchema::builder("shop").priority_level("shop").matching_precedence(50).by_user();
        for user in users {
            schema = schema.rule(|r| match *user {
                "*" => r.group("system:authenticated").non_resource_urls(["/a"]).verbs(["get"]),
                user => r.user(user).non_resource_urls(["/a"]).verbs(["get"]),
            });
        }
        let objects = [Located::without_place(level.build()), Located::without_place(schema.build())];
        let assumptions = Assumptions { seats, preset, ..Assumptions::default() };
        let report = evenkeel_check::check(&objects, &assumptions);
        let mut rules: Vec<_> = report.findings.iter().map(|finding| finding.rule.name()).collect();
        rules.retain(|rule| ["few-seats", "hand-too-wide", "hand-collision"].contains(rule));
        rules.sort_unstable();
        rules
    };
    let (kubernetes, plain) = (Preset::Kubernetes, Preset::Plain);
    // WE-4: of 38 seats, a request takes 6 at most, and 5 of them are not all.
    assert_eq!(found(64, 5, 40, kubernetes, &["*"]), [""; 0]);
    assert_eq!(found(64, 5, 40, plain, &["*"]), ["hand-too-wide"]);
    assert_eq!(found(64, 6, 6, kubernetes, &["*"]), ["hand-too-wide"]);
    assert_eq!(found(64, 6, 6, kubernetes, &["alice"]), [""; 0], "there is nobody else");
    assert_eq!(found(64, 6, 6, plain, &["*"]), ["few-seats", "hand-too-wide"]);
    // 1 of 10 queues: with four heavy flows 34 %, with one 10 %, without others never.
    assert_eq!(found(10, 1, 600, kubernetes, &["*"]), ["hand-collision"]);
    assert_eq!(found(10, 1, 600, kubernetes, &["alice", "bob"]), ["hand-collision"]);
    assert_eq!(found(10, 1, 600, kubernetes, &["alice"]), [""; 0]);
    assert_eq!(found(20, 2, 600, kubernetes, &["*"]), ["hand-collision"]);
    assert_eq!(found(20, 2, 600, kubernetes, &["alice", "bob"]), [""; 0]);
}
