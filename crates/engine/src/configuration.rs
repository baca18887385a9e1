//! `Configuration`: the compiled schemas and the levels that they lead to. When objects change, a new one replaces it; only the
//! seat caps of the levels follow the seats of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel_api::annotations::{self, FlowBy};
use evenkeel_api::v1::{FlowDistinguisherMethod, FlowSchema};

use crate::classify::{Classifier, SchemaIndex, distinguisher, flow_by};
use crate::flow_hash::FlowHasher;
use crate::time::Nanos;
use crate::{Attributes, Flow, RequestInfo, Terms};

/// A compiled configuration: it finds the schema and the level that a request belongs to.
///
/// It is made by a [`Controller`](crate::controller::Controller), shared by all who classify, and swapped as a whole
/// when the objects change (CC-17).
#[derive(Debug)]
pub struct Configuration {
    classifier: Classifier,
    schemas: Vec<Schema>,
    catch_all: usize,
    asks_for_addresses: bool,
    asked_headers: Box<[Box<str>]>,
}

/// A flow schema in use.
#[derive(Debug)]
pub struct Schema {
    /// The object's name.
    pub name: Box<str>,
    /// The object's identity; empty for a built-in one.
    pub uid: Box<str>,
    /// The level that it leads to.
    pub level: Arc<LevelInfo>,
    /// The weight of each of its flows, in a level that queues per flow (BM-1).
    pub flow_weight: u16,
    /// How many seats each of its requests takes; `None`: what is estimated (SF-2).
    pub seats: Option<u32>,
    /// What its requests cost and how much its flows may take, if anything is said of that.
    pub terms: Option<Box<Terms>>,
    flow_by: Option<FlowBy>,
    distinguisher: Option<FlowDistinguisherMethod>,
    hasher: FlowHasher,
}

/// A priority level, as far as a request needs to know it before it gets there.
#[derive(Debug)]
#[non_exhaustive]
pub struct LevelInfo {
    /// Where the level is.
    pub id: LevelId,
    /// The object's name.
    pub name: Box<str>,
    /// The object's identity; empty for a built-in one.
    pub uid: Box<str>,
    /// Whether its requests are told apart by flow: they are if they wait in more than one queue (FM-14), or in one for each
    /// flow (PF-1).
    pub has_flows: bool,
    pub(crate) seat_cap: Arc<SeatCap>,
    /// Whether its requests never wait and are never rejected.
    pub is_exempt: bool,
    /// How many long-running requests it lets run at a time; `None` for no limit.
    pub max_long_running: Option<u32>,
    /// Whether its requests end when requests of another level wait for seats of its own (LM-7).
    pub is_revocable: bool,
    /// How long its requests wait, if they have no deadline of their own; `None`: as the server says (SF-2).
    pub wait_limit: Option<Nanos>,
}

/// The most seats that the estimate of a request may give it. It follows the seats of the level, which change without a new
/// configuration.
#[derive(Debug)]
pub(crate) struct SeatCap(AtomicU64);

/// Names a level, and never another one. Its index is used again when the level is gone, up to 2^32 times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId {
    index: u32,
    generation: u32,
}

/// Where a request belongs.
///
/// Not `#[non_exhaustive]`: programs that know the schema of a request from elsewhere make it.
#[derive(Debug, Clone, Copy)]
pub struct Classification<'a> {
    /// The place of the flow schema among [`Configuration::schemas`].
    pub index: usize,
    /// The flow schema that matched.
    pub schema: &'a Schema,
    /// What tells its flow from the others of the schema.
    pub distinguisher: &'a str,
    /// The hash of its flow, which says what queues it may wait in.
    pub flow_hash: u64,
}

// === impl LevelInfo ===

impl LevelInfo {
    /// The most seats that the estimate of a request may give it now (WE-4); `None` if the level has never had queues.
    #[inline]
    pub fn seat_cap(&self) -> Option<u32> {
        self.seat_cap.get()
    }
}

// === impl SeatCap ===

impl SeatCap {
    /// More than any cap.
    const NONE: u64 = u64::MAX;

    #[inline]
    pub(crate) fn get(&self) -> Option<u32> {
        u32::try_from(self.0.load(Ordering::Relaxed)).ok()
    }

    pub(crate) fn set(&self, cap: u32) {
        self.0.store(cap.into(), Ordering::Relaxed);
    }
}

impl Default for SeatCap {
    fn default() -> Self {
        Self(AtomicU64::new(Self::NONE))
    }
}

// === impl Configuration ===

