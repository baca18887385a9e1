//! Keys of an attribution's tables: flows, pairs of flows, and flows with a unit of cost.

use super::heavy_hitters::Key;
use crate::Flow;

/// Names a flow of one level within one [`Attribution`](super::Attribution). It is a hash that clients cannot foresee, so that
/// nobody can choose names that are near each other in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FlowKey(pub(super) u64);

/// A flow that waits, and the one whose request has the seat that it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowPair {
    pub(super) delayed: FlowKey,
    pub(super) behind: Option<FlowKey>,
}

/// A flow, and a unit that the costs of its requests are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FlowUnit {
    pub(super) flow: FlowKey,
    pub(super) unit: u8,
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

// === impl FlowKey ===

impl FlowKey {
    #[inline]
    pub(super) fn new(flow: &Flow<'_>, seed: u64) -> Self {
        // A level that does not tell flows apart has the requests of each schema as a flow.
        let hash = if flow.hash() == 0 { text_hash(flow.schema()) } else { flow.hash() };
        Self((hash ^ seed).wrapping_mul(ODD))
    }
}

/// The names of schemas come from the operator, not from clients, so any hash will do.
fn text_hash(text: &str) -> u64 {
    text.bytes().fold(1, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(ODD).rotate_left(23))
}

impl Key for FlowKey {
    #[inline]
    fn mixed(self) -> u64 {
        self.0 >> 24
    }
}

// === impl FlowPair ===

impl Key for FlowPair {
    #[inline]
    fn mixed(self) -> u64 {
        (self.delayed.0.rotate_left(17) ^ self.behind.map_or(0, |key| key.0)).wrapping_mul(ODD) >> 24
    }
}

// === impl FlowUnit ===

impl Key for FlowUnit {
    #[inline]
    fn mixed(self) -> u64 {
        (self.flow.0 ^ u64::from(self.unit)).wrapping_mul(ODD) >> 24
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_without_a_hash_are_told_apart_by_their_schemas() {
        let key = |schema, distinguisher, hash| FlowKey::new(&Flow::with_hash(schema, distinguisher, hash), 5);
        assert_ne!(key("health", "", 0), key("system", "", 0));
        assert_eq!(key("health", "", 0), key("health", "", 0));
        assert_eq!(key("health", "a", 7), key("health", "b", 7), "the hash says it all");
    }
}
