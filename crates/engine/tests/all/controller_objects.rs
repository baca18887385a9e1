//! What the controller makes of objects: levels that can be used, schemas in their order, and conditions (CC-1, CC-7 to
//! CC-12, CC-17, CC-18).

use crate::busy_engine;

use std::sync::Arc;

use busy_engine::{BusyEngine, Came, objects, queuing, rejecting, schema, with_queues};
use evenkeel_api::bootstrap;
use evenkeel_api::meta::Time;
use evenkeel_api::v1::{
    Condition, FlowSchema, LimitResponse, LimitResponseType, PriorityLevelConfiguration, PriorityLevelEnablement,
};
use evenkeel_engine::controller::{DANGLING, Dangling, Objects, Unusable};
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};

fn built_in_level(name: &str) -> PriorityLevelConfiguration {
    bootstrap::mandatory_priority_level(name).expect("it is built in").clone()
}

fn with_uid(mut schema: FlowSchema, uid: &str) -> FlowSchema {
    schema.metadata.uid = uid.into();
    schema
}

/// The names of the schema and the level that a user's request belongs to.
fn classify(server: &BusyEngine, user: &str) -> (String, String) {
    let (user, request) = (User::new(user, ["some-group"]), RequestInfo::default());
    let class = server.engine.classify(Attributes { user: &user, request: &request });
    (class.schema.name.to_string(), class.schema.level.name.to_string())
}

#[test]
fn cc_1_an_engine_starts_with_the_mandatory_objects_and_serves_at_once() {
    let mut server = BusyEngine::new(600);
    assert_eq!(server.names(), ["catch-all", "exempt"]);
    assert_eq!(server.schema_names(), ["exempt", "catch-all"]);
    let limits = ["catch-all", "exempt"].map(|name| {
        let level = server.control(name);
        (level.limits().nominal, level.current_limit(), level.seat_cap())
    });
    assert_eq!(limits, [(600, 600, None), (0, 0, None)]);
    let configuration = server.engine.configuration();
    assert!(configuration.schemas().iter().all(|schema| schema.uid.is_empty() && schema.level.uid.is_empty()));
    assert_eq!(classify(&server, "anybody"), ("catch-all".into(), "catch-all".into()));
    assert_eq!(server.arrive(server.id("catch-all"), 1, WorkEstimate::ONE_SEAT), Came::Started);
    assert_eq!(server.arrive(server.id("exempt"), 2, WorkEstimate::ONE_SEAT), Came::Started);
}

#[test]
fn cc_7_what_the_queue_set_of_each_level_is() {
    let queues = |name: &str, queues| with_queues(queuing(name), queues, 2);
    let mut server = BusyEngine::new(600);
    let levels = [
        built_in_level("exempt"),
        rejecting("rejects", 1),
        queues("few", 4),
        queues("none", 0),
        queues("negative", -1),
    ];
    server.apply(objects(&levels, &[]));
    for (name, mode) in [
        ("exempt", Mode::Exempt),
        ("rejects", Mode::Reject),
        ("few", Mode::queue(4, 2, 50).unwrap()),
        ("none", Mode::Reject),
        ("negative", Mode::Exempt),
    ] {
        assert_eq!(server.control(name).mode(), mode, "{name}");
        assert_eq!(server.view(name).queue_set.mode(), mode, "{name}");
    }
}

#[test]
fn cc_8_levels_that_cannot_be_used_and_why() {
    let change = |mut level: PriorityLevelConfiguration, change: fn(&mut PriorityLevelConfiguration)| {
        change(&mut level);
        level
    };
    let (limited, exempt) = (
        "spec.limited must be there if and only if spec.type is Limited",
        "spec.exempt must be there if and only if spec.type is Exempt",
    );
    let name = "spec.type must be Exempt if and only if the object is named exempt";
    let queuing_text =
        "spec.limited.limitResponse.queuing must be there unless spec.limited.limitResponse.type is Reject";
    let cases: [(PriorityLevelConfiguration, &str); 10] = [
        (change(queuing("a"), |level| level.spec.limited = None), limited),
        (change(built_in_level("exempt"), |level| level.spec.limited = rejecting("a", 1).spec.limited), limited),
        (change(built_in_level("exempt"), |level| level.spec.exempt = None), exempt),
        (change(queuing("a"), |level| level.spec.exempt = built_in_level("exempt").spec.exempt), exempt),
        (change(built_in_level("exempt"), |level| level.metadata.name = "a".to_owned()), name),
        (rejecting("exempt", 1), name),
        (change(queuing("a"), |level| response(level).queuing = None), queuing_text),
        (change(queuing("a"), |level| response(level).response = LimitResponseType::Reject), queuing_text),
        (
            with_queues(queuing("a"), 4, 5),
            "spec.limited.limitResponse.queuing: cannot deal hands of 5 from 4 queues: both must be positive, the hand \
             not larger than the deck, the deck not larger than 2^26, and deck^hand not larger than 2^60",
        ),
        (
            with_queues(queuing("a"), 1025, 6),
            "spec.limited.limitResponse.queuing: cannot deal hands of 6 from 1025 queues: both must be positive, the \
             hand not larger than the deck, the deck not larger than 2^26, and deck^hand not larger than 2^60",
        ),
    ];
    for (level, text) in cases {
        let mut server = BusyEngine::new(600);
        let report = server.apply(objects(std::slice::from_ref(&level), &[schema("s", level.name(), 500)]));
        let unusable: Vec<_> = report.unusable.iter().map(|(name, why)| (&**name, why.to_string())).collect();
        assert_eq!(unusable, [(level.name(), text.to_owned())], "{level:?}");
        assert_eq!(server.names(), ["catch-all", "exempt"]);
        assert_eq!(server.control("exempt").object(), &built_in_level("exempt"), "the built-in one stays in force");
        assert!(report.dangling[0].is_dangling);
    }
}

