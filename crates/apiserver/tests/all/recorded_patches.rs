//! Recorded conversations about patches, apply and managed fields, replayed against a small server in memory.

use crate::model;

use std::collections::HashMap;

use evenkeel_api::v1::{FlowSchemaSpec, PriorityLevelConfigurationSpec};
use evenkeel_api::validate::ValidSpec;
use evenkeel_api::{HubSpec, Kind, Version};
use evenkeel_apiserver::managed_fields::{OnConflict, WriteTarget};
use evenkeel_apiserver::patch::FieldValidation;
use evenkeel_recorded::{Body, Request, Response, Transcript, compare, compare_subset, compared, transcripts};
use serde_json::{Value, json};

use model::{Call, ModelResponse, Server};

/// The values that placeholders stand for, by their names.
#[derive(Default)]
struct Bindings(HashMap<String, String>);

/// Where a request goes.
struct Target<'a> {
    kind: Kind,
    version: Version,
    name: &'a str,
    endpoint: WriteTarget,
}

#[test]
fn api_115_to_122_patches() {
    replay(&["patch-", "crud-finalizer-patch-", "wire-field-validation-update-"], 200);
}

#[test]
fn api_123_to_133_apply() {
    replay(&["apply-", "jail-zero-apply-", "crud-dry-run-apply-", "kubectl-server-side-migration-"], 150);
}

#[test]
fn api_134_to_144_managed_fields() {
    replay(
        &[
            "managedfields-",
            "jail-zero-shares-",
            "jail-annotation-a",
            "conversion-update-through-",
            "conversion-put-other-",
            "crud-create-system-fields-",
            "crud-put-system-fields-",
            "kubectl-apply-",
        ],
        110,
    );
}

#[test]
fn api_59_and_131_status() {
    replay(&["status-"], 90);
}

/// Replays all conversations with these prefixes; at least that many steps must have been compared.
fn replay(prefixes: &[&str], steps_min: usize) {
    let Some(transcripts) = transcripts(prefixes) else { return };
    let mut problems = Vec::new();
    let mut steps = 0;
    for transcript in &transcripts {
        let kinds: Vec<_> = transcript.steps.iter().filter_map(|step| target(&step.request.as_ref()?.path)).collect();
        let (found, steps_compared) = match kinds.first().map(|target| target.kind) {
            Some(Kind::FlowSchema) => replay_one::<FlowSchemaSpec>(transcript),
            Some(Kind::PriorityLevelConfiguration) => replay_one::<PriorityLevelConfigurationSpec>(transcript),
            None => continue,
        };
        problems.extend(found);
        steps += steps_compared;
    }
    assert!(problems.is_empty(), "{} differences:\n{}", problems.len(), problems.join("\n"));
    assert!(steps >= steps_min, "only {steps} steps were compared");
    compared("patches and applies", steps);
}

fn replay_one<S: HubSpec + ValidSpec>(transcript: &Transcript) -> (Vec<String>, usize) {
    let mut server = Server::<S>::new();
    let mut bindings = Bindings::default();
    let mut problems = Vec::new();
    let mut steps = 0;
    for (index, step) in transcript.steps.iter().enumerate() {
        let (Some(request), Some(response)) = (&step.request, &step.response) else { continue };
        let Some(target) = target(&request.path).filter(|_| !is_about_http(request, response)) else { continue };
        let answer = send(&mut server, request, &target, &bindings);
        steps += 1;
        let what = format!("{} step {index}", transcript.name);
        problems.extend(check(&what, response, &answer, target.version, S::KIND));
        if let Some(expected) = &response.body {
            problems.extend(bindings.bind(expected, &answer.body).into_iter().map(|text| format!("{what}: {text}")));
        }
    }
    (problems, steps)
}

/// Whether an exchange is decided before patches and managed fields come into it: by the path, the method, the query.
fn is_about_http(request: &Request, response: &Response) -> bool {
    let message = response.body.as_ref().and_then(|body| body["message"].as_str()).unwrap_or_default();
    let path_only = ["the server could not find", "the server does not allow"];
    path_only.iter().any(|text| message.starts_with(text))
        || message.contains(".meta.k8s.io \"\" is invalid")
        || !matches!(request.method.as_str(), "GET" | "POST" | "PUT" | "PATCH" | "DELETE")
        || (request.method == "GET" && request.headers.contains_key("Accept"))
}

fn target(path: &str) -> Option<Target<'_>> {
    let mut parts = path.strip_prefix("/apis/flowcontrol.apiserver.k8s.io/")?.split('/');
    let version = parts.next()?.parse().ok()?;
    let resource = parts.next()?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.resource() == resource)?;
    let name = parts.next().unwrap_or_default();
    let endpoint = match parts.next() {
        None => WriteTarget::Object,
        Some("status") => WriteTarget::Status,
        Some(_) => return None,
    };
    Some(Target { kind, version, name, endpoint })
}

