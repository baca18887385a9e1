//! The status of both kinds, and that the status subresource is about nothing else (API-51).

use crate::validated;

use evenkeel_api::v1::{Condition, Status};
use evenkeel_api::{Version, validate};
use validated::{level, problems, problems_of, schema};

fn status(conditions: &[&str]) -> Status {
    let conditions = conditions.iter().map(|condition| Condition {
        condition: (*condition).into(),
        status: "Sideways".into(),
        reason: "not one word".into(),
        ..Condition::default()
    });
    Status { conditions: conditions.collect() }
}

#[test]
fn api_51_conditions_have_a_type_that_no_other_has() {
    let table: [(&[&str], &[&str]); 4] = [
        (&[], &[]),
        (&["A", "a", "any text"], &[]),
        (
            &["A", "B", "A", "A", ""],
            &[
                r#"status.conditions[2].type: Duplicate value: "A""#,
                r#"status.conditions[3].type: Duplicate value: "A""#,
                "status.conditions[4].type: Required value",
            ],
        ),
        (
            &["", ""],
            &[
                "status.conditions[0].type: Required value",
                r#"status.conditions[1].type: Duplicate value: """#,
                "status.conditions[1].type: Required value",
            ],
        ),
    ];
    for (conditions, expected) in table {
        let (mut schema, mut level) = (schema(), level());
        let (old_schema, old_level) = (schema.clone(), level.clone());
        schema.status = status(conditions);
        level.status = status(conditions);
        assert_eq!(problems(validate::status_update(&schema, &old_schema, Version::V1)), expected);
        assert_eq!(problems(validate::status_update(&level, &old_level, Version::V1beta2)), expected);
        assert_eq!(problems_of(&schema), expected);
        assert_eq!(problems(validate::update(&level, &old_level, Version::V1)), expected);
    }
}

#[test]
fn api_51_only_the_status_counts_on_the_status_subresource() {
    let mut old = schema();
    old.metadata.name = "Bad_Name".into();
    old.metadata.labels.insert("!".into(), "!".into());
    old.spec.matching_precedence = -1;
    let mut new = old.clone();
    new.status = status(&["A"]);
    assert_eq!(problems(validate::status_update(&new, &old, Version::V1)), [""; 0]);
    assert_eq!(problems_of(&new).len(), 4);
}
