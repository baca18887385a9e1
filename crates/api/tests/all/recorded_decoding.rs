//! Decodes the bodies that were sent to a real kube-apiserver, and compares what it made of them: the object it
//! answered, the warnings it gave, or the words in which it refused (API-14 to API-27, API-62, API-63, API-81, API-82).

use evenkeel_api::decode::{Decoded, Document, Value as TreeValue, parse_json, parse_yaml};
use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::{GROUP, HubSpec, Kind, Version};
use evenkeel_recorded::{Body, Request, Response, compare, compared, transcripts};
use serde_json::{Value, json};

#[test]
fn bodies_are_decoded_as_a_kube_apiserver_decodes_them() {
    let Some(transcripts) = transcripts(&["wire-", "defaults-", "validation-", "conversion-", "jail-", "crud-"]) else {
        return;
    };
    let (mut bodies, mut faults) = (0, Vec::new());
    for transcript in &transcripts {
        for (index, step) in transcript.steps.iter().enumerate() {
            let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
            let Some((version, kind)) = endpoint(request) else { continue };
            let found = match kind {
                Kind::FlowSchema => check::<FlowSchemaSpec>(request, response, version),
                Kind::PriorityLevelConfiguration => check::<PriorityLevelConfigurationSpec>(request, response, version),
            };
            let Some(found) = found else { continue };
            bodies += 1;
            faults.extend(found.into_iter().map(|fault| format!("{} step {index}: {fault}", transcript.name)));
        }
    }
    assert!(faults.is_empty(), "{} differences in {bodies} steps:\n{}", faults.len(), faults.join("\n"));
    compared("decoded bodies", bodies);
}

/// The version and kind of a request that creates or replaces an object.
fn endpoint(request: &Request) -> Option<(Version, Kind)> {
    let path = request.path.strip_prefix(&format!("/apis/{GROUP}/"))?;
    let mut segments = path.split('/');
    let (version, resource) = (segments.next()?.parse().ok()?, segments.next()?);
    let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource)?;
    let is_status = segments.nth(1).is_some();
    (matches!(request.method.as_str(), "POST" | "PUT") && !is_status).then_some((version, kind))
}

/// The differences, or `None` where the step says nothing about decoding.
fn check<S: HubSpec>(request: &Request, response: &Response, version: Version) -> Option<Vec<String>> {
    let document = match request.body()? {
        // The order in which the members were sent is lost where recordings are read. Without places it does not count.
        Body::Json(body) => Some(Document::from(&body)),
        Body::Raw(text) if is_yaml(request) => parse_yaml(text.as_bytes()).ok().map(first_or_empty),
        Body::Raw(text) => parse_json(text.as_bytes()).ok(),
    };
    let message = response.body.as_ref().and_then(|body| body["message"].as_str()).unwrap_or_default();
    // What is no object is refused before its type is looked at (API-21).
    let Some(document) = document.filter(|document| matches!(document.root.value, TreeValue::Map(_) | TreeValue::Null))
    else {
        return Some(fault_unless(message.contains("is unrecognized"), "the text was refused", message));
    };
    if !says(&document, "kind", S::KIND.name()) || !says(&document, "apiVersion", version.api_version()) {
        return None;
    }
    let refusal = format!("{} in version \"{version}\" cannot be handled as a {}: ", S::KIND, S::KIND);
    match (document.decode::<S>(version), response.status) {
        (Err(mismatches), _) => Some(compare_texts(message, &format!("{refusal}{mismatches}"))),
        (Ok(decoded), 400) if message.starts_with(&refusal) => {
            let error = decoded.dropped.strict_error().unwrap_or_else(|| "decoded without an error".to_owned());
            Some(compare_texts(message, &format!("{refusal}{error}")))
        }
        (Ok(decoded), 200 | 201) => Some(compare_object(&decoded, request, response, version)),
        (Ok(_), _) => None,
    }
}

fn compare_object<S: HubSpec>(
    decoded: &Decoded<S>,
    request: &Request,
    response: &Response,
    version: Version,
) -> Vec<String> {
    let recorded = response.body.as_ref().expect("an answer");
    let written = serde_json::to_value(decoded.object.in_version(version)).expect("an object");
    let mut found = Vec::new();
    // Answers of mode `subset` may leave members out.
    for part in ["kind", "apiVersion", "spec"].into_iter().filter(|part| !recorded[part].is_null()) {
        found.extend(compare(part, &recorded[part], &written[part]));
    }
    if request.method == "POST" && response.mode != "subset" {
        for part in ["labels", "annotations", "finalizers", "ownerReferences"] {
            found.extend(compare(part, &recorded["metadata"][part], &written["metadata"][part]));
        }
    }
    if let Some(recorded) = response.headers.get("Warning") {
        let mut warnings: Vec<String> = version.deprecation(S::KIND).into_iter().collect();
        if request.query("fieldValidation") != Some("Ignore") {
            warnings.extend(decoded.dropped.warnings());
        }
        let warnings: Vec<_> = warnings.iter().map(|text| warning(text)).collect();
        found.extend(compare("Warning", recorded, &json!(warnings)));
    }
    found.iter().map(ToString::to_string).collect()
}

/// The value of a `Warning` header (API-95).
fn warning(text: &str) -> Value {
    format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")).into()
}

/// Whether a member is left out, empty, or has that text (API-14).
fn says(document: &Document, name: &str, wanted: &str) -> bool {
    let text = document.root.get(name).and_then(|node| node.as_str()).unwrap_or_default();
    text.is_empty() || text == wanted
}

fn first_or_empty(mut documents: Vec<Document>) -> Document {
    if documents.is_empty() { Document::from(&json!({})) } else { documents.remove(0) }
}

fn is_yaml(request: &Request) -> bool {
    request.headers.get("Content-Type").is_some_and(|value| value.as_deref() == Some("application/yaml"))
}

fn compare_texts(recorded: &str, actual: &str) -> Vec<String> {
    compare("message", &recorded.into(), &actual.into()).iter().map(ToString::to_string).collect()
}

fn fault_unless(holds: bool, what: &str, recorded: &str) -> Vec<String> {
    if holds { Vec::new() } else { vec![format!("{what}, recorded {recorded}")] }
}
