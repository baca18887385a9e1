//! `Names`: the names of the few flows that are heavy enough to be shown.

use std::sync::Arc;

use super::FlowKey;
use super::wanted_names::{INDEX_LENGTH, WantedNames, slot};
use crate::Flow;

/// The names of some flows. Names come with arrivals only, so a flow that has become heavy is marked, and its name is taken
/// from its next request. As long as there is room, every name is taken before it is known whether it matters: a flow that
/// holds seats for long may not send another request.
#[derive(Debug)]
pub(super) struct Names {
    entries: Vec<NamedFlow>,
    /// For each slot of a table of open addressing, the place of its entry plus one; zero if it is free.
    index: Vec<u8>,
    /// The names that are wanted, for all threads to see.
    pub(super) wanted: Arc<WantedNames>,
    /// How many names may still be replaced in this half minute. Each replacement compares all names.
    exchanges_left: u32,
}

/// A flow and its name.
#[derive(Debug, Clone, Copy)]
struct NamedFlow {
    key: FlowKey,
    schema_length: u8,
    distinguisher_length: u8,
    is_cut: bool,
    text: [u8; TEXT_BYTES],
}

/// The name of a flow, as far as it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowName<'a> {
    /// The flow schema.
    pub schema: &'a str,
    /// What tells the flow from the others of its schema.
    pub distinguisher: &'a str,
    /// Whether the end of a name that is too long is missing.
    pub is_cut: bool,
}

/// How many names are kept.
const NAMES_MAX: usize = 96;
/// How many names may be replaced in half a minute.
const EXCHANGES_MAX: u32 = 512;
/// The bytes of a schema's name and of a distinguisher together.
const TEXT_BYTES: usize = 116;
/// The bytes that a schema may take of them if the distinguisher needs the rest.
const SCHEMA_BYTES: usize = 48;

// === impl Names ===

impl Names {
    pub(super) fn new(seed: u64) -> Self {
        let wanted = Arc::new(WantedNames::new(seed));
        Self { entries: Vec::new(), index: Vec::new(), wanted, exchanges_left: EXCHANGES_MAX }
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let wanted = size_of::<WantedNames>() + if self.index.is_empty() { 0 } else { INDEX_LENGTH * size_of::<u64>() };
        self.entries.capacity() * size_of::<NamedFlow>() + self.index.capacity() + wanted
    }

    /// Whether the name of a flow that arrives may be wanted.
    #[inline]
    pub(super) fn may_want(&self, key: FlowKey) -> bool {
        self.wanted.may_want_key(key)
    }

    /// A flow has become heavy.
    #[inline]
    pub(super) fn want(&mut self, key: FlowKey) {
        let has_room = self.entries.len() < NAMES_MAX || self.exchanges_left > 0;
        if has_room && !self.wanted.is_heavy(key) && self.find(key).is_none() {
            self.wanted.set_heavy(key);
        }
    }

    /// Another half minute has begun.
    pub(super) fn turn(&mut self) {
        self.exchanges_left = EXCHANGES_MAX;
        // A flow that is still heavy is wanted again.
        self.wanted.clear_all_heavy();
    }

    /// Learns the name of a flow whose request arrives, if there is room or if it is heavier than another one whose name is
    /// known.
    #[cold]
    pub(super) fn learn(&mut self, key: FlowKey, flow: &Flow<'_>, weight: impl Fn(FlowKey) -> u64) {
        if self.find(key).is_some() {
            return;
        }
        self.wanted.clear_heavy(key);
        if self.entries.is_empty() {
            self.entries.reserve_exact(NAMES_MAX);
            self.index = vec![0; INDEX_LENGTH];
        }
        let entry = NamedFlow::new(key, flow);
        if self.entries.len() < NAMES_MAX {
            self.entries.push(entry);
        } else {
            if self.exchanges_left == 0 {
                return;
            }
            self.exchanges_left -= 1;
            let lightest = self.entries.iter_mut().min_by_key(|entry| weight(entry.key));
            match lightest {
                Some(lightest) if weight(lightest.key) < weight(key) => *lightest = entry,
                _ => return,
            }
        }
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.index.fill(0);
        for place in 0..self.entries.len() {
            let mut slot = slot(self.entries[place].key);
            while self.index[slot] != 0 {
                slot = (slot + 1) % INDEX_LENGTH;
            }
            self.index[slot] = u8::try_from(place + 1).unwrap_or_default();
        }
        self.wanted.set_known(self.entries.iter().map(|named| named.key));
        self.wanted.set_room(self.entries.len() < NAMES_MAX);
    }

    #[inline]
    fn find(&self, key: FlowKey) -> Option<&NamedFlow> {
        let mut slot = slot(key);
        loop {
            let place = usize::from(*self.index.get(slot)?).checked_sub(1)?;
            let entry = self.entries.get(place)?;
            if entry.key == key {
                return Some(entry);
            }
            slot = (slot + 1) % INDEX_LENGTH;
        }
    }

    /// The name of a flow, if it is known.
    pub(super) fn get(&self, key: FlowKey) -> Option<FlowName<'_>> {
        self.find(key).map(NamedFlow::name)
    }
}

