//! Digests: from an HTTP method and a URL to a [`RequestInfo`] (DG-1 to DG-20).
//!
//! [`Kubernetes`] knows the paths of the Kubernetes API; a [`RouteTable`](routes::RouteTable) is told the paths of any
//! other service; to [`PlainPaths`] a path is a path. All make the same [`RequestInfo`], so that everything after them is
//! the same.
//!
//! A target is a path and perhaps a query, not decoded. Whoever receives `http://host/path` in a request line takes scheme
//! and host away first. Escaped bytes that are no UTF-8 are digested as U+FFFD.
//!
//! Digests see a path as it was sent, since that is what the service behind them sees. Where the service, or something
//! between, resolves `/a/../b` or merges slashes, give both of them the [`normal_path`].
//!
//! ```
//! use evenkeel_engine::digest::{Kubernetes, routes::{Route, RouteTable}};
//!
//! let pods = Kubernetes::default().digest("GET", "/api/v1/namespaces/shop/pods").unwrap();
//!
//! let table = RouteTable::new([Route::new("/v2/tenants/{namespace}/{resource}")]).unwrap();
//! let orders = table.digest("GET", "/v2/tenants/shop/orders").unwrap();
//!
//! assert_eq!((&*pods.verb, &*pods.namespace), (&*orders.verb, &*orders.namespace));
//! ```

mod duration;
mod field_selector;
mod kubernetes;
mod label_selector;
mod list_options;
mod normal_path;
mod percent;
mod plain_paths;
mod query;
mod segments;
#[cfg(test)]
mod tests;
mod verb;

pub mod routes;

pub use duration::{DurationError, parse_duration};
pub use field_selector::{FieldOperator, FieldSelector, FieldSelectorError, FieldTerm};
pub use kubernetes::{FullRequestInfo, Kubernetes};
pub use label_selector::{LabelSelector, LabelSelectorError, RequirementError};
pub use list_options::{ListOptions, NotAnInteger};
pub use normal_path::{NormalPath, PathParameters, normal_path, normal_path_with};
pub use percent::{decode_keeping_slashes, percent_decoded};
pub use plain_paths::PlainPaths;
pub use query::Query;

use crate::RequestInfo;

/// Why a request cannot be digested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestError {
    /// The path has a percent sign that two hexadecimal digits do not follow. The response is 400.
    #[error("the path has an invalid escape at byte {position}")]
    Escape {
        /// Where in the path.
        position: usize,
    },
    /// The path could be taken for another one, and is refused. The response is 400.
    #[error("the path {problem}")]
    Path {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The path ends after `watch` or `proxy`. The response is 500 (DG-16).
    #[error("unable to determine kind and namespace from url: nothing follows {verb:?}")]
    NoResource {
        /// The verb.
        verb: &'static str,
        /// What was known by then, for the log.
        known: Box<RequestInfo<'static>>,
    },
}

// === impl DigestError ===

impl From<percent::BadEscape> for DigestError {
    fn from(escape: percent::BadEscape) -> Self {
        Self::Escape { position: escape.position }
    }
}
