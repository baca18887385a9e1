//! `Route`: what a path stands for (API-3, API-100).

use evenkeel_api::{GROUP, Kind, Version};

use crate::review::Review;

/// The thing that a path stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// Objects of the group.
    Objects(ObjectsRoute),
    /// `/apis/G/V`: the resources of a version.
    Resources(Version),
    /// `/apis/G`.
    Group,
    /// `/apis`.
    Groups,
    /// `/api`.
    CoreVersions,
    /// `/api/v1`.
    CoreResources,
    /// `/openapi/v2`.
    OpenapiV2,
    /// `/openapi/v3`.
    OpenapiIndex,
    /// `/openapi/v3/apis/G/V`.
    Openapi(Version),
    /// `/version`.
    Version,
    /// `/healthz` and its like, or one of its checks.
    Health(Probe, Option<HealthCheck>),
    /// `/`.
    Index,
    /// `/metrics`.
    Metrics,
    /// `/debug/api_priority_and_fairness/…`.
    Dump(Dump),
    /// A review of a user's own identity or permissions.
    Review(Review),
    /// Something of the group that does not exist: the response is a `Status`.
    NoResource,
    /// Anything else: the response is a line of text.
    NoPage,
}

/// A path below `/apis/G/V` that names objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectsRoute {
    pub(crate) version: Version,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
}

/// Which objects, and what of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of the kind.
    Collection,
    /// One object.
    Object(String),
    /// The status of one.
    Status(String),
    /// All or one, to be watched: the old form (API-170).
    Watched(Option<String>),
}

/// A question about the server's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    Healthz,
    Livez,
    Readyz,
}

/// A part of the server's health that can be asked for alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HealthCheck {
    /// Whether the server responds at all.
    Ping,
    /// Whether the store can be read and written.
    Store,
}

/// A dump of the flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dump {
    PriorityLevels,
    Queues,
    Requests,
}

// === impl Route ===

impl Route {
    /// The route of a decoded path.
    pub(crate) fn of(path: &str) -> Self {
        let Some(path) = path.strip_prefix('/') else { return Self::NoPage };
        match path.trim_end_matches('/') {
            "api" => Self::CoreVersions,
            "api/v1" => Self::CoreResources,
            "apis" => Self::Groups,
            "version" => Self::Version,
            "openapi/v2" => Self::OpenapiV2,
            "openapi/v3" => Self::OpenapiIndex,
            "" => Self::Index,
            "metrics" => Self::Metrics,
            "debug/api_priority_and_fairness/dump_priority_levels" => Self::Dump(Dump::PriorityLevels),
            "debug/api_priority_and_fairness/dump_queues" => Self::Dump(Dump::Queues),
            "debug/api_priority_and_fairness/dump_requests" => Self::Dump(Dump::Requests),
            rest => match Self::health(rest) {
                Some(health) => health,
                None => Self::below(path),
            },
        }
    }

    /// The route of a question about health.
    fn health(path: &str) -> Option<Self> {
        let (probe, check) = path.split_once('/').unwrap_or((path, ""));
        let probe = Probe::ALL.into_iter().find(|known| known.name() == probe)?;
        let check = match check {
            "" => None,
            name => Some(probe.checks().iter().copied().find(|known| known.name() == name)?),
        };
        Some(Self::Health(probe, check))
    }

    fn below(path: &str) -> Self {
        if let Some(rest) = path.strip_prefix("openapi/v3/apis/").and_then(|rest| rest.strip_prefix(GROUP)) {
            let version = rest.strip_prefix('/').and_then(|version| version.parse().ok());
            return version.map_or(Self::NoPage, Self::Openapi);
        }
        if let Some(review) = path.strip_prefix("apis/").and_then(Review::at) {
            return Self::Review(review);
        }
        match path.strip_prefix("apis/").and_then(|rest| rest.strip_prefix(GROUP)) {
            Some("" | "/") => Self::Group,
            Some(rest) => match rest.strip_prefix('/') {
                Some(rest) => Self::of_group(rest),
                None => Self::NoPage,
            },
            None => Self::NoPage,
        }
    }

