//! The two headers with the UIDs of the flow schema and the priority level of a request (HF-15).

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The values of the two headers, made once for each flow schema: cloning them allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct UidHeaders {
    flow_schema: HeaderValue,
    priority_level: HeaderValue,
    /// A map with both, for responses without any other header.
    both: HeaderMap,
}

/// The header with the UID of the flow schema.
pub(crate) const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The header with the UID of the priority level.
pub(crate) const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

// === impl UidHeaders ===

impl UidHeaders {
    pub(crate) fn new(flow_schema_uid: &str, priority_level_uid: &str) -> Self {
        let (flow_schema, priority_level) = (value(flow_schema_uid), value(priority_level_uid));
        let names = [(FLOW_SCHEMA_UID, flow_schema.clone()), (PRIORITY_LEVEL_UID, priority_level.clone())];
        Self { flow_schema, priority_level, both: names.into_iter().collect() }
    }

    pub(crate) fn set(&self, headers: &mut HeaderMap) {
        if headers.capacity() == 0 {
            // A copy is made without hashing the names, which are long.
            *headers = self.both.clone();
            return;
        }
        headers.insert(FLOW_SCHEMA_UID, self.flow_schema.clone());
        headers.insert(PRIORITY_LEVEL_UID, self.priority_level.clone());
    }
}

/// A UID that is no valid header value is left out; only a mistake in an object leads to one.
fn value(uid: &str) -> HeaderValue {
    HeaderValue::from_str(uid).unwrap_or_else(|_| HeaderValue::from_static(""))
}