fn send<S: HubSpec + ValidSpec>(
    server: &mut Server<S>,
    request: &Request,
    target: &Target<'_>,
    bindings: &Bindings,
) -> ModelResponse {
    let body = match request.body() {
        Some(Body::Json(value)) => serde_json::to_vec(&bindings.fill_in(&value)).unwrap(),
        Some(Body::Raw(text)) => text.into_bytes(),
        None => Vec::new(),
    };
    let header = |name: &str| request.headers.get(name).and_then(Option::as_deref);
    let agent = header("User-Agent").unwrap_or("conformance/1.0 (replay)");
    let manager = request.query("fieldManager").or(agent.split('/').next()).unwrap_or_default();
    server.respond(&Call {
        method: &request.method,
        name: target.name,
        endpoint: target.endpoint,
        version: target.version,
        manager,
        validation: match request.query("fieldValidation") {
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            _ => FieldValidation::Warn,
        },
        dry_run: request.query("dryRun").is_some(),
        on_conflict: match request.query("force") {
            None | Some("false") => OnConflict::Refuse,
            Some(_) => OnConflict::Force,
        },
        content_type: header("Content-Type").unwrap_or("application/json"),
        body: &body,
    })
}

fn check(what: &str, recorded: &Response, response: &ModelResponse, version: Version, kind: Kind) -> Vec<String> {
    let mut problems = Vec::new();
    if response.status != recorded.status {
        let text = response.body["message"].as_str().unwrap_or_default();
        problems.push(format!("{what}: recorded {}, answered {}: {text}", recorded.status, response.status));
    }
    if let Some(expected) = &recorded.body {
        let expected = entries_in_any_order(expected);
        let compare = if recorded.mode == "subset" { compare_subset } else { compare };
        problems.extend(compare(what, &expected, &response.body).iter().map(ToString::to_string));
    }
    if let Some(Value::Array(expected)) = recorded.headers.get("Warning") {
        let texts = version.deprecation(kind).into_iter().chain(response.warnings.iter().cloned());
        let texts: Vec<_> =
            texts.map(|text| format!("299 - \"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).collect();
        problems.extend(
            compare(&format!("{what} warnings"), &json!(expected), &json!(texts)).iter().map(ToString::to_string),
        );
    }
    problems
}

/// The order of entries depends on the seconds of the clock.
fn entries_in_any_order(expected: &Value) -> Value {
    let mut expected = expected.clone();
    if let Some(entries) = expected.pointer_mut("/metadata/managedFields").filter(|entries| entries.is_array()) {
        *entries = json!({"$unordered": entries.take()});
    }
    expected
}

// === impl Bindings ===

impl Bindings {
    /// Notes the values of labelled placeholders. The same label must stand for the same value, and a resource version with a
    /// higher label must be a higher number.
    fn bind(&mut self, expected: &Value, actual: &Value) -> Vec<String> {
        match (expected, actual) {
            (Value::Object(expected), Value::Object(actual)) => expected
                .iter()
                .filter(|(name, _)| *name != "managedFields")
                .flat_map(|(name, value)| self.bind(value, actual.get(name).unwrap_or(&Value::Null)))
                .collect(),
            (Value::String(placeholder), Value::String(actual)) if placeholder.starts_with("{{") => {
                self.bind_text(placeholder, actual)
            }
            _ => Vec::new(),
        }
    }

    fn bind_text(&mut self, placeholder: &str, actual: &str) -> Vec<String> {
        let label = placeholder.trim_start_matches("{{").trim_end_matches("}}");
        if !label.contains(':') {
            return Vec::new();
        }
        let known = self.0.entry(label.to_owned()).or_insert_with(|| actual.to_owned());
        let mut problems = Vec::new();
        if known != actual {
            problems.push(format!("{placeholder} is {known} and {actual}"));
        }
        let number = |text: &str| text.parse::<u64>().unwrap_or_default();
        if let Some(rank) = label.strip_prefix("rv:").map(number) {
            let others = self.0.iter().filter_map(|(name, value)| Some((number(name.strip_prefix("rv:")?), value)));
            for (other_rank, other) in others {
                if rank.cmp(&other_rank) != number(actual).cmp(&number(other)) {
                    problems.push(format!("{placeholder} is {actual}, but rv:{other_rank} is {other}"));
                }
            }
        }
        problems
    }

    /// The body of a request with the values put in.
    fn fill_in(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => {
                let label = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
                label.and_then(|label| self.0.get(label)).map_or_else(|| value.clone(), |bound| bound.as_str().into())
            }
            Value::Array(items) => items.iter().map(|item| self.fill_in(item)).collect(),
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), self.fill_in(value))).collect(),
            plain => plain.clone(),
        }
    }
}
