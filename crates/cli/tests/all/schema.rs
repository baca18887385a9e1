//! `evenkeel schema`: the reference, JSON Schemas and OpenAPI.

use serde_json::Value;

use crate::child::{run, text};

fn printed(arguments: &[&str]) -> String {
    let output = run(&[&["schema"], arguments].concat());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    text(&output.stdout)
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(arguments)).unwrap()
}

#[test]
fn the_page_is_the_reference() {
    assert_eq!(printed(&[]), evenkeel_api::schema::markdown_reference());
    let level = printed(&["prioritylevelconfigurations", "--version", "v1beta2"]);
    assert!(level.contains("assuredConcurrencyShares") && !level.contains("### FlowSchemaSpec"), "{level}");
    assert!(level.contains("always `flowcontrol.apiserver.k8s.io/v1beta2`"), "{level}");
}

#[test]
fn schemas_mark_what_is_required_read_only_and_constant() {
    let schema = json(&["FlowSchema", "-o", "jsonschema"]);
    assert_eq!(schema["required"], serde_json::json!(["apiVersion", "kind", "metadata", "spec"]));
    assert_eq!(schema["properties"]["kind"]["const"], "FlowSchema");
    assert_eq!(schema["properties"]["status"]["readOnly"], true);
    assert_eq!(schema["$defs"]["ObjectMeta"]["properties"]["uid"]["readOnly"], true);
    assert_eq!(schema["$defs"]["ObjectMeta"]["properties"]["name"].get("readOnly"), None);
    let both = json(&["-o", "jsonschema"]);
    assert_eq!(
        both["$defs"]["PriorityLevelConfiguration"]["properties"]["kind"]["const"],
        "PriorityLevelConfiguration"
    );
    let openapi = json(&["-o", "openapi", "--version", "v1beta3"]);
    assert!(openapi["components"]["schemas"]["io.k8s.api.flowcontrol.v1beta3.FlowSchema"].is_object());
}

#[test]
fn mistakes_are_named() {
    let complaint = |arguments: &[&str]| {
        let output = run(&[&["schema"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    assert!(complaint(&["Pod"]).contains("it must be FlowSchema or PriorityLevelConfiguration"));
    assert!(complaint(&["--version", "v2"]).contains("it must be v1, v1beta3, v1beta2 or v1beta1"));
    assert!(complaint(&["FlowSchema", "-o", "openapi"]).contains("leave FlowSchema out"));
}
