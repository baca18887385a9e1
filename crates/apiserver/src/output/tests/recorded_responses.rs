//! Recorded responses with objects, lists and tables, written again from the objects in them.

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{Kind, Version};
use evenkeel_recorded::{Request, Response, compare, compare_subset, compared, transcripts};
use http::StatusCode;
use serde_json::Value;

use super::read_yaml;
use super::seen::{Seen, now, parse_path};
use crate::Failure;
use crate::negotiate::{Asked, ResponseKind, recorded_headers};
use crate::output::{Columns, Encoded, ListMeta, Shown, View, deleted, list, object};
use crate::response_data::ResponseData;

#[test]
fn answers_are_as_recorded() {
    let prefixes =
        ["table-", "metaonly-", "wire-yaml", "wire-pretty", "list-", "clients-", "kubectl-", "jail-", "crud-"];
    let Some(transcripts) = transcripts(&prefixes) else { return };
    let mut written = 0;
    for transcript in &transcripts {
        let mut schemas = Seen::<FlowSchemaSpec>::default();
        let mut levels = Seen::<PriorityLevelConfigurationSpec>::default();
        for step in &transcript.steps {
            let (Some(request), Some(recorded)) = (&step.request, &step.response) else { continue };
            let Some((kind, version, name)) = parse_path(&request.path) else { continue };
            let what = format!("{}: {} {}", transcript.name, request.method, request.path);
            written += usize::from(match kind {
                Kind::FlowSchema => check(&mut schemas, version, name, (request, recorded), &what),
                Kind::PriorityLevelConfiguration => check(&mut levels, version, name, (request, recorded), &what),
            });
        }
    }
    assert!(written > 100, "only {written} responses were written");
    compared("objects, lists and tables", written);
}

/// Whether the response was made of whole objects that are known, and was compared.
fn check<S: Columns>(
    seen: &mut Seen<S>,
    version: Version,
    name: Option<&str>,
    (request, recorded): (&Request, &Response),
    what: &str,
) -> bool {
    let Some(expected) = recorded.body.as_ref().or(recorded.yaml.as_ref()) else { return false };
    if recorded.mode != "subset" && recorded.status < 300 {
        seen.note(version, expected);
        if request.method != "GET" {
            seen.note_metadata(expected);
        }
    }
    let headers = recorded_headers(request);
    let asked = Asked::new(&headers, request.query("pretty"));
    let is_list = name.is_none() && request.method != "POST";
    let endpoint = if is_list { ResponseKind::Collection } else { ResponseKind::Object };
    let Ok(wanted) = asked.objects(endpoint) else { return false };
    if expected["kind"] == "Status" && expected["status"] == "Success" {
        let uid = expected["details"]["uid"].as_str().unwrap_or_default();
        assert_response(&deleted(S::KIND, name.unwrap_or_default(), uid, wanted.format), expected, recorded, what);
        return true;
    }
    let is_about_form = |body: &Value| {
        body["message"].as_str().is_some_and(|text| text.starts_with("you requested") || text.contains("includeObject"))
    };
    let names = match () {
        () if is_about_form(expected) && is_list => Vec::new(),
        () if is_about_form(expected) => name.into_iter().collect(),
        () => names_in(expected),
    };
    let Some(mut objects) = names.iter().map(|name| seen.get(name)).collect::<Option<Vec<_>>>() else { return false };
    if recorded.status >= 300 && !is_about_form(expected) {
        return false;
    }
    objects.sort_by_key(|object| object.name());
    let kept: Vec<_> = objects.iter().map(|object| Encoded::new(*object, Version::V1)).collect();
    let shown: Vec<_> = objects.iter().zip(&kept).map(|(object, kept)| Shown { object, v1: Some(kept) }).collect();
    let view = View { version, wanted, include_object: request.query("includeObject"), now: now() };
    let response: Result<ResponseData, Failure> = if is_list {
        let metadata = ListMeta {
            resource_version: "7",
            continue_token: expected["metadata"]["continue"].as_str().filter(|token| *token != "{{absent}}"),
            remaining_item_count: expected["metadata"]["remainingItemCount"].as_u64(),
        };
        list(&metadata, &shown, &view)
    } else {
        let Some(first) = shown.first() else { return false };
        object(StatusCode::from_u16(recorded.status).unwrap(), *first, &view)
    };
    let response = response.unwrap_or_else(|failure| crate::output::failure(&failure, asked.failure()));
    assert_response(&response, expected, recorded, what);
    true
}

/// The names of the objects in a response.
fn names_in(body: &Value) -> Vec<&str> {
    if let Some(rows) = body["rows"].as_array() {
        rows.iter().filter_map(|row| row["cells"][0].as_str()).collect()
    } else if let Some(items) = body["items"].as_array() {
        items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
    } else {
        body["metadata"]["name"].as_str().into_iter().collect()
    }
}

fn assert_response(response: &ResponseData, expected: &Value, recorded: &Response, what: &str) {
    let text = std::str::from_utf8(&response.body).unwrap();
    assert_eq!(response.status, recorded.status, "{what}: {text}");
    let content_type = response.content_type.as_ref().unwrap().to_str().unwrap();
    if let Some(content) = recorded.headers.get("Content-Type") {
        assert_eq!(content, content_type, "{what}");
    }
    let found = match content_type {
        "application/yaml" => read_yaml(text),
        _ => serde_json::from_str(text).unwrap(),
    };
    let compare = if recorded.mode == "subset" { compare_subset } else { compare };
    assert_eq!(compare("", expected, &found), [], "{what}");
    match recorded.format.as_str() {
        "pretty" => assert!(text.starts_with("{\n  \""), "{what}"),
        "compact" => assert_eq!(text.find('\n'), Some(text.len() - 1), "{what}"),
        _ => {}
    }
}
