//! `HeadMemory`: the memory of parsed heads, used again for the next one.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

/// The memory of the heads of one connection.
#[derive(Debug, Default)]
pub(crate) struct HeadMemory {
    bytes: BytesMut,
    map: HeaderMap,
}

/// A map with more room than this is not kept.
const FIELDS_MAX: usize = 64;

// === impl HeadMemory ===

impl HeadMemory {
    /// Copies a head. The memory is used again when everything that was cut out of the copy is gone.
    pub(super) fn copy(&mut self, head: &[u8]) -> Bytes {
        self.bytes.extend_from_slice(head);
        self.bytes.split().freeze()
    }

    /// A map with room for this many fields, and some more.
    pub(super) fn map(&mut self, fields: usize) -> HeaderMap {
        let mut map = std::mem::take(&mut self.map);
        map.reserve(fields + 4);
        map
    }

    /// Takes a map that is not needed any more.
    pub(crate) fn give_back(&mut self, mut map: HeaderMap) {
        if map.capacity() <= FIELDS_MAX {
            map.clear();
            self.map = map;
        }
    }
}
