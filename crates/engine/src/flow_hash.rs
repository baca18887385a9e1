//! The hash of a flow, from which its hand of queues is dealt (FM-16).

mod memo;

use sha2::block_api::compress256;
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
pub struct FlowHasher {
    /// SHA-256 after the name, for distinguishers of any length.
    state: Sha256,
    /// The name and the separator at the beginning of a block, for flows that fit into it, which are nearly all.
    block: [u8; BLOCK_LENGTH],
    prefix_length: usize,
}

/// The hash of the flow that a flow schema and a distinguisher name.
///
/// To hash many flows of one schema, keep a [`FlowHasher`].
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    FlowHasher::new(schema).hash(distinguisher)
}

// === impl FlowHasher ===

impl FlowHasher {
    /// A hasher for the flows of the schema of that name.
    pub fn new(schema: &str) -> Self {
        let (mut block, prefix_length) = ([0; BLOCK_LENGTH], schema.len() + 1);
        if let Some(start) = block.get_mut(..schema.len()) {
            start.copy_from_slice(schema.as_bytes());
        }
        Self { state: Sha256::new().chain_update(schema).chain_update([0]), block, prefix_length }
    }

    /// The hash of the flow of that distinguisher. Allocates nothing.
    pub fn hash(&self, distinguisher: &str) -> u64 {
        let length = self.prefix_length + distinguisher.len();
        if length <= TEXT_LENGTH_MAX {
            return self.hash_in_one_block(distinguisher, length);
        }
        let digest: [u8; 32] = self.state.clone().chain_update(distinguisher).finalize().into();
        let [b0, b1, b2, b3, b4, b5, b6, b7, ..] = digest;
        u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7])
    }

    /// SHA-256 of a text that leaves room for its end mark and its length in bits: one block, put together in place.
    fn hash_in_one_block(&self, distinguisher: &str, length: usize) -> u64 {
        let mut block = self.block;
        block[self.prefix_length..length].copy_from_slice(distinguisher.as_bytes());
        block[length] = 0x80;
        block[TEXT_LENGTH_MAX + 1..].copy_from_slice(&(length as u64 * 8).to_be_bytes());
        memo::remembered(&block, compress)
    }
}

/// The first eight bytes of the SHA-256 of a text that is one block with its end.
fn compress(block: &[u8; BLOCK_LENGTH]) -> u64 {
    let mut state = INITIAL_STATE;
    compress256(&mut state, std::slice::from_ref(block));
    u64::from(state[0].swap_bytes()) | u64::from(state[1].swap_bytes()) << 32
}

/// The bytes that SHA-256 takes in at a time.
const BLOCK_LENGTH: usize = 64;
/// What fits into one block beside the end mark and the length of eight bytes.
const TEXT_LENGTH_MAX: usize = BLOCK_LENGTH - 9;
/// Where SHA-256 starts from (FIPS 180-4, 5.3.3).
const INITIAL_STATE: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

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
    fn fm_16_flows_of_any_length_have_the_hash_of_their_text() {
        for schema in 0..70 {
            for distinguisher in 0..70 {
                let (schema, distinguisher) = ("s".repeat(schema), "d".repeat(distinguisher));
                let digest = Sha256::digest(format!("{schema}\0{distinguisher}"));
                let expected = u64::from_le_bytes(digest[..8].try_into().unwrap());
                assert_eq!(flow_hash(&schema, &distinguisher), expected, "{schema} {distinguisher}");
            }
        }
    }

    #[test]
    fn fm_16_the_separator_keeps_flows_apart() {
        assert_ne!(flow_hash("ab", "c"), flow_hash("a", "bc"));
        assert_eq!(flow_hash("a\0b", "c"), flow_hash("a", "b\0c"), "the one case that it cannot tell apart");
    }
}
