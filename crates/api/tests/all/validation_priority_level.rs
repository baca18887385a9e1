//! The specification of a priority level (API-46 to API-50).

use crate::validated;

use evenkeel_api::v1::QueuingConfiguration;
use evenkeel_api::{Version, validate};
use serde_json::{Value, json};
use validated::{level, level_with, problems, problems_of};

const IF_AND_ONLY_IF: &str = "must be 'Exempt' if and only if `name` is 'exempt'";

#[allow(clippy::needless_pass_by_value, reason = "called with literals")]
fn problems_of_limited(limited: Value) -> Vec<String> {
    problems_of(&level_with("batch", json!({"type": "Limited", "limited": limited})))
}

#[test]
fn api_46_the_type_is_known_and_only_exempt_is_exempt() {
    assert_eq!(problems_of(&level()), [""; 0]);
    assert_eq!(problems_of(&level_with("exempt", json!({"type": "Exempt"}))), [""; 0]);
    let found = problems_of(&level_with("batch", json!({"type": "Exempt"})));
    assert_eq!(found, [format!("spec.type: Invalid value: \"Exempt\": {IF_AND_ONLY_IF}")]);
    let found = problems_of(&level_with("exempt", json!({"type": "Other"})));
    assert_eq!(
        found[..2],
        [
            format!("spec.type: Invalid value: \"Other\": {IF_AND_ONLY_IF}"),
            r#"spec.type: Unsupported value: "Other": supported values: "Exempt", "Limited""#.into(),
        ]
    );
    let found = problems_of(&level_with("batch", json!({"type": "limited"})));
    assert_eq!(found, [r#"spec.type: Unsupported value: "limited": supported values: "Exempt", "Limited""#]);
}

#[test]
fn api_47_limits_are_in_range() {
    for lendable in [0, 100] {
        let limited = json!({
            "nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"},
            "lendablePercent": lendable, "borrowingLimitPercent": 0,
        });
        assert_eq!(problems_of_limited(limited), [""; 0]);
    }
    let limited = json!({
        "nominalConcurrencyShares": -5, "limitResponse": {"type": "Bounce"},
        "lendablePercent": 101, "borrowingLimitPercent": -7,
    });
    assert_eq!(
        problems_of_limited(limited),
        [
            "spec.limited.nominalConcurrencyShares: Invalid value: -5: must be a non-negative integer",
            r#"spec.limited.limitResponse.type: Unsupported value: "Bounce": supported values: "Queue", "Reject""#,
            "spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            "spec.limited.borrowingLimitPercent: Invalid value: -7: if specified, must be a non-negative integer",
        ]
    );
    assert_eq!(
        problems_of_limited(json!({"limitResponse": {"type": "Reject"}, "lendablePercent": -1})),
        ["spec.limited.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive"]
    );
}

#[test]
fn api_47_the_shares_are_called_as_the_version_calls_them() {
    let limited = json!({"nominalConcurrencyShares": -1, "limitResponse": {"type": "Reject"}});
    let level = level_with("batch", json!({"type": "Limited", "limited": limited}));
    let table = [
        (Version::V1, "nominalConcurrencyShares"),
        (Version::V1beta3, "nominalConcurrencyShares"),
        (Version::V1beta2, "assuredConcurrencyShares"),
        (Version::V1beta1, "assuredConcurrencyShares"),
    ];
    for (version, shares) in table {
        let expected = [format!("spec.limited.{shares}: Invalid value: -1: must be a non-negative integer")];
        assert_eq!(problems(validate::create(&level, version)), expected);
        assert_eq!(problems(validate::update(&level, &level, version)), expected);
    }
}

#[test]
fn api_48_queues_and_hands_are_in_range() {
    let found_in = |queues, hand_size, queue_length_limit| -> Vec<String> {
        let mut level = level();
        level.spec.limited.as_mut().unwrap().limit_response.queuing =
            Some(QueuingConfiguration { queues, hand_size, queue_length_limit });
        let found = problems_of(&level);
        found
            .iter()
            .map(|error| error.strip_prefix("spec.limited.limitResponse.queuing.").expect("the path").to_owned())
            .collect()
    };
    for (queues, hand_size) in [(1, 1), (64, 10), (128, 8), (1024, 6), (10_000_000, 2), (2, 2), (16, 15)] {
        assert_eq!(found_in(queues, hand_size, 1), [""; 0], "{queues} {hand_size}");
    }
    assert_eq!(
        found_in(0, -1, 0),
        [
            "queueLengthLimit: Invalid value: 0: must be positive",
            "queues: Invalid value: 0: must be positive",
            "handSize: Invalid value: -1: must be positive",
        ]
    );
    assert_eq!(found_in(10_000_001, 1, 1), ["queues: Invalid value: 10000001: must not be greater than 10000000"]);
    assert_eq!(
        found_in(-1, 4, 1),
        [
            "queues: Invalid value: -1: must be positive",
            "handSize: Invalid value: 4: should not be greater than queues (-1)"
        ]
    );
    assert_eq!(found_in(16, 17, 1), ["handSize: Invalid value: 17: should not be greater than queues (16)"]);
    for (queues, hand_size) in [(16, 16), (64, 11), (65, 10), (128, 9), (1024, 7), (10_000_000, 3)] {
        let expected = format!(
            "handSize: Invalid value: {hand_size}: required entropy bits of deckSize {queues} and handSize {hand_size} should not be greater than 60"
        );
        assert_eq!(found_in(queues, hand_size, 1), [expected]);
    }
}

#[test]
fn api_48_queues_that_are_not_asked_for_are_not_looked_into() {
    let response = json!({"type": "Reject", "queuing": {"queues": -1}});
    assert_eq!(
        problems_of_limited(json!({ "limitResponse": response })),
        ["spec.limited.limitResponse.queuing: Forbidden"]
    );
}

#[test]
fn api_49_what_an_exempt_level_lends_is_in_range() {
    let found_in = |shares: i32, lendable: i32| {
        let exempt = json!({"nominalConcurrencyShares": shares, "lendablePercent": lendable});
        problems_of(&level_with("exempt", json!({"type": "Exempt", "exempt": exempt})))
    };
    for (shares, lendable) in [(0, 0), (7, 100)] {
        assert_eq!(found_in(shares, lendable), [""; 0]);
    }
    assert_eq!(
        found_in(-5, 101),
        [
            "spec.exempt.nominalConcurrencyShares: Invalid value: -5: must be a non-negative integer",
            "spec.exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
        ]
    );
    assert_eq!(
        found_in(0, -1),
        ["spec.exempt.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive"]
    );
}

#[test]
fn api_50_the_members_go_with_the_types() {
    let reject = json!({"limitResponse": {"type": "Reject"}});
    let table: [(Value, &[&str]); 8] = [
        (json!({"type": "Limited", "limited": reject, "exempt": {}}), &["spec.exempt: Forbidden"]),
        (json!({"type": "Limited"}), &["spec.limited: Required value"]),
        (json!({}), &["spec.type: Required value"]),
        (
            json!({"limited": reject, "exempt": {}}),
            &["spec.exempt: Forbidden", "spec.limited: Forbidden", "spec.type: Required value"],
        ),
        (
            json!({"limited": {"limitResponse": {"type": "Queue"}}}),
            &[
                "spec.limited: Forbidden",
                "spec.type: Required value",
                "spec.limited.limitResponse.queuing: Required value",
            ],
        ),
        (
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
            &["spec.limited.limitResponse.queuing: Required value"],
        ),
        (
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {}}}}),
            &["spec.limited.limitResponse.queuing: Forbidden"],
        ),
        (
            json!({"type": "Limited", "limited": {"limitResponse": {"queuing": {}}}}),
            &["spec.limited.limitResponse.queuing: Forbidden", "spec.limited.limitResponse.type: Required value"],
        ),
    ];
    for (spec, expected) in table {
        assert_eq!(problems_of(&level_with("batch", spec)), expected);
    }
}
