//! The types of reviews, for protobuf: fields and their numbers.

use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::schema::{Described, Field, ListType, Package, Shape, TypeName, TypeSchema};
use serde_json::{Value, json};

const STRINGS: Shape = Shape::List(&Shape::String);

const fn object(name: &'static str, doc: &'static str, fields: &'static [Field]) -> TypeSchema {
    TypeSchema { name: TypeName::Fixed(name), package: Package::Meta, doc, fields, union: None }
}

const fn text(name: &'static str, number: u32) -> Field {
    Field::new(name, Shape::String, "").number(number)
}

const fn texts(name: &'static str, number: u32) -> Field {
    Field::new(name, STRINGS, "").number(number).list(ListType::Atomic)
}

const fn message(name: &'static str, schema: &'static TypeSchema, number: u32) -> Field {
    Field::new(name, Shape::Object(schema), "").number(number).optional()
}

pub(super) static ACCESS_REVIEW: TypeSchema = object(
    "SelfSubjectAccessReview",
    "Whether the user may do something.",
    &[message("spec", &ACCESS_REVIEW_SPEC, 2), message("status", &ACCESS_REVIEW_STATUS, 3)],
);

static ACCESS_REVIEW_SPEC: TypeSchema = object(
    "SelfSubjectAccessReviewSpec",
    "What is asked for.",
    &[
        message("resourceAttributes", &RESOURCE_ATTRIBUTES, 1),
        message("nonResourceAttributes", &NON_RESOURCE_ATTRIBUTES, 2),
    ],
);

static RESOURCE_ATTRIBUTES: TypeSchema = object(
    "ResourceAttributes",
    "A request about a resource.",
    &[
        text("namespace", 1),
        text("verb", 2),
        text("group", 3),
        text("version", 4),
        text("resource", 5),
        text("subresource", 6),
        text("name", 7),
    ],
);

static NON_RESOURCE_ATTRIBUTES: TypeSchema =
    object("NonResourceAttributes", "A request about a path.", &[text("path", 1), text("verb", 2)]);

static ACCESS_REVIEW_STATUS: TypeSchema =
    object("SubjectAccessReviewStatus", "The verdict.", &[Field::new("allowed", Shape::Boolean, "").number(1)]);

pub(super) static RULES_REVIEW: TypeSchema = object(
    "SelfSubjectRulesReview",
    "All that the user may do.",
    &[message("spec", &RULES_REVIEW_SPEC, 2), message("status", &RULES_REVIEW_STATUS, 3)],
);

static RULES_REVIEW_SPEC: TypeSchema =
    object("SelfSubjectRulesReviewSpec", "Where it is asked for.", &[text("namespace", 1)]);

static RULES_REVIEW_STATUS: TypeSchema = object(
    "SubjectRulesReviewStatus",
    "The rules.",
    &[
        Field::new("resourceRules", Shape::List(&Shape::Object(&RESOURCE_RULE)), "").number(1).list(ListType::Atomic),
        Field::new("nonResourceRules", Shape::List(&Shape::Object(&NON_RESOURCE_RULE)), "")
            .number(2)
            .list(ListType::Atomic),
        Field::new("incomplete", Shape::Boolean, "").number(3),
    ],
);

static RESOURCE_RULE: TypeSchema =
    object("ResourceRule", "Verbs on resources.", &[texts("verbs", 1), texts("apiGroups", 2), texts("resources", 3)]);

static NON_RESOURCE_RULE: TypeSchema =
    object("NonResourceRule", "Verbs on paths.", &[texts("verbs", 1), texts("nonResourceURLs", 2)]);

pub(super) static SELF_REVIEW: TypeSchema =
    object("SelfSubjectReview", "Who the user is.", &[METADATA, message("status", &SELF_REVIEW_STATUS, 2)]);

const METADATA: Field = Field::new("metadata", ObjectMeta::SHAPE, "").number(1).optional();

static SELF_REVIEW_STATUS: TypeSchema =
    object("SelfSubjectReviewStatus", "The user.", &[message("userInfo", &USER_INFO, 1)]);

static USER_INFO: TypeSchema = object(
    "UserInfo",
    "A user.",
    &[
        text("username", 1),
        text("uid", 2),
        texts("groups", 3),
        Field::new("extra", Shape::List(&Shape::Object(&EXTRA_ENTRY)), "").number(4).list(ListType::Atomic),
    ],
);

/// A map is a list of its entries in protobuf.
static EXTRA_ENTRY: TypeSchema =
    object("ExtraEntry", "What else is known.", &[text("key", 1), message("value", &EXTRA_VALUE, 2)]);

static EXTRA_VALUE: TypeSchema = object("ExtraValue", "Texts.", &[texts("items", 1)]);

/// Turns the map `extra` of a user into the list that it is in protobuf.
pub(super) fn list_extra(user_info: &mut Value) {
    if let Some(extra) = user_info.get("extra").and_then(Value::as_object) {
        let entries = extra.iter().map(|(key, items)| json!({"key": key, "value": {"items": items}}));
        user_info["extra"] = entries.collect();
    }
}
