//! Conversion between the versions (API-62 to API-65).

use crate::replay;
use crate::strategies;

use evenkeel_api::meta::{FieldSet, ManagedFieldsEntry};
use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{Defaulted, Object, Wire, v1, v1beta1, v1beta2, v1beta3};
use proptest::prelude::*;
use serde_json::json;

/// What comes back from the hub's form written as `W`.
fn through<W: Wire>(hub: Object<v1::V1, W::HubSpec>) -> Object<v1::V1, W::HubSpec> {
    W::from_hub(hub).into_hub()
}

/// What the store holds after a client has read the object as `W` and sent it back.
fn read_and_write_back<W: Wire + Defaulted>(stored: Object<v1::V1, W::HubSpec>) -> Object<v1::V1, W::HubSpec> {
    let shown = serde_json::to_string(&W::from_hub(stored)).unwrap();
    let mut sent: W = serde_json::from_str(&shown).unwrap();
    sent.apply_defaults();
    sent.into_hub()
}

/// What comes back when an object is read as `A` and as `B` by turns.
fn to_and_fro<A: Wire, B: Wire<HubSpec = A::HubSpec>>(wire: A) -> A {
    A::from_hub(B::from_hub(wire.into_hub()).into_hub())
}

/// Checks something for each version of a kind.
macro_rules! in_every_version {
    ($Kind:ident, |$W:ident| $check:expr) => {{
        {
            type $W = v1::$Kind;
            $check
        }
        {
            type $W = v1beta3::$Kind;
            $check
        }
        {
            type $W = v1beta2::$Kind;
            $check
        }
        {
            type $W = v1beta1::$Kind;
            $check
        }
    }};
}

/// Levels as they are stored: defaults filled in, and never with the annotation of API-63.
fn stored_level() -> impl Strategy<Value = v1::PriorityLevelConfiguration> {
    strategies::priority_level().prop_map(|mut level| {
        level.apply_defaults();
        level.metadata.annotations.remove(PRESERVE_ZERO_ANNOTATION);
        level
    })
}

fn level_with_shares(shares: i32) -> v1::PriorityLevelConfiguration {
    v1::PriorityLevelConfiguration::builder("jail").limited(|l| l.shares(shares).reject()).build()
}

fn shares(level: &v1::PriorityLevelConfiguration) -> Option<i32> {
    level.spec.limited.as_ref().unwrap().nominal_concurrency_shares
}

proptest! {
    #[test]
    fn api_62_every_version_holds_all_of_a_flow_schema(schema in strategies::flow_schema()) {
        in_every_version!(FlowSchema, |W| prop_assert_eq!(through::<W>(schema.clone()), schema.clone()));
    }

    /// With zero shares too, and without defaults other than those of the shares.
    #[test]
    fn api_62_every_version_holds_all_of_a_level_with_shares(
        level in strategies::priority_level(), some_shares in strategies::number(),
    ) {
        let mut level = level;
        level.metadata.annotations.remove(PRESERVE_ZERO_ANNOTATION);
        if let Some(limited) = &mut level.spec.limited {
            limited.nominal_concurrency_shares.get_or_insert(some_shares);
        }
        in_every_version!(PriorityLevelConfiguration, |W| prop_assert_eq!(through::<W>(level.clone()), level.clone()));
    }

    #[test]
    fn api_62_any_two_versions_hold_the_same_flow_schema(schema in strategies::flow_schema()) {
        in_every_version!(FlowSchema, |A| {
            let wire = A::from_hub(schema.clone());
            in_every_version!(FlowSchema, |B| prop_assert_eq!(to_and_fro::<A, B>(wire.clone()), wire.clone()));
        });
    }

    #[test]
    fn api_62_any_two_versions_hold_the_same_level(level in stored_level()) {
        in_every_version!(PriorityLevelConfiguration, |A| {
            let wire = A::from_hub(level.clone());
            in_every_version!(PriorityLevelConfiguration, |B| {
                prop_assert_eq!(to_and_fro::<A, B>(wire.clone()), wire.clone());
            });
        });
    }

    #[test]
    fn api_63_the_annotation_shows_in_v1beta3_if_and_only_if_the_shares_are_zero(level in stored_level()) {
        let has_none = level.spec.limited.as_ref().is_some_and(|limited| limited.nominal_concurrency_shares == Some(0));
        let shown = v1beta3::PriorityLevelConfiguration::from_hub(level.clone());
        let annotation = shown.metadata.annotations.get(PRESERVE_ZERO_ANNOTATION);
        prop_assert_eq!(annotation.map(String::as_str), has_none.then_some(""));
        prop_assert_eq!(v1beta2::PriorityLevelConfiguration::from_hub(level.clone()).metadata, level.metadata.clone());
        prop_assert_eq!(v1beta1::PriorityLevelConfiguration::from_hub(level.clone()).metadata, level.metadata.clone());
    }

    #[test]
    fn api_65_writing_back_what_was_read_is_no_change(
        level in stored_level(), schema in strategies::flow_schema(),
    ) {
        let mut schema = schema;
        schema.apply_defaults();
        in_every_version!(FlowSchema, |W| prop_assert_eq!(read_and_write_back::<W>(schema.clone()), schema.clone()));

        prop_assert_eq!(read_and_write_back::<v1::PriorityLevelConfiguration>(level.clone()), level.clone());
        prop_assert_eq!(read_and_write_back::<v1beta3::PriorityLevelConfiguration>(level.clone()), level.clone());
        // Except for zero shares, which become the default in the two oldest versions (API-63).
        let mut expected = level.clone();
        if let Some(shares @ 0) = expected.spec.limited.as_mut().and_then(|l| l.nominal_concurrency_shares.as_mut()) {
            *shares = v1::CONCURRENCY_SHARES_DEFAULT;
        }
        prop_assert_eq!(read_and_write_back::<v1beta2::PriorityLevelConfiguration>(level.clone()), expected.clone());
        prop_assert_eq!(read_and_write_back::<v1beta1::PriorityLevelConfiguration>(level), expected);
    }
}

