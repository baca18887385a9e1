//! The options of a deletion, in its body or in its query (API-68 to API-73).

use evenkeel_api::decode::{Document, Node, Value as Tree, parse_json, parse_protobuf, parse_yaml};
use evenkeel_api::protobuf::{Envelope, Malformed};
use evenkeel_api::schema;
use evenkeel_api::validate::{FieldError, FieldErrors, Value};
use evenkeel_api::{GROUP, Version};
use evenkeel_engine::digest::Query;

use super::non_empty;
use super::write::Persistence;
use crate::failure::Failure;
use crate::negotiate::BodyFormat;
use crate::strconv::{is_true, parse_int};

/// The options of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) persistence: Persistence,
    pub(crate) propagation: Propagation,
    /// The identity that the object must have.
    pub(crate) uid: Option<String>,
    /// The version that the object must have.
    pub(crate) resource_version: Option<String>,
}

/// The treatment of objects that depend on the deleted one: there are none, but a finalizer stands for it (API-70).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// The request does not say. A finalizer that the object has already decides.
    Default,
    Background,
    /// The same, asked for by `orphanDependents: false`: if the object stays for now, the response is 202.
    Cascade,
    Orphan,
    Foreground,
}

/// The options before they are checked together.
#[derive(Default)]
struct Raw {
    dry_run: Vec<String>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    uid: Option<String>,
    resource_version: Option<String>,
}

const KIND: &str = "DeleteOptions";

// === impl DeleteOptions ===

impl DeleteOptions {
    /// Reads them from the body if there is one, and from the query otherwise (API-68).
    pub(crate) fn read(query: Query<'_>, body: &[u8], format: BodyFormat) -> Result<Self, Failure> {
        let raw = if body.is_empty() { Raw::of_query(query)? } else { Raw::of_body(body, format)? };
        raw.check()
    }
}

// === impl Raw ===

impl Raw {
    fn of_query(query: Query<'_>) -> Result<Self, Failure> {
        if let Some(text) = query.first("gracePeriodSeconds") {
            parse_int(&text).map_err(Failure::bad_request)?;
        }
        let dry_run = query.pairs().filter(|(name, _)| name == "dryRun").map(|(_, value)| value.into_owned());
        Ok(Self {
            dry_run: dry_run.collect(),
            propagation_policy: non_empty(query, "propagationPolicy").map(std::borrow::Cow::into_owned),
            orphan_dependents: query.first("orphanDependents").map(|value| is_true(&value)),
            uid: None,
            resource_version: None,
        })
    }

    fn of_body(body: &[u8], format: BodyFormat) -> Result<Self, Failure> {
        let document = match format {
            BodyFormat::Json => parse_json(body).map_err(|error| syntax("json parse error: ", &error)),
            BodyFormat::Yaml => match parse_yaml(body) {
                Ok(documents) => documents.into_iter().next().ok_or_else(|| syntax("", &"the document is empty")),
                Err(error) => Err(syntax("", &error)),
            },
            BodyFormat::Protobuf => parse_message(body),
        }?;
        let root = &document.root;
        if !is_map(root) {
            return Err(syntax("json parse error: ", &"the body is not an object"));
        }
        let member = |name: &str| root.get(name).and_then(Node::as_str).unwrap_or_default();
        check_type(member("apiVersion"), member("kind"))?;
        let text = |node: Option<&Node>| node.and_then(Node::as_str).map(str::to_owned);
        let preconditions = root.get("preconditions");
        let precondition = |name: &str| preconditions.and_then(|node| node.get(name));
        for (name, is_fine) in [
            ("gracePeriodSeconds", root.get("gracePeriodSeconds").is_none_or(is_integer)),
            ("propagationPolicy", root.get("propagationPolicy").is_none_or(is_text)),
            ("orphanDependents", root.get("orphanDependents").is_none_or(is_bool)),
            ("dryRun", root.get("dryRun").is_none_or(is_texts)),
            ("preconditions", preconditions.is_none_or(is_map)),
            // A condition that cannot be read must not count as absent.
            ("preconditions.uid", precondition("uid").is_none_or(is_text)),
            ("preconditions.resourceVersion", precondition("resourceVersion").is_none_or(is_text)),
        ] {
            if !is_fine {
                return Err(Failure::bad_request(format!(
                    "DeleteOptions in version \"v1\" cannot be handled as a DeleteOptions: the member {name} has a wrong type"
                )));
            }
        }
        let dry_run = match root.get("dryRun").map(|node| &node.value) {
            Some(Tree::List(items)) => items.iter().filter_map(|item| text(Some(item))).collect(),
            _ => Vec::new(),
        };
        let orphan_dependents = match root.get("orphanDependents").map(|node| &node.value) {
            Some(Tree::Bool(value)) => Some(*value),
            _ => None,
        };
        Ok(Self {
            dry_run,
            propagation_policy: text(root.get("propagationPolicy")),
            orphan_dependents,
            uid: text(precondition("uid")),
            resource_version: text(precondition("resourceVersion")),
        })
    }

