//! The envelope around every message, and the events of a watch (PB-1, PB-4).

use super::reader::{Malformed, MessageReader, WireValue};
use super::writer::Writer;
use crate::schema::TypeName;

/// The four bytes that every body starts with.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// The kind and version that a body declares, and its message.
///
/// Not `#[non_exhaustive]`: it is what Kubernetes sends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope<'a> {
    /// The group and version of the object; empty when the sender leaves that to the receiver.
    pub api_version: String,
    /// The kind of the object; empty when the sender leaves that to the receiver.
    pub kind: String,
    /// The object itself.
    pub message: &'a [u8],
}

/// The numbers of the fields of the message `Unknown`, and of the messages in it.
mod field {
    pub(super) const TYPE_META: u32 = 1;
    pub(super) const RAW: u32 = 2;
    pub(super) const CONTENT_ENCODING: u32 = 3;
    pub(super) const CONTENT_TYPE: u32 = 4;

    pub(super) const API_VERSION: u32 = 1;
    pub(super) const KIND: u32 = 2;

    pub(super) const EVENT_TYPE: u32 = 1;
    pub(super) const EVENT_OBJECT: u32 = 2;
    pub(super) const EXTENSION_RAW: u32 = 1;
}

const UNKNOWN: TypeName = TypeName::Fixed("Unknown");
const TYPE_META: TypeName = TypeName::Fixed("TypeMeta");

/// A message in its envelope.
pub fn sealed(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut type_meta = Writer::default();
    type_meta.text(field::API_VERSION, api_version);
    type_meta.text(field::KIND, kind);
    let mut envelope = Writer::with_capacity(message.len() + 96);
    envelope.fields(&MAGIC);
    envelope.message(field::TYPE_META, &type_meta);
    envelope.bytes(field::RAW, message);
    envelope.text(field::CONTENT_ENCODING, "");
    envelope.text(field::CONTENT_TYPE, "");
    envelope.into_bytes()
}

/// An event of a watch with its length before it; `object` is in its envelope.
///
/// ```
/// use evenkeel_api::protobuf;
///
/// let frame = protobuf::watch_event("ADDED", b"k8s\0");
/// assert_eq!(frame, b"\0\0\0\x0f\x0a\x05ADDED\x12\x06\x0a\x04k8s\0");
/// ```
pub fn watch_event(event: &str, object: &[u8]) -> Vec<u8> {
    let mut extension = Writer::with_capacity(object.len() + 8);
    extension.bytes(field::EXTENSION_RAW, object);
    let mut message = Writer::with_capacity(object.len() + 32);
    message.text(field::EVENT_TYPE, event);
    message.message(field::EVENT_OBJECT, &extension);
    let message = message.into_bytes();
    // No object comes near four gigabytes.
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(message.len() + 4);
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&message);
    frame
}

// === impl Envelope ===

impl<'a> Envelope<'a> {
    /// Opens the envelope of a body.
    pub fn open(body: &'a [u8]) -> Result<Self, Malformed> {
        if body.is_empty() {
            return Err(Malformed::NoData);
        }
        let Some(rest) = body.strip_prefix(&MAGIC) else { return Err(Malformed::NoMagic) };
        if rest.is_empty() {
            return Err(Malformed::NoBody);
        }
        let mut envelope = Self::default();
        let mut reader = MessageReader::new(rest);
        while let Some((number, value)) = reader.next().map_err(|error| error.in_message("", UNKNOWN))? {
            match number {
                field::TYPE_META => envelope.read_type(value.bytes("TypeMeta")?)?,
                field::RAW => envelope.message = value.bytes("Raw")?,
                field::CONTENT_ENCODING => drop(value.bytes("ContentEncoding")?),
                field::CONTENT_TYPE => drop(value.bytes("ContentType")?),
                _ => {}
            }
        }
        Ok(envelope)
    }

    fn read_type(&mut self, message: &[u8]) -> Result<(), Malformed> {
        let mut reader = MessageReader::new(message);
        let text = |value: WireValue<'_>, name| Ok(String::from_utf8_lossy(value.bytes(name)?).into_owned());
        while let Some((number, value)) = reader.next().map_err(|error| error.in_message("", TYPE_META))? {
            match number {
                field::API_VERSION => self.api_version = text(value, "APIVersion")?,
                field::KIND => self.kind = text(value, "Kind")?,
                _ => {}
            }
        }
        Ok(())
    }
}
