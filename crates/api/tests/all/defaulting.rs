//! The values that are filled in where an object says nothing (API-22 to API-27).

use crate::replay;
use crate::strategies;

use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{Defaulted, Wire, v1, v1beta1, v1beta2, v1beta3};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The specification with its defaults, as the version `W` reads and writes it.
fn with_defaults<W: Wire + Defaulted>(spec: &Value) -> Value {
    let mut object: W = serde_json::from_value(json!({"spec": spec})).unwrap();
    object.apply_defaults();
    serde_json::to_value(object).unwrap()["spec"].take()
}

/// The same for a priority level in all versions, the shares under the name `shares`.
fn level_in_every_version(spec: &Value) -> [Value; 4] {
    fn rename(value: &Value, from: &str, to: &str) -> Value {
        serde_json::from_str(&value.to_string().replace(from, to)).unwrap()
    }
    let nominal = rename(spec, "\"shares\"", "\"nominalConcurrencyShares\"");
    let mut assured = nominal.clone();
    if let Some(limited) = assured["limited"].as_object_mut()
        && let Some(shares) = limited.remove("nominalConcurrencyShares")
    {
        limited.insert("assuredConcurrencyShares".into(), shares);
    }
    [
        with_defaults::<v1::PriorityLevelConfiguration>(&nominal),
        with_defaults::<v1beta3::PriorityLevelConfiguration>(&nominal),
        with_defaults::<v1beta2::PriorityLevelConfiguration>(&assured),
        with_defaults::<v1beta1::PriorityLevelConfiguration>(&assured),
    ]
    .map(|spec| rename(&rename(&spec, "nominalConcurrencyShares", "shares"), "assuredConcurrencyShares", "shares"))
}

#[test]
fn api_22_a_precedence_of_zero_or_none_becomes_1000() {
    for (sent, stored) in
        [(json!({}), 1000), (json!({"matchingPrecedence": 0}), 1000), (json!({"matchingPrecedence": 7}), 7)]
    {
        for spec in [
            with_defaults::<v1::FlowSchema>(&sent),
            with_defaults::<v1beta3::FlowSchema>(&sent),
            with_defaults::<v1beta2::FlowSchema>(&sent),
            with_defaults::<v1beta1::FlowSchema>(&sent),
        ] {
            assert_eq!(spec["matchingPrecedence"], stored, "{sent}");
        }
    }
}

#[test]
fn api_23_queuing_has_defaults_for_what_is_zero_or_absent() {
    for (sent, stored) in [
        (json!({}), json!({"queues": 64, "handSize": 8, "queueLengthLimit": 50})),
        (
            json!({"queues": 0, "handSize": 0, "queueLengthLimit": 0}),
            json!({"queues": 64, "handSize": 8, "queueLengthLimit": 50}),
        ),
        (json!({"handSize": 3, "queues": null}), json!({"queues": 64, "handSize": 3, "queueLengthLimit": 50})),
        (json!({"queues": -1}), json!({"queues": -1, "handSize": 8, "queueLengthLimit": 50})),
    ] {
        let spec = json!({"limited": {"limitResponse": {"type": "Queue", "queuing": sent}}});
        for spec in level_in_every_version(&spec) {
            assert_eq!(spec["limited"]["limitResponse"]["queuing"], stored);
        }
    }
}

#[test]
fn api_23_without_queuing_nothing_is_added() {
    let spec = json!({"limited": {"limitResponse": {"type": "Queue"}}});
    for spec in level_in_every_version(&spec) {
        assert_eq!(spec["limited"]["limitResponse"], json!({"type": "Queue"}));
    }
}

#[test]
fn api_24_nothing_is_lendable_and_borrowing_has_no_default() {
    for spec in level_in_every_version(&json!({"limited": {}})) {
        assert_eq!(spec["limited"]["lendablePercent"], 0);
        assert!(spec["limited"].get("borrowingLimitPercent").is_none());
    }
    for spec in level_in_every_version(&json!({"limited": {"lendablePercent": 25, "borrowingLimitPercent": 0}})) {
        assert_eq!(spec["limited"]["lendablePercent"], 25);
        assert_eq!(spec["limited"]["borrowingLimitPercent"], 0);
    }
}