fn response(level: &mut PriorityLevelConfiguration) -> &mut LimitResponse {
    &mut level.spec.limited.as_mut().expect("limits").limit_response
}

#[test]
fn cc_8_one_level_that_cannot_be_used_does_not_hurt_the_others() {
    let mut broken = queuing("broken");
    broken.spec.enablement = PriorityLevelEnablement::Exempt;
    let mut server = BusyEngine::new(600);
    let report = server.apply(objects(&[broken, queuing("batch")], &[]));
    assert_eq!(report.unusable, [("broken".to_owned(), Unusable::Limited)]);
    assert_eq!(server.names(), ["batch", "catch-all", "exempt"]);
}

#[test]
fn cc_9_a_schema_needs_a_level_that_was_given_in_the_same_digest() {
    let schemas = [schema("to-batch", "batch", 300), schema("to-catch-all", "catch-all", 400)];
    let mut server = BusyEngine::new(1);
    let told = |dangling: &[Dangling]| dangling.iter().map(|told| told.is_dangling).collect::<Vec<_>>();

    let report = server.apply(objects(&[queuing("batch")], &schemas));
    assert_eq!(told(&report.dangling), [false, true], "the built-in level does not count");
    assert_eq!(server.schema_names(), ["exempt", "to-batch", "catch-all"]);

    server.arrive(server.id("batch"), 1, WorkEstimate::ONE_SEAT);
    let report = server.apply(objects(&[built_in_level("catch-all")], &schemas));
    assert!(server.control("batch").is_quiescing());
    assert_eq!(told(&report.dangling), [true, false], "a level on its way out does not count");
    assert_eq!(server.schema_names(), ["exempt", "to-catch-all", "catch-all"]);
}

#[test]
fn cc_10_schemas_are_used_as_they_are_given() {
    let mut odd = schema("odd", "batch", -5);
    odd.spec.rules.clear();
    let mut server = BusyEngine::new(1);
    server.apply(objects(&[queuing("batch")], &[schema("plain", "batch", 20_000), odd]));
    assert_eq!(server.schema_names(), ["exempt", "odd", "plain", "catch-all"]);
    assert_eq!(classify(&server, "alice").0, "plain", "a schema without rules matches nothing");
}

#[test]
fn cc_11_schemas_are_tried_in_ascending_order_of_precedence_and_then_of_name() {
    let given = [("b", 500), ("a", 500), ("Z", 500), ("last", 9_000), ("first", 2)];
    let schemas = given.map(|(name, precedence)| schema(name, "batch", precedence));
    let mut server = BusyEngine::new(1);
    server.apply(objects(&[queuing("batch")], &schemas));
    assert_eq!(server.schema_names(), ["exempt", "first", "Z", "a", "b", "last", "catch-all"]);
    assert_eq!(classify(&server, "alice").0, "first");
}

#[test]
fn cc_12_built_in_schemas_are_first_and_last() {
    let early = schema("early", "batch", 1);
    let late = schema("late", "batch", 10_001);
    let mut server = BusyEngine::new(1);
    server.apply(objects(&[queuing("batch")], &[late, early]));
    assert_eq!(server.schema_names(), ["exempt", "early", "late", "catch-all"]);
}

