//! `Target`: what a request asks for. It is worked out once, from the method, the path and the query; routing,
//! authorization and flow control read it from here.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use evenkeel::digest::{Digest, Digested};
use evenkeel_api::{GROUP, Kind, Version};
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, Kubernetes};
use http::Method;
use http::request::Parts;

use crate::request_context::RequestContext;
use crate::route::{Route, Scope};
use crate::verb::Verb;

/// The target of a request: the thing at its path, and the verb.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The thing that the path stands for.
    pub(crate) route: Route,
    /// The verb; `None` if the path is not about objects, or objects have no such method.
    pub(crate) verb: Option<Verb>,
    request: RequestInfo<'static>,
}

/// Gives the flow control the [`Target`] of a request, which was worked out before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetDigest;

static KUBERNETES: LazyLock<Kubernetes> = LazyLock::new(Kubernetes::default);

// === impl Target ===

impl Target {
    /// The target of the request with this head.
    pub(crate) fn of(parts: &Parts) -> Result<Self, DigestError> {
        let request = Digest::digest(&*KUBERNETES, parts)?.info;
        let route = Route::of(&request.path);
        let verb = match &route {
            Route::Objects(objects) => verb_of(&request.verb, &objects.scope, &parts.method),
            _ => None,
        };
        Ok(Self { route, verb, request: owned(request) })
    }

    /// The request as authorization and flow control see it.
    pub(crate) fn request(&self) -> &RequestInfo<'static> {
        &self.request
    }
}

/// The verb that authorization and flow control see, if these objects have it.
fn verb_of(word: &str, scope: &Scope, method: &Method) -> Option<Verb> {
    let verb = Verb::named(word)?;
    let has_it = match scope {
        Scope::Collection => verb.is_of_collection() || verb == Verb::Create,
        Scope::Watched(_) => verb == Verb::Watch,
        Scope::Object(_) => matches!(verb, Verb::Get | Verb::Update | Verb::Patch | Verb::Delete),
        Scope::Status(_) => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
    };
    // HEAD has the verbs of GET, and a path of the old form has its verb whatever the method.
    (has_it && (verb.is_write() || *method == Method::GET)).then_some(verb)
}

