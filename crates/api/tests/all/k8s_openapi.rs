//! Our `v1` types and those of the `k8s-openapi` crate mean the same and write the same JSON.

#![cfg(feature = "k8s-openapi")]

use crate::strategies;

use std::fmt::Debug;

use evenkeel_api::meta::Time;
use evenkeel_api::{AnyObject, Defaulted, bootstrap, v1};
use k8s_openapi::api::flowcontrol::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as k8s_meta;
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Takes out what the two write differently although it means the same.
fn without_known_differences(mut object: Value) -> Value {
    // Empty lists in places where the API always writes something: ours are `null` (API-9), theirs are `[]`, or
    // absent where their type is optional (`namespaces`).
    // `lastTransitionTime`: ours is `null` when unset (API-9), theirs is absent.
    drop_empty(&mut object);
    // The `type` of a condition: ours is left out when empty, as the API does outside of `spec` (API-10), theirs is
    // `""`.
    let conditions = object.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten().filter_map(Value::as_object_mut) {
        condition.retain(|name, value| name != "type" || value != "");
    }
    // `status`: ours is `{}` when there are no conditions (API-9), theirs is absent.
    if object["status"] == Value::Object(serde_json::Map::new()) {
        object.as_object_mut().unwrap().remove("status");
    }
    object
}

/// Takes members out that are `null` or an empty list; inside of lists they stay.
fn drop_empty(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null() && member.as_array().is_none_or(|list| !list.is_empty()));
            members.values_mut().for_each(drop_empty);
        }
        Value::Array(elements) => elements.iter_mut().for_each(drop_empty),
        _ => {}
    }
}

/// Checks that the two write the same, and that each reads what the other has written.
fn assert_same_json<Ours, Theirs>(ours: &Ours, theirs: &Theirs)
where
    Ours: Serialize + DeserializeOwned + PartialEq + Debug + Clone + From<Theirs>,
    Theirs: Serialize + DeserializeOwned + PartialEq + Debug + Clone,
{
    let (our_json, their_json) = (serde_json::to_value(ours).unwrap(), serde_json::to_value(theirs).unwrap());
    assert_eq!(without_known_differences(our_json.clone()), without_known_differences(their_json.clone()));
    assert_eq!(&serde_json::from_value::<Ours>(their_json).unwrap(), ours);
    // Theirs tells `null` from absent, which the conversion evens out.
    assert_eq!(&Ours::from(serde_json::from_value::<Theirs>(our_json).unwrap()), ours);
}

fn assert_same_object_json(object: AnyObject) {
    match object {
        AnyObject::FlowSchema(ours) => assert_same_json(&ours, &k8s::FlowSchema::from(ours.clone())),
        AnyObject::PriorityLevelConfiguration(ours) => {
            assert_same_json(&ours, &k8s::PriorityLevelConfiguration::from(ours.clone()));
        }
    }
}

#[test]
fn the_bootstrap_objects_are_written_the_same() {
    bootstrap::all().to_objects().for_each(assert_same_object_json);
}

proptest! {
    #[test]
    fn random_objects_are_written_the_same(object in strategies::any_object()) {
        assert_same_object_json(object);
    }

    #[test]
    fn a_flow_schema_survives_the_way_to_theirs_and_back(schema in strategies::flow_schema()) {
        let mut defaulted = schema.clone();
        defaulted.apply_defaults();
        prop_assert_eq!(v1::FlowSchema::from(k8s::FlowSchema::from(defaulted.clone())), defaulted);
        // Defaults are not needed for it: zeros and texts that are no choice are kept as they are.
        prop_assert_eq!(v1::FlowSchema::from(k8s::FlowSchema::from(schema.clone())), schema);
    }

    #[test]
    fn a_priority_level_survives_the_way_to_theirs_and_back(level in strategies::priority_level()) {
        let there_and_back = |level: &v1::PriorityLevelConfiguration| {
            v1::PriorityLevelConfiguration::from(k8s::PriorityLevelConfiguration::from(level.clone()))
        };
        let mut defaulted = level.clone();
        defaulted.apply_defaults();
        prop_assert_eq!(there_and_back(&defaulted), defaulted);
        prop_assert_eq!(there_and_back(&level), level);
    }

    #[test]
    fn what_means_nothing_to_the_api_is_evened_out_once(object in strategies::any_object()) {
        let AnyObject::FlowSchema(schema) = object else { return Ok(()) };
        let theirs = k8s::FlowSchema::from(schema);
        prop_assert_eq!(k8s::FlowSchema::from(v1::FlowSchema::from(theirs.clone())), theirs);
    }
}

#[test]
fn absent_and_empty_members_of_theirs_are_the_same_in_ours() {
    let absent = v1::FlowSchema::from(k8s::FlowSchema::default());
    // Read, since what is optional is another in every version of Kubernetes.
    let theirs: k8s::FlowSchema = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "", "labels": {}, "generation": 0, "namespace": "dropped", "selfLink": "dropped"},
        "spec": {"rules": [], "matchingPrecedence": 0, "priorityLevelConfiguration": {"name": ""}},
        "status": {"conditions": []},
    }))
    .unwrap();
    assert_eq!(v1::FlowSchema::from(theirs), absent);
    assert_eq!(absent, v1::FlowSchema::default());
}

#[test]
fn fractions_of_a_second_are_dropped_as_when_a_time_is_read() {
    for text in ["2024-01-02T03:04:05.9Z", "1969-12-31T23:59:58.1Z", "1970-01-01T00:00:00Z", "0000-01-01T00:00:00Z"] {
        let theirs = k8s_meta::Time(text.parse().unwrap());
        assert_eq!(Time::from(theirs), text.parse::<Time>().unwrap(), "{text}");
    }
}

#[test]
fn times_of_the_last_day_are_cut_off_at_the_end_of_theirs() {
    let last: Time = "9999-12-31T23:59:59Z".parse().unwrap();
    assert_eq!(k8s_meta::Time::from(last).0, Timestamp::MAX);
    assert_eq!(Time::from(k8s_meta::Time::from(last)).to_string(), "9999-12-30T22:00:00Z");
    assert_eq!(Time::from(k8s_meta::Time(Timestamp::MIN)).to_string(), "0000-01-01T00:00:00Z");
}

#[test]
fn lists_are_the_same() {
    let ours: v1::FlowSchemaList = v1::FlowSchemaList::builder()
        .resource_version("7")
        .continued("next", Some(3))
        .item(|s| s.name("batch").priority_level("workload-low"))
        .build();
    let theirs: k8s_openapi::List<k8s::FlowSchema> = ours.clone().into();
    assert_eq!(theirs.metadata.continue_.as_deref(), Some("next"));
    assert_eq!(theirs.items[0].metadata.name.as_deref(), Some("batch"));
    assert_eq!(v1::FlowSchemaList::from(theirs), ours);
    let ours = v1::PriorityLevelConfigurationList::default();
    let theirs: k8s_openapi::List<k8s::PriorityLevelConfiguration> = ours.clone().into();
    assert_eq!(v1::PriorityLevelConfigurationList::from(theirs), ours);
}
