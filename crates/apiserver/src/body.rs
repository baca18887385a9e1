//! The object in the body of a create or an update (API-14 to API-20, API-81, API-82, API-105 to API-107).

use evenkeel_api::decode::{Document, Dropped, Node, parse_json, parse_protobuf, parse_yaml};
use evenkeel_api::protobuf::Envelope;
use evenkeel_api::schema;
use evenkeel_api::v1::V1;
use evenkeel_api::validate::{EmptyRules, Value};
use evenkeel_api::{HubSpec, Kind, Object, Version};

use crate::failure::Failure;
use crate::managed_fields::SentManagers;
use crate::negotiate::BodyFormat;
use crate::patch::FieldValidation;

/// An object that a client sent.
#[derive(Debug)]
pub(crate) struct Sent<S: HubSpec> {
    pub(crate) object: Object<V1, S>,
    pub(crate) warnings: Vec<String>,
    /// What it says of `managedFields`.
    pub(crate) managers: SentManagers,
    pub(crate) empty_rules: EmptyRules,
}

/// How many bytes of a body are quoted.
const QUOTED_BYTES_MAX: usize = 30;

/// The object of the kind of `S` in a body that was sent to an endpoint of `version`.
pub(crate) fn decode<S: HubSpec>(
    body: &[u8],
    format: BodyFormat,
    version: Version,
    validation: FieldValidation,
) -> Result<Sent<S>, Failure> {
    let document = match format {
        BodyFormat::Json | BodyFormat::Yaml => {
            let document = parse_text(body, format, S::KIND)?;
            let member = |name: &str| document.root.get(name).and_then(Node::as_str).unwrap_or_default();
            check_type(member("apiVersion"), member("kind"), S::KIND, version)?;
            document
        }
        BodyFormat::Protobuf => parse_message(body, S::KIND, version)?,
    };
    let decoded = document.decode::<S>(version).map_err(|mismatches| {
        let mismatch = mismatches.first();
        Failure::bad_request(unhandled(S::KIND.name(), version.name(), S::KIND, &mismatch.wire_message))
    })?;
    let warnings = judge(&decoded.dropped, validation)
        .map_err(|error| Failure::bad_request(unhandled(S::KIND.name(), version.name(), S::KIND, &error)))?;
    let (managers, empty_rules) = (SentManagers::of(&document.root), EmptyRules::of(&document.root));
    Ok(Sent { object: decoded.object, warnings, managers, empty_rules })
}

/// The warnings for what was dropped, or why it may not be (API-81).
fn judge(dropped: &Dropped, validation: FieldValidation) -> Result<Vec<String>, String> {
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(dropped.warnings()),
        FieldValidation::Strict => dropped.strict_error().map_or(Ok(Vec::new()), Err),
    }
}

/// The object in a protobuf message (PB-1). Its envelope names its kind and version.
fn parse_message(body: &[u8], kind: Kind, version: Version) -> Result<Document, Failure> {
    let envelope = Envelope::open(body).map_err(|error| unrecognized(body, kind, "", &error))?;
    check_type(&envelope.api_version, &envelope.kind, kind, version)?;
    parse_protobuf(&envelope, schema::object_type(version, kind))
        .map_err(|error| Failure::bad_request(unhandled(kind.name(), version.name(), kind, &error.to_string())))
}

fn parse_text(body: &[u8], format: BodyFormat, kind: Kind) -> Result<Document, Failure> {
    let fault = |what: &str, problem: &dyn std::fmt::Display| unrecognized(body, kind, what, problem);
    let document = if format == BodyFormat::Yaml {
        let documents = parse_yaml(body).map_err(|error| fault("yaml: ", &error))?;
        documents.into_iter().next().unwrap_or_else(|| Document::from(&serde_json::Value::Null))
    } else {
        parse_json(body).map_err(|error| fault("couldn't get version/kind; json parse error: ", &error))?
    };
    match document.root.value {
        evenkeel_api::decode::Value::Map(_) | evenkeel_api::decode::Value::Null => Ok(document),
        _ => Err(fault("couldn't get version/kind; json parse error: ", &"the body is not an object")),
    }
}

