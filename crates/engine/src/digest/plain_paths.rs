//! Requests that are known by their method and their path, and by nothing else.

use super::kubernetes::split_target;
use super::{DigestError, verb};
use crate::RequestInfo;

/// Takes every request for one about a path, whatever the path looks like: `/api/v1/pods` is no resource, and
/// `?watch=1` is no watch. The verb is the method in lower case.
///
/// ```
/// use evenkeel_engine::digest::PlainPaths;
///
/// let request = PlainPaths.digest("POST", "/api/v1/orders?watch=1").unwrap();
/// assert!(!request.is_resource_request);
/// assert_eq!((&*request.verb, &*request.path), ("post", "/api/v1/orders"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlainPaths;

// === impl PlainPaths ===

impl PlainPaths {
    /// Digests a request. The target is the path and the query as they were sent.
    pub fn digest<'a>(&self, method: &str, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        let (path, _) = split_target(target)?;
        Ok(RequestInfo { path, verb: verb::of_path(method), ..RequestInfo::default() })
    }
}
