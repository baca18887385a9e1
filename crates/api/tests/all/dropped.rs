//! What is told of dropped fields and repeated names (API-82, API-97).

use evenkeel_api::Version;
use evenkeel_api::decode::{parse_json, parse_yaml};
use evenkeel_api::v1::FlowSchemaSpec;

#[test]
fn api_82_a_name_that_occurs_three_times_is_told_of_once() {
    let text = r#"{"kind": "FlowSchema", "kind": "FlowSchema", "spec": {}, "kind": "FlowSchema", "bogus": 1}"#;
    let json = parse_json(text.as_bytes()).unwrap().decode::<FlowSchemaSpec>(Version::V1).unwrap();
    assert_eq!(json.dropped.warnings(), ["duplicate field \"kind\"", "unknown field \"bogus\""]);
    let yaml = parse_yaml(text.as_bytes()).unwrap().remove(0).decode::<FlowSchemaSpec>(Version::V1).unwrap();
    assert_eq!(
        yaml.dropped.strict_error().unwrap(),
        "strict decoding error: yaml: unmarshal errors:\n  line 1: key \"kind\" already set in map, unknown field \"bogus\""
    );
}

#[test]
fn repeated_names_below_a_long_name_take_no_memory_out_of_proportion() {
    let text = format!("{{\"{}\": {{{}\"a\": 0}}}}", "k".repeat(100_000), "\"a\": 0, ".repeat(5000));
    let document = parse_json(text.as_bytes()).unwrap();
    assert_eq!(document.duplicates.len(), 100);
}
