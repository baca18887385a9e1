//! The flows that are known, by their identity and by their number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::active_flow::ActiveFlow;

/// The known flows. Numbers are used again, so that they stay below the largest number of flows there have been at a time.
#[derive(Debug)]
pub(super) struct FlowTable<K> {
    flows: Vec<ActiveFlow<K>>,
    free: Vec<u32>,
    numbers: HashMap<u64, u32, BuildHasherDefault<Spread>>,
}

/// Takes the identity of a flow as its hash: it is one already.
#[derive(Debug, Default, Clone, Copy)]
struct Spread(u64);

// === impl FlowTable ===

impl<K: Copy + Default> FlowTable<K> {
    pub(super) fn new() -> Self {
        Self { flows: Vec::new(), free: Vec::new(), numbers: HashMap::default() }
    }

    /// The number of a flow, if it is known.
    #[inline]
    pub(super) fn number_of(&self, hash: u64) -> Option<u32> {
        self.numbers.get(&hash).copied()
    }

    pub(super) fn insert(&mut self, flow: ActiveFlow<K>) -> u32 {
        let hash = flow.hash;
        let number = match self.free.pop() {
            Some(number) => {
                self.flows[number as usize] = flow;
                number
            }
            None => {
                let number = u32::try_from(self.flows.len()).unwrap_or(u32::MAX);
                assert!(number < u32::MAX, "a queue set holds less than 2^32 flows");
                self.flows.push(flow);
                number
            }
        };
        self.numbers.insert(hash, number);
        number
    }

    pub(super) fn forget(&mut self, number: u32) {
        self.numbers.remove(&self.flows[number as usize].hash);
        self.free.push(number);
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &ActiveFlow<K> {
        &self.flows[number as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut ActiveFlow<K> {
        &mut self.flows[number as usize]
    }

    /// The flow of that number, if there is one.
    pub(super) fn find(&self, number: usize) -> Option<&ActiveFlow<K>> {
        let flow = self.flows.get(number)?;
        let is_known = self.number_of(flow.hash).is_some_and(|known| known as usize == number);
        is_known.then_some(flow)
    }

    /// How many requests of the flow of that number wait; none if there is no such flow.
    #[inline]
    pub(super) fn waiting_of(&self, number: usize) -> usize {
        self.flows.get(number).map_or(0, |flow| flow.waiting as usize)
    }

    /// How many flows are known.
    pub(super) fn len(&self) -> usize {
        self.flows.len() - self.free.len()
    }

    /// Above all numbers.
    pub(super) fn numbers_end(&self) -> usize {
        self.flows.len()
    }

    /// Lowers what all flows have used.
    pub(super) fn lower(&mut self, by: i64) {
        self.flows.iter_mut().for_each(|flow| flow.base = flow.base.saturating_sub(by));
    }
}

// === impl Spread ===

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