#[test]
fn cc_12_stored_mandatory_schemas_take_the_place_that_their_precedence_gives_them() {
    let levels = [queuing("batch"), built_in_level("exempt"), built_in_level("catch-all")];
    let nobody = |mut schema: FlowSchema| {
        schema.spec.rules.clear();
        schema
    };
    let schemas = [
        nobody(with_uid(schema("exempt", "exempt", 700), "uid-1")),
        nobody(with_uid(schema("catch-all", "batch", 600), "uid-2")),
        nobody(schema("other", "batch", 650)),
    ];
    let mut server = BusyEngine::new(1);
    server.apply(objects(&levels, &schemas));
    assert_eq!(server.schema_names(), ["catch-all", "other", "exempt"]);
    let uids: Vec<_> = server.engine.configuration().schemas().iter().map(|schema| schema.uid.to_string()).collect();
    assert_eq!(uids, ["uid-2", "", "uid-1"]);
    assert_eq!(classify(&server, "alice"), ("catch-all".into(), "batch".into()), "FM-4: it takes what matches none");
}

#[test]
fn cc_12_a_stored_schema_without_its_level_is_replaced_by_its_built_in_twin() {
    let stored = with_uid(schema("catch-all", "gone", 2), "uid-1");
    let mut server = BusyEngine::new(1);
    let report = server.apply(objects(&[queuing("batch")], &[stored, schema("s", "batch", 500)]));
    assert_eq!(server.schema_names(), ["exempt", "s", "catch-all"]);
    let configuration = server.engine.configuration();
    let twin = configuration.schemas().last().unwrap();
    assert_eq!((&*twin.uid, &*twin.level.name), ("", "catch-all"));
    assert!(report.dangling[0].is_dangling);
}

#[test]
fn cc_17_levels_and_schemas_take_effect_together() {
    let mut server = BusyEngine::new(1);
    let before = server.engine.configuration();
    server.apply(objects(&[queuing("batch")], &[schema("s", "batch", 500)]));
    let after = server.engine.configuration();
    assert!(!Arc::ptr_eq(&before, &after));
    assert_eq!(before.schemas().len(), 2, "who holds the old one goes on with the old one");
    let schema = after.schemas().iter().find(|schema| &*schema.name == "s").unwrap();
    assert_eq!((schema.level.id, schema.level.seat_cap()), (server.id("batch"), server.control("batch").seat_cap()));
    assert_eq!(server.arrive(schema.level.id, 1, WorkEstimate::ONE_SEAT), Came::Started);

    server.finish(1);
    server.apply(Objects::default());
    assert_eq!(server.arrive(schema.level.id, 2, WorkEstimate::ONE_SEAT), Came::Nowhere, "it is to classify again");
}

#[test]
fn cc_18_the_condition_of_every_schema_that_is_given() {
    let mut server = BusyEngine::new(1);
    let schemas = [schema("found", "batch", 500), schema("lost", r#"a "b" \c"#, 500)];
    let report = server.apply(objects(&[queuing("batch")], &schemas));
    let now = Time::from_unix_seconds(1_700_000_000);
    let conditions: Vec<_> = report.dangling.iter().map(|told| (&*told.schema, told.condition(now))).collect();
    let shown: Vec<_> = conditions.iter().map(|(name, c)| (*name, &*c.status, &*c.reason, &*c.message)).collect();
    let start = "This FlowSchema references the PriorityLevelConfiguration object named";
    let messages =
        [format!(r#"{start} "batch" and it exists"#), format!(r#"{start} "a \"b\" \\c" but there is no such object"#)];
    assert_eq!(
        shown,
        [("found", "False", "Found", &*messages[0]), ("lost", "True", "NotFound", &*messages[1])],
        "in the order in which they were given"
    );
    for (_, condition) in &conditions {
        assert_eq!((&*condition.condition, condition.last_transition_time), (DANGLING, Some(now)));
    }
}

#[test]
fn cc_18_nothing_is_written_if_the_status_says_so_already() {
    let dangling = |is_dangling| Dangling::new("s", "batch", is_dangling);
    let (found, lost) = (dangling(false), dangling(true));
    let mut object = schema("s", "batch", 500);
    assert!(!found.is_told_by(&object) && !lost.is_told_by(&object), "it has no condition yet");

    let mut other = found.condition(Time::from_unix_seconds(1));
    other.condition = "Other".to_owned();
    object.status.conditions = vec![other, found.condition(Time::from_unix_seconds(2))];
    assert!(found.is_told_by(&object) && !lost.is_told_by(&object), "whenever it began to hold");

    let changes: [fn(&mut Condition); 3] =
        [|told| told.status = "Unknown".into(), |told| told.reason = "Why".into(), |told| told.message.push('.')];
    for change in changes {
        let mut other = object.clone();
        change(&mut other.status.conditions[1]);
        assert!(!found.is_told_by(&other), "{:?}", other.status);
    }
}
