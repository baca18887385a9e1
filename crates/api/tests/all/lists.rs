//! Typed lists: read, written, converted, validated item by item, and built, in all four versions.

use evenkeel_api::decode::{parse_json, parse_protobuf, parse_yaml};
use evenkeel_api::meta::{ListMeta, Time};
use evenkeel_api::protobuf::Envelope;
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{Version, schema, v1, v1beta1, v1beta2, v1beta3, validate};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A list of that kind with everything that a list can say of itself.
fn list(version: Version, kind: &str, spec: &Value) -> Value {
    json!({
        "kind": format!("{kind}List"), "apiVersion": version.api_version(),
        "metadata": {"resourceVersion": "7", "continue": "next", "remainingItemCount": 0},
        "items": [{"metadata": {"name": "one"}, "spec": spec, "status": {}}],
    })
}

fn schemas(version: Version) -> Value {
    list(version, "FlowSchema", &json!({"priorityLevelConfiguration": {"name": "low"}, "matchingPrecedence": 5}))
}

fn levels(version: Version) -> Value {
    let shares = match version {
        Version::V1 | Version::V1beta3 => "nominalConcurrencyShares",
        Version::V1beta2 | Version::V1beta1 => "assuredConcurrencyShares",
    };
    let limited = json!({shares: 7, "limitResponse": {"type": "Reject"}, "lendablePercent": 0});
    list(version, "PriorityLevelConfiguration", &json!({"type": "Limited", "limited": limited}))
}

/// The list is the same after it was read and written, and is refused under another name.
fn is_read_and_written<L: DeserializeOwned + Serialize>(json: &Value) {
    let read: L = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), json);
    for (member, other) in [("kind", "List"), ("apiVersion", "v1")] {
        let mut json = json.clone();
        json[member] = other.into();
        let error = serde_json::from_value::<L>(json).err().unwrap().to_string();
        assert!(error.starts_with(&format!("{member} is {other:?}, expected ")), "{error}");
    }
}

#[test]
fn lists_are_read_and_written_in_every_version() {
    is_read_and_written::<v1::FlowSchemaList>(&schemas(Version::V1));
    is_read_and_written::<v1beta3::FlowSchemaList>(&schemas(Version::V1beta3));
    is_read_and_written::<v1beta2::FlowSchemaList>(&schemas(Version::V1beta2));
    is_read_and_written::<v1beta1::FlowSchemaList>(&schemas(Version::V1beta1));
    is_read_and_written::<v1::PriorityLevelConfigurationList>(&levels(Version::V1));
    is_read_and_written::<v1beta3::PriorityLevelConfigurationList>(&levels(Version::V1beta3));
    is_read_and_written::<v1beta2::PriorityLevelConfigurationList>(&levels(Version::V1beta2));
    is_read_and_written::<v1beta1::PriorityLevelConfigurationList>(&levels(Version::V1beta1));
}

#[test]
fn a_list_becomes_the_same_hub_list_from_every_version_and_format() {
    for version in Version::ALL {
        let json = levels(version);
        let text = json.to_string();
        let expected = parse_json(text.as_bytes()).unwrap();
        let expected = expected.decode_list::<PriorityLevelConfigurationSpec>(version).unwrap();
        assert_eq!(expected.metadata.remaining_item_count, Some(0));
        assert_eq!(expected.items[0].spec.limited.as_ref().unwrap().nominal_concurrency_shares, Some(7), "{version}");
        let yaml = parse_yaml(text.as_bytes()).unwrap().remove(0);
        assert_eq!(yaml.decode_list::<PriorityLevelConfigurationSpec>(version).unwrap(), expected);
        let list = schema::list_type(version, evenkeel_api::Kind::PriorityLevelConfiguration);
        let message = evenkeel_api::protobuf::encode(&json, list).unwrap();
        let envelope = Envelope { message: &message, ..Envelope::default() };
        let message = parse_protobuf(&envelope, list).unwrap();
        assert_eq!(message.decode_list::<PriorityLevelConfigurationSpec>(version).unwrap(), expected);
    }
    let older: v1beta1::PriorityLevelConfigurationList = serde_json::from_value(levels(Version::V1beta1)).unwrap();
    let hub = older.clone().into_hub();
    assert_eq!(hub.items[0].spec.limited.as_ref().unwrap().nominal_concurrency_shares, Some(7));
    assert_eq!(v1beta1::PriorityLevelConfigurationList::from_hub(hub), older);
}

