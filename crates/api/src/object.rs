//! `Object`: metadata, specification and status, of either kind and in any version.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, DeserializeOwned};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::meta::ObjectMeta;
use crate::schema::{API_VERSION, Described, Field, KIND, Package, Shape, TypeName, TypeSchema, null_is_absent};
use crate::v1::Status;
use crate::{Kind, Version};

/// An object of the group: of the kind that its specification `S` belongs to, as version `V` writes it.
///
/// Each version has its own aliases, for example [`v1::FlowSchema`](crate::v1::FlowSchema). The members
/// `apiVersion` and `kind` follow from the type: they are written, and checked when read, but not kept.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
///
/// let mut schema = FlowSchema::default();
/// schema.metadata.name = "batch".into();
/// schema.spec.priority_level_configuration.name = "workload-low".into();
/// let text = serde_json::to_string(&schema)?;
/// assert!(text.starts_with(r#"{"kind":"FlowSchema","apiVersion":"flowcontrol.apiserver.k8s.io/v1","metadata":"#));
/// assert_eq!(serde_json::from_str::<FlowSchema>(&text)?, schema);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Object<V, S> {
    /// The metadata of the object.
    pub metadata: ObjectMeta,
    /// The specification: the desired state of the object.
    pub spec: S,
    /// The status of the object, set by the server.
    pub status: Status,
    version: PhantomData<V>,
}

/// An object as an item of a list, without `kind` and `apiVersion` (API-11).
pub(crate) struct WithoutType<'a, V, S>(pub(crate) &'a Object<V, S>);

/// The mark of a version, for the type parameter of [`Object`].
pub trait InVersion: 'static {
    /// The version.
    const VERSION: Version;
}

/// The specification of one of the two kinds, in one or more versions.
pub trait Spec:
    Described + fmt::Debug + Clone + PartialEq + Eq + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The kind that the specification belongs to.
    const KIND: Kind;
}

// === impl Object ===

impl<V: InVersion, S: Spec> Object<V, S> {
    /// The version that the object is written in.
    pub const VERSION: Version = V::VERSION;

    /// The kind of the object.
    pub const KIND: Kind = S::KIND;

    /// What the schema table holds on this type.
    pub const SCHEMA: TypeSchema = TypeSchema {
        name: TypeName::Fixed(S::KIND.name()),
        package: Package::Flowcontrol,
        doc: match S::KIND {
            Kind::FlowSchema => "Defines which requests match, and which priority level they go to.",
            Kind::PriorityLevelConfiguration => {
                "Defines how many seats a priority level has, and what happens when all of them are taken."
            }
        },
        fields: &[
            KIND,
            API_VERSION,
            Field::new("metadata", ObjectMeta::SHAPE, "The metadata of the object.").number(1),
            Field::new("spec", S::SHAPE, "The specification: the desired state of the object.").number(2).required(),
            Field::new("status", Status::SHAPE, "The status of the object, set by the server.").number(3).read_only(),
        ],
        union: None,
    };

    /// An object of that metadata and specification, with an empty status.
    pub fn new(metadata: ObjectMeta, spec: S) -> Self {
        Self { metadata, spec, status: Status::default(), version: PhantomData }
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Writes everything but `kind` and `apiVersion`.
    fn write_members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("spec", &self.spec)?;
        map.serialize_entry("status", &self.status)
    }

    /// The same object written in another version, given how its specification is written there.
    pub(crate) fn rewrite<W: InVersion, T: Spec>(self, rewrite_spec: impl FnOnce(S) -> T) -> Object<W, T> {
        Object { metadata: self.metadata, spec: rewrite_spec(self.spec), status: self.status, version: PhantomData }
    }
}

impl<V: InVersion, S: Spec> Default for Object<V, S> {
    fn default() -> Self {
        Self::new(ObjectMeta::default(), S::default())
    }
}

impl<V: InVersion, S: Spec> fmt::Debug for Object<V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(S::KIND.name())
            .field("version", &V::VERSION)
            .field("metadata", &self.metadata)
            .field("spec", &self.spec)
            .field("status", &self.status)
            .finish()
    }
}

impl<V: InVersion, S: Spec> Serialize for Object<V, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("kind", S::KIND.name())?;
        map.serialize_entry("apiVersion", V::VERSION.api_version())?;
        self.write_members(&mut map)?;
        map.end()
    }
}

impl<'de, V: InVersion, S: Spec> Deserialize<'de> for Object<V, S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default, bound = "S: Spec")]
        struct Parts<S: Spec> {
            #[serde(deserialize_with = "null_is_absent")]
            kind: String,
            #[serde(deserialize_with = "null_is_absent")]
            api_version: String,
            #[serde(deserialize_with = "null_is_absent")]
            metadata: ObjectMeta,
            #[serde(deserialize_with = "null_is_absent")]
            spec: S,
            #[serde(deserialize_with = "null_is_absent")]
            status: Status,
        }

        impl<S: Spec> Default for Parts<S> {
            fn default() -> Self {
                Self {
                    kind: String::new(),
                    api_version: String::new(),
                    metadata: ObjectMeta::default(),
                    spec: S::default(),
                    status: Status::default(),
                }
            }
        }

        let parts = Parts::<S>::deserialize(deserializer)?;
        check_type(&parts.kind, S::KIND.name(), &parts.api_version, V::VERSION)?;
        Ok(Self { status: parts.status, ..Self::new(parts.metadata, parts.spec) })
    }
}

/// Checks the kind and version of an object or a list. Both may be absent: then the reader knows them (API-14).
pub(crate) fn check_type<E: de::Error>(
    kind: &str,
    expected_kind: &str,
    api_version: &str,
    expected_version: Version,
) -> Result<(), E> {
    for (field, found, expected) in
        [("kind", kind, expected_kind), ("apiVersion", api_version, expected_version.api_version())]
    {
        if !found.is_empty() && found != expected {
            return Err(E::custom(format!("{field} is {found:?}, expected {expected:?}")));
        }
    }
    Ok(())
}

impl<V: InVersion, S: Spec> Serialize for WithoutType<'_, V, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        self.0.write_members(&mut map)?;
        map.end()
    }
}

impl<V: InVersion, S: Spec> Described for Object<V, S> {
    const SHAPE: Shape = Shape::Object(&Self::SCHEMA);

    fn is_absent(&self) -> bool {
        false
    }
}