#[test]
fn api_25_absent_shares_become_30_and_only_v1_takes_zero_at_its_word() {
    let shares = |spec: Value| level_in_every_version(&spec).map(|spec| spec["limited"]["shares"].clone());
    assert_eq!(shares(json!({"limited": {}})), [30, 30, 30, 30]);
    assert_eq!(shares(json!({"limited": {"shares": null}})), [30, 30, 30, 30]);
    assert_eq!(shares(json!({"limited": {"shares": 0}})), [0, 30, 30, 30]);
    assert_eq!(shares(json!({"limited": {"shares": 7}})), [7, 7, 7, 7]);
}

#[test]
fn api_25_the_annotation_makes_v1beta3_take_zero_at_its_word() {
    for (sent, stored) in [(json!({}), 0), (json!({"nominalConcurrencyShares": 0}), 0)] {
        let mut level: v1beta3::PriorityLevelConfiguration = serde_json::from_value(json!({
            "metadata": {"annotations": {PRESERVE_ZERO_ANNOTATION: "whatever"}},
            "spec": {"limited": sent},
        }))
        .unwrap();
        level.apply_defaults();
        assert_eq!(level.spec.limited.unwrap().nominal_concurrency_shares, stored);
    }
    // It means nothing to the versions before.
    let mut level = v1beta2::PriorityLevelConfiguration::default();
    level.metadata.annotations.insert(PRESERVE_ZERO_ANNOTATION.into(), String::new());
    level.spec.limited.get_or_insert_default();
    level.apply_defaults();
    assert_eq!(level.spec.limited.unwrap().assured_concurrency_shares, 30);
}

#[test]
fn api_26_the_exempt_level_has_no_seats_unless_it_says_so() {
    for (sent, stored) in [
        (json!({}), json!({"shares": 0, "lendablePercent": 0})),
        (json!({"lendablePercent": 50}), json!({"shares": 0, "lendablePercent": 50})),
        (json!({"shares": 10}), json!({"shares": 10, "lendablePercent": 0})),
    ] {
        for spec in level_in_every_version(&json!({"type": "Exempt", "exempt": sent})) {
            assert_eq!(spec["exempt"], stored);
        }
    }
    for spec in level_in_every_version(&json!({"type": "Exempt"})) {
        assert_eq!(spec, json!({"type": "Exempt"}));
    }
}

#[test]
fn api_27_a_zero_that_is_defaulted_to_the_stored_value_is_no_change() {
    let stored = v1::FlowSchema::builder("batch").priority_level("workload-low").build();
    let mut sent = stored.clone();
    sent.spec.matching_precedence = 0;
    sent.apply_defaults();
    assert_eq!(sent, stored);

    let stored = v1::PriorityLevelConfiguration::builder("tenants").limited(|l| l.queue(|q| q)).build();
    let mut sent = v1beta1::PriorityLevelConfiguration::from_hub(stored.clone());
    let limited = sent.spec.limited.as_mut().unwrap();
    limited.assured_concurrency_shares = 0;
    *limited.limit_response.queuing.as_mut().unwrap() = v1::QueuingConfiguration::default();
    sent.apply_defaults();
    assert_eq!(sent.into_hub(), stored);
}

proptest! {
    #[test]
    fn api_27_defaults_filled_in_twice_are_the_same_as_once(
        schema in strategies::flow_schema(), level in strategies::priority_level(),
    ) {
        fn once_and_twice<T: Defaulted + Clone>(mut object: T) -> (T, T) {
            object.apply_defaults();
            let once = object.clone();
            object.apply_defaults();
            (once, object)
        }
        let (once, twice) = once_and_twice(schema);
        prop_assert_eq!(once, twice);
        let (once, twice) = once_and_twice(v1beta3::PriorityLevelConfiguration::from_hub(level.clone()));
        prop_assert_eq!(once, twice);
        let (once, twice) = once_and_twice(v1beta2::PriorityLevelConfiguration::from_hub(level.clone()));
        prop_assert_eq!(once, twice);
        let (once, twice) = once_and_twice(level);
        prop_assert_eq!(once, twice);
    }
}

#[test]
fn api_22_to_27_objects_are_stored_as_a_server_stored_them() {
    replay::objects_are_shown_as_recorded(&["defaults-"]);
}