impl Configuration {
    /// Compiles schemas, in the order in which they are tried, each with the level that it leads to.
    ///
    /// `catch_all` is the place of the schema for requests that match none (FM-4).
    pub(crate) fn compile(ordered: &[(&FlowSchema, Arc<LevelInfo>)], catch_all: usize) -> Self {
        let schemas = ordered.iter().map(|(schema, level)| Schema {
            name: schema.name().into(),
            uid: schema.metadata.uid.as_str().into(),
            level: Arc::clone(level),
            flow_weight: annotations::flow_weight(&schema.metadata.annotations),
            seats: annotations::seats(&schema.metadata.annotations),
            terms: Terms::of(&schema.metadata.annotations).map(Box::new),
            flow_by: annotations::flow_by(&schema.metadata.annotations),
            distinguisher: schema.spec.distinguisher_method.clone(),
            hasher: FlowHasher::new(schema.name()),
        });
        let schemas: Vec<Schema> = schemas.collect();
        let asks_for_addresses = schemas.iter().any(|schema| schema.flow_by == Some(FlowBy::Address));
        let classifier = Classifier::compile(ordered.iter().map(|(schema, _)| *schema));
        let by_flow = schemas.iter().filter_map(|schema| match &schema.flow_by {
            Some(FlowBy::Header(name)) => Some(name.to_ascii_lowercase().into()),
            _ => None,
        });
        let mut asked_headers: Vec<Box<str>> = classifier.matched_headers().map(Into::into).chain(by_flow).collect();
        asked_headers.sort();
        asked_headers.dedup();
        Self { classifier, schemas, catch_all, asks_for_addresses, asked_headers: asked_headers.into() }
    }

    /// Where a request belongs (section 2 of the specification). Every request belongs somewhere.
    #[inline]
    pub fn classify<'a>(&'a self, attributes: Attributes<'a>) -> Classification<'a> {
        let index = self.classifier.classify(attributes).map_or(self.catch_all, SchemaIndex::get);
        let schema = &self.schemas[index];
        if !schema.level.has_flows {
            return Classification { index, schema, distinguisher: "", flow_hash: 0 };
        }
        let distinguisher = schema.distinguisher_of(attributes);
        Classification { index, schema, distinguisher, flow_hash: schema.hasher.hash(distinguisher) }
    }

    /// Whether some schema tells its flows apart by the addresses of clients.
    #[inline]
    pub fn asks_for_addresses(&self) -> bool {
        self.asks_for_addresses
    }

    /// The headers, in lower case, by which some schema matches requests or tells its flows apart.
    #[inline]
    pub fn asked_headers(&self) -> &[Box<str>] {
        &self.asked_headers
    }

    /// The schemas, in the order in which they are tried.
    pub fn schemas(&self) -> &[Schema] {
        &self.schemas
    }
}

// === impl Classification ===

impl<'a> Classification<'a> {
    /// The flow that the request belongs to.
    #[inline]
    pub fn flow(&self) -> Flow<'a> {
        let flow = Flow::with_hash(&self.schema.name, self.distinguisher, self.flow_hash);
        flow.with_weight(self.schema.flow_weight)
    }
}

// === impl Schema ===

impl Schema {
    /// What tells the flow of a request from its others, where its level has flows.
    #[inline]
    pub fn distinguisher_of<'a>(&self, attributes: Attributes<'a>) -> &'a str {
        match &self.flow_by {
            None => distinguisher(self.distinguisher.as_ref(), attributes),
            Some(by) => flow_by(by, attributes),
        }
    }

    /// The hash of the flow of a request, also where its level does not tell flows apart: costs and rates do.
    pub fn flow_key(&self, attributes: Attributes<'_>) -> u64 {
        self.hasher.hash(self.distinguisher_of(attributes))
    }

    /// The hash of its name.
    pub fn key(&self) -> u64 {
        self.hasher.hash("")
    }

    /// What tells its flows apart, if its annotations say so.
    pub fn flow_by(&self) -> Option<&FlowBy> {
        self.flow_by.as_ref()
    }

    /// What tells its flows apart, if its annotations do not say.
    pub fn distinguisher_method(&self) -> Option<&FlowDistinguisherMethod> {
        self.distinguisher.as_ref()
    }
}

// === impl LevelId ===

impl LevelId {
    /// A number below the largest number of levels that there have been at one time: an index for a table of levels.
    pub fn index(self) -> usize {
        self.index as usize
    }

    /// How many levels had its index before it.
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// The first level that has that index.
    pub(crate) fn first(index: u32) -> Self {
        Self { index, generation: 0 }
    }

    /// The level that has the index after this one; `None` if no name is left.
    pub(crate) fn next(self) -> Option<Self> {
        Some(Self { generation: self.generation.checked_add(1)?, ..self })
    }
}

// === impl RequestInfo ===

impl RequestInfo<'_> {
    /// Whether the request only reads (HF-19).
    pub fn is_read_only(&self) -> bool {
        matches!(&*self.verb, "get" | "list" | "watch")
    }
}
