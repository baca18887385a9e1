//! The types that requests and answers are made of around the objects, and that no Rust type stands for.
//!
//! They are in the form of the table, so that whatever is generated from it treats them like all others.

use super::{Field, ListType, Package, Shape, TypeName, TypeSchema};

const STRINGS: Shape = Shape::List(&Shape::String);

pub(super) const KIND: Field = Field::new("kind", Shape::String, "The kind of the object.");
pub(super) const API_VERSION: Field =
    Field::new("apiVersion", Shape::String, "The group and version that the object is written in.");

// Those of the delete options that may also stand in the query.
pub(super) const GRACE_PERIOD_SECONDS: Field = Field::new(
    "gracePeriodSeconds",
    Shape::Int64,
    "How many seconds the object is given to end by itself. Objects of this group go at once, whatever it says.",
);
pub(super) const IGNORE_STORE_READ_ERROR: Field = Field::new(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    Shape::Boolean,
    "For objects that can no longer be read from the store. Accepted, and without effect.",
);
pub(super) const ORPHAN_DEPENDENTS: Field = Field::new(
    "orphanDependents",
    Shape::Boolean,
    "The old form of `propagationPolicy`: true is `Orphan`, false is `Background`. Only one of the two may be given.",
);
pub(super) const PROPAGATION_POLICY: Field = Field::new(
    "propagationPolicy",
    Shape::String,
    "What happens to the objects that depend on this one: `Background`, `Foreground` or `Orphan`. With the last two, \
     the object is marked and stays until somebody takes the finalizer away that is then added.",
);

pub(super) static TIME: TypeSchema = meta("Time", "A point in time, as RFC 3339 writes it, to the second.", &[]);

pub(super) static FIELDS_V1: TypeSchema = meta(
    "FieldsV1",
    "A set of fields as a tree: `f:NAME` for a member, `k:{KEYS}` and `v:VALUE` for an element of a list, and `.` for \
     the thing itself.",
    &[],
);

pub(super) static LIST_META: TypeSchema = meta(
    "ListMeta",
    "What a list says of itself.",
    &[
        Field::new(
            "resourceVersion",
            Shape::String,
            "The version of the state that the list shows. A watch from here on misses nothing.",
        ),
        Field::new(
            "continue",
            Shape::String,
            "There are more objects: send this text in the parameter of the same name to get the next page.",
        ),
        Field::new(
            "remainingItemCount",
            Shape::Int64,
            "How many objects come after this page. Not told when a selector was given.",
        ),
        Field::new("selfLink", Shape::String, "No longer in use.").dropped(),
    ],
);

pub(super) static DELETE_OPTIONS: TypeSchema = meta(
    "DeleteOptions",
    "How an object is to be deleted. When it is sent, the same options in the query do not count.",
    &[
        KIND,
        API_VERSION,
        GRACE_PERIOD_SECONDS,
        Field::new("preconditions", Shape::Object(&PRECONDITIONS), "What must hold, or nothing is deleted."),
        ORPHAN_DEPENDENTS,
        PROPAGATION_POLICY,
        Field::new("dryRun", STRINGS, "With `All`, everything is checked and nothing is deleted.")
            .list(ListType::Atomic),
        IGNORE_STORE_READ_ERROR,
    ],
);

static PRECONDITIONS: TypeSchema = meta(
    "Preconditions",
    "What must hold of an object before it is deleted.",
    &[
        Field::new("uid", Shape::String, "The identity that the object must have."),
        Field::new("resourceVersion", Shape::String, "The version that the object must be at."),
    ],
);

pub(super) static PATCH: TypeSchema =
    meta("Patch", "A change to an object, in the form that the content type of the request names.", &[]);

pub(super) static STATUS: TypeSchema = meta(
    "Status",
    "How a request ended, for answers that have no object to show.",
    &[
        KIND,
        API_VERSION,
        Field::new("metadata", Shape::Object(&LIST_META), "Empty, but for `continue` when a list expired."),
        Field::new("status", Shape::String, "`Success` or `Failure`."),
        Field::new("message", Shape::String, "What went wrong, in a sentence for people."),
        Field::new("reason", Shape::String, "What went wrong, in one word for programs."),
        Field::new("details", Shape::Object(&STATUS_DETAILS), "What the request was about, and every fault found."),
        Field::new("code", Shape::Int32, "The HTTP status."),
    ],
);

static STATUS_DETAILS: TypeSchema = meta(
    "StatusDetails",
    "What a request was about, and every fault found.",
    &[
        Field::new("name", Shape::String, "The name of the object."),
        Field::new("group", Shape::String, "The API group of the object."),
        Field::new("kind", Shape::String, "The kind or the resource of the object."),
        Field::new("uid", Shape::String, "The identity of the object, if there is exactly one."),
        Field::new("causes", Shape::List(&Shape::Object(&STATUS_CAUSE)), "The faults, one by one.")
            .list(ListType::Atomic),
        Field::new("retryAfterSeconds", Shape::Int32, "How many seconds to wait before trying again."),
    ],
);

static STATUS_CAUSE: TypeSchema = meta(
    "StatusCause",
    "One fault.",
    &[
        Field::new("reason", Shape::String, "What is wrong, in one word for programs."),
        Field::new("message", Shape::String, "What is wrong, in a sentence for people."),
        Field::new("field", Shape::String, "The path of the field that is at fault."),
    ],
);

pub(super) static API_RESOURCE_LIST: TypeSchema = meta(
    "APIResourceList",
    "The resources of one version of the group.",
    &[
        KIND,
        API_VERSION,
        Field::new("groupVersion", Shape::String, "The group and version.").required(),
        Field::new("resources", Shape::List(&Shape::Object(&API_RESOURCE)), "The resources, sorted by name.")
            .required()
            .list(ListType::Atomic),
    ],
);

static API_RESOURCE: TypeSchema = meta(
    "APIResource",
    "A resource, or a subresource of one: what it is called and what can be done with it.",
    &[
        Field::new("name", Shape::String, "The plural name in URLs, with the subresource after a slash.").required(),
        Field::new("singularName", Shape::String, "The singular name.").required(),
        Field::new("namespaced", Shape::Boolean, "Whether the objects live in namespaces.").required(),
        Field::new("group", Shape::String, "The group of the kind, if it is another than that of the list."),
        Field::new("version", Shape::String, "The version of the kind, if it is another than that of the list."),
        Field::new("kind", Shape::String, "The kind of the objects.").required(),
        Field::new("verbs", STRINGS, "What can be done with the resource.").required(),
        Field::new("shortNames", STRINGS, "Short names for people to type.").list(ListType::Atomic),
        Field::new("categories", STRINGS, "The sets of resources that this one belongs to.").list(ListType::Atomic),
        Field::new("storageVersionHash", Shape::String, "Changes when the objects are stored in another version."),
    ],
);

pub(super) static WATCH_EVENT: TypeSchema = meta(
    "WatchEvent",
    "One event of a watch.",
    &[
        Field::new("type", Shape::String, "What happened: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.")
            .required(),
        Field::new(
            "object",
            Shape::Object(&RAW_EXTENSION),
            "The object after the change, or before it if it was deleted. For an error, a Status.",
        )
        .required(),
    ],
);

static RAW_EXTENSION: TypeSchema = TypeSchema {
    name: TypeName::Fixed("RawExtension"),
    package: Package::Runtime,
    doc: "An object of any kind.",
    fields: &[],
    union: None,
};

const fn meta(name: &'static str, doc: &'static str, fields: &'static [Field]) -> TypeSchema {
    TypeSchema { name: TypeName::Fixed(name), package: Package::Meta, doc, fields, union: None }
}
