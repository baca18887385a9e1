//! `OtherMetrics`: metrics that the API shows beside those of its own flow control.

use std::fmt;
use std::sync::Arc;

use prometheus_client::registry::Registry;

/// Metrics of whoever runs the API, such as those of authentication.
#[derive(Clone, Default)]
pub struct OtherMetrics(Option<Arc<Register>>);

type Register = dyn Fn(&mut Registry) + Send + Sync;

// === impl OtherMetrics ===

impl OtherMetrics {
    /// The metrics that `register` registers. It is called at every scrape.
    pub fn new(register: impl Fn(&mut Registry) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(register)))
    }

    pub(crate) fn register(&self, registry: &mut Registry) {
        if let Some(register) = &self.0 {
            register(registry);
        }
    }
}

impl fmt::Debug for OtherMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OtherMetrics").field(&self.0.is_some()).finish()
    }
}
