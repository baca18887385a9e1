//! Kubernetes' protobuf (rules PB-1 to PB-7): how objects, lists, statuses and watch events are written and read.
//!
//! There are no generated types. The numbers of the fields are in the schema table, in the declaration of each field;
//! [`encode`] writes anything that serde can serialize by what the table says, and
//! [`decode::parse_protobuf`](crate::decode::parse_protobuf) reads a message into the same tree that JSON and YAML are
//! read into.
//!
//! ```
//! use evenkeel_api::decode::parse_protobuf;
//! use evenkeel_api::protobuf::Envelope;
//! use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};
//! use evenkeel_api::Version;
//!
//! let schema = FlowSchema::builder("batch").priority_level("low").build();
//! let bytes = schema.to_protobuf();
//! assert_eq!(&bytes[..4], b"k8s\0");
//!
//! let envelope = Envelope::open(&bytes)?;
//! assert_eq!(envelope.kind, "FlowSchema");
//! let decoded = parse_protobuf(&envelope, &FlowSchema::SCHEMA)?.decode::<FlowSchemaSpec>(Version::V1)?;
//! assert_eq!(decoded.object, schema);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod envelope;
mod key;
mod members;
mod reader;
mod writer;

pub use encode::{Unwritable, encode};
pub use envelope::{Envelope, MAGIC, sealed, watch_event};
pub use reader::Malformed;
pub use writer::Writer;

pub(crate) use reader::{MessageReader, WireValue};

use serde::Serialize;

use crate::schema::{Described, Shape};
use crate::{HubSpec, InVersion, List, Object, Spec, Version, WrittenIn, schema};

/// The zero time of Go, 0001-01-01T00:00:00Z, which is written like one that is absent, and not shown in JSON.
pub(crate) const ZERO_TIME: i64 = -62_135_596_800;

// The fields of what the table has a shape for, and no fields: a time, a field set, and an entry of a map.
pub(crate) const SECONDS: u32 = 1;
pub(crate) const NANOS: u32 = 2;
pub(crate) const RAW: u32 = 1;
pub(crate) const KEY: u32 = 1;
pub(crate) const VALUE: u32 = 2;

impl<V: InVersion, S: Spec> Object<V, S> {
    /// The object in protobuf, in its envelope (PB-1).
    pub fn to_protobuf(&self) -> Vec<u8> {
        sealed_value(self, Self::SHAPE, S::KIND.name(), V::VERSION)
    }
}

impl<V: InVersion, S: Spec> List<V, S> {
    /// The list in protobuf, in its envelope (PB-1, PB-4).
    ///
    /// ```
    /// use evenkeel_api::protobuf::Envelope;
    /// use evenkeel_api::v1beta3::FlowSchemaList;
    ///
    /// let bytes = FlowSchemaList::default().to_protobuf();
    /// assert_eq!(Envelope::open(&bytes)?.kind, "FlowSchemaList");
    /// # Ok::<(), evenkeel_api::protobuf::Malformed>(())
    /// ```
    pub fn to_protobuf(&self) -> Vec<u8> {
        sealed_value(self, Self::SHAPE, S::KIND.list_name(), V::VERSION)
    }
}

impl<S: HubSpec> WrittenIn<'_, S> {
    /// The object in protobuf, in its envelope (PB-1).
    pub fn to_protobuf(&self) -> Vec<u8> {
        let shape = Shape::Object(schema::object_type(self.version(), S::KIND));
        sealed_value(self, shape, S::KIND.name(), self.version())
    }
}

fn sealed_value(value: &impl Serialize, shape: Shape, kind: &str, version: Version) -> Vec<u8> {
    let message = match shape {
        Shape::Object(schema) => encode(value, schema),
        _ => Ok(Vec::new()),
    };
    let message = message.expect("the table and the type come from the same declaration");
    sealed(version.api_version(), kind, &message)
}
