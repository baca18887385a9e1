//! How long a request takes its seats: to its end, while it starts only, or never.

use evenkeel_engine::RequestInfo;

/// How long a request takes its seats.
///
/// ```
/// use evenkeel::digest::Kubernetes;
/// use evenkeel::service::Occupancy;
///
/// let of = |method, target| Occupancy::kubernetes(&Kubernetes::default().digest(method, target).unwrap());
/// assert_eq!(of("GET", "/api/v1/namespaces/shop/pods"), Occupancy::ToTheEnd);
/// assert_eq!(of("GET", "/api/v1/namespaces/shop/pods?watch=1"), Occupancy::ToTheHeaders);
/// assert_eq!(of("POST", "/api/v1/namespaces/shop/pods/a/exec"), Occupancy::None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Occupancy {
    /// An ordinary request: until the body of its response has ended, has failed or is dropped.
    #[default]
    ToTheEnd,
    /// A long response that is cheap once it has begun, such as that of a watch: until the response headers are there
    /// (HF-10).
    ToTheHeaders,
    /// A long-running request that is not limited at all. It is not classified, and its response is left as it is
    /// (HF-2).
    None,
}

const LONG_RUNNING_SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];
const PROFILES: &str = "/debug/pprof/";

// === impl Occupancy ===

impl Occupancy {
    /// What holds in Kubernetes (HF-3): watches free their seats when they have started; proxied requests, `attach`,
    /// `exec`, `log`, `portforward` and profiles are not limited.
    pub fn kubernetes(request: &RequestInfo<'_>) -> Self {
        let is_unlimited = if request.is_resource_request {
            LONG_RUNNING_SUBRESOURCES.contains(&&*request.subresource)
        } else {
            request.path.starts_with(PROFILES)
        };
        match &*request.verb {
            "watch" => Self::ToTheHeaders,
            "proxy" => Self::None,
            _ if is_unlimited => Self::None,
            _ => Self::ToTheEnd,
        }
    }
}
