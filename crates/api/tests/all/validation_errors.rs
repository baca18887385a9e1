//! The form of field errors, their values and their order (API-28, API-29, API-111).

use crate::validated;

use evenkeel_api::meta::OwnerReference;
use evenkeel_api::v1::Condition;
use evenkeel_api::validate::{self, FieldError, FieldErrors, Value};
use evenkeel_api::{Path, Version, v1beta3};
use serde_json::json;
use validated::{level_with, problems_of, schema};

#[test]
fn api_28_every_type_of_error_has_its_reason_and_message() {
    let value = Value::text("x");
    let table = [
        (FieldError::required("a", "why"), "FieldValueRequired", "Required value: why"),
        (FieldError::required("a", ""), "FieldValueRequired", "Required value"),
        (FieldError::invalid("a", &value, "why"), "FieldValueInvalid", r#"Invalid value: "x": why"#),
        (
            FieldError::not_supported("a", &value, &["A", "B"]),
            "FieldValueNotSupported",
            r#"Unsupported value: "x": supported values: "A", "B""#,
        ),
        (FieldError::forbidden("a", "why"), "FieldValueForbidden", "Forbidden: why"),
        (FieldError::forbidden("a", ""), "FieldValueForbidden", "Forbidden"),
        (FieldError::duplicate("a", &value), "FieldValueDuplicate", r#"Duplicate value: "x""#),
        (FieldError::too_long("a", 7), "FieldValueTooLong", "Too long: may not be more than 7 bytes"),
    ];
    for (error, reason, message) in table {
        assert_eq!((error.reason().as_str(), error.message()), (reason, message));
        assert_eq!(error.reason().to_string(), reason);
        assert_eq!(error.field(), "a");
    }
}

#[test]
fn api_28_values_are_json_and_plain_texts_are_quoted_as_go_quotes_them() {
    assert_eq!(Value::json(&-5).to_string(), "-5");
    assert_eq!(Value::json(&["a", "b"]).to_string(), r#"["a","b"]"#);
    assert_eq!(Value::json("<&>\u{2028}\u{2029}\u{1}\n\u{7f}é").to_string(), {
        "\"\\u003c\\u0026\\u003e\\u2028\\u2029\\u0001\\n\u{7f}é\""
    });
    let quoted = [
        ("bad key!", r#""bad key!""#),
        ("a\"b\\c", r#""a\"b\\c""#),
        ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
        ("\0\u{1f}\u{7f}", r#""\x00\x1f\x7f""#),
        ("<é>& \u{301}日", "\"<é>& \u{301}日\""),
        ("\u{85}\u{a0}\u{200b}\u{2028}\u{feff}", r#""\u0085\u00a0\u200b\u2028\ufeff""#),
        ("\u{e0001}😀", "\"\\U000e0001😀\""),
    ];
    for (text, expected) in quoted {
        assert_eq!(Value::text(text).to_string(), expected);
    }
}

#[test]
fn api_28_all_problems_are_found_at_once() {
    let mut schema = schema();
    schema.metadata.name = "Bad".into();
    schema.spec.matching_precedence = -1;
    schema.spec.priority_level_configuration.name.clear();
    assert_eq!(problems_of(&schema).len(), 3);
}

#[test]
fn api_29_errors_are_listed_in_order() {
    let mut old = level_with("exempt", json!({"type": "Exempt"}));
    old.metadata.deletion_timestamp = Some("2024-01-02T03:04:05Z".parse().unwrap());
    let mut new = level_with("exempt", json!({"limited": {"limitResponse": {}}}));
    new.metadata.generate_name = "_".into();
    new.metadata.labels.insert("k".into(), "!".into());
    new.metadata.annotations.insert("!".into(), String::new());
    new.metadata.annotations.insert(v1beta3::PRESERVE_ZERO_ANNOTATION.into(), String::new());
    new.metadata.owner_references.push(OwnerReference { kind: "K".into(), name: "n".into(), ..Default::default() });
    new.metadata.finalizers.push("mine".into());
    new.metadata.uid = "other".into();
    new.status.conditions.push(Condition::default());
    let errors = validate::update(&new, &old, Version::V1).unwrap_err();
    let fields: Vec<_> = errors.iter().map(FieldError::field).collect();
    assert_eq!(
        fields,
        [
            "metadata.generateName",
            "metadata.labels",
            "metadata.annotations",
            "metadata.annotations",
            "metadata.ownerReferences[0].apiVersion",
            "metadata.ownerReferences[0].uid",
            "metadata.finalizers[0]",
            "metadata.finalizers",
            "metadata.uid",
            "spec.type",
            "spec",
            "status.conditions[0].type",
            "spec.limited",
            "spec.type",
            "spec.limited.limitResponse.type",
        ]
    );
}

#[test]
fn api_111_one_error_stands_alone_and_several_stand_in_brackets() {
    let one = FieldError::required(Path::new("spec").child("rules").index(0), "");
    let two = FieldError::forbidden(Path::new("spec").child("exempt"), "no");
    assert_eq!(FieldErrors::from(one.clone()).to_string(), "spec.rules[0]: Required value");
    let both = FieldErrors::none_in(vec![one.clone(), two.clone()]).unwrap_err();
    assert_eq!(both.to_string(), "[spec.rules[0]: Required value, spec.exempt: Forbidden: no]");
    let error: &dyn std::error::Error = &both;
    assert_eq!(error.to_string(), both.to_string());
    assert!(both.into_iter().eq([one, two]));
    assert_eq!(FieldErrors::none_in(Vec::new()), Ok(()));
}
