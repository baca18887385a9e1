//! Reviews: a user's own identity and permissions, for `kubectl auth`.
//!
//! Discovery does not list them, since they are not stored, and clients that use them know their paths.

mod tables;

use std::borrow::Cow;

use evenkeel_api::decode::{parse_json, parse_protobuf, parse_yaml};
use evenkeel_api::protobuf::{Envelope, encode, sealed};
use evenkeel_api::schema::TypeSchema;
use evenkeel_api::validate::{FieldError, Value as Shown};
use evenkeel_engine::{RequestInfo, User};
use http::StatusCode;
use serde_json::{Value, json};

use crate::access::{is_allowed, path_rules, resource_rules};
use crate::clock::now;
use crate::failure::Failure;
use crate::negotiate::BodyFormat;
use crate::output::Format;
use crate::patch::json_of;
use crate::response_data::ResponseData;

/// A review that can be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Review {
    question: Question,
    api_version: &'static str,
}

/// The question of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// Whether the user may do one thing.
    Access,
    /// The permissions of the user.
    Rules,
    /// The identity of the user.
    Identity,
}

/// The paths below `/apis/`.
const REVIEWS: [(&str, Review); 5] = [
    ("authorization.k8s.io/v1/selfsubjectaccessreviews", Review::new(Question::Access, "authorization.k8s.io/v1")),
    ("authorization.k8s.io/v1/selfsubjectrulesreviews", Review::new(Question::Rules, "authorization.k8s.io/v1")),
    ("authentication.k8s.io/v1/selfsubjectreviews", Review::new(Question::Identity, "authentication.k8s.io/v1")),
    (
        "authentication.k8s.io/v1beta1/selfsubjectreviews",
        Review::new(Question::Identity, "authentication.k8s.io/v1beta1"),
    ),
    (
        "authentication.k8s.io/v1alpha1/selfsubjectreviews",
        Review::new(Question::Identity, "authentication.k8s.io/v1alpha1"),
    ),
];

// === impl Review ===

impl Review {
    const fn new(question: Question, api_version: &'static str) -> Self {
        Self { question, api_version }
    }

    /// The review at a path below `/apis/`.
    pub(crate) fn at(path: &str) -> Option<Self> {
        REVIEWS.iter().find(|(known, _)| *known == path).map(|(_, review)| *review)
    }

    /// The response to the review in that body.
    pub(crate) fn respond(
        self,
        user: &User,
        body: &[u8],
        sent: BodyFormat,
        wanted: Format,
    ) -> Result<ResponseData, Failure> {
        let sent = self.read(body, sent)?;
        let mut review = json!({"kind": self.kind(), "apiVersion": self.api_version, "metadata": {}});
        review["status"] = match self.question {
            Question::Access => {
                let allowed = is_allowed(user, &access(&sent)?);
                json!({"allowed": allowed})
            }
            Question::Rules => {
                // The rules are the same in all namespaces, but clients of a kube-apiserver have to name one.
                if text(&sent["spec"], "namespace").is_empty() {
                    return Err(Failure::bad_request("no namespace on request"));
                }
                json!({
                    "resourceRules": resource_rules(user).collect::<Vec<_>>(),
                    "nonResourceRules": path_rules(user).collect::<Vec<_>>(),
                    "incomplete": false,
                })
            }
            Question::Identity => {
                review["metadata"]["creationTimestamp"] = now().to_string().into();
                json!({"userInfo": user_info(user)})
            }
        };
        if self.question != Question::Identity {
            review["spec"] = sent.get("spec").cloned().unwrap_or_else(|| json!({}));
        }
        match wanted {
            Format::Text(format) => Ok(ResponseData::document(StatusCode::CREATED, review.to_string().into(), format)),
            Format::Protobuf => {
                if self.question == Question::Identity {
                    tables::list_extra(&mut review["status"]["userInfo"]);
                }
                let message = encode(&review, self.schema()).map_err(|error| self.unreadable(&error))?;
                Ok(ResponseData::protobuf(StatusCode::CREATED, sealed(self.api_version, self.kind(), &message)))
            }
        }
    }

    fn kind(self) -> &'static str {
        match self.question {
            Question::Access => "SelfSubjectAccessReview",
            Question::Rules => "SelfSubjectRulesReview",
            Question::Identity => "SelfSubjectReview",
        }
    }

    fn schema(self) -> &'static TypeSchema {
        match self.question {
            Question::Access => &tables::ACCESS_REVIEW,
            Question::Rules => &tables::RULES_REVIEW,
            Question::Identity => &tables::SELF_REVIEW,
        }
    }

    fn read(self, body: &[u8], format: BodyFormat) -> Result<Value, Failure> {
        let document = match format {
            BodyFormat::Json => parse_json(body).map_err(|error| self.unreadable(&error))?,
            BodyFormat::Yaml => {
                let documents = parse_yaml(body).map_err(|error| self.unreadable(&error))?;
                documents.into_iter().next().ok_or_else(|| self.unreadable(&"the document is empty"))?
            }
            BodyFormat::Protobuf => {
                let envelope = Envelope::open(body).map_err(|error| self.unreadable(&error))?;
                parse_protobuf(&envelope, self.schema()).map_err(|error| self.unreadable(&error))?
            }
        };
        let review = json_of(&document.root).map_err(|number| self.unreadable(&format!("{number} is too large")))?;
        if !matches!(review, Value::Object(_) | Value::Null) {
            return Err(self.unreadable(&"the body is not an object"));
        }
        for (name, expected) in [("kind", self.kind()), ("apiVersion", self.api_version)] {
            if review[name].as_str().is_some_and(|found| !found.is_empty() && found != expected) {
                return Err(self.unreadable(&format!("{name} is {}, and not {expected:?}", review[name])));
            }
        }
        Ok(review)
    }

    fn unreadable(self, problem: &dyn std::fmt::Display) -> Failure {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {problem}",
            self.kind()
        ))
    }
}

/// The request that an access review is about.
fn access(review: &Value) -> Result<RequestInfo<'_>, Failure> {
    let of = |name: &str| review["spec"].get(name).filter(|attributes| attributes.is_object());
    match (of("resourceAttributes"), of("nonResourceAttributes")) {
        (Some(resource), None) => Ok(RequestInfo {
            is_resource_request: true,
            verb: text(resource, "verb"),
            api_group: text(resource, "group"),
            api_version: text(resource, "version"),
            namespace: text(resource, "namespace"),
            resource: text(resource, "resource"),
            subresource: text(resource, "subresource"),
            name: text(resource, "name"),
            ..RequestInfo::default()
        }),
        (None, Some(path)) => {
            Ok(RequestInfo { path: text(path, "path"), verb: text(path, "verb"), ..RequestInfo::default() })
        }
        (_, path) => {
            let shown = Shown::json(path.unwrap_or(&Value::Null));
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Err(Failure::invalid_review("authorization.k8s.io", &FieldError::invalid("spec", &shown, detail).into()))
        }
    }
}

/// The user as reviews show it. What is empty is left out.
fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = (*user.uid).into();
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

/// The text of a member; empty if there is none.
fn text<'v>(attributes: &'v Value, name: &str) -> Cow<'v, str> {
    attributes[name].as_str().unwrap_or_default().into()
}
