//! The flows that are known, by their identity and by their number.

use super::active_flow::ActiveFlow;
use super::index::FlowIndex;

/// The known flows. Numbers are used again, so that they stay below the largest number of flows there have been at a time.
#[derive(Debug)]
pub(super) struct FlowTable {
    flows: Vec<ActiveFlow>,
    /// The identity of each flow: 64 bits of a SHA-256 of schema and distinguisher.
    hashes: Vec<u64>,
    free: Vec<u32>,
    index: FlowIndex,
}

// === impl FlowTable ===

impl FlowTable {
    pub(super) fn new() -> Self {
        Self { flows: Vec::new(), hashes: Vec::new(), free: Vec::new(), index: FlowIndex::new() }
    }

    /// The number of a flow, if it is known.
    #[inline]
    pub(super) fn number_of(&self, hash: u64) -> Option<u32> {
        self.index.get(hash)
    }

    pub(super) fn insert(&mut self, hash: u64, flow: ActiveFlow) -> u32 {
        let number = match self.free.pop() {
            Some(number) => {
                (self.flows[number as usize], self.hashes[number as usize]) = (flow, hash);
                number
            }
            None => {
                let number = u32::try_from(self.flows.len()).unwrap_or(u32::MAX);
                assert!(number < u32::MAX, "a queue set holds less than 2^32 flows");
                self.flows.push(flow);
                self.hashes.push(hash);
                number
            }
        };
        self.index.insert(hash, number);
        number
    }

    pub(super) fn forget(&mut self, number: u32) {
        self.index.remove(self.hashes[number as usize], number);
        self.free.push(number);
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &ActiveFlow {
        &self.flows[number as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut ActiveFlow {
        &mut self.flows[number as usize]
    }

    /// The identity of a flow.
    #[inline]
    pub(super) fn hash_of(&self, number: u32) -> u64 {
        self.hashes[number as usize]
    }

    /// The flow of that number, if there is one.
    pub(super) fn find(&self, number: usize) -> Option<&ActiveFlow> {
        let flow = self.flows.get(number)?;
        let is_known = self.number_of(self.hashes[number]).is_some_and(|known| known as usize == number);
        is_known.then_some(flow)
    }

    /// How many requests of the flow of that number wait; none if there is no such flow.
    #[inline]
    pub(super) fn waiting_of(&self, number: usize) -> usize {
        self.flows.get(number).map_or(0, |flow| flow.waiting as usize)
    }

    /// All flows with their identities. A number that no flow has shows as a flow of which nothing waits or runs.
    pub(super) fn all(&self) -> impl Iterator<Item = (u64, &ActiveFlow)> {
        self.hashes.iter().copied().zip(&self.flows)
    }

    /// How many flows are known.
    pub(super) fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// A number above those of all flows.
    pub(super) fn numbers_end(&self) -> usize {
        self.flows.len()
    }

    /// Lowers what all flows have used.
    pub(super) fn lower(&mut self, by: i64) {
        self.flows.iter_mut().for_each(|flow| flow.base = flow.base.saturating_sub(by));
    }
}
