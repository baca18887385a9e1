//! Subscribers of `tracing` that look at the flow control when they are told something: nobody tells them under a lock.
#![cfg(feature = "tracing")]

use crate::service;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel::FlowControl;
use evenkeel::clock::ManualClock;
use evenkeel::debug::RequestColumns;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::controller::Objects;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use service::{assert_idle, attributes, objects, queuing, rejecting, user};

/// Looks at all that there is to see whenever it is told something.
struct Onlooker {
    flow: Option<FlowControl>,
    told: Arc<Mutex<Vec<String>>>,
}

/// The message of an event.
struct Message(String);

impl Subscriber for Onlooker {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if let Some(flow) = &self.flow {
            drop((flow.status(), flow.dump_requests(RequestColumns::WithDetails)));
        }
        let mut message = Message(String::new());
        event.record(&mut message);
        self.told.lock().expect("nobody panics").push(message.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Everything that there are events for: seats that are divided, a level that cannot be used, requests that wait, are
/// cancelled and are rejected.
fn course(flow: &FlowControl) {
    let mut all = objects([queuing("tenants", 10_000), rejecting("others", 5)]);
    let mut unusable = PriorityLevelConfiguration::clone(&all.priority_levels[0]);
    "unusable".clone_into(&mut unusable.metadata.name);
    unusable.spec.limited = None;
    all.priority_levels.push(Arc::new(unusable));
    flow.apply_stored(all);
    let (tenant, other) = (user("a", "tenants"), user("a", "others"));
    let one = |user| flow.arrive(attributes(user), WorkEstimate::ONE_SEAT);
    let permits = [one(&tenant), one(&other)];
    drop([one(&tenant), one(&other)]);
    drop(permits);
    flow.adjust();
}

#[test]
fn a_subscriber_may_look_at_the_flow_control() {
    let flow = FlowControl::builder().kubernetes().server_concurrency(1).manual_clock(ManualClock::new()).build();
    let told = Arc::default();
    let onlooker = Onlooker { flow: Some(flow.clone()), told: Arc::clone(&told) };
    let (done, is_done) = mpsc::channel();
    let looked_at = flow.clone();
    // A thread of its own, so that the test fails where it would hang.
    std::thread::spawn(move || {
        tracing::subscriber::with_default(onlooker, || course(&looked_at));
        let _ = done.send(());
    });
    is_done.recv_timeout(Duration::from_secs(60)).expect("the course ends");
    let told = told.lock().unwrap();
    for message in [
        "seats divided",
        "priority level ignored: it cannot be used",
        "request queued",
        "request left its queue without running",
        "request rejected",
    ] {
        assert!(told.iter().any(|one| one == message), "{message:?} is missing in {told:?}");
    }
    drop(told);
    assert_idle(&flow);
}

#[test]
fn objects_that_are_of_no_use_are_told_once() {
    let flow = FlowControl::builder().drive_by_hand().build();
    // Of several under the same objects, one warns.
    let beside = FlowControl::builder().drive_by_hand().without_object_warnings().build();
    let lost = |name: &str| {
        let schema = FlowSchema::builder(name).priority_level("nowhere");
        Arc::new(schema.rule(|r| r.user("*").everything()).build())
    };
    let warnings = |schemas: &[&str]| {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let objects = Objects { flow_schemas: schemas.iter().map(|name| lost(name)).collect(), ..Objects::default() };
        let onlooker = Onlooker { flow: None, told: Arc::clone(&told) };
        let report = tracing::subscriber::with_default(onlooker, || {
            flow.apply_stored(objects.clone());
            beside.apply_stored(objects)
        });
        assert_eq!(report.dangling.len(), schemas.len());
        let told = told.lock().unwrap();
        told.iter().filter(|one| one.contains("flow schema ignored")).count()
    };
    assert_eq!(warnings(&["one"]), 1);
    assert_eq!(warnings(&["one", "two"]), 1, "only the new one");
    assert_eq!(warnings(&["two"]), 0);
    assert_eq!(warnings(&["one", "two"]), 1);
}

#[test]
fn bm_2_annotations_that_are_not_understood_are_told_once() {
    let flow = FlowControl::builder().drive_by_hand().build();
    let warnings = |value: &str| {
        let mut all = objects([queuing("tenants", 10)]);
        let level = Arc::make_mut(&mut all.priority_levels[0]);
        level.metadata.annotations.insert("evenkeel.dev/queuing".to_owned(), value.to_owned());
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let onlooker = Onlooker { flow: None, told: Arc::clone(&told) };
        let report = tracing::subscriber::with_default(onlooker, || flow.apply(all).unwrap());
        let told = told.lock().unwrap();
        let told = told.iter().filter(|one| one.contains("annotation evenkeel.dev/queuing: invalid value")).count();
        (told, report.not_understood.len())
    };
    assert_eq!(warnings("perflow"), (1, 1));
    assert_eq!(warnings("perflow"), (0, 1), "it is known");
    assert_eq!(warnings("per-flow"), (0, 0));
    assert_eq!(warnings("perflow"), (1, 1));
}

#[cfg(feature = "check")]
#[test]
fn who_builds_it_is_told_of_objects_that_are_probably_not_meant_so() {
    let schema = |name: &str, precedence| {
        let schema = FlowSchema::builder(name).priority_level("tenants").matching_precedence(precedence);
        schema.rule(|r| r.group("staff").everything()).build()
    };
    let builder = FlowControl::builder().server_concurrency(100).drive_by_hand().objects(rejecting("tenants", 10));
    let everybody = FlowSchema::builder("everybody").priority_level("tenants").matching_precedence(9000);
    let everybody = everybody.rule(|r| r.user("*").everything()).build();
    let builder = builder.objects([schema("staff", 100), schema("never", 200), everybody]);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let onlooker = Onlooker { flow: None, told: Arc::clone(&told) };
    let flow = tracing::subscriber::with_default(onlooker, || builder.build());
    let told = told.lock().unwrap();
    let warned: Vec<_> = told.iter().filter(|one| one.contains("https://evenkeel.dev/docs/checks/")).collect();
    assert!(matches!(&*warned, [one] if one.contains("unreachable-schema")), "{told:?}");
    assert_eq!(flow.findings().iter().map(|finding| &*finding.object.name).collect::<Vec<_>>(), ["never"]);
    assert_eq!(FlowControl::builder().drive_by_hand().build().findings(), [], "the preset is as it is meant");
}

#[test]
fn who_builds_it_is_told_what_is_missing() {
    let told = |build: fn() -> FlowControl| {
        let told = Arc::default();
        tracing::subscriber::with_default(Onlooker { flow: None, told: Arc::clone(&told) }, build);
        let told: Vec<String> = told.lock().unwrap().clone();
        told
    };
    let is_in = |told: &[String], text: &str| told.iter().any(|one| one.contains(text));
    let unkept = told(|| FlowControl::builder().kubernetes().build());
    assert!(is_in(&unkept, "outside of a tokio runtime") && !is_in(&unkept, "no seats"), "{unkept:?}");
    let by_hand = told(|| FlowControl::builder().kubernetes().server_concurrency(0).drive_by_hand().build());
    assert!(!is_in(&by_hand, "outside of a tokio runtime") && is_in(&by_hand, "no seats"), "{by_hand:?}");
}
