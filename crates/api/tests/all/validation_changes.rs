//! What an update may not change, and what only some versions may carry (API-35, API-36).

use crate::validated;

use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use evenkeel_api::{Version, validate};
use validated::{level, problems, problems_of, schema};

fn stored() -> ObjectMeta {
    ObjectMeta { uid: "one".into(), finalizers: vec!["a.b/old".into()], ..ObjectMeta::named("batch") }
}

fn marked() -> ObjectMeta {
    let deletion_timestamp = Some("2024-01-02T03:04:05Z".parse().expect("a time"));
    ObjectMeta { deletion_timestamp, deletion_grace_period_seconds: Some(0), ..stored() }
}

/// What is found in an update from one metadata to another, of either kind and also through `/status`.
fn problems_between(new: &ObjectMeta, old: &ObjectMeta) -> Vec<String> {
    let (mut old_schema, mut old_level) = (schema(), level());
    old_schema.metadata = old.clone();
    old_level.metadata = old.clone();
    let (mut new_schema, mut new_level) = (schema(), level());
    new_schema.metadata = new.clone();
    new_level.metadata = new.clone();
    let found = problems(validate::update(&new_schema, &old_schema, Version::V1));
    assert_eq!(problems(validate::update(&new_level, &old_level, Version::V1beta1)), found);
    assert_eq!(problems(validate::status_update(&new_level, &old_level, Version::V1)), found);
    found
}

#[test]
fn api_35_uid_and_deletion_do_not_change() {
    let new = ObjectMeta {
        uid: "two".into(),
        deletion_timestamp: Some("2001-02-03T04:05:06Z".parse().unwrap()),
        deletion_grace_period_seconds: Some(5),
        ..stored()
    };
    let expected = [
        r#"metadata.uid: Invalid value: "two": field is immutable"#,
        r#"metadata.deletionTimestamp: Invalid value: "2001-02-03T04:05:06Z": field is immutable"#,
        "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
    ];
    assert_eq!(problems_between(&new, &stored()), expected);
    assert_eq!(problems_between(&new, &marked()), expected);
    assert_eq!(problems_between(&marked(), &marked()), [""; 0]);
    // Only what is given can differ.
    assert_eq!(problems_between(&ObjectMeta::named("batch"), &marked()), [""; 0]);
}

#[test]
fn api_35_nobody_new_holds_back_a_deleted_object() {
    let with = |finalizers: &[&str], metadata: ObjectMeta| ObjectMeta {
        finalizers: finalizers.iter().map(ToString::to_string).collect(),
        ..metadata
    };
    let more = &["a.b/two", "a.b/old", "a.b/one", "a.b/two"];
    assert_eq!(problems_between(&with(more, stored()), &stored()), [""; 0]);
    assert_eq!(
        problems_between(&with(more, marked()), &marked()),
        [
            r#"metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"a.b/one", "a.b/two"}"#
        ]
    );
    assert_eq!(problems_between(&with(&[], marked()), &marked()), [""; 0]);
}

#[test]
fn api_36_levels_do_not_carry_the_annotation_of_v1beta3() {
    let old = level();
    let mut new = level();
    new.metadata.annotations.insert(PRESERVE_ZERO_ANNOTATION.into(), String::new());
    let expected = [
        "metadata.annotations: Forbidden: annotation 'flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares' is forbidden",
    ];
    for version in [Version::V1, Version::V1beta2, Version::V1beta1] {
        assert_eq!(problems(validate::create(&new, version)), expected);
        assert_eq!(problems(validate::update(&new, &old, version)), expected);
    }
    assert_eq!(problems(validate::create(&new, Version::V1beta3)), [""; 0]);

    let mut schema = schema();
    schema.metadata.annotations.clone_from(&new.metadata.annotations);
    assert_eq!(problems_of(&schema), [""; 0]);
}
