//! The bootstrap objects are those of a real kube-apiserver (API-74).

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::bootstrap::{self, BootstrapObjects};
use evenkeel_api::{Kind, Version, Wire, v1, v1beta1, v1beta2, v1beta3};
use evenkeel_recorded::{Golden, Mismatch, compare, compared, golden_documents, transcripts};
use serde_json::{Value, json};

/// The objects of one kind by name, as one version writes them.
fn written(kind: Kind, version: Version) -> BTreeMap<String, Value> {
    fn write<W: Wire>(objects: &[evenkeel_api::Object<v1::V1, W::HubSpec>]) -> Vec<Value> {
        objects.iter().map(|object| serde_json::to_value(W::from_hub(object.clone())).unwrap()).collect()
    }

    let (schemas, levels) = (bootstrap::flow_schemas(), bootstrap::priority_levels());
    let objects = match (kind, version) {
        (Kind::FlowSchema, Version::V1) => write::<v1::FlowSchema>(schemas),
        (Kind::FlowSchema, Version::V1beta3) => write::<v1beta3::FlowSchema>(schemas),
        (Kind::FlowSchema, Version::V1beta2) => write::<v1beta2::FlowSchema>(schemas),
        (Kind::FlowSchema, Version::V1beta1) => write::<v1beta1::FlowSchema>(schemas),
        (Kind::PriorityLevelConfiguration, Version::V1) => write::<v1::PriorityLevelConfiguration>(levels),
        (Kind::PriorityLevelConfiguration, Version::V1beta3) => write::<v1beta3::PriorityLevelConfiguration>(levels),
        (Kind::PriorityLevelConfiguration, Version::V1beta2) => write::<v1beta2::PriorityLevelConfiguration>(levels),
        (Kind::PriorityLevelConfiguration, Version::V1beta1) => write::<v1beta1::PriorityLevelConfiguration>(levels),
    };
    objects.into_iter().map(|object| (object["metadata"]["name"].as_str().unwrap().to_owned(), object)).collect()
}

/// The kind and version that a path of the API is about.
fn kind_and_version(path: &str) -> (Kind, Version) {
    let mut parts = path.strip_prefix("/apis/flowcontrol.apiserver.k8s.io/").unwrap().split('/');
    let version = parts.next().unwrap().parse().unwrap();
    let kind = match parts.next().unwrap() {
        "flowschemas" => Kind::FlowSchema,
        "prioritylevelconfigurations" => Kind::PriorityLevelConfiguration,
        resource => panic!("unknown resource {resource}"),
    };
    (kind, version)
}

fn assert_same(what: &str, recorded: &Value, ours: &Value) {
    let mismatches: Vec<_> = compare(what, recorded, ours).iter().map(Mismatch::to_string).collect();
    assert!(mismatches.is_empty(), "{}", mismatches.join("\n"));
}

#[test]
fn api_74_specs_and_annotations_are_those_that_a_server_lists() {
    let Some(transcripts) = transcripts(&["bootstrap-objects-"]) else { return };
    let mut lists = 0;
    for step in transcripts.iter().flat_map(|transcript| &transcript.steps) {
        let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
        let (kind, version) = kind_and_version(&request.path);
        let ours = written(kind, version);
        let recorded = response.body.as_ref().unwrap()["items"]["$contains"].as_array().unwrap();
        let recorded_names: BTreeSet<_> =
            recorded.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        assert_eq!(ours.keys().cloned().collect::<BTreeSet<_>>(), recorded_names, "{kind} in {version}");
        for item in recorded {
            let name = item["metadata"]["name"].as_str().unwrap();
            let what = format!("{kind} {name} in {version}");
            assert_same(&what, &item["spec"], &ours[name]["spec"]);
            assert_same(&what, &item["metadata"]["annotations"], &ours[name]["metadata"]["annotations"]);
        }
        lists += 1;
    }
    compared("lists of bootstrap objects", lists);
}

