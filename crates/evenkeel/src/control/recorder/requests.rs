//! `Requests`: gives each combination of user and target a number. Records have no texts, and the same requests come again and
//! again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_engine::cost::text_key;
use evenkeel_engine::{Attributes, Classification};

use crate::control::flight::FlightRequest;
use crate::sync::{Mutex, PoisonError};

/// The numbers of requests, in bounded memory.
///
/// A flow that asks for very many paths has a number for those that came first, and one for all others.
#[derive(Debug)]
pub(crate) struct Requests {
    /// The hash of a request without its last bits, and its number in those.
    known: Box<[AtomicU64]>,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    requests: Vec<FlightRequest>,
    by_hash: HashMap<u64, u32>,
    /// How many paths a flow has, and the number of its first.
    flows: HashMap<u64, (u32, u32)>,
    bytes: usize,
}

/// So many numbers fit into the last bits of a hash.
const NUMBER_BITS: u32 = 20;
const NUMBERS: u64 = 1 << NUMBER_BITS;
const PLACES: usize = 1 << 13;
/// A flow has so many paths.
const PATHS_MAX: u32 = 64;
/// All texts together have so many bytes.
const BYTES_MAX: usize = 8 << 20;
/// Longer texts are cut.
const TEXT_MAX: usize = 512;
/// The request of which nothing is known.
const UNKNOWN: u32 = 0;

// === impl Requests ===

impl Requests {
    /// The number of a request.
    #[inline]
    pub(crate) fn number(&self, attributes: Attributes<'_>, class: &Classification<'_>) -> u32 {
        let Attributes { user, request } = attributes;
        let flow = class.flow_hash ^ (class.index as u64).rotate_left(48);
        // A client that makes two of its requests collide only has them shown as one.
        let [name, path, verb] = [&*user.name, &*request.path, &*request.verb].map(text_key);
        let hash = flow ^ name ^ path.rotate_left(21) ^ verb.rotate_left(42);
        let Some(place) = self.known.get(usize::try_from(hash >> NUMBER_BITS).unwrap_or(0) % PLACES) else {
            return UNKNOWN;
        };
        let known = place.load(Ordering::Relaxed);
        if known & !(NUMBERS - 1) == hash & !(NUMBERS - 1) {
            return u32::try_from(known & (NUMBERS - 1)).unwrap_or(UNKNOWN);
        }
        self.find(hash, flow, place, attributes, class)
    }

    #[cold]
    fn find(
        &self,
        hash: u64,
        flow: u64,
        place: &AtomicU64,
        attributes: Attributes<'_>,
        class: &Classification<'_>,
    ) -> u32 {
        // A request that finds the table locked is recorded as unknown.
        let Ok(mut table) = self.table.try_lock() else { return UNKNOWN };
        let number = table.number(hash, flow, attributes, class);
        drop(table);
        place.store(hash & !(NUMBERS - 1) | u64::from(number), Ordering::Relaxed);
        number
    }

    /// All requests, by their numbers.
    pub(crate) fn all(&self) -> Vec<FlightRequest> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }
}

impl Default for Requests {
    fn default() -> Self {
        // No request has this hash: it would be that of number 0, which is given to no request.
        let known = (0..PLACES).map(|_| AtomicU64::new(0)).collect();
        let unknown = FlightRequest { flow_schema: String::new(), ..FlightRequest::default() };
        let (by_hash, flows) = (HashMap::new(), HashMap::new());
        Self { known, table: Mutex::new(Table { requests: vec![unknown], by_hash, flows, bytes: 0 }) }
    }
}

// === impl Table ===

impl Table {
    fn number(&mut self, hash: u64, flow: u64, attributes: Attributes<'_>, class: &Classification<'_>) -> u32 {
        if let Some(number) = self.by_hash.get(&hash) {
            return *number;
        }
        let known = self.flows.get(&flow).copied();
        match known {
            Some((paths, first)) if paths >= PATHS_MAX => return first,
            _ => {}
        }
        let number = u32::try_from(self.requests.len()).unwrap_or(UNKNOWN);
        if self.bytes >= BYTES_MAX || u64::from(number) >= NUMBERS {
            return known.map_or(UNKNOWN, |(_, first)| first);
        }
        let request = described(attributes, class);
        self.bytes += bytes_of(&request);
        self.requests.push(request);
        self.by_hash.insert(hash, number);
        let entry = self.flows.entry(flow).or_insert((0, number));
        entry.0 += 1;
        number
    }
}

fn described(attributes: Attributes<'_>, class: &Classification<'_>) -> FlightRequest {
    let Attributes { user, request } = attributes;
    let resource = request.is_resource_request.then(|| {
        [&request.api_group, &request.resource, &request.subresource, &request.namespace, &request.name]
            .map(|text| cut(text))
    });
    FlightRequest {
        user: cut(&user.name),
        groups: user.groups.iter().take(64).map(|group| cut(group)).collect(),
        verb: cut(&request.verb),
        path: cut(&request.path),
        resource,
        flow_schema: cut(&class.schema.name),
        flow: cut(class.distinguisher),
    }
}

fn bytes_of(request: &FlightRequest) -> usize {
    let FlightRequest { user, groups, verb, path, resource, flow_schema, flow } = request;
    let texts = [user, verb, path, flow_schema, flow].into_iter().chain(groups).chain(resource.iter().flatten());
    // Each has a place in three tables.
    texts.map(String::len).sum::<usize>() + 256
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
