//! The hash of a flow, from which its hand of queues is dealt (FM-16).

use sha2::{Digest, Sha256};

/// Hashes the flows of one flow schema, whose name it has taken in already.
///
/// ```
/// use evenkeel_engine::{FlowHasher, flow_hash};
///
/// let hasher = FlowHasher::new("catch-all");
/// assert_eq!(hasher.hash("alice"), 0xd78a_ce6c_8f5f_332c);
/// assert_eq!(hasher.hash("alice"), flow_hash("catch-all", "alice"));
/// ```
#[derive(Debug, Clone)]
pub struct FlowHasher(Sha256);

/// The hash of the flow that a flow schema and a distinguisher name.
///
/// Whoever has many flows of one schema to hash keeps a [`FlowHasher`].
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    FlowHasher::new(schema).hash(distinguisher)
}

// === impl FlowHasher ===

impl FlowHasher {
    /// A hasher for the flows of the schema of that name.
    pub fn new(schema: &str) -> Self {
        Self(Sha256::new().chain_update(schema).chain_update([0]))
    }

    /// The hash of the flow of that distinguisher. Allocates nothing.
    pub fn hash(&self, distinguisher: &str) -> u64 {
        let digest: [u8; 32] = self.0.clone().chain_update(distinguisher).finalize().into();
        let [b0, b1, b2, b3, b4, b5, b6, b7, ..] = digest;
        u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fm_17_golden_hashes() {
        let table = [
            ("exempt", "", 18_422_507_136_572_196_352),
            ("catch-all", "alice", 15_531_453_230_597_747_500),
            ("global-default", "system:anonymous", 5_951_248_168_697_086_108),
            ("service-accounts", "system:serviceaccount:default:default", 13_424_615_363_282_033_023),
            ("system-nodes", "system:node:node-1", 11_909_065_898_299_811_039),
            ("kube-controller-manager", "kube-system", 1_951_360_281_921_618_776),
            ("kube-controller-manager", "", 14_257_900_033_262_264_633),
            ("workload", "bob", 4_964_147_936_290_360_616),
            ("", "", 10_987_292_151_339_758_702),
        ];
        for (schema, distinguisher, hash) in table {
            assert_eq!(flow_hash(schema, distinguisher), hash, "{schema} {distinguisher}");
        }
    }

    #[test]
    fn fm_16_the_separator_keeps_flows_apart() {
        assert_ne!(flow_hash("ab", "c"), flow_hash("a", "bc"));
        assert_eq!(flow_hash("a\0b", "c"), flow_hash("a", "b\0c"), "the one case that it cannot tell apart");
    }
}
