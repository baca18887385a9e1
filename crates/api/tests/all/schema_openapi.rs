//! The OpenAPI documents are whole, and have what a real kube-apiserver's have.

use std::collections::BTreeSet;

use evenkeel_api::{GROUP, Kind, Version, schema};
use evenkeel_recorded::{compare_subset, compared, transcripts};
use serde_json::Value;

/// The names that references below a value point to.
fn references(value: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str().filter(|_| name == "$ref") {
                    Some(target) => {
                        let target = target.strip_prefix(prefix);
                        found.insert(target.unwrap_or_else(|| panic!("{member} leaves the document")).to_owned());
                    }
                    None => references(member, prefix, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| references(element, prefix, found)),
        _ => {}
    }
}

/// Follows the references from the paths on: each must lead somewhere, and all schemas must be reached.
fn assert_whole(paths: &Value, schemas: &Value, prefix: &str) {
    let mut reached = BTreeSet::new();
    let mut open = BTreeSet::new();
    references(paths, prefix, &mut open);
    while let Some(name) = open.pop_first() {
        let schema = schemas.get(&name).unwrap_or_else(|| panic!("no schema is called {name}"));
        if reached.insert(name) {
            references(schema, prefix, &mut open);
        }
    }
    let all: BTreeSet<_> = schemas.as_object().expect("schemas by name").keys().cloned().collect();
    assert_eq!(reached, all);
}

#[test]
fn every_reference_resolves_and_every_schema_is_reached() {
    for version in Version::ALL {
        let document = schema::openapi_v3(version);
        assert_whole(&document["paths"], &document["components"]["schemas"], "#/components/schemas/");
    }
    let document = schema::openapi_v2();
    assert_whole(&document["paths"], &document["definitions"], "#/definitions/");
}

#[test]
fn every_operation_has_an_id_of_its_own() {
    let document = schema::openapi_v2();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap().iter().filter(|(_, operation)| operation.is_object()) {
            let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{method} {path} has no id"));
            assert!(ids.insert(id), "{id} is there twice");
        }
    }
}

/// API-3, row by row.
#[test]
fn every_path_has_its_methods() {
    for version in Version::ALL {
        let document = schema::openapi_v3(version);
        let paths = document["paths"].as_object().unwrap();
        let root = format!("/apis/{GROUP}/{version}");
        assert_eq!(paths.len(), 1 + 2 * 5);
        assert!(paths.contains_key(&format!("{root}/")));
        for resource in Kind::ALL.map(Kind::resource) {
            for (path, methods) in [
                (format!("{root}/{resource}"), &["delete", "get", "post"][..]),
                (format!("{root}/{resource}/{{name}}"), &["delete", "get", "patch", "put"]),
                (format!("{root}/{resource}/{{name}}/status"), &["get", "patch", "put"]),
                (format!("{root}/watch/{resource}"), &["get"]),
                (format!("{root}/watch/{resource}/{{name}}"), &["get"]),
            ] {
                let members = paths[&path].as_object().unwrap().keys();
                let mut found: Vec<_> = members.filter(|name| *name != "parameters").collect();
                found.sort();
                assert_eq!(found, methods, "{path}");
            }
        }
    }
}

#[test]
fn documents_have_what_was_recorded() {
    let Some(transcripts) = transcripts(&["openapi-"]) else { return };
    let mut documents = 0;
    for transcript in transcripts {
        for step in &transcript.steps {
            let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
            let document = match request.path.strip_prefix("/openapi/") {
                Some("v2") => schema::openapi_v2(),
                Some(path) if path != "v3" => {
                    let version = path.rsplit('/').next().unwrap();
                    schema::openapi_v3(version.parse().unwrap())
                }
                // The index of documents is the server's.
                _ => continue,
            };
            assert_eq!(response.mode, "subset", "{}", transcript.name);
            let mismatches = compare_subset("", response.body.as_ref().unwrap(), &document);
            let shown: Vec<_> = mismatches.iter().map(ToString::to_string).collect();
            assert!(mismatches.is_empty(), "{}:\n{}", transcript.name, shown.join("\n"));
            documents += 1;
        }
    }
    compared("OpenAPI documents", documents);
}
