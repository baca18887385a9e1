//! Requests that are known by their method and their path, and by nothing else.

use std::borrow::Cow;

use super::kubernetes::split_target;
use super::{DigestError, decode_keeping_slashes, normal_path, verb};
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
    #[inline]
    pub fn digest<'a>(&self, method: &str, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        let (path, _) = split_target(target)?;
        Ok(RequestInfo { path, verb: verb::of_path(method), ..RequestInfo::default() })
    }

    /// Digests a request as the gateway does: with the path in its normal form (see [`normal_path`]), in which an encoded slash
    /// stays encoded.
    ///
    /// ```
    /// use evenkeel_engine::digest::PlainPaths;
    ///
    /// for target in ["/pub/a", "//pub//a?b=//c", "/x/../pub/%61"] {
    ///     assert_eq!(PlainPaths.digest_normal("GET", target).unwrap().path, "/pub/a");
    /// }
    /// assert_eq!(PlainPaths.digest_normal("GET", "/a%2fb%20c").unwrap().path, "/a%2Fb c");
    /// assert!(PlainPaths.digest_normal("GET", "/a%2F..%2Fb").is_err());
    /// ```
    pub fn digest_normal<'a>(&self, method: &str, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        let normal = normal_path(target.split('?').next().unwrap_or_default())?;
        let path = match normal.path {
            Cow::Borrowed(path) => decode_keeping_slashes(path)?,
            Cow::Owned(path) => Cow::Owned(decode_keeping_slashes(&path)?.into_owned()),
        };
        Ok(RequestInfo { path, verb: verb::of_path(method), ..RequestInfo::default() })
    }
}
