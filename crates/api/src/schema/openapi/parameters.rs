//! The parameters that operations take (section 9 of the specification), grouped by what they are for.
//!
//! They are in the form of the table's fields: a name, a type and what it is for.

use serde_json::{Value, json};

use super::components::DescribedObject;
use crate::schema::meta_types::{GRACE_PERIOD_SECONDS, IGNORE_STORE_READ_ERROR, ORPHAN_DEPENDENTS, PROPAGATION_POLICY};
use crate::schema::{Choice, Field, Shape};

/// Where a parameter stands in a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Position {
    Path,
    Query,
}

/// The name of the object in the path.
pub(super) const NAME: Field = Field::new("name", Shape::String, "The name of the object.").required();

/// Taken by every operation.
pub(super) const EVERYWHERE: &[Field] = &[
    Field::new(
        "pretty",
        Shape::String,
        "With `true`, the response is indented for people to read; with `false`, it is one line. Without it, browsers and \
         curl get the first form and everybody else the second.",
    ),
    Field::new("timeout", Shape::String, "How long the request may take, as a duration: `32s`."),
];

/// Taken by everything that returns objects, for the case that they are a table.
pub(super) const TABLE: &[Field] = &[Field::new(
    "includeObject",
    Shape::Choice(&INCLUDE_OBJECT),
    "What comes with each row when the response is a table.",
)];

/// Taken by reading one object.
pub(super) const READ: &[Field] = &[Field::new(
    "resourceVersion",
    Shape::String,
    "The state must not be older than this version. `0` allows any state; without it, the current one is read.",
)];

/// Taken by what is done with several objects at once.
pub(super) const SELECT: &[Field] = &[
    Field::new("continue", Shape::String, "The text of the same name in the page before, to get the next page."),
    Field::new(
        "fieldSelector",
        Shape::String,
        "Only objects with these values of fields, for example `metadata.name=batch`.",
    ),
    Field::new("labelSelector", Shape::String, "Only objects with such labels, for example `team in (a,b),!legacy`."),
    Field::new("limit", Shape::Int64, "How many objects a page has at most. Without it, all come at once."),
    Field::new(
        "resourceVersion",
        Shape::String,
        "The version of the state to list, or to watch from, in the sense of `resourceVersionMatch`. `0` allows any \
         state; without it, the current one is meant.",
    ),
    Field::new(
        "resourceVersionMatch",
        Shape::Choice(&RESOURCE_VERSION_MATCH),
        "What is meant by `resourceVersion`. Without it, `NotOlderThan` for lists, and `Exact` if there is a `limit`.",
    ),
    Field::new(
        "sendInitialEvents",
        Shape::Boolean,
        "For a watch: whether it starts with one event for each object that is there already. Needs \
         `resourceVersionMatch=NotOlderThan`.",
    ),
    Field::new("shardSelector", Shape::String, "Asks for one shard of the objects. Ignored: all of them are meant."),
    Field::new("timeoutSeconds", Shape::Int64, "After how many seconds a watch ends."),
];

/// Taken by lists that may become watches.
pub(super) const WATCH: &[Field] = &[
    Field::new(
        "allowWatchBookmarks",
        Shape::Boolean,
        "Whether a watch may send events of type `BOOKMARK`, which say up to which version everything was sent.",
    ),
    Field::new("watch", Shape::Boolean, "Whether to go on with a stream of changes instead of a list."),
];

/// Taken by every write but deletion.
pub(super) const WRITE: &[Field] = &[
    DRY_RUN,
    Field::new(
        "fieldManager",
        Shape::String,
        "The name under which the fields that are set here are owned, 128 bytes at most. Without it, the part of the \
         user agent before the first slash. Required to apply.",
    ),
    Field::new(
        "fieldValidation",
        Shape::Choice(&FIELD_VALIDATION),
        "What happens to fields that are unknown or given twice. Without it, `Warn`.",
    ),
];

/// Taken by patches.
pub(super) const APPLY: &[Field] = &[Field::new(
    "force",
    Shape::Boolean,
    "Only to apply: whether fields that others own are taken over. Without it, they are a conflict.",
)];

/// Taken by deletion, unless the request has a body.
pub(super) const DELETE: &[Field] =
    &[DRY_RUN, GRACE_PERIOD_SECONDS, IGNORE_STORE_READ_ERROR, ORPHAN_DEPENDENTS, PROPAGATION_POLICY];

const DRY_RUN: Field =
    Field::new("dryRun", Shape::String, "With `All`, everything is checked and returned, and nothing is stored.");

static FIELD_VALIDATION: Choice = Choice {
    name: "FieldValidation",
    doc: "What happens to fields that are unknown or given twice.",
    values: &[
        ("Ignore", "They are dropped."),
        ("Warn", "They are dropped, each with a warning."),
        ("Strict", "The request is refused."),
    ],
};

static RESOURCE_VERSION_MATCH: Choice = Choice {
    name: "ResourceVersionMatch",
    doc: "Which states fit a version.",
    values: &[("Exact", "The state at that version."), ("NotOlderThan", "That state or a later one.")],
};

static INCLUDE_OBJECT: Choice = Choice {
    name: "IncludeObject",
    doc: "What comes with each row of a table.",
    values: &[
        ("None", "Nothing."),
        ("Metadata", "The object's metadata; the default."),
        ("Object", "The whole object."),
    ],
};

/// A parameter as OpenAPI writes it.
pub(super) fn parameter(field: &Field, position: Position, place: DescribedObject) -> Value {
    let mut description = field.description();
    if let Shape::Choice(choice) = field.shape {
        description.extend(choice.meanings().map(|(value, meaning)| format!(" `{value}`: {meaning}")));
    }
    let mut parameter = super::components::members(json!({
        "name": field.name,
        "in": match position { Position::Path => "path", Position::Query => "query" },
        "description": description,
        "schema": place.value(field.shape),
    }));
    if field.required {
        parameter.insert("required".into(), true.into());
    }
    parameter.into()
}
