//! Calls that requests make while they run.

use serde::{Deserialize, Serialize};

use crate::finding::SourceLocation;
use crate::request::Request;

/// A request that another request makes while it runs, and waits for: a call to a webhook, for example, or to another service.
///
/// Not `#[non_exhaustive]`: code that reads calls from a file makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The request that runs.
    pub caller: Endpoint,
    /// The request that it makes.
    pub callee: Endpoint,
    /// Where the call is declared.
    pub place: SourceLocation,
}

/// One end of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Endpoint {
    /// The requests of a flow schema, by its name.
    FlowSchema(String),
    /// A request, which is classified.
    Request(Box<Request>),
}
