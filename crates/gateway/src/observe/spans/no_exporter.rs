//! `SpanExporter` in a program without the feature `otlp`: there never is one.

use std::convert::Infallible;

use super::TracingError;
use crate::config::TracingConfig;
use crate::observe::Ended;
use crate::observe::batch::{Batch, TakeBatches};
use crate::observe::metrics::SpanMetrics;

/// No exporter: spans are compiled out.
#[derive(Debug, Clone)]
pub(crate) struct SpanExporter(Infallible);

// === impl SpanExporter ===

impl SpanExporter {
    pub(crate) fn open(
        config: &TracingConfig,
        _before: Option<&Self>,
        _metrics: &SpanMetrics,
    ) -> Result<Option<Self>, TracingError> {
        if config.endpoint.is_some() { Err(TracingError::NotBuilt) } else { Ok(None) }
    }

    pub(crate) fn ended(&self) -> Ended {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "as in the exporter that does something")]
    pub(crate) async fn flush(&self) {
        match self.0 {}
    }
}

impl TakeBatches for SpanExporter {
    fn take(&self, _batch: Batch) -> Result<(), Batch> {
        match self.0 {}
    }

    fn note_lost(&self, _spans: u64) {
        match self.0 {}
    }
}