fn unrecognized(body: &[u8], kind: Kind, what: &str, problem: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {what}{problem} ({})",
        quoted(body)
    ))
}

/// The beginning of a body, as text if it looks like JSON and in hexadecimal otherwise.
fn quoted(body: &[u8]) -> String {
    if body.is_empty() {
        return "<empty>".to_owned();
    }
    let start = &body[..body.len().min(QUOTED_BYTES_MAX)];
    let mut text = String::new();
    if body[0] == b'{' {
        text += &String::from_utf8_lossy(start);
    } else {
        for byte in start {
            text += &format!("{byte:02x}");
        }
    }
    if body.len() > QUOTED_BYTES_MAX {
        text += " ...";
    }
    text
}

/// The kind and version in the body, if it has them, must be those of the endpoint.
fn check_type(api_version: &str, sent_kind: &str, kind: Kind, version: Version) -> Result<(), Failure> {
    let api_version = if api_version.is_empty() { version.api_version() } else { api_version };
    let sent_kind = if sent_kind.is_empty() { kind.name() } else { sent_kind };
    let short = api_version.rsplit('/').next().unwrap_or_default();
    let known_version = Version::from_api_version(api_version);
    if known_version.is_some() && sent_kind == kind.name() {
        return if known_version == Some(version) {
            Ok(())
        } else {
            Err(Failure::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({})",
                version.api_version()
            )))
        };
    }
    let is_of_group = known_version.is_some()
        && Kind::ALL.iter().any(|known| sent_kind.strip_suffix("List").unwrap_or(sent_kind) == known.name());
    let problem = if is_of_group {
        format!("converting ({short}.{sent_kind}) to (flowcontrol.{kind}): unknown conversion")
    } else {
        unregistered(sent_kind, api_version)
    };
    Err(Failure::bad_request(unhandled(sent_kind, short, kind, &problem)))
}

/// The words for a kind that no server of the group knows.
fn unregistered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:1\"",
        Value::text(kind),
        Value::text(api_version)
    )
}

fn unhandled(sent: &str, version: &str, kind: Kind, problem: &str) -> String {
    format!("{sent} in version {} cannot be handled as a {kind}: {problem}", Value::text(version))
}

// === impl Sent ===

impl<S: HubSpec> Sent<S> {
    /// An object that the server itself writes.
    pub(crate) fn of(object: Object<V1, S>) -> Self {
        Self { object, warnings: Vec::new(), managers: SentManagers::AsDecoded, empty_rules: EmptyRules::Absent }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::GROUP;
    use evenkeel_api::v1::FlowSchemaSpec;

    use super::*;

    fn message(body: &str) -> String {
        let sent = decode::<FlowSchemaSpec>(body.as_bytes(), BodyFormat::Json, Version::V1, FieldValidation::Warn);
        sent.unwrap_err().message
    }

    #[test]
    fn api_106_and_107_other_types() {
        let api_version = format!("{GROUP}/v1beta3");
        assert_eq!(
            message(&format!(r#"{{"apiVersion":"{api_version}","kind":"FlowSchema"}}"#)),
            format!("the API version in the data ({api_version}) does not match the expected API version ({GROUP}/v1)")
        );
        assert_eq!(
            message(r#"{"kind":"FlowSchemaList"}"#),
            "FlowSchemaList in version \"v1\" cannot be handled as a FlowSchema: \
             converting (v1.FlowSchemaList) to (flowcontrol.FlowSchema): unknown conversion"
        );
        assert!(message(r#"{"apiVersion":"v1","kind":"FlowSchema"}"#).contains("is registered for version \"v1\""));
    }

    #[test]
    fn bodies_that_cannot_be_read_are_quoted() {
        for (body, end) in [("", "(<empty>)"), ("{", "({)"), ("[]", "(5b5d)"), (&"x".repeat(31), "7878 ...)")] {
            assert!(message(body).ends_with(end), "{body}");
        }
    }
}