#[test]
fn a_list_without_items_is_empty_and_a_wrong_one_is_refused() {
    for items in ["", r#","items":null"#, r#","items":[]"#] {
        let text = format!(r#"{{"metadata":{{}}{items}}}"#);
        let list = parse_json(text.as_bytes()).unwrap().decode_list::<FlowSchemaSpec>(Version::V1).unwrap();
        assert_eq!(list, v1::FlowSchemaList::default());
        assert_eq!(serde_json::from_str::<v1::FlowSchemaList>(&text).unwrap(), list);
    }
    let text = br#"{"items":[{"spec":{}},{"spec":{"matchingPrecedence":"x"}}]}"#;
    let error = parse_json(text).unwrap().decode_list::<FlowSchemaSpec>(Version::V1).unwrap_err();
    assert_eq!(error.first().path, "items[1].spec.matchingPrecedence");
    assert!(parse_json(br#"{"items":5}"#).unwrap().decode_list::<FlowSchemaSpec>(Version::V1).is_err());
    assert!(parse_json(br#"{"metadata":{"continue":5}}"#).unwrap().decode_list::<FlowSchemaSpec>(Version::V1).is_err());
}

#[test]
fn every_item_is_defaulted_and_validated() {
    let mut list: v1::FlowSchemaList = serde_json::from_value(json!({
        "items": [
            {"metadata": {"name": "one"}, "spec": {"priorityLevelConfiguration": {"name": "low"}}},
            {"metadata": {"name": "Two"}, "spec": {"priorityLevelConfiguration": {"name": "low"}}},
            {"metadata": {"name": "three"}, "spec": {}},
        ],
    }))
    .unwrap();
    list.apply_defaults();
    assert!(list.items.iter().all(|item| item.spec.matching_precedence == 1000));
    let errors = validate::list(&list, Version::V1).unwrap_err();
    let fields: Vec<_> = errors.iter().map(validate::FieldError::field).collect();
    assert_eq!(fields, ["items[1].metadata.name", "items[2].spec.priorityLevelConfiguration.name"]);
    list.items.truncate(1);
    validate::list(&list, Version::V1).unwrap();
}

#[test]
#[expect(deprecated, reason = "the builders of the older versions are marked so")]
fn lists_are_built_in_every_version() {
    let time = Time::from_unix_seconds(1_700_000_000);
    let schemas = v1::FlowSchemaList::builder()
        .resource_version("7")
        .continued("next", Some(3))
        .item(|s| {
            s.name("one")
                .priority_level("low")
                .finalizer("example.com/a")
                .finalizer("example.com/b")
                .owned_by(|o| o.object("v1", "ConfigMap").name("owner").uid("5e0a").block_owner_deletion())
                .managed_by("me", |m| m.version(Version::V1beta3).subresource("status").at(time))
                .condition("Dangling", |c| c.is_false().reason("Found").message("all is well").since(time))
                .condition("Other", |c| c)
                .rule(|r| r.user("alice").everything())
        })
        .object(v1::FlowSchema::builder("two").priority_level("low").build())
        .build();
    let expected =
        ListMeta { resource_version: "7".to_owned(), continue_token: "next".to_owned(), remaining_item_count: Some(3) };
    assert_eq!(schemas.metadata, expected);
    let json = serde_json::to_value(&schemas).unwrap();
    assert_eq!(
        json["items"][0]["metadata"],
        json!({
            "name": "one", "finalizers": ["example.com/a", "example.com/b"],
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "5e0a", "blockOwnerDeletion": true,
            }],
            "managedFields": [{
                "manager": "me", "operation": "Update", "apiVersion": Version::V1beta3.api_version(),
                "time": "2023-11-14T22:13:20Z", "fieldsType": "FieldsV1", "fieldsV1": {}, "subresource": "status",
            }],
        })
    );
    assert_eq!(
        json["items"][0]["status"]["conditions"],
        json!([
            {
                "type": "Dangling", "status": "False", "lastTransitionTime": "2023-11-14T22:13:20Z",
                "reason": "Found", "message": "all is well",
            },
            {"type": "Other", "status": "Unknown", "lastTransitionTime": null},
        ])
    );
    assert_eq!(json["items"][1]["metadata"]["name"], "two");
    validate::list(&schemas, Version::V1).unwrap();

    let levels = v1beta2::PriorityLevelConfigurationList::builder()
        .item(|l| {
            l.name("one")
                .limited(|l| l.shares(7).reject())
                .condition("T", evenkeel_api::build::ConditionBuilder::is_true)
        })
        .build();
    assert_eq!(levels.items[0].spec.limited.as_ref().unwrap().assured_concurrency_shares, 7);
    let names = [
        v1beta3::FlowSchemaList::builder().item(|s| s.name("a").priority_level("low")).build().items[0]
            .name()
            .to_owned(),
        v1beta2::FlowSchemaList::builder().item(|s| s.name("b").priority_level("low")).build().items[0]
            .name()
            .to_owned(),
        v1beta1::FlowSchemaList::builder().item(|s| s.name("c").priority_level("low")).build().items[0]
            .name()
            .to_owned(),
        v1::PriorityLevelConfigurationList::builder().item(|l| l.name("d").exempt(|e| e)).build().items[0]
            .name()
            .to_owned(),
        v1beta3::PriorityLevelConfigurationList::builder().item(|l| l.name("e").exempt(|e| e)).build().items[0]
            .name()
            .to_owned(),
        v1beta1::PriorityLevelConfigurationList::builder().item(|l| l.name("f").exempt(|e| e)).build().items[0]
            .name()
            .to_owned(),
    ];
    assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
}
