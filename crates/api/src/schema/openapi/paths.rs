//! The paths of an OpenAPI document, and what can be done at each (API-3, API-188).

use serde_json::{Map, Value, json};

use super::components::{DescribedObject, members};
use super::parameters::{APPLY, DELETE, EVERYWHERE, NAME, Position, READ, SELECT, TABLE, WATCH, WRITE, parameter};
use crate::schema::meta_types::{API_RESOURCE_LIST, DELETE_OPTIONS, PATCH, STATUS, WATCH_EVENT};
use crate::schema::object_types::{list_type, object_type};
use crate::schema::{Field, TypeSchema};
use crate::{Kind, Version};

const DATA_TYPES: &[&str] = &["application/json", "application/vnd.kubernetes.protobuf", "application/yaml"];
const STREAM_TYPES: &[&str] = &[
    "application/json",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
const DOCUMENT_TYPES: &[&str] = &["application/json", "application/yaml"];
const PATCH_TYPES: &[&str] = &[
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

/// A path below that of the version, `RESOURCE` standing for the resource of either kind.
struct PathTemplate {
    path: &'static str,
    operations: &'static [Operation],
}

/// The operation of one method at a path.
#[derive(Clone, Copy)]
struct Operation {
    method: &'static str,
    action: &'static str,
    /// How the operation's id is made: `VERB` the group and version, and then with `KIND` for the kind.
    id: (&'static str, &'static str),
    description: &'static str,
    parameters: &'static [&'static [Field]],
    body: Option<BodyType>,
    /// The statuses of success, and the body of each.
    responses: (&'static [&'static str], BodyType),
}

/// The content of a body.
#[derive(Clone, Copy)]
enum BodyType {
    Object,
    List,
    Patch,
    DeleteOptions,
    Status,
    Events,
    Resources,
}

const PATHS: &[PathTemplate] = &[
    PathTemplate { path: "RESOURCE", operations: &[LIST, CREATE, DELETE_COLLECTION] },
    PathTemplate { path: "RESOURCE/{name}", operations: &[GET, UPDATE, PATCH_OBJECT, DELETE_OBJECT] },
    PathTemplate {
        path: "RESOURCE/{name}/status",
        operations: &[
            Operation { id: ("read", "KINDStatus"), description: "Reads the status of one object.", ..GET },
            Operation {
                id: ("replace", "KINDStatus"),
                description: "Replaces the status of one object and leaves the rest of it as it is.",
                ..UPDATE
            },
            Operation {
                id: ("patch", "KINDStatus"),
                description: "Changes the status of one object and leaves the rest of it as it is.",
                ..PATCH_OBJECT
            },
        ],
    },
    PathTemplate { path: "watch/RESOURCE", operations: &[WATCH_ALL] },
    PathTemplate {
        path: "watch/RESOURCE/{name}",
        operations: &[Operation {
            action: "watch",
            id: ("watch", "KIND"),
            description: "Streams the changes to one object. An old form of a list with `watch` and a `fieldSelector`.",
            ..WATCH_ALL
        }],
    },
];

const LIST: Operation = Operation {
    method: "get",
    action: "list",
    id: ("list", "KIND"),
    description: "Lists the objects, or streams their changes.",
    parameters: &[WATCH, SELECT, TABLE],
    body: None,
    responses: (&["200"], BodyType::List),
};
const CREATE: Operation = Operation {
    method: "post",
    action: "post",
    id: ("create", "KIND"),
    description: "Creates an object.",
    parameters: &[WRITE, TABLE],
    body: Some(BodyType::Object),
    responses: (&["201"], BodyType::Object),
};
const DELETE_COLLECTION: Operation = Operation {
    method: "delete",
    action: "deletecollection",
    id: ("delete", "CollectionKIND"),
    description: "Deletes all objects that are selected, and returns them as they were.",
    parameters: &[SELECT, DELETE],
    body: Some(BodyType::DeleteOptions),
    responses: (&["200"], BodyType::List),
};
const GET: Operation = Operation {
    method: "get",
    action: "get",
    id: ("read", "KIND"),
    description: "Reads one object.",
    parameters: &[READ, TABLE],
    body: None,
    responses: (&["200"], BodyType::Object),
};
const UPDATE: Operation = Operation {
    method: "put",
    action: "put",
    id: ("replace", "KIND"),
    description: "Replaces one object.",
    parameters: &[WRITE, TABLE],
    body: Some(BodyType::Object),
    responses: (&["200"], BodyType::Object),
};
const PATCH_OBJECT: Operation = Operation {
    method: "patch",
    action: "patch",
    id: ("patch", "KIND"),
    description: "Changes one object. Applying one that is not there creates it.",
    parameters: &[WRITE, APPLY, TABLE],
    body: Some(BodyType::Patch),
    responses: (&["200", "201"], BodyType::Object),
};
const DELETE_OBJECT: Operation = Operation {
    method: "delete",
    action: "delete",
    id: ("delete", "KIND"),
    description: "Deletes one object. One that has finalizers is only marked, and returned itself.",
    parameters: &[DELETE],
    body: Some(BodyType::DeleteOptions),
    responses: (&["200"], BodyType::Status),
};
const WATCH_ALL: Operation = Operation {
    method: "get",
    action: "watchlist",
    id: ("watch", "KINDList"),
    description: "Streams the changes to all objects. An old form of a list with `watch`.",
    parameters: &[WATCH, SELECT, TABLE],
    body: None,
    responses: (&["200"], BodyType::Events),
};

