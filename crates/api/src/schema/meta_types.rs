//! The types that requests and responses are made of around the objects, and that no Rust type stands for.
//!
//! They are in the form of the table, so that whatever is generated from it treats them like all others.

use super::{Described, Field, ListType, Package, Shape, TypeName, TypeSchema};
use crate::meta::{ListMeta, ObjectMeta};

const STRINGS: Shape = Shape::List(&Shape::String);

pub(crate) const KIND: Field = Field::new("kind", Shape::String, "The kind of the object.");
pub(crate) const API_VERSION: Field =
    Field::new("apiVersion", Shape::String, "The API group and version of the object.");

// The delete options that may also stand in the query.
pub(super) const GRACE_PERIOD_SECONDS: Field = Field::new(
    "gracePeriodSeconds",
    Shape::Int64,
    "How many seconds the object is given to end by itself. Objects of this group go at once, whatever it says.",
)
.number(1)
.optional();
pub(super) const IGNORE_STORE_READ_ERROR: Field = Field::new(
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    Shape::Boolean,
    "For objects that can no longer be read from the store. Accepted, and without effect.",
)
.number(6)
.optional();
pub(super) const ORPHAN_DEPENDENTS: Field = Field::new(
    "orphanDependents",
    Shape::Boolean,
    "The old form of `propagationPolicy`: true is `Orphan`, false is `Background`. Only one of the two may be given.",
)
.number(3)
.optional();
pub(super) const PROPAGATION_POLICY: Field = Field::new(
    "propagationPolicy",
    Shape::String,
    "What happens to the objects that depend on this one: `Background`, `Foreground` or `Orphan`. With the last two, \
     the object is marked and stays until somebody takes the finalizer away that is then added.",
)
.number(4)
.optional();

pub(super) static TIME: TypeSchema =
    meta("Time", "A point in time in RFC 3339 format, with a precision of one second.", &[]);

pub(super) static FIELDS_V1: TypeSchema = meta(
    "FieldsV1",
    "A set of fields as a tree: `f:NAME` for a field, `k:{KEYS}` and `v:VALUE` for an element of a list, and `.` for the value itself.",
    &[],
);

/// How an object is to be deleted.
pub static DELETE_OPTIONS: TypeSchema = meta(
    "DeleteOptions",
    "How an object is to be deleted. When it is sent, the same options in the query do not count.",
    &[
        KIND,
        API_VERSION,
        GRACE_PERIOD_SECONDS,
        Field::new("preconditions", Shape::Object(&PRECONDITIONS), "What must hold, or nothing is deleted.")
            .number(2)
            .optional(),
        ORPHAN_DEPENDENTS,
        PROPAGATION_POLICY,
        Field::new("dryRun", STRINGS, "With `All`, everything is checked and nothing is deleted.")
            .number(5)
            .list(ListType::Atomic),
        IGNORE_STORE_READ_ERROR,
    ],
);

static PRECONDITIONS: TypeSchema = meta(
    "Preconditions",
    "What must hold of an object before it is deleted.",
    &[
        Field::new("uid", Shape::String, "The identity that the object must have.").number(1).optional(),
        Field::new("resourceVersion", Shape::String, "The version that the object must be at.").number(2).optional(),
    ],
);

pub(super) static PATCH: TypeSchema =
    meta("Patch", "A change to an object, in the form that the content type of the request names.", &[]);

/// How a request ended.
pub static STATUS: TypeSchema = meta(
    "Status",
    "How a request ended, for responses that have no object to show.",
    &[
        KIND,
        API_VERSION,
        Field::new("metadata", ListMeta::SHAPE, "Empty, but for `continue` when a list expired.").number(1),
        Field::new("status", Shape::String, "`Success` or `Failure`.").number(2),
        Field::new("message", Shape::String, "What went wrong, in a sentence for people.").number(3),
        Field::new("reason", Shape::String, "What went wrong, in one word for programs.").number(4),
        Field::new("details", Shape::Object(&STATUS_DETAILS), "What the request was about, and every fault found.")
            .number(5)
            .optional(),
        Field::new("code", Shape::Int32, "The HTTP status.").number(6),
    ],
);

static STATUS_DETAILS: TypeSchema = meta(
    "StatusDetails",
    "What a request was about, and every fault found.",
    &[
        Field::new("name", Shape::String, "The name of the object.").number(1),
        Field::new("group", Shape::String, "The API group of the object.").number(2),
        Field::new("kind", Shape::String, "The kind or the resource of the object.").number(3),
        Field::new("uid", Shape::String, "The identity of the object, if there is exactly one.").number(6),
        Field::new("causes", Shape::List(&Shape::Object(&STATUS_CAUSE)), "The faults, one by one.")
            .number(4)
            .list(ListType::Atomic),
        Field::new("retryAfterSeconds", Shape::Int32, "How many seconds to wait before trying again.").number(5),
    ],
);

static STATUS_CAUSE: TypeSchema = meta(
    "StatusCause",
    "One fault.",
    &[
        Field::new("reason", Shape::String, "What is wrong, in one word for programs.").number(1),
        Field::new("message", Shape::String, "What is wrong, in a sentence for people.").number(2),
        Field::new("field", Shape::String, "The path of the field that is at fault.").number(3),
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

/// An object of which only the metadata is told (`as=PartialObjectMetadata`).
pub static PARTIAL_OBJECT_METADATA: TypeSchema = meta(
    "PartialObjectMetadata",
    "An object of any kind, of which only the metadata is told.",
    &[KIND, API_VERSION, Field::new("metadata", ObjectMeta::SHAPE, "The metadata of the object.").number(1)],
);

/// A list of such objects.
pub static PARTIAL_OBJECT_METADATA_LIST: TypeSchema =
    partial_list(&[KIND, API_VERSION, PARTIAL_LIST_METADATA.number(1), PARTIAL_LIST_ITEMS.number(2)]);

/// The same in `meta.k8s.io/v1beta1`, where the two fields have each other's numbers.
pub static PARTIAL_OBJECT_METADATA_LIST_V1BETA1: TypeSchema =
    partial_list(&[KIND, API_VERSION, PARTIAL_LIST_METADATA.number(2), PARTIAL_LIST_ITEMS.number(1)]);

const PARTIAL_LIST_METADATA: Field = Field::new("metadata", ListMeta::SHAPE, "What the list says of itself.");
const PARTIAL_LIST_ITEMS: Field = Field::new("items", Shape::List(&PARTIAL_LIST_ITEM), "The objects.").required();
static PARTIAL_LIST_ITEM: Shape = Shape::Object(&PARTIAL_OBJECT_METADATA);

static RAW_EXTENSION: TypeSchema = TypeSchema {
    name: TypeName::Fixed("RawExtension"),
    package: Package::Runtime,
    doc: "An object of any kind.",
    fields: &[],
    union: None,
};

const fn partial_list(fields: &'static [Field]) -> TypeSchema {
    meta("PartialObjectMetadataList", "A list of objects of which only the metadata is told.", fields)
}

const fn meta(name: &'static str, doc: &'static str, fields: &'static [Field]) -> TypeSchema {
    TypeSchema { name: TypeName::Fixed(name), package: Package::Meta, doc, fields, union: None }
}