/// The recorded set of owned fields names every member that the server's own manager wrote.
#[test]
fn api_74_the_fields_that_are_set_are_those_that_a_server_owns() {
    let Some(transcripts) = transcripts(&["bootstrap-managed-fields-"]) else { return };
    for step in transcripts.iter().flat_map(|transcript| &transcript.steps) {
        let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
        let (kind, version) = kind_and_version(&request.path);
        let recorded = response.body.as_ref().unwrap();
        let name = recorded["metadata"]["name"].as_str().unwrap();
        assert_eq!(recorded["apiVersion"], written(kind, version)[name]["apiVersion"]);
        // Ownership is always told in v1, in which the manager writes (API-64).
        let ours = &written(kind, Version::V1)[name];
        let fields = &recorded["metadata"]["managedFields"][0]["fieldsV1"];
        let what = format!("{kind} {name}");
        assert_same(&what, &fields["f:spec"], &owned(&ours["spec"]));
        let mut annotations = owned(&ours["metadata"]["annotations"]);
        annotations["."] = json!({});
        assert_same(&what, &fields["f:metadata"], &json!({"f:annotations": annotations}));
        assert!(ours["metadata"].get("labels").is_none());
    }
    compared("conversations about the owners of bootstrap objects", transcripts.len());
}

/// The owned fields of a part of the specification. Lists are owned as a whole, and so are texts and numbers;
/// objects by their members, and on their own where they are optional or may be.
fn owned(value: &Value) -> Value {
    let Value::Object(members) = value else { return json!({}) };
    let own = |name: &String, value: &Value| {
        let mut fields = owned(value);
        if ["limited", "exempt", "limitResponse", "queuing", "distinguisherMethod"].contains(&name.as_str()) {
            fields["."] = json!({});
        }
        (format!("f:{name}"), fields)
    };
    members.iter().map(|(name, value)| own(name, value)).collect()
}

#[test]
fn api_74_specs_are_those_of_the_recorded_engine() {
    let recorded = golden_documents::<Value>(Golden::Bootstrap);
    for (_, recorded) in &recorded {
        for (group, ours) in [("mandatory", bootstrap::mandatory()), ("suggested", bootstrap::suggested())] {
            assert_group(&recorded[group], ours);
        }
    }
    compared("sets of bootstrap objects", recorded.len());
}

fn assert_group(recorded: &Value, ours: &BootstrapObjects) {
    let (levels, schemas) = (&recorded["priorityLevels"], &recorded["flowSchemas"]);
    assert_eq!(ours.priority_levels.len(), levels.as_array().unwrap().len());
    assert_eq!(ours.flow_schemas.len(), schemas.as_array().unwrap().len());
    for level in levels.as_array().unwrap() {
        let name = level["metadata"]["name"].as_str().unwrap();
        let ours = ours.priority_level(name).unwrap_or_else(|| panic!("no level {name}"));
        assert_same(name, &level["spec"], &serde_json::to_value(&ours.spec).unwrap());
    }
    for schema in schemas.as_array().unwrap() {
        let name = schema["metadata"]["name"].as_str().unwrap();
        let ours = ours.flow_schema(name).unwrap_or_else(|| panic!("no flow schema {name}"));
        assert_same(name, &schema["spec"], &serde_json::to_value(&ours.spec).unwrap());
    }
}

#[test]
fn only_the_two_names_of_each_kind_are_mandatory() {
    for kind in [Kind::FlowSchema, Kind::PriorityLevelConfiguration] {
        assert!(bootstrap::is_mandatory(kind, "exempt") && bootstrap::is_mandatory(kind, "catch-all"));
        assert!(!bootstrap::is_mandatory(kind, "global-default") && !bootstrap::is_mandatory(kind, ""));
    }
    assert_eq!(bootstrap::mandatory_flow_schema("exempt").unwrap().spec.matching_precedence, 1);
    assert!(bootstrap::mandatory_priority_level("exempt").unwrap().spec.exempt.is_some());
    assert!(bootstrap::mandatory_priority_level("system").is_none());
}
