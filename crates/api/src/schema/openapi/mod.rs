//! The OpenAPI documents that clients such as kubectl read (API-185 to API-189).

mod components;
mod parameters;
mod paths;
mod v2;

use serde_json::{Value, json};

use crate::{GROUP, Version};

/// The OpenAPI 3.0 document of one version of the group: what `/openapi/v3/apis/GROUP/VERSION` serves.
///
/// ```
/// use evenkeel_api::{Version, schema};
///
/// let document = schema::openapi_v3(Version::V1);
/// let spec = &document["components"]["schemas"]["io.k8s.api.flowcontrol.v1.FlowSchemaSpec"];
/// assert_eq!(spec["properties"]["matchingPrecedence"]["default"], 1000);
/// ```
pub fn openapi_v3(version: Version) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": info(),
        "paths": paths::paths(version),
        "components": { "schemas": components::schemas(version) },
    })
}

/// The OpenAPI 2.0 document of all versions of the group: what `/openapi/v2` serves to clients that do not read
/// the newer form.
///
/// ```
/// use evenkeel_api::schema;
///
/// let document = schema::openapi_v2();
/// assert!(document["definitions"]["io.k8s.api.flowcontrol.v1beta3.FlowSchema"].is_object());
/// ```
pub fn openapi_v2() -> Value {
    let documents = Version::ALL.map(openapi_v3);
    let mut paths = serde_json::Map::new();
    let mut definitions = serde_json::Map::new();
    for document in &documents {
        paths.extend(v2::paths(&document["paths"]));
        definitions.extend(v2::definitions(&document["components"]["schemas"]));
    }
    json!({ "swagger": "2.0", "info": info(), "paths": paths, "definitions": definitions })
}

fn info() -> Value {
    json!({ "title": format!("Evenkeel: {GROUP}"), "version": env!("CARGO_PKG_VERSION") })
}
