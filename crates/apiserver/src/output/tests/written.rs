//! What is put together by hand is what serde writes.

use evenkeel_api::protobuf::{encode, sealed, watch_event};
use evenkeel_api::schema::{STATUS, list_type};
use evenkeel_api::v1::FlowSchema;
use evenkeel_api::{Kind, Version, bootstrap};
use http::StatusCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::read_yaml;
use super::seen::now;
use crate::Failure;
use crate::negotiate::Wanted;
use crate::output::{
    Encoded, EventWriter, Format, Layout, ListMeta, Media, Shown, TextFormat, View, failure, list, object,
};

fn view(version: Version, format: Format) -> View<'static> {
    View { version, wanted: Wanted { format, ..Wanted::default() }, include_object: None, now: now() }
}

/// Schemas that every server has, with texts of all sorts in their metadata.
fn any_schemas() -> impl Strategy<Value = Vec<FlowSchema>> {
    let texts = proptest::collection::btree_map(any::<String>(), any::<String>(), 0..3);
    let schema = (proptest::sample::select(bootstrap::flow_schemas().to_vec()), any::<String>(), texts).prop_map(
        |(mut schema, name, annotations)| {
            schema.metadata.name = name;
            schema.metadata.annotations = annotations;
            schema
        },
    );
    proptest::collection::vec(schema, 0..5)
}

fn any_version() -> impl Strategy<Value = Version> {
    proptest::sample::select(Version::ALL.to_vec())
}

proptest! {
    #[test]
    fn api_11_a_list_is_what_serde_writes(
        schemas in any_schemas(),
        version in any_version(),
        token in proptest::option::of(any::<String>()),
        remaining in proptest::option::of(any::<u64>()),
    ) {
        let kept: Vec<_> = schemas.iter().map(|schema| Encoded::new(schema, Version::V1)).collect();
        let shown: Vec<_> =
            schemas.iter().zip(&kept).map(|(object, kept)| Shown { object, v1: Some(kept) }).collect();
        let metadata = ListMeta {
            resource_version: "7", continue_token: token.as_deref(), remaining_item_count: remaining,
        };
        let response = list(&metadata, &shown, &view(version, Format::default())).unwrap();
        let items: Vec<Value> = schemas.iter().map(|schema| {
            let mut item = serde_json::to_value(schema.in_version(version)).unwrap();
            let members = item.as_object_mut().unwrap();
            members.remove("kind");
            members.remove("apiVersion");
            item
        }).collect();
        let expected = json!({
            "kind": "FlowSchemaList", "apiVersion": version.api_version(), "metadata": metadata, "items": items,
        });
        prop_assert_eq!(serde_json::from_slice::<Value>(&response.body).unwrap(), expected);
        let unkept: Vec<_> = schemas.iter().map(Shown::new).collect();
        let again = list(&metadata, &unkept, &view(version, Format::default())).unwrap();
        prop_assert_eq!(response.body, again.body);
    }

    #[test]
    fn every_format_says_the_same(schemas in any_schemas(), version in any_version()) {
        let one_line = |format| {
            let shown: Vec<_> = schemas.iter().map(Shown::new).collect();
            list(&ListMeta::at("7"), &shown, &view(version, format)).unwrap().body
        };
        let expected: Value = serde_json::from_slice(&one_line(Format::default())).unwrap();
        let indented = one_line(Format::new(Media::Json, Layout::Indented));
        prop_assert_eq!(&serde_json::from_slice::<Value>(&indented).unwrap(), &expected);
        let yaml = one_line(Format::Text(TextFormat::Yaml));
        prop_assert_eq!(&read_yaml(std::str::from_utf8(&yaml).unwrap()), &expected);
        let message = encode(&expected, list_type(version, Kind::FlowSchema)).unwrap();
        let sealed = sealed(version.api_version(), "FlowSchemaList", &message);
        prop_assert_eq!(one_line(Format::Protobuf), sealed);
    }
}

#[test]
fn an_object_that_was_kept_is_not_written_again() {
    let schemas = bootstrap::flow_schemas();
    let kept = Encoded::new(&schemas[0], Version::V1);
    let shown = Shown { object: &schemas[0], v1: Some(&kept) };
    let response = object(StatusCode::OK, shown, &view(Version::V1, Format::default())).unwrap();
    assert_eq!(response.body.as_ptr(), kept.line().as_ptr());
    let response = object(StatusCode::OK, shown, &view(Version::V1beta1, Format::default())).unwrap();
    assert_eq!(response.body, Encoded::new(&schemas[0], Version::V1beta1).line());
}

#[test]
fn api_98_a_failure_is_a_status_in_every_format() {
    let why = Failure::bad_request("no: \"that\" is\nwrong");
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why.message,
        "reason": "BadRequest", "code": 400,
    });
    let yaml = failure(&why, Format::Text(TextFormat::Yaml));
    assert_eq!(read_yaml(std::str::from_utf8(&yaml.body).unwrap()), expected);
    let message = sealed("v1", "Status", &encode(&expected, &STATUS).unwrap());
    assert_eq!(failure(&why, Format::Protobuf).body, message);
    let writer = EventWriter::new(&view(Version::V1, Format::Protobuf)).unwrap();
    assert_eq!(writer.failure(&why), watch_event("ERROR", &message));
    let writer = EventWriter::new(&view(Version::V1, Format::default())).unwrap();
    let event: Value = serde_json::from_slice(&writer.failure(&why)).unwrap();
    assert_eq!(event, json!({ "type": "ERROR", "object": expected }));
}
