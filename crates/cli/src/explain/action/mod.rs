//! A verb and a resource, as `kubectl auth can-i` takes them, become the request that kubectl would send.

mod resource;

use evenkeel_apiserver::Verb;

use super::question::Question;
use crate::percent_encoding::encoded;
use resource::{Resource, Scope};

/// Stands for the object where none is named: flow schemas do not look at names, but the URL of one object has one.
const ANY_NAME: &str = "NAME";

/// Where the resource is, apart from its name.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResourcePlace<'a> {
    /// The namespace that was named.
    pub(super) namespace: Option<&'a str>,
    pub(super) is_all_namespaces: bool,
    pub(super) subresource: Option<&'a str>,
    /// The namespace of the context.
    pub(super) current_namespace: Option<&'a str>,
}

/// The request for a verb and a resource, such as `list` and `pods`, or `get` and `deployments.apps/web`.
pub(super) fn question(verb: &str, resource: &str, place: ResourcePlace<'_>) -> Result<Question, String> {
    let known = Verb::named(verb);
    let verb = known.ok_or_else(|| {
        let known: Vec<_> = Verb::ALL.iter().map(|verb| verb.name()).collect();
        format!("{verb:?} is not a verb of requests for resources; use one of {}", known.join(", "))
    })?;
    let (resource, name) = match resource.split_once('/') {
        Some((resource, name)) => (resource, Some(name).filter(|name| !name.is_empty())),
        None => (resource, None),
    };
    let target = target(verb, &Resource::named(resource)?, name, place)?;
    Question::new(verb.method(), &target, None, Vec::new())
}

fn target(verb: Verb, resource: &Resource, name: Option<&str>, place: ResourcePlace<'_>) -> Result<String, String> {
    let plural = &resource.plural;
    let mut target = match resource.group.as_str() {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    match (place.namespace, resource.scope) {
        (Some(_), Scope::Cluster) => return Err(format!("{plural} have no namespace; leave out -n")),
        (Some(namespace), _) => target += &in_namespace(namespace),
        (None, Scope::Cluster) => {}
        (None, _) if place.is_all_namespaces => {}
        (None, _) => target += &in_namespace(place.current_namespace.unwrap_or("default")),
    }
    target += &format!("/{plural}");
    if let Some(subresource) = place.subresource {
        if verb.is_of_collection() {
            return Err(format!(
                "{} is about all {plural}, and a subresource belongs to one of them; use get",
                verb.name()
            ));
        }
        return Ok(format!("{target}/{}/{}", encoded(name.unwrap_or(ANY_NAME), b""), encoded(subresource, b"/")));
    }
    let selector = name.map(|name| format!("fieldSelector=metadata.name%3D{}", encoded(name, b"")));
    Ok(match (verb, name) {
        (Verb::Watch, _) => {
            format!("{target}?{}", ["watch=true".to_owned()].into_iter().chain(selector).collect::<Vec<_>>().join("&"))
        }
        (Verb::List | Verb::DeleteCollection, Some(_)) => format!("{target}?{}", selector.unwrap_or_default()),
        // The name of a new object is in the body.
        (Verb::List | Verb::DeleteCollection | Verb::Create, _) => target,
        (_, name) => format!("{target}/{}", encoded(name.unwrap_or(ANY_NAME), b"")),
    })
}

fn in_namespace(namespace: &str) -> String {
    format!("/namespaces/{}", encoded(namespace, b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &str, resource: &str, place: ResourcePlace<'_>) -> Result<String, String> {
        question(verb, resource, place).map(|question| format!("{} {}", question.method, question.target))
    }

    #[test]
    fn verbs_and_resources_become_requests() {
        let x = ResourcePlace { namespace: Some("x"), ..ResourcePlace::default() };
        let here = ResourcePlace { current_namespace: Some("here"), ..ResourcePlace::default() };
        let everywhere = ResourcePlace { is_all_namespaces: true, ..here };
        let sub = |subresource| ResourcePlace { subresource: Some(subresource), ..x };
        for (verb, resource, place, expected) in [
            ("list", "pods", x, "GET /api/v1/namespaces/x/pods"),
            ("list", "pods", here, "GET /api/v1/namespaces/here/pods"),
            ("list", "pods", ResourcePlace::default(), "GET /api/v1/namespaces/default/pods"),
            ("list", "pods", everywhere, "GET /api/v1/pods"),
            ("list", "nodes", here, "GET /api/v1/nodes"),
            ("get", "nodes/a", here, "GET /api/v1/nodes/a"),
            ("get", "pods", x, "GET /api/v1/namespaces/x/pods/NAME"),
            ("get", "pods/web", x, "GET /api/v1/namespaces/x/pods/web"),
            ("watch", "pods", everywhere, "GET /api/v1/pods?watch=true"),
            ("watch", "pods/web", x, "GET /api/v1/namespaces/x/pods?watch=true&fieldSelector=metadata.name%3Dweb"),
            ("list", "pods/web", x, "GET /api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Dweb"),
            ("create", "deploy", x, "POST /apis/apps/v1/namespaces/x/deployments"),
            ("create", "deploy/web", x, "POST /apis/apps/v1/namespaces/x/deployments"),
            ("update", "deployments.apps/web", x, "PUT /apis/apps/v1/namespaces/x/deployments/web"),
            ("patch", "deployments.apps", x, "PATCH /apis/apps/v1/namespaces/x/deployments/NAME"),
            ("delete", "jobs.batch/bar", x, "DELETE /apis/batch/v1/namespaces/x/jobs/bar"),
            ("deletecollection", "jobs", x, "DELETE /apis/batch/v1/namespaces/x/jobs"),
            ("get", "pods/web", sub("log"), "GET /api/v1/namespaces/x/pods/web/log"),
            ("create", "pods", sub("eviction"), "POST /api/v1/namespaces/x/pods/NAME/eviction"),
            ("list", "widgets.example.com", here, "GET /apis/example.com/v1/namespaces/here/widgets"),
        ] {
            assert_eq!(asked(verb, resource, place).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_not_a_request_is_refused() {
        let fault = |verb: &str, resource: &str, place: ResourcePlace<'_>| asked(verb, resource, place).unwrap_err();
        let x = ResourcePlace { namespace: Some("x"), ..ResourcePlace::default() };
        assert!(
            fault("impersonate", "users", x)
                .starts_with("\"impersonate\" is not a verb of requests for resources; use one of get, list")
        );
        assert!(fault("*", "pods", x).contains("is not a verb"));
        assert!(
            fault("get", "*", x).starts_with("\"*\" is not a resource; write for example pods or deployments.apps")
        );
        assert!(fault("list", "widgets", x).contains("add its group, as in widgets.example.com"));
        assert_eq!(fault("list", "nodes", x), "nodes have no namespace; leave out -n");
        let log = ResourcePlace { subresource: Some("log"), ..x };
        assert!(fault("list", "pods", log).contains("a subresource belongs to one of them; use get"));
    }
}
