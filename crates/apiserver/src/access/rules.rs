//! The rules of authorisation, as data: who may do what (API-190 to API-193).

use evenkeel_api::GROUP;
use evenkeel_engine::{RequestInfo, User};
use serde::Serialize;

use super::{AUTHENTICATED, EDITORS, MASTERS, VIEWERS};

/// The permissions of the members of a group.
#[derive(Debug)]
struct Grant {
    /// The group; `None` for everybody.
    group: Option<&'static str>,
    resources: &'static [ResourceRule],
    paths: &'static [PathRule],
}

/// Verbs on resources. `*` stands for all.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceRule {
    verbs: &'static [&'static str],
    api_groups: &'static [&'static str],
    resources: &'static [&'static str],
}

/// Verbs on paths. A `*` at the end of a path stands for any text.
#[derive(Debug, Serialize)]
pub(crate) struct PathRule {
    verbs: &'static [&'static str],
    #[serde(rename = "nonResourceURLs")]
    paths: &'static [&'static str],
}

/// The group that may scrape metrics and look at each health check, as in a cluster.
const MONITORING: &str = "system:monitoring";

static GRANTS: [Grant; 6] = [
    Grant {
        group: Some(MASTERS),
        resources: &[ResourceRule { verbs: &["*"], api_groups: &["*"], resources: &["*"] }],
        paths: &[PathRule { verbs: &["*"], paths: &["*"] }],
    },
    Grant {
        group: Some(EDITORS),
        resources: &[
            ResourceRule {
                verbs: &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"],
                api_groups: &[GROUP],
                resources: &["flowschemas", "prioritylevelconfigurations"],
            },
            ResourceRule {
                verbs: &["get"],
                api_groups: &[GROUP],
                resources: &["flowschemas/status", "prioritylevelconfigurations/status"],
            },
        ],
        paths: &[],
    },
    Grant {
        group: Some(VIEWERS),
        resources: &[ResourceRule {
            verbs: &["get", "list", "watch"],
            api_groups: &[GROUP],
            resources: &[
                "flowschemas",
                "flowschemas/status",
                "prioritylevelconfigurations",
                "prioritylevelconfigurations/status",
            ],
        }],
        paths: &[],
    },
    Grant {
        group: Some(MONITORING),
        resources: &[],
        paths: &[PathRule {
            verbs: &["get"],
            paths: &["/metrics", "/metrics/", "/healthz/*", "/livez/*", "/readyz/*"],
        }],
    },
    Grant {
        group: Some(AUTHENTICATED),
        resources: &[
            ResourceRule {
                verbs: &["create"],
                api_groups: &["authorization.k8s.io"],
                resources: &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            },
            ResourceRule {
                verbs: &["create"],
                api_groups: &["authentication.k8s.io"],
                resources: &["selfsubjectreviews"],
            },
        ],
        paths: &[PathRule {
            verbs: &["get"],
            paths: &["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"],
        }],
    },
    Grant {
        group: None,
        resources: &[],
        paths: &[PathRule {
            verbs: &["get"],
            paths: &["/version", "/version/", "/healthz", "/healthz/", "/livez", "/livez/", "/readyz", "/readyz/"],
        }],
    },
];

/// Whether the user may do this.
pub(crate) fn is_allowed(user: &User, request: &RequestInfo<'_>) -> bool {
    if request.is_resource_request {
        resource_rules(user).any(|rule| rule.allows(request))
    } else {
        path_rules(user).any(|rule| rule.allows(request))
    }
}

/// All that the user may do with resources.
pub(crate) fn resource_rules(user: &User) -> impl Iterator<Item = &'static ResourceRule> {
    grants(user).flat_map(|grant| grant.resources)
}

/// All that the user may do with paths.
pub(crate) fn path_rules(user: &User) -> impl Iterator<Item = &'static PathRule> {
    grants(user).flat_map(|grant| grant.paths)
}

fn grants(user: &User) -> impl Iterator<Item = &'static Grant> {
    let is_in = |name: &str| user.groups.iter().any(|member| **member == *name);
    GRANTS.iter().filter(move |grant| grant.group.is_none_or(is_in))
}

// === impl ResourceRule ===

impl ResourceRule {
    fn allows(&self, request: &RequestInfo<'_>) -> bool {
        let is_resource = |rule: &&str| match rule.split_once('/') {
            Some((resource, subresource)) => resource == request.resource && subresource == request.subresource,
            None => *rule == "*" || *rule == request.resource && request.subresource.is_empty(),
        };
        names(self.verbs, &request.verb)
            && names(self.api_groups, &request.api_group)
            && self.resources.iter().any(is_resource)
    }
}

// === impl PathRule ===

impl PathRule {
    fn allows(&self, request: &RequestInfo<'_>) -> bool {
        let is_path = |rule: &&str| match rule.strip_suffix('*') {
            Some(start) => request.path.starts_with(start),
            None => *rule == request.path,
        };
        names(self.verbs, &request.verb) && self.paths.iter().any(is_path)
    }
}

/// Whether a list contains a name, or the `*` for all names.
fn names(list: &[&str], name: &str) -> bool {
    list.iter().any(|known| *known == "*" || *known == name)
}
