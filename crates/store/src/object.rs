//! An object as a store keeps it, and the limits on its name and size.

use bytes::Bytes;
use evenkeel_api::Kind;

use crate::Error;

/// The longest name, in bytes: that of a DNS subdomain.
pub const NAME_BYTES_MAX: usize = 253;

/// The largest payload, in bytes. An etcd takes requests of at most one and a half MiB.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// An object and where it stands in the sequence of all writes.
///
/// The payload is the object as canonical `v1` JSON. It has no `metadata.resourceVersion`: that is the revision, which is
/// known only when the object has been written.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The object's kind.
    pub kind: Kind,
    /// The object's name, unique in its kind.
    pub name: Box<str>,
    /// The revision of the write that made it what it is.
    pub revision: u64,
    /// The revision of the write that created it.
    pub create_revision: u64,
    /// The object as canonical `v1` JSON.
    pub payload: Bytes,
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::Invalid(format!("a name has 1 to {NAME_BYTES_MAX} bytes, and this one has {}", name.len())));
    }
    if name.contains(['/', '\0']) {
        return Err(Error::Invalid(format!("the name {name:?} contains a slash or a zero byte")));
    }
    Ok(())
}

pub(crate) fn check_payload(payload: &[u8]) -> Result<(), Error> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        let bytes = payload.len();
        return Err(Error::Invalid(format!(
            "an object has at most {PAYLOAD_BYTES_MAX} bytes, and this one has {bytes}"
        )));
    }
    Ok(())
}
