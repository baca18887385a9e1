//! Whether a user may do what a request asks for (API-190 to API-193).

use evenkeel_api::{GROUP, Kind};
use evenkeel_engine::{Attributes, RequestInfo, User};

use super::{AUTHENTICATED, MASTERS, VIEWERS};
use crate::failure::{Details, Failure};

/// Paths that everybody may get.
const OPEN: [&str; 4] = ["/version", "/healthz", "/livez", "/readyz"];
/// Paths that everybody who is known may get, with all below them.
const KNOWN: [&str; 3] = ["/api", "/apis", "/openapi"];

/// Refuses what the user may not do. A `name` is what a field selector limits a list to.
pub(crate) fn authorize(attributes: Attributes<'_>, name: Option<&str>) -> Result<(), Failure> {
    let Attributes { user, request } = attributes;
    let is_in = |group: &str| user.groups.iter().any(|member| **member == *group);
    let is_allowed = is_in(MASTERS)
        || if request.is_resource_request {
            is_in(VIEWERS) && is_reading(request)
        } else {
            request.verb == "get" && (is_open(&request.path) || is_in(AUTHENTICATED) && is_known(&request.path))
        };
    if is_allowed { Ok(()) } else { Err(refusal(user, request, name)) }
}

/// Whether a request reads objects of the group.
fn is_reading(request: &RequestInfo<'_>) -> bool {
    request.api_group == GROUP
        && Kind::ALL.iter().any(|kind| kind.resource() == request.resource)
        && matches!(&*request.subresource, "" | "status")
        && matches!(&*request.verb, "get" | "list" | "watch")
}

fn is_open(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    OPEN.contains(&path)
}

fn is_known(path: &str) -> bool {
    KNOWN.iter().any(|known| path.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn refusal(user: &User, request: &RequestInfo<'_>, selected: Option<&str>) -> Failure {
    let (user, verb) = (&user.name, &request.verb);
    if !request.is_resource_request {
        let path = &request.path;
        return Failure::forbidden(
            format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\""),
            Details::default(),
        );
    }
    let RequestInfo { resource, api_group, .. } = request;
    let name = if request.name.is_empty() { selected.unwrap_or_default() } else { &request.name };
    let what = if api_group.is_empty() { resource.to_string() } else { format!("{resource}.{api_group}") };
    let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    let full = if request.subresource.is_empty() {
        resource.to_string()
    } else {
        format!("{resource}/{}", request.subresource)
    };
    let place = if request.namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{}\"", request.namespace)
    };
    let message = format!(
        "{what}{named} is forbidden: User \"{user}\" cannot {verb} resource \"{full}\" in API group \"{api_group}\" {place}"
    );
    let details = Details {
        name: name.to_owned(),
        group: api_group.to_string().into(),
        kind: resource.to_string().into(),
        ..Details::default()
    };
    Failure::forbidden(message, details)
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::digest::Kubernetes;

    use super::*;

    fn may(group: &str, method: &str, target: &str) -> bool {
        let groups = if group.is_empty() { vec!["system:unauthenticated"] } else { vec![group, AUTHENTICATED] };
        let request = Kubernetes::default().digest(method, target).unwrap();
        authorize(Attributes { user: &User::new("u", groups), request: &request }, None).is_ok()
    }

    #[test]
    fn api_191_and_192_who_may_do_what() {
        let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
        let schema = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/a";
        for (method, target, masters, viewers, others, anonymous) in [
            ("GET", schemas, true, true, false, false),
            ("GET", schema, true, true, false, false),
            ("POST", schemas, true, false, false, false),
            ("DELETE", schema, true, false, false, false),
            ("GET", "/apis/flowcontrol.apiserver.k8s.io/v1", true, true, true, false),
            ("GET", "/openapi/v3", true, true, true, false),
            ("GET", "/version", true, true, true, true),
            ("GET", "/readyz", true, true, true, true),
            ("POST", "/version", true, false, false, false),
            ("GET", "/apisx", true, false, false, false),
            ("GET", "/api/v1/pods", true, false, false, false),
            ("GET", "/metrics", true, false, false, false),
        ] {
            let found = [MASTERS, VIEWERS, "staff", ""].map(|group| may(group, method, target));
            assert_eq!(found, [masters, viewers, others, anonymous], "{method} {target}");
        }
    }
}