    /// The route of what comes after `/apis/G/`.
    fn of_group(rest: &str) -> Self {
        let mut segments = rest.split('/');
        let Some(version) = segments.next().and_then(|version| version.parse().ok()) else { return Self::NoResource };
        let segments: Vec<&str> = segments.collect();
        let (kind, scope) = match segments.as_slice() {
            [] | [""] => return Self::Resources(version),
            ["watch", resource] | ["watch", resource, ""] => (resource, Scope::Watched(None)),
            ["watch", resource, name] => (resource, Scope::Watched(Some((*name).to_owned()))),
            [resource] | [resource, ""] => (resource, Scope::Collection),
            [resource, name] | [resource, name, ""] => (resource, Scope::Object((*name).to_owned())),
            [resource, name, "status"] => (resource, Scope::Status((*name).to_owned())),
            _ => return Self::NoResource,
        };
        match Kind::ALL.into_iter().find(|known| known.resource() == *kind) {
            Some(kind) => Self::Objects(ObjectsRoute { version, kind, scope }),
            None => Self::NoResource,
        }
    }
}

// === impl Probe ===

impl Probe {
    const ALL: [Self; 3] = [Self::Healthz, Self::Livez, Self::Readyz];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Healthz => "healthz",
            Self::Livez => "livez",
            Self::Readyz => "readyz",
        }
    }

    /// The checks, in order. A server without its store is alive, but not ready: the store recovers or becomes reachable
    /// again by itself, and a restart would not help.
    pub(crate) const fn checks(self) -> &'static [HealthCheck] {
        match self {
            Self::Livez => &[HealthCheck::Ping],
            Self::Healthz | Self::Readyz => &[HealthCheck::Ping, HealthCheck::Store],
        }
    }
}

// === impl HealthCheck ===

impl HealthCheck {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Store => "store",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(scope: Scope) -> Route {
        Route::Objects(ObjectsRoute { version: Version::V1, kind: Kind::FlowSchema, scope })
    }

    #[test]
    fn api_3_paths() {
        let group = format!("/apis/{GROUP}");
        let name = || "a b".to_owned();
        for (path, route) in [
            ("/v1/flowschemas", objects(Scope::Collection)),
            ("/v1/flowschemas/", objects(Scope::Collection)),
            ("/v1/flowschemas/a b", objects(Scope::Object(name()))),
            ("/v1/flowschemas/a b/status", objects(Scope::Status(name()))),
            ("/v1/watch/flowschemas", objects(Scope::Watched(None))),
            ("/v1/watch/flowschemas/a b", objects(Scope::Watched(Some(name())))),
            ("/v1", Route::Resources(Version::V1)),
            ("/v1/", Route::Resources(Version::V1)),
            ("", Route::Group),
            ("/", Route::Group),
            ("/v9", Route::NoResource),
            ("/v1/nothing", Route::NoResource),
            ("/v1/FlowSchemas", Route::NoResource),
            ("/v1/namespaces/default/flowschemas", Route::NoResource),
            ("/v1/flowschemas/a/scale", Route::NoResource),
            (".example.com/v1", Route::NoPage),
        ] {
            assert_eq!(Route::of(&format!("{group}{path}")), route, "{path}");
        }
    }

    #[test]
    fn api_100_other_paths() {
        for (path, route) in [
            ("/apis", Route::Groups),
            ("/apis/", Route::Groups),
            ("/api", Route::CoreVersions),
            ("/api/v1", Route::CoreResources),
            ("/api/v1/events", Route::NoPage),
            ("/version/", Route::Version),
            ("/openapi/v3", Route::OpenapiIndex),
            ("/openapi/v3/apis/flowcontrol.apiserver.k8s.io/v1beta2", Route::Openapi(Version::V1beta2)),
            ("/openapi/v3/apis/apps/v1", Route::NoPage),
            ("/readyz", Route::Health(Probe::Readyz, None)),
            ("/livez/", Route::Health(Probe::Livez, None)),
            ("/livez/ping", Route::Health(Probe::Livez, Some(HealthCheck::Ping))),
            ("/readyz/store", Route::Health(Probe::Readyz, Some(HealthCheck::Store))),
            ("/livez/store", Route::NoPage),
            ("/healthz/pong", Route::NoPage),
            ("/apis/apps/v1", Route::NoPage),
            ("/no/such/path", Route::NoPage),
            ("/", Route::Index),
            ("/metrics", Route::Metrics),
            ("/apis/authorization.k8s.io/v1/subjectaccessreviews", Route::NoPage),
            ("", Route::NoPage),
            ("*", Route::NoPage),
        ] {
            assert_eq!(Route::of(path), route, "{path}");
        }
    }
}