    fn check(self) -> Result<DeleteOptions, Failure> {
        let mut errors = Vec::new();
        let policy = self.propagation_policy.as_deref();
        if let Some(policy) = policy {
            if self.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", &Value::text(policy), detail));
            }
            if !matches!(policy, "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", &Value::text(policy), &supported));
            }
        }
        let persistence = Persistence::read(&self.dry_run, &mut errors);
        FieldErrors::none_in(errors).map_err(|errors| Failure::invalid_options(KIND, &errors))?;
        let propagation = match (policy, self.orphan_dependents) {
            (Some("Orphan"), _) | (None, Some(true)) => Propagation::Orphan,
            (Some("Foreground"), _) => Propagation::Foreground,
            (None, Some(false)) => Propagation::Cascade,
            (None, None) => Propagation::Default,
            (Some(_), _) => Propagation::Background,
        };
        Ok(DeleteOptions { persistence, propagation, uid: self.uid, resource_version: self.resource_version })
    }
}

fn syntax(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::bad_request(format!("couldn't get version/kind; {what}{error}"))
}

/// The options in a protobuf message (PB-5).
fn parse_message(body: &[u8]) -> Result<Document, Failure> {
    let malformed = |error: Malformed| Failure::bad_request(error.to_string());
    let envelope = Envelope::open(body).map_err(malformed)?;
    check_type(&envelope.api_version, &envelope.kind)?;
    parse_protobuf(&envelope, &schema::DELETE_OPTIONS).map_err(malformed)
}

/// The body must be the options of a deletion, of whatever group (API-73).
fn check_type(api_version: &str, kind: &str) -> Result<(), Failure> {
    if kind.is_empty() || kind == KIND {
        return Ok(());
    }
    let version = if api_version.is_empty() { format!("{GROUP}/{}", Version::V1) } else { api_version.to_owned() };
    Err(Failure::bad_request(format!(
        "no kind {} is registered for version {} in scheme \
         \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:1\"",
        Value::text(kind),
        Value::text(&version),
    )))
}

fn is_integer(node: &Node) -> bool {
    match &node.value {
        Tree::Null => true,
        Tree::Number(literal) => literal.parse::<i64>().is_ok(),
        _ => false,
    }
}

fn is_text(node: &Node) -> bool {
    matches!(node.value, Tree::Null | Tree::String(_))
}

fn is_bool(node: &Node) -> bool {
    matches!(node.value, Tree::Null | Tree::Bool(_))
}

fn is_map(node: &Node) -> bool {
    matches!(node.value, Tree::Null | Tree::Map(_))
}

fn is_texts(node: &Node) -> bool {
    match &node.value {
        Tree::Null => true,
        Tree::List(items) => items.iter().all(is_text),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str, body: &str) -> Result<DeleteOptions, String> {
        DeleteOptions::read(Query::new(query), body.as_bytes(), BodyFormat::Json).map_err(|failure| failure.message)
    }

    #[test]
    fn api_68_a_body_makes_the_query_ignored() {
        assert_eq!(read("dryRun=All", "").unwrap().persistence, Persistence::DryRun);
        assert_eq!(read("dryRun=All", "{}").unwrap().persistence, Persistence::Stored);
        assert_eq!(read("dryRun=nonsense", r#"{"dryRun":["All"],"x":1}"#).unwrap().persistence, Persistence::DryRun);
    }

    #[test]
    fn api_70_propagation() {
        for (query, body, propagation) in [
            ("", "", Propagation::Default),
            ("", "{}", Propagation::Default),
            ("propagationPolicy=Background", "", Propagation::Background),
            ("propagationPolicy=Orphan", "", Propagation::Orphan),
            ("orphanDependents=true", "", Propagation::Orphan),
            ("orphanDependents=false", "", Propagation::Cascade),
            ("", r#"{"propagationPolicy":"Foreground"}"#, Propagation::Foreground),
        ] {
            assert_eq!(read(query, body).unwrap().propagation, propagation, "{query} {body}");
        }
        assert!(read("propagationPolicy=x", "").unwrap_err().contains("supported values: \"Foreground\""));
        assert!(read("propagationPolicy=Orphan&orphanDependents=1", "").unwrap_err().contains("cannot be both set"));
    }

    #[test]
    fn api_73_other_bodies() {
        assert!(read("", "{not").unwrap_err().starts_with("couldn't get version/kind; json parse error: "));
        let pod = read("", r#"{"apiVersion":"v1","kind":"Pod"}"#).unwrap_err();
        assert!(pod.starts_with("no kind \"Pod\" is registered for version \"v1\" in scheme"), "{pod}");
        assert!(read("", r#"{"apiVersion":"apps/v9","kind":"DeleteOptions"}"#).is_ok());
        assert!(read("", r#"{"dryRun":5}"#).unwrap_err().contains("dryRun has a wrong type"));
        for body in ["[]", "5", "\"x\"", "true"] {
            assert!(read("", body).unwrap_err().starts_with("couldn't get version/kind; json parse error: "), "{body}");
        }
        assert!(read("", "null").is_ok());
    }

    #[test]
    fn api_71_a_precondition_of_a_wrong_type_is_refused_and_not_left_out() {
        for (body, name) in [
            (r#"{"preconditions":{"uid":5}}"#, "preconditions.uid"),
            (r#"{"preconditions":{"resourceVersion":5}}"#, "preconditions.resourceVersion"),
            (r#"{"preconditions":"x"}"#, "preconditions"),
        ] {
            assert!(read("", body).unwrap_err().contains(&format!("the member {name} has a wrong type")), "{body}");
        }
        assert_eq!(read("", r#"{"preconditions":{"uid":null}}"#).unwrap().uid, None);
    }
}