/// All paths of a version.
pub(super) fn paths(version: Version) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in Kind::ALL {
        let place = DescribedObject { version, kind };
        paths.insert(format!("/apis/{}/", version.api_version()), json!({ "get": discovery(place) }));
        for template in PATHS {
            let path = template.path.replace("RESOURCE", kind.resource());
            paths.insert(format!("/apis/{}/{path}", version.api_version()), path_item(template, place));
        }
    }
    paths
}

fn discovery(place: DescribedObject) -> Value {
    json!({
        "operationId": operation_id("get", "APIResources", place),
        "description": "Lists the resources of this version.",
        "tags": [tag(place)],
        "responses": responses(&["200"], BodyType::Resources, place),
    })
}

fn path_item(template: &PathTemplate, place: DescribedObject) -> Value {
    let mut item: Map<_, _> = template
        .operations
        .iter()
        .map(|operation| (operation.method.to_owned(), operation_object(operation, place)))
        .collect();
    let name = template.path.contains("{name}").then(|| parameter(&NAME, Position::Path, place));
    let everywhere = EVERYWHERE.iter().map(|field| parameter(field, Position::Query, place));
    item.insert("parameters".into(), name.into_iter().chain(everywhere).collect());
    item.into()
}

fn operation_object(operation: &Operation, place: DescribedObject) -> Value {
    let (verb, rest) = operation.id;
    let (statuses, body) = operation.responses;
    let parameters: Vec<_> = operation
        .parameters
        .iter()
        .flat_map(|group| group.iter())
        .map(|field| parameter(field, Position::Query, place))
        .collect();
    let mut object = members(json!({
        "operationId": operation_id(verb, rest, place),
        "description": operation.description,
        "tags": [tag(place)],
        "parameters": parameters,
        "responses": responses(statuses, body, place),
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": place.group_version_kind(place.kind.name()),
    }));
    if let Some(body) = operation.body {
        // Only the options of a deletion may be left out.
        let required = !matches!(body, BodyType::DeleteOptions);
        object.insert("requestBody".into(), json!({ "content": body.content(place), "required": required }));
    }
    if operation.action.starts_with("watch") {
        object.insert("deprecated".into(), true.into());
    }
    object.into()
}

fn responses(statuses: &[&str], body: BodyType, place: DescribedObject) -> Value {
    let response =
        |message: BodyType| json!({ "description": message.description(), "content": message.content(place) });
    let mut responses: Map<_, _> = statuses.iter().map(|status| ((*status).to_owned(), response(body))).collect();
    responses.insert("default".into(), response(BodyType::Status));
    responses.into()
}

fn operation_id(verb: &str, rest: &str, place: DescribedObject) -> String {
    let version = place.version.name().replacen('v', "V", 1);
    format!("{verb}FlowcontrolApiserver{version}{}", rest.replace("KIND", place.kind.name()))
}

/// The name under which generated clients put the operation.
fn tag(place: DescribedObject) -> String {
    format!("flowcontrolApiserver_{}", place.version)
}

// === impl BodyType ===

impl BodyType {
    fn schema(self, place: DescribedObject) -> &'static TypeSchema {
        match self {
            Self::Object => object_type(place.version, place.kind),
            Self::List => list_type(place.version, place.kind),
            Self::Patch => &PATCH,
            Self::DeleteOptions => &DELETE_OPTIONS,
            Self::Status => &STATUS,
            Self::Events => &WATCH_EVENT,
            Self::Resources => &API_RESOURCE_LIST,
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Object => "The object.",
            Self::List => "The objects.",
            Self::Patch => "The change.",
            Self::DeleteOptions => "How to delete.",
            Self::Status => "How the request ended.",
            Self::Events => "A stream of events.",
            Self::Resources => "The resources.",
        }
    }

    /// The media types that the body may be written in, each with its schema.
    fn content(self, place: DescribedObject) -> Map<String, Value> {
        let types = match self {
            Self::Patch => PATCH_TYPES,
            Self::Events => STREAM_TYPES,
            Self::Resources => DOCUMENT_TYPES,
            _ => DATA_TYPES,
        };
        types
            .iter()
            .map(|media_type| ((*media_type).to_owned(), json!({ "schema": place.reference(self.schema(place)) })))
            .collect()
    }
}