/// The request with owned texts. Texts that nearly all requests have are not copied.
fn owned(request: RequestInfo<'_>) -> RequestInfo<'static> {
    RequestInfo {
        is_resource_request: request.is_resource_request,
        path: Cow::Owned(request.path.into_owned()),
        verb: known(request.verb),
        api_prefix: known(request.api_prefix),
        api_group: known(request.api_group),
        api_version: known(request.api_version),
        namespace: known(request.namespace),
        resource: known(request.resource),
        subresource: known(request.subresource),
        name: if request.name.is_empty() { Cow::Borrowed("") } else { Cow::Owned(request.name.into_owned()) },
        ..RequestInfo::default()
    }
}

fn known(text: Cow<'_, str>) -> Cow<'static, str> {
    const WORDS: [&str; 16] = [
        "",
        "apis",
        GROUP,
        Version::V1.name(),
        Kind::FlowSchema.resource(),
        Kind::PriorityLevelConfiguration.resource(),
        "get",
        "list",
        "watch",
        "create",
        "update",
        "patch",
        "delete",
        "deletecollection",
        "status",
        "api",
    ];
    match WORDS.into_iter().find(|word| *word == text) {
        Some(word) => Cow::Borrowed(word),
        None => Cow::Owned(text.into_owned()),
    }
}

// === impl TargetDigest ===

impl Digest for TargetDigest {
    type Extra = ();

    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        match parts.extensions.get::<RequestContext>() {
            Some(context) => Ok(borrowed(context.target.request()).into()),
            // A dump reads the head of a request again, without its context.
            None => Digest::digest(&*KUBERNETES, parts),
        }
    }

    fn timeout(&self, parts: &Parts) -> Option<Duration> {
        Digest::timeout(&*KUBERNETES, parts)
    }
}

fn borrowed<'a>(request: &'a RequestInfo<'static>) -> RequestInfo<'a> {
    RequestInfo {
        is_resource_request: request.is_resource_request,
        path: Cow::Borrowed(&request.path),
        verb: Cow::Borrowed(&request.verb),
        api_prefix: Cow::Borrowed(&request.api_prefix),
        api_group: Cow::Borrowed(&request.api_group),
        api_version: Cow::Borrowed(&request.api_version),
        namespace: Cow::Borrowed(&request.namespace),
        resource: Cow::Borrowed(&request.resource),
        subresource: Cow::Borrowed(&request.subresource),
        name: Cow::Borrowed(&request.name),
        ..RequestInfo::default()
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn parts(method: &str, target: &str) -> Parts {
        Request::builder().method(method).uri(target).body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_target_is_what_kubernetes_makes_of_the_request() {
        let base = format!("/apis/{GROUP}");
        for path in [
            "/v1/flowschemas",
            "/v1/flowschemas?watch=1&fieldSelector=metadata.name=a",
            "/v1/flowschemas/a%20b/status",
            "/v1beta1/watch/prioritylevelconfigurations/x",
            "/v1/namespaces/n/flowschemas",
            "/v9/other/name/sub",
            "",
        ] {
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "PROXY"] {
                let parts = parts(method, &format!("{base}{path}"));
                let target = Target::of(&parts).unwrap();
                let expected = Digest::digest(&*KUBERNETES, &parts).unwrap().info;
                assert_eq!(borrowed(target.request()), expected, "{method} {path}");
                assert_eq!(target.route, Route::of(&expected.path), "{method} {path}");
            }
        }
    }

    #[test]
    fn api_3_what_a_method_means_on_a_path() {
        let verb =
            |method: &str, path: &str| Target::of(&parts(method, &format!("/apis/{GROUP}/v1/{path}"))).unwrap().verb;
        let methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROXY"];
        let (get, none) = (Some(Verb::Get), [None; 3]);
        let (update, patch) = (Some(Verb::Update), Some(Verb::Patch));
        let many = [Some(Verb::Create), None, None, Some(Verb::DeleteCollection)];
        for (path, first, others) in [
            ("flowschemas", Some(Verb::List), many),
            ("flowschemas/", Some(Verb::List), many),
            ("flowschemas?watch=0", Some(Verb::List), many),
            ("flowschemas?watch=1", Some(Verb::Watch), many),
            ("flowschemas?fieldSelector=metadata.name=a", Some(Verb::List), many),
            ("flowschemas/a", get, [None, update, patch, Some(Verb::Delete)]),
            ("flowschemas/a?watch=1", get, [None, update, patch, Some(Verb::Delete)]),
            ("flowschemas/a/status", get, [None, update, patch, None]),
            ("watch/flowschemas", Some(Verb::Watch), [None; 4]),
            ("watch/flowschemas/a", Some(Verb::Watch), [None; 4]),
            ("flowschemas/a/scale", None, [None; 4]),
        ] {
            let expected: Vec<_> = [first].into_iter().chain(others).chain(none).collect();
            assert_eq!(methods.map(|method| verb(method, path)).to_vec(), expected, "{path}");
        }
        assert_eq!(Target::of(&parts("GET", "/version")).unwrap().verb, None);
    }

    #[test]
    fn api_100_a_verb_of_the_old_form_needs_a_resource() {
        let of = |path: &str| Target::of(&parts("GET", path));
        let is_missing = |path: &str| matches!(of(path), Err(DigestError::NoResource { .. }));
        for path in ["/v1/watch", "/v1/watch/", "/v1/proxy", "/v1/w%61tch", "//watch//"] {
            assert!(is_missing(&format!("/apis/{GROUP}{path}")), "{path}");
        }
        assert!(is_missing("/api/v1/watch"));
        for path in ["/v1/watch/flowschemas", "/v1/flowschemas/watch", "/v1/flowschemas", "/watch", ""] {
            assert!(of(&format!("/apis/{GROUP}{path}")).is_ok(), "{path}");
        }
        assert!(of("/watch").is_ok());
    }
}
