//! The cost of tracking who owns which field, which is a part of every write.

#![allow(clippy::expect_used, reason = "a benchmark may panic")]

use std::hint::black_box;

use evenkeel_api::meta::Time;
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec, V1};
use evenkeel_api::{AnyObject, HubSpec, Object, Version, bootstrap};
use evenkeel_apiserver::managed_fields::{SentManagers, WriteTarget, Writer, created, differs, updated};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};

const BAR: Bar = Bar::AtMost(15.0, "µs");
const REPEATS: u32 = 100;

fn main() {
    let mut bars = Bars::default();
    let (schema, level) = objects();
    bars.add("a flow schema is created", create(&schema, Version::V1), "µs", BAR);
    bars.add("a priority level is created", create(&level, Version::V1), "µs", BAR);
    bars.add("a priority level is created in v1beta2", create(&level, Version::V1beta2), "µs", BAR);
    bars.add("a label of a flow schema is changed", label(&schema), "µs", BAR);
    bars.add("a label of a priority level is changed", label(&level), "µs", BAR);
    bars.print("Managed fields");
}

type Objects = (Object<V1, FlowSchemaSpec>, Object<V1, PriorityLevelConfigurationSpec>);

fn objects() -> Objects {
    let mut schema = None;
    let mut level = None;
    for object in bootstrap::all().to_objects() {
        match object {
            AnyObject::FlowSchema(object) if object.name() == "service-accounts" => schema = Some(object),
            AnyObject::PriorityLevelConfiguration(object) if object.name() == "workload-low" => level = Some(object),
            _ => {}
        }
    }
    (schema.expect("a flow schema"), level.expect("a priority level"))
}

fn writer(version: Version) -> Writer<'static> {
    Writer { manager: "bench", version, endpoint: WriteTarget::Object }
}

/// The time of one create, in microseconds, apart from that of the copy that it is made on.
fn create<S: HubSpec>(object: &Object<V1, S>, version: Version) -> f64 {
    let now = Time::from_unix_seconds(1_700_000_000);
    let copied = nanos_per_operation(REPEATS, || {
        for _ in 0..REPEATS {
            black_box(black_box(object).clone());
        }
    });
    let created = nanos_per_operation(REPEATS, || {
        for _ in 0..REPEATS {
            let mut object = black_box(object).clone();
            created(&mut object, writer(version), now);
            black_box(object);
        }
    });
    (created - copied) / 1e3
}

/// The time of one update of an object with two managers.
fn label<S: HubSpec>(object: &Object<V1, S>) -> f64 {
    let now = Time::from_unix_seconds(1_700_000_000);
    let mut old = object.clone();
    created(&mut old, Writer { manager: "creator", ..writer(Version::V1) }, now);
    let mut new = old.clone();
    new.metadata.labels.insert("team".to_owned(), "a".to_owned());
    updated(&old.clone(), &mut new, SentManagers::AsDecoded, writer(Version::V1), now);
    let old = new;
    let mut new = old.clone();
    new.metadata.labels.insert("team".to_owned(), "b".to_owned());
    let copied = nanos_per_operation(REPEATS, || {
        for _ in 0..REPEATS {
            black_box(black_box(&new).clone());
        }
    });
    let updated = nanos_per_operation(REPEATS, || {
        for _ in 0..REPEATS {
            let mut new = black_box(&new).clone();
            updated(&old, &mut new, SentManagers::AsDecoded, writer(Version::V1), now);
            assert!(differs(&old, &mut new));
            black_box(new);
        }
    });
    (updated - copied) / 1e3
}
