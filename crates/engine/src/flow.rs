//! A flow: the requests of one flow schema that take turns as one.

use crate::flow_hash::flow_hash;

/// Names a flow: a flow schema and a distinguisher (FM-14), and the hash of both (FM-16).
///
/// Names are borrowed, so that a flow costs nothing to make. Code that remembers a flow keeps a copy of the names.
///
/// ```
/// use evenkeel_engine::{Flow, flow_hash};
///
/// let flow = Flow::new("service-accounts", "system:serviceaccount:shop:operator");
/// assert_eq!(flow.hash(), flow_hash(flow.schema(), flow.distinguisher()));
/// // Simulations and tests may have nothing but the hash.
/// assert_eq!(Flow::from(7).hash(), 7);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flow<'a> {
    schema: &'a str,
    distinguisher: &'a str,
    hash: u64,
    weight: u16,
}

// === impl Flow ===

impl<'a> Flow<'a> {
    /// The flow of that schema and distinguisher.
    pub fn new(schema: &'a str, distinguisher: &'a str) -> Self {
        Self { schema, distinguisher, hash: flow_hash(schema, distinguisher), weight: 1 }
    }

    /// The same where the hash is known.
    #[inline]
    pub fn with_hash(schema: &'a str, distinguisher: &'a str, hash: u64) -> Self {
        Self { schema, distinguisher, hash, weight: 1 }
    }

    /// The same with a weight: how many seats it gets for each one of a flow of weight 1, in levels that queue per flow (PF-2).
    /// No weight is less than 1.
    #[inline]
    #[must_use]
    pub fn with_weight(self, weight: u16) -> Self {
        Self { weight: weight.max(1), ..self }
    }

    /// The name of the flow schema. It stays the same when the objects change.
    #[inline]
    pub fn schema(&self) -> &'a str {
        self.schema
    }

    /// What tells the flow from the others of its schema; empty if nothing does.
    #[inline]
    pub fn distinguisher(&self) -> &'a str {
        self.distinguisher
    }

    /// How many seats it gets for each one of a flow of weight 1, in levels that queue per flow.
    #[inline]
    pub fn weight(&self) -> u16 {
        self.weight
    }

    /// The hash that its queues are dealt by; 0 in a level that does not tell flows apart.
    #[inline]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl From<u64> for Flow<'_> {
    /// A flow without names.
    #[inline]
    fn from(hash: u64) -> Self {
        Self { schema: "", distinguisher: "", hash, weight: 1 }
    }
}
