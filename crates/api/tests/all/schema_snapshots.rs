//! What the generators make of the schema table, for a reviewer to see what a change to it means.

use evenkeel_api::{Kind, Version, schema};
use serde_json::Value;

/// With sorted members, whichever order the features of `serde_json` give them in this build.
fn assert_snapshot(name: &str, value: &Value) {
    insta::with_settings!({ sort_maps => true, omit_expression => true }, {
        insta::assert_json_snapshot!(name, value);
    });
}

#[test]
fn openapi_components_v1() {
    assert_snapshot("openapi-components-v1", &schema::openapi_v3(Version::V1)["components"]);
}

#[test]
fn openapi_components_v1beta1() {
    assert_snapshot("openapi-components-v1beta1", &schema::openapi_v3(Version::V1beta1)["components"]);
}

#[test]
fn openapi_paths_v1() {
    assert_snapshot("openapi-paths-v1", &schema::openapi_v3(Version::V1)["paths"]);
}

#[test]
fn openapi_v2_patch_operation() {
    let document = schema::openapi_v2();
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/{name}";
    assert_snapshot("openapi-v2-patch", &document["paths"][path]["patch"]);
}

#[test]
fn json_schemas() {
    for kind in Kind::ALL {
        let name = format!("json-schema-v1-{}", kind.singular());
        assert_snapshot(&name, &schema::json_schema(Version::V1, kind));
    }
}
