//! `List`: objects of one kind in one version, and what the list says of itself.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::meta::ListMeta;
use crate::object::{WithoutType, check_type};
use crate::schema::{API_VERSION, Described, Field, KIND, Package, Shape, TypeName, TypeSchema, null_is_absent};
use crate::v1::V1;
use crate::{Defaulted, HubSpec, InVersion, Kind, Object, Spec, Version, Wire};

/// A list of objects of the kind that the specification `S` belongs to, as version `V` writes it.
///
/// Each version has its own aliases, for example [`v1::FlowSchemaList`](crate::v1::FlowSchemaList). As in [`Object`],
/// `apiVersion` and `kind` follow from the type; the items are written without them, as a server writes them.
///
/// ```
/// use evenkeel_api::v1::FlowSchemaList;
///
/// let list: FlowSchemaList = serde_json::from_str(r#"{
///     "kind": "FlowSchemaList", "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
///     "metadata": {"resourceVersion": "7"},
///     "items": [{"metadata": {"name": "batch"}, "spec": {"priorityLevelConfiguration": {"name": "low"}}}]
/// }"#)?;
/// assert_eq!(list.metadata.resource_version, "7");
/// assert_eq!(list.items[0].name(), "batch");
/// let text = serde_json::to_string(&list)?;
/// assert!(text.contains(r#""items":[{"metadata":{"name":"batch"},"spec":"#));
/// assert_eq!(serde_json::from_str::<FlowSchemaList>(&text)?, list);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Not `#[non_exhaustive]`: it is what Kubernetes sends.
#[derive(Clone, PartialEq, Eq)]
pub struct List<V, S> {
    /// What the list says of itself.
    pub metadata: ListMeta,
    /// The objects. A server sorts them by name.
    pub items: Vec<Object<V, S>>,
}

// === impl List ===

impl<V: InVersion, S: Spec> List<V, S> {
    /// The version that the list is written in.
    pub const VERSION: Version = V::VERSION;

    /// The kind of the objects.
    pub const KIND: Kind = S::KIND;

    /// What the schema table holds on this type.
    pub const SCHEMA: TypeSchema = TypeSchema {
        name: TypeName::OfKind("List"),
        package: Package::Flowcontrol,
        doc: "A list of objects of one kind.",
        fields: &[
            KIND,
            API_VERSION,
            Field::new("metadata", ListMeta::SHAPE, "What the list says of itself.").number(1),
            Field::new("items", Shape::List(&Object::<V, S>::SHAPE), "The objects, sorted by name.")
                .number(2)
                .required(),
        ],
        union: None,
    };

    /// A list of those objects.
    pub fn new(metadata: ListMeta, items: Vec<Object<V, S>>) -> Self {
        Self { metadata, items }
    }
}

impl<V: InVersion, S: Spec> List<V, S>
where
    Object<V, S>: Wire + Defaulted,
{
    /// The list in the hub version.
    ///
    /// ```
    /// use evenkeel_api::{v1, v1beta2};
    ///
    /// let older = v1beta2::FlowSchemaList::default();
    /// let hub: v1::FlowSchemaList = older.into_hub();
    /// assert_eq!(v1beta2::FlowSchemaList::from_hub(hub), v1beta2::FlowSchemaList::default());
    /// ```
    pub fn into_hub(self) -> List<V1, <Object<V, S> as Wire>::HubSpec> {
        List { metadata: self.metadata, items: self.items.into_iter().map(Wire::into_hub).collect() }
    }

    /// The list as this version writes it.
    pub fn from_hub(hub: List<V1, <Object<V, S> as Wire>::HubSpec>) -> Self {
        Self { metadata: hub.metadata, items: hub.items.into_iter().map(Wire::from_hub).collect() }
    }

    /// Fills in every value that the objects leave out and that has a default.
    pub fn apply_defaults(&mut self) {
        self.items.iter_mut().for_each(Defaulted::apply_defaults);
    }
}

impl<S: HubSpec> FromIterator<Object<V1, S>> for List<V1, S> {
    fn from_iter<I: IntoIterator<Item = Object<V1, S>>>(objects: I) -> Self {
        Self::new(ListMeta::default(), objects.into_iter().collect())
    }
}

impl<V: InVersion, S: Spec> Default for List<V, S> {
    fn default() -> Self {
        Self::new(ListMeta::default(), Vec::new())
    }
}

impl<V: InVersion, S: Spec> fmt::Debug for List<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::KIND.list_name())
            .field("version", &V::VERSION)
            .field("metadata", &self.metadata)
            .field("items", &self.items)
            .finish()
    }
}

impl<V: InVersion, S: Spec> Serialize for List<V, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        struct Items<'a, V, S>(&'a [Object<V, S>]);

        impl<V: InVersion, S: Spec> Serialize for Items<'_, V, S> {
            fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
                serializer.collect_seq(self.0.iter().map(WithoutType))
            }
        }

        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", S::KIND.list_name())?;
        map.serialize_entry("apiVersion", V::VERSION.api_version())?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("items", &Items(&self.items))?;
        map.end()
    }
}

impl<'de, V: InVersion, S: Spec> Deserialize<'de> for List<V, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", bound = "V: InVersion, S: Spec")]
        struct Parts<V: InVersion, S: Spec> {
            #[serde(default, deserialize_with = "null_is_absent")]
            kind: String,
            #[serde(default, deserialize_with = "null_is_absent")]
            api_version: String,
            #[serde(default, deserialize_with = "null_is_absent")]
            metadata: ListMeta,
            #[serde(default = "Vec::new", deserialize_with = "null_is_absent")]
            items: Vec<Object<V, S>>,
        }

        let parts = Parts::<V, S>::deserialize(deserializer)?;
        check_type(&parts.kind, S::KIND.list_name(), &parts.api_version, V::VERSION)?;
        Ok(Self::new(parts.metadata, parts.items))
    }
}

impl<V: InVersion, S: Spec> Described for List<V, S> {
    const SHAPE: Shape = Shape::Object(&Self::SCHEMA);

    fn is_absent(&self) -> bool {
        false
    }
}
