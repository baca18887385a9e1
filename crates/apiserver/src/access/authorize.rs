//! Whether a user may do what a request asks for (API-190 to API-193).

use evenkeel_api::meta::StatusDetails;
use evenkeel_engine::{Attributes, RequestInfo, User};

use super::rules::is_allowed;
use crate::failure::Failure;

/// Rejects what the user may not do. `selected` is the name that a field selector limits a list to.
pub(crate) fn authorize(attributes: Attributes<'_>, selected: impl FnOnce() -> Option<String>) -> Result<(), Failure> {
    let Attributes { user, request } = attributes;
    if is_allowed(user, request) { Ok(()) } else { Err(refusal(user, request, selected().as_deref())) }
}

fn refusal(user: &User, request: &RequestInfo<'_>, selected: Option<&str>) -> Failure {
    let (user, verb) = (&user.name, &request.verb);
    if !request.is_resource_request {
        let path = &request.path;
        return Failure::forbidden(
            format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\""),
            StatusDetails::default(),
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
    let details = StatusDetails {
        name: name.to_owned(),
        group: api_group.to_string().into(),
        kind: resource.to_string().into(),
        ..StatusDetails::default()
    };
    Failure::forbidden(message, details)
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::digest::Kubernetes;

    use super::super::{AUTHENTICATED, MASTERS, VIEWERS};
    use super::*;

    fn may(group: &str, method: &str, target: &str) -> bool {
        let groups = if group.is_empty() { vec!["system:unauthenticated"] } else { vec![group, AUTHENTICATED] };
        let request = Kubernetes::default().digest(method, target).unwrap();
        authorize(Attributes { user: &User::new("u", groups), request: &request }, || None).is_ok()
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
            ("GET", "/debug/api_priority_and_fairness/dump_queues", true, false, false, false),
            ("GET", "/", true, false, false, false),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", true, true, true, false),
            ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", true, true, true, false),
            ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", true, false, false, false),
        ] {
            let found = [MASTERS, VIEWERS, "staff", ""].map(|group| may(group, method, target));
            assert_eq!(found, [masters, viewers, others, anonymous], "{method} {target}");
        }
    }

    #[test]
    fn who_monitors_a_cluster_may_scrape_metrics_and_see_no_objects() {
        let group = "system:monitoring";
        assert!(may(group, "GET", "/metrics"));
        assert!(!may(group, "GET", "/debug/api_priority_and_fairness/dump_queues"));
        assert!(!may(group, "GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"));
    }
}
