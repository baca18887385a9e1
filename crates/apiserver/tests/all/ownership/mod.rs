//! A few fields of a priority level, and who owns them: what the properties of ownership are stated in.

use std::collections::{BTreeMap, BTreeSet};

use evenkeel_api::Version;
use evenkeel_api::meta::ManagedFieldsEntry;
use evenkeel_api::v1::PriorityLevelConfiguration;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A field that managers apply and update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Field {
    Label(&'static str),
    Annotation(&'static str),
    Finalizer(&'static str),
    Shares,
    Lendable,
    Borrowing,
}

/// What somebody wants some of the fields to be.
pub(crate) type Wishes = BTreeMap<Field, i32>;

pub(crate) const FIELDS: [Field; 8] = [
    Field::Label("a"),
    Field::Label("b"),
    Field::Annotation("n"),
    Field::Finalizer("example.com/p"),
    Field::Finalizer("example.com/q"),
    Field::Shares,
    Field::Lendable,
    Field::Borrowing,
];

// === impl Field ===

impl Field {
    /// What the object has there.
    pub(crate) fn value_in(self, level: &PriorityLevelConfiguration) -> Option<i32> {
        let number = |text: &String| text.parse().ok();
        let limited = level.spec.limited.as_ref();
        match self {
            Self::Label(name) => level.metadata.labels.get(name).and_then(number),
            Self::Annotation(name) => level.metadata.annotations.get(name).and_then(number),
            Self::Finalizer(name) => level.metadata.finalizers.iter().any(|own| own == name).then_some(0),
            Self::Shares => limited.and_then(|limited| limited.nominal_concurrency_shares),
            Self::Lendable => limited.and_then(|limited| limited.lendable_percent),
            Self::Borrowing => limited.and_then(|limited| limited.borrowing_limit_percent),
        }
    }

    /// What the field is when nobody says anything.
    pub(crate) fn default_value(self) -> Option<i32> {
        match self {
            Self::Shares => Some(30),
            Self::Lendable => Some(0),
            _ => None,
        }
    }

    /// The value that is meant by a wish: a finalizer is there or not.
    pub(crate) fn meant(self, wish: i32) -> i32 {
        if let Self::Finalizer(_) = self { 0 } else { wish }
    }

    /// The path in `fieldsV1`.
    fn path(self, version: Version) -> String {
        match self {
            Self::Label(name) => format!("/f:metadata/f:labels/f:{name}"),
            Self::Annotation(name) => format!("/f:metadata/f:annotations/f:{name}"),
            Self::Finalizer(name) => format!("/f:metadata/f:finalizers/v:\"{}\"", name.replace('/', "~1")),
            Self::Shares => format!("/f:spec/f:limited/f:{}", shares(version)),
            Self::Lendable => "/f:spec/f:limited/f:lendablePercent".to_owned(),
            Self::Borrowing => "/f:spec/f:limited/f:borrowingLimitPercent".to_owned(),
        }
    }

    /// The map or list that the field is a part of and that is there only while it has parts, with its path in `fieldsV1`.
    pub(crate) fn container(self) -> Option<&'static str> {
        match self {
            Self::Label(_) => Some("/f:metadata/f:labels"),
            Self::Annotation(_) => Some("/f:metadata/f:annotations"),
            Self::Finalizer(_) => Some("/f:metadata/f:finalizers"),
            Self::Shares | Self::Lendable | Self::Borrowing => None,
        }
    }

    /// Whether an entry has the field.
    pub(crate) fn is_in(self, entry: &ManagedFieldsEntry) -> bool {
        let version = Version::from_api_version(&entry.api_version).unwrap();
        entry.fields_v1.as_ref().unwrap().tree().pointer(&self.path(version)).is_some()
    }

    /// Who owns the field: names with the operation.
    pub(crate) fn owners(self, level: &PriorityLevelConfiguration) -> BTreeSet<String> {
        let entries = level.metadata.managed_fields.iter().filter(|entry| self.is_in(entry));
        entries.map(owner).collect()
    }
}

/// Who owns a container itself: those who made it come into being, for as long as no update takes it away.
pub(crate) fn container_owners(container: &str, level: &PriorityLevelConfiguration) -> BTreeSet<String> {
    let is_owned = |entry: &&ManagedFieldsEntry| {
        let tree = entry.fields_v1.as_ref().unwrap().tree();
        let set = tree.pointer(container);
        // A node with nothing but `.` in it is written as an empty one (API-135).
        set.is_some_and(|set| set.get(".").is_some() || *set == json!({}))
    };
    level.metadata.managed_fields.iter().filter(is_owned).map(owner).collect()
}

/// An entry's owner. A manager has one Apply entry in all versions, and one Update entry in each.
pub(crate) fn owner(entry: &ManagedFieldsEntry) -> String {
    match entry.operation.as_str() {
        "Apply" => format!("{} Apply", entry.manager),
        operation => format!("{} {operation} {}", entry.manager, entry.api_version),
    }
}

fn shares(version: Version) -> &'static str {
    match version {
        Version::V1 | Version::V1beta3 => "nominalConcurrencyShares",
        Version::V1beta2 | Version::V1beta1 => "assuredConcurrencyShares",
    }
}

/// An object that says what is wished, in that version. It always says what a level cannot do without.
pub(crate) fn body(wishes: &Wishes, version: Version) -> Value {
    let mut body = json!({
        "apiVersion": version.api_version(),
        "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "level"},
        "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}},
    });
    for (field, wish) in wishes {
        match field {
            Field::Label(name) => body["metadata"]["labels"][name] = wish.to_string().into(),
            Field::Annotation(name) => body["metadata"]["annotations"][name] = wish.to_string().into(),
            Field::Finalizer(name) => {
                let mut names = body["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
                names.push((*name).into());
                body["metadata"]["finalizers"] = names.into();
            }
            Field::Shares => body["spec"]["limited"][shares(version)] = (*wish).into(),
            Field::Lendable => body["spec"]["limited"]["lendablePercent"] = (*wish).into(),
            Field::Borrowing => body["spec"]["limited"]["borrowingLimitPercent"] = (*wish).into(),
        }
    }
    body
}

/// A merge patch that makes the fields what is wished; `None` takes a field away.
pub(crate) fn merge_patch(edits: &BTreeMap<Field, Option<i32>>, version: Version) -> Value {
    let wishes = edits.iter().filter_map(|(field, edit)| Some((*field, (*edit)?))).collect();
    let mut patch = body(&wishes, version);
    for field in edits.iter().filter(|(_, edit)| edit.is_none()).map(|(field, _)| field) {
        match field {
            Field::Label(name) => patch["metadata"]["labels"][name] = Value::Null,
            Field::Annotation(name) => patch["metadata"]["annotations"][name] = Value::Null,
            // A merge patch replaces the whole list.
            Field::Finalizer(_) => {}
            Field::Shares => patch["spec"]["limited"][shares(version)] = Value::Null,
            Field::Lendable => patch["spec"]["limited"]["lendablePercent"] = Value::Null,
            Field::Borrowing => patch["spec"]["limited"]["borrowingLimitPercent"] = Value::Null,
        }
    }
    patch
}

pub(crate) fn field() -> impl Strategy<Value = Field> {
    prop::sample::select(FIELDS.to_vec())
}

pub(crate) fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}
