//! Tracing: spans of requests, exported with OTLP.
//!
//! A worker encodes the spans of a sampled request into a buffer of its own when the request has ended, and hands full buffers
//! to one task that sends them. Nothing on the request path waits for that task: if it cannot keep up, spans are lost and
//! counted. See decision 62.

mod context;
mod gen_ai;
mod protobuf;
mod request_spans;

#[cfg(feature = "otlp")]
mod client;
#[cfg(feature = "otlp")]
mod envelope;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(not(feature = "otlp"))]
#[path = "no_exporter.rs"]
mod exporter;
#[cfg(feature = "otlp")]
mod headers_file;
#[cfg(feature = "otlp")]
mod protobuf_reader;
#[cfg(feature = "otlp")]
mod retry_info;

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};

use http::HeaderMap;

use crate::config::TracingConfig;
use crate::observe::batch::Batches;
use crate::observe::moment::Moment;
use crate::observe::sampling::Sampling;
use context::{Parent, RANDOM, SAMPLED, SpanId, TRACEPARENT, TRACESTATE, TraceId, traceparent};

pub(crate) use exporter::SpanExporter;
pub(crate) use request_spans::{RequestSpans, UpstreamCall, Wait, WaitOutcome};

/// Why spans cannot be exported. Each error says in one sentence what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracingError {
    /// The headers for the collector cannot be used.
    #[error("tracing.headersFile: {0}")]
    Headers(String),
    /// A certificate or a key cannot be used.
    #[error(transparent)]
    Tls(#[from] crate::tls::TlsError),
    /// The program has no exporter.
    #[error("tracing.endpoint: this program was built without tracing; build it with the feature `otlp`")]
    NotBuilt,
}

/// Decides which requests of one worker are traced, and takes their spans, under the settings of one time.
#[derive(Debug)]
pub(crate) struct Tracer {
    sampling: Sampling,
    is_parent_based: bool,
    state: RefCell<BatchedSpans>,
}

/// The ids of the spans of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanIds {
    trace: TraceId,
    /// The client's span, if it has said so.
    parent: Option<SpanId>,
    flags: u8,
    server: SpanId,
    wait: SpanId,
    client: SpanId,
}

#[derive(Debug)]
struct BatchedSpans {
    batches: Batches<SpanExporter>,
    random: fastrand::Rng,
    moment: Moment,
}

// === impl Tracer ===

impl Tracer {
    /// `None` if nothing is traced.
    pub(crate) fn new(config: &TracingConfig, exporter: Option<&SpanExporter>) -> Option<Self> {
        let state = BatchedSpans {
            batches: Batches::new(exporter?.clone()),
            random: fastrand::Rng::with_seed(RandomState::new().hash_one(0)),
            moment: Moment::now(),
        };
        Some(Self {
            sampling: Sampling::of(config.sample_ratio),
            is_parent_based: config.parent_based,
            state: RefCell::new(state),
        })
    }

    /// The ids of the spans of a request with these headers, if it is sampled.
    #[inline]
    pub(crate) fn sample(&self, headers: &HeaderMap) -> Option<SpanIds> {
        let parent = Parent::of(headers);
        let is_sampled = match &parent {
            Some(parent) if self.is_parent_based => parent.flags & SAMPLED != 0,
            _ => self.draws(),
        };
        is_sampled.then(|| self.ids(parent))
    }

    /// Whether the ratio chooses the next request.
    fn draws(&self) -> bool {
        self.sampling.draw(|| self.state.borrow_mut().random.u64(..))
    }

    fn ids(&self, parent: Option<Parent>) -> SpanIds {
        let random = &mut self.state.borrow_mut().random;
        SpanIds {
            trace: parent.map_or_else(|| trace_id(random), |parent| parent.trace_id),
            parent: parent.map(|parent| parent.span_id),
            flags: parent.map_or(0, |parent| parent.flags & RANDOM) | SAMPLED,
            server: span_id(random),
            wait: span_id(random),
            client: span_id(random),
        }
    }

    /// Takes the spans of a request.
    pub(crate) fn put(&self, spans: &RequestSpans<'_>) {
        let BatchedSpans { batches, moment, .. } = &mut *self.state.borrow_mut();
        batches.put(spans.count(), |out| spans.put(out, moment));
    }

    /// Hands over the spans that there are. To be called some times a second.
    pub(crate) fn flush(&self) {
        let state = &mut *self.state.borrow_mut();
        state.moment = Moment::now();
        state.batches.send();
    }
}

// === impl SpanIds ===

impl SpanIds {
    /// Tells the upstream which trace the request belongs to.
    pub(crate) fn propagate(&self, headers: &mut HeaderMap) {
        headers.insert(TRACEPARENT, traceparent(self.trace, self.client, self.flags));
        if self.parent.is_none() {
            // The span belongs to a trace that cannot be read.
            headers.remove(TRACESTATE);
        }
    }
}

fn trace_id(random: &mut fastrand::Rng) -> TraceId {
    random.u128(1..).to_be_bytes()
}

fn span_id(random: &mut fastrand::Rng) -> SpanId {
    random.u64(1..).to_be_bytes()
}