#[test]
fn api_62_the_shares_go_by_two_names() {
    let level = level_with_shares(7);
    let v1beta3 = serde_json::to_value(v1beta3::PriorityLevelConfiguration::from_hub(level.clone())).unwrap();
    let v1beta2 = serde_json::to_value(v1beta2::PriorityLevelConfiguration::from_hub(level.clone())).unwrap();
    let v1beta1 = serde_json::to_value(v1beta1::PriorityLevelConfiguration::from_hub(level.clone())).unwrap();
    let v1 = serde_json::to_value(level).unwrap();
    assert_eq!((&v1["spec"]["limited"]["nominalConcurrencyShares"], &v1["spec"]), (&json!(7), &v1beta3["spec"]));
    assert_eq!(v1beta2["spec"]["limited"]["assuredConcurrencyShares"], 7);
    assert_eq!(v1beta2["spec"], v1beta1["spec"]);
    assert!(v1beta2["spec"]["limited"].get("nominalConcurrencyShares").is_none());
}

#[test]
fn api_63_zero_is_shown_as_zero_in_every_version() {
    in_every_version!(PriorityLevelConfiguration, |W| {
        let shown = serde_json::to_value(W::from_hub(level_with_shares(0))).unwrap();
        let limited = &shown["spec"]["limited"];
        let shares = limited.get("nominalConcurrencyShares").or_else(|| limited.get("assuredConcurrencyShares"));
        assert_eq!(shares, Some(&json!(0)), "{shown}");
    });
}

#[test]
fn api_63_what_a_v1beta3_client_sends_decides_between_zero_and_the_default() {
    for (sent_shares, annotation, stored) in [
        (0, None, 30),
        (0, Some(""), 0),
        (0, Some("any value"), 0), // its presence counts
        (7, None, 7),
        (7, Some(""), 7), // it simply disappears
    ] {
        let mut sent = v1beta3::PriorityLevelConfiguration::default();
        sent.spec.limited.get_or_insert_default().nominal_concurrency_shares = sent_shares;
        if let Some(value) = annotation {
            sent.metadata.annotations.insert(PRESERVE_ZERO_ANNOTATION.into(), value.into());
        }
        sent.apply_defaults();
        let hub = sent.into_hub();
        assert_eq!(shares(&hub), Some(stored), "{sent_shares} with {annotation:?}");
        assert!(hub.metadata.annotations.is_empty(), "the annotation is never stored");
    }
}

#[test]
fn api_63_the_annotation_disappears_without_limits_too() {
    let mut sent = v1beta3::PriorityLevelConfiguration::default();
    sent.metadata.annotations.insert(PRESERVE_ZERO_ANNOTATION.into(), String::new());
    sent.apply_defaults();
    assert!(sent.into_hub().metadata.annotations.is_empty());

    let exempt = v1::PriorityLevelConfiguration::builder("exempt").exempt(|e| e.shares(0)).build();
    let shown = v1beta3::PriorityLevelConfiguration::from_hub(exempt);
    assert!(shown.metadata.annotations.is_empty(), "zero shares of the exempt level are no matter");
}

#[test]
fn api_63_a_v1beta3_client_that_drops_the_annotation_turns_zero_into_the_default() {
    let mut shown = v1beta3::PriorityLevelConfiguration::from_hub(level_with_shares(0));
    shown.metadata.annotations.clear();
    shown.apply_defaults();
    assert_eq!(shares(&shown.into_hub()), Some(30));
}

#[test]
fn api_63_other_annotations_and_flow_schemas_are_left_alone() {
    let mut level = level_with_shares(0);
    level.metadata.annotations.insert("example.com/why".into(), "jail".into());
    assert_eq!(through::<v1beta3::PriorityLevelConfiguration>(level.clone()), level);

    // A flow schema may carry the annotation as any other (API-36).
    let schema =
        v1::FlowSchema::builder("batch").priority_level("jail").annotation(PRESERVE_ZERO_ANNOTATION, "").build();
    in_every_version!(FlowSchema, |W| assert_eq!(through::<W>(schema.clone()), schema));
}

#[test]
fn api_64_managed_fields_keep_the_version_and_the_names_they_were_made_in() {
    let entry = ManagedFieldsEntry {
        manager: "kubectl".into(),
        api_version: "flowcontrol.apiserver.k8s.io/v1beta2".into(),
        fields_v1: Some(FieldSet::from(json!({"f:spec": {"f:limited": {"f:assuredConcurrencyShares": {}}}}))),
        ..ManagedFieldsEntry::default()
    };
    let mut level = level_with_shares(7);
    level.metadata.managed_fields.push(entry.clone());
    in_every_version!(PriorityLevelConfiguration, |W| {
        assert_eq!(W::from_hub(level.clone()).metadata.managed_fields[0], entry);
    });
}

#[test]
fn api_62_to_65_objects_are_shown_as_a_server_showed_them() {
    replay::objects_are_shown_as_recorded(&["conversion-", "jail-zero-shares-"]);
}
