//! The schemas of an OpenAPI document, one for each type (API-187).

use serde_json::{Map, Value, json};

use crate::schema::meta_types::{API_RESOURCE_LIST, DELETE_OPTIONS, FIELDS_V1, PATCH, STATUS, TIME, WATCH_EVENT};
use crate::schema::object_types::list_type;
use crate::schema::reachable::reachable_types;
use crate::schema::{Field, ListType, Package, Shape, TypeSchema, Union};
use crate::{GROUP, Kind, Version};

/// The kind and version of the object that is being described: they decide on the full names of types and on how lists merge.
#[derive(Debug, Clone, Copy)]
pub(super) struct DescribedObject {
    pub(super) version: Version,
    pub(super) kind: Kind,
}

/// The schemas of all types of a version, by their full names.
pub(super) fn schemas(version: Version) -> Map<String, Value> {
    let mut schemas = Map::new();
    for kind in Kind::ALL {
        let place = DescribedObject { version, kind };
        let roots = [list_type(version, kind), &API_RESOURCE_LIST, &DELETE_OPTIONS, &PATCH, &STATUS, &WATCH_EVENT];
        for shape in roots.into_iter().flat_map(|root| reachable_types(root, kind)) {
            // The choice types have no schema of their own: their values stand where the type is used.
            if let Some(schema) = shape.definition() {
                schemas.entry(place.full_name(schema)).or_insert_with(|| place.definition(shape, schema));
            }
        }
    }
    schemas
}

// === impl DescribedObject ===

impl DescribedObject {
    /// The group, version and kind, as operations and top types carry them.
    pub(super) fn group_version_kind(self, kind: &str) -> Value {
        json!({ "group": GROUP, "version": self.version.name(), "kind": kind })
    }

    /// A reference to the schema of a type.
    pub(super) fn reference(self, schema: &TypeSchema) -> Value {
        json!({ "$ref": format!("#/components/schemas/{}", self.full_name(schema)) })
    }

    /// The schema of a value.
    pub(super) fn value(self, shape: Shape) -> Map<String, Value> {
        // OpenAPI 3.0 ignores everything beside a bare `$ref`, and a description has to be there.
        let all_of = |schema| json!({ "allOf": [self.reference(schema)] });
        members(match shape {
            Shape::Boolean => json!({ "type": "boolean" }),
            Shape::Int32 => json!({ "type": "integer", "format": "int32" }),
            Shape::Int64 => json!({ "type": "integer", "format": "int64" }),
            Shape::String => json!({ "type": "string" }),
            Shape::Choice(choice) => {
                let values: Vec<_> = choice.values.iter().map(|(value, _)| *value).collect();
                json!({ "type": "string", "enum": values })
            }
            Shape::StringMap => json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            Shape::List(element) => {
                let items = match element.definition() {
                    Some(schema) => self.reference(schema),
                    None => self.value(*element).into(),
                };
                json!({ "type": "array", "items": items })
            }
            Shape::Time => all_of(&TIME),
            Shape::FieldSet => all_of(&FIELDS_V1),
            Shape::Object(schema) => all_of(schema),
        })
    }

    fn full_name(self, schema: &TypeSchema) -> String {
        let name = schema.name(self.kind);
        match schema.package {
            Package::Flowcontrol => format!("io.k8s.api.flowcontrol.{}.{name}", self.version),
            Package::Meta => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"),
            Package::Runtime => format!("io.k8s.apimachinery.pkg.runtime.{name}"),
        }
    }

    fn definition(self, shape: Shape, schema: &TypeSchema) -> Value {
        if matches!(shape, Shape::Time) {
            return json!({ "description": schema.description(), "type": "string", "format": "date-time" });
        }
        let mut definition = members(json!({ "description": schema.description(), "type": "object" }));
        if !schema.fields.is_empty() {
            let properties: Map<_, _> =
                schema.fields.iter().map(|field| (field.name.to_owned(), self.property(field))).collect();
            definition.insert("properties".into(), properties.into());
        }
        let required: Vec<_> = schema.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        if !required.is_empty() {
            definition.insert("required".into(), required.into());
        }
        if let Some(union) = &schema.union {
            definition.insert("x-kubernetes-unions".into(), unions(union));
        }
        // In this package only the objects and their lists say what they are.
        if schema.package == Package::Flowcontrol && schema.field("apiVersion").is_some() {
            let gvk = self.group_version_kind(&schema.name(self.kind));
            definition.insert("x-kubernetes-group-version-kind".into(), json!([gvk]));
        }
        definition.into()
    }

    fn property(self, field: &Field) -> Value {
        let mut property = self.value(field.shape);
        property.insert("description".into(), field.description().into());
        if let Some(default) = field.default {
            property.insert("default".into(), default.into());
        }
        let list_type = match field.list_type {
            ListType::Unspecified => None,
            ListType::Atomic => Some("atomic"),
            ListType::Set => Some("set"),
            ListType::Map(_) => Some("map"),
        };
        if let Some(list_type) = list_type {
            property.insert("x-kubernetes-list-type".into(), list_type.into());
        }
        if let ListType::Map(key) = field.list_type {
            property.insert("x-kubernetes-list-map-keys".into(), json!([key]));
        }
        if field.is_merged(self.version) {
            property.insert("x-kubernetes-patch-strategy".into(), "merge".into());
            if let Some(key) = field.merge_key() {
                property.insert("x-kubernetes-patch-merge-key".into(), key.into());
            }
        }
        property.into()
    }
}

fn unions(union: &Union) -> Value {
    let members: Map<_, _> =
        union.members.iter().map(|(member, name)| ((*member).to_owned(), Value::from(*name))).collect();
    json!([{ "discriminator": union.discriminator, "fields-to-discriminateBy": members }])
}

/// The members of what `json!` made of an object.
pub(super) fn members(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