// === impl NamedFlow ===

impl NamedFlow {
    fn new(key: FlowKey, flow: &Flow<'_>) -> Self {
        let (schema, distinguisher) = (flow.schema(), flow.distinguisher());
        let room = TEXT_BYTES.saturating_sub(distinguisher.len()).max(SCHEMA_BYTES);
        let kept_schema = cut(schema, room);
        let kept = cut(distinguisher, TEXT_BYTES - kept_schema.len());
        let mut text = [0; TEXT_BYTES];
        text[..kept_schema.len()].copy_from_slice(kept_schema.as_bytes());
        text[kept_schema.len()..kept_schema.len() + kept.len()].copy_from_slice(kept.as_bytes());
        Self {
            key,
            schema_length: u8::try_from(kept_schema.len()).unwrap_or_default(),
            distinguisher_length: u8::try_from(kept.len()).unwrap_or_default(),
            is_cut: kept_schema.len() < schema.len() || kept.len() < distinguisher.len(),
            text,
        }
    }

    fn name(&self) -> FlowName<'_> {
        let (schema, rest) = self.text.split_at(usize::from(self.schema_length));
        let distinguisher = &rest[..usize::from(self.distinguisher_length)];
        // Names were cut at the end of a character.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        FlowName { schema: text(schema), distinguisher: text(distinguisher), is_cut: self.is_cut }
    }
}

/// The beginning of a text, so many bytes at most.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribution::heavy_hitters::Key;

    #[test]
    fn long_names_are_cut_where_a_character_ends() {
        let mut names = Names::new(0);
        let (schema, distinguisher) = ("s".repeat(300), "é".repeat(300));
        let flow = Flow::new(&schema, &distinguisher);
        names.learn(FlowKey(1), &flow, |_| 1);
        let name = names.get(FlowKey(1)).unwrap();
        assert_eq!((name.schema.len(), name.distinguisher.len(), name.is_cut), (48, 68, true));
        let flow = Flow::new("tenants", "alice");
        names.learn(FlowKey(2), &flow, |_| 1);
        let name = FlowName { schema: "tenants", distinguisher: "alice", is_cut: false };
        assert_eq!(names.get(FlowKey(2)), Some(name));
    }

    #[test]
    fn the_names_of_heavier_flows_take_the_place_of_lighter_ones() {
        let mut names = Names::new(0);
        let weight = |key: FlowKey| key.0;
        for number in 1..=1000 {
            names.turn();
            let text = number.to_string();
            names.learn(FlowKey(number), &Flow::new("s", &text), weight);
        }
        let bytes = names.bytes();
        names.learn(FlowKey(5), &Flow::new("s", "5"), weight);
        assert_eq!(names.get(FlowKey(5)), None, "it is lighter than all");
        let known: Vec<_> = (1..=1000).filter(|number| names.get(FlowKey(*number)).is_some()).collect();
        assert_eq!(known, (905..=1000).collect::<Vec<_>>());
        names.exchanges_left = 0;
        names.learn(FlowKey(2000), &Flow::new("s", "2000"), weight);
        assert_eq!(names.get(FlowKey(2000)), None, "too many were exchanged");
        assert!(names.bytes() == bytes && bytes < 16 * 1024, "{bytes}");
    }

    #[test]
    fn a_name_is_wanted_until_it_is_known() {
        let (mut names, late) = (Names::new(0), FlowKey(10_000));
        for number in 0..NAMES_MAX as u64 {
            assert!(names.may_want(late), "there is room");
            names.learn(FlowKey(number), &Flow::new("s", "x"), |_| 1);
        }
        assert!(!names.may_want(late));
        names.want(late);
        assert!(names.may_want(late));
        names.learn(late, &Flow::new("s", "x"), |key| 1 + u64::from(key == late));
        names.want(late);
        assert!(names.get(late).is_some() && !names.may_want(late));
    }

    /// One request may be all that comes of a flow.
    #[test]
    fn at_1_while_there_is_room_the_first_request_of_every_flow_names_it() {
        let mut names = Names::new(0);
        for number in 0..NAMES_MAX as u64 {
            assert!(names.may_want(FlowKey(number)), "{number}");
            names.learn(FlowKey(number), &Flow::new("s", "x"), |_| 1);
            assert!(!names.may_want(FlowKey(number)), "{number}");
        }
    }

    /// A heavy flow gets its name though another one with the same bit always comes before it.
    #[test]
    fn at_1_a_known_flow_does_not_keep_another_from_being_named() {
        let heavy = FlowKey(3);
        let busy = (4..10_000).map(FlowKey).find(|key| key.mixed() & 63 == heavy.mixed() & 63).unwrap();
        let mut names = Names::new(0);
        names.learn(busy, &Flow::new("s", "busy"), |_| 1);
        names.want(heavy);
        assert!(names.may_want(busy));
        names.learn(busy, &Flow::new("s", "busy"), |_| 1);
        assert!(names.may_want(heavy));
        names.learn(heavy, &Flow::new("s", "heavy"), |_| 1);
        assert!(names.get(heavy).is_some() && !names.may_want(busy));
    }
}
