//! Requests in the form that the Kubernetes API gives them (DG-3 to DG-15).

use std::borrow::Cow;

use super::list_options::is_true;
use super::percent::decode_path;
use super::segments::Segments;
use super::{DigestError, ListOptions, Query, verb};
use crate::RequestInfo;

/// Digests requests to a server whose paths are those of the Kubernetes API.
///
/// A request of the usual form is digested without allocating: all texts are borrowed from the target unless they had
/// to be decoded.
///
/// ```
/// use evenkeel_engine::digest::Kubernetes;
///
/// let kubernetes = Kubernetes::default();
/// let request = kubernetes.digest("GET", "/apis/apps/v1/namespaces/shop/deployments?watch=1").unwrap();
/// assert!(request.is_resource_request);
/// assert_eq!((&*request.verb, &*request.api_group), ("watch", "apps"));
/// assert_eq!((&*request.namespace, &*request.resource), ("shop", "deployments"));
///
/// let request = kubernetes.digest("POST", "/login").unwrap();
/// assert!(!request.is_resource_request);
/// assert_eq!((&*request.verb, &*request.path), ("post", "/login"));
/// ```
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubernetes {
    /// The first segments of paths that name resources.
    pub prefixes: Vec<Box<str>>,
    /// The prefixes that no API group follows.
    pub groupless_prefixes: Vec<Box<str>>,
}

/// A request with what only authorizers and logs want to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FullRequestInfo<'a> {
    /// What decisions depend on.
    pub request: RequestInfo<'a>,
    /// The path from the resource on; empty if this is not about a resource.
    pub parts: Cow<'a, str>,
    /// The field selector of a list, a watch or a deletion of many, as it was received (DG-15).
    pub field_selector: Cow<'a, str>,
    /// The label selector of a list, a watch or a deletion of many, as it was received (DG-15).
    pub label_selector: Cow<'a, str>,
}

/// Where the verb was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VerbSource {
    Method,
    Path,
}

/// A digested path, with what has been learnt on the way.
struct Digested<'a> {
    request: RequestInfo<'a>,
    parts: &'a str,
    verb_source: VerbSource,
}

const NAMESPACES: &str = "namespaces";
/// Segments after a namespace that are about the namespace itself.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

// === impl Kubernetes ===

impl Default for Kubernetes {
    /// `api` for the core group and `apis` for all others.
    fn default() -> Self {
        Self { prefixes: vec!["api".into(), "apis".into()], groupless_prefixes: vec!["api".into()] }
    }
}

impl Kubernetes {
    /// Digests a request. The target is the path and the query as they were sent.
    pub fn digest<'a>(&self, method: &str, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        let (path, query) = split_target(target)?;
        match path {
            // Most services have paths of their own: nothing else has to be found out then.
            Cow::Borrowed(path) if !self.may_be_about_resource(path) => {
                Ok(RequestInfo { path: Cow::Borrowed(path), verb: verb::of_path(method), ..RequestInfo::default() })
            }
            Cow::Borrowed(path) => Ok(self.digest_path(method, path, query)?.request),
            Cow::Owned(path) => Ok(self.digest_path(method, &path, query)?.request.into_owned()),
        }
    }

    /// Digests a request, and keeps what only authorizers and logs want to know.
    pub fn digest_fully<'a>(&self, method: &str, target: &'a str) -> Result<FullRequestInfo<'a>, DigestError> {
        let (path, query) = split_target(target)?;
        match path {
            Cow::Borrowed(path) => Ok(self.digest_path(method, path, query)?.into_full(query)),
            Cow::Owned(path) => {
                let full = self.digest_path(method, &path, query)?.into_full(query);
                Ok(FullRequestInfo {
                    request: full.request.into_owned(),
                    parts: full.parts.into_owned().into(),
                    field_selector: full.field_selector.into_owned().into(),
                    label_selector: full.label_selector.into_owned().into(),
                })
            }
        }
    }

    /// Whether the path starts with one of the prefixes, as all that are about resources do.
    #[inline]
    fn may_be_about_resource(&self, path: &str) -> bool {
        let inner = path.trim_start_matches('/').as_bytes();
        let first = inner.split(|byte| *byte == b'/').next().unwrap_or_default();
        self.prefixes.iter().any(|prefix| prefix.as_bytes() == first)
    }

    fn digest_path<'a>(&self, method: &str, path: &'a str, query: Query<'a>) -> Result<Digested<'a>, DigestError> {
        let mut request =
            RequestInfo { path: Cow::Borrowed(path), verb: verb::of_path(method), ..RequestInfo::default() };
        let not_about_resource = |request| Ok(Digested { request, parts: "", verb_source: VerbSource::Method });

        let mut segments = Segments::of(path);
        if segments.count() < 3 || !is_among(&self.prefixes, segments.first()) {
            return not_about_resource(request);
        }
        let prefix = segments.take();
        let has_group = !is_among(&self.groupless_prefixes, Some(prefix));
        if has_group && segments.count() < 3 {
            return not_about_resource(RequestInfo { api_prefix: prefix.into(), ..request });
        }
        request.api_prefix = prefix.into();
        if has_group {
            request.api_group = segments.take().into();
        }
        request.is_resource_request = true;
        request.api_version = segments.take().into();

        let verb_in_path = match segments.first() {
            Some("watch") => Some("watch"),
            Some("proxy") => Some("proxy"),
            _ => None,
        };
        match verb_in_path {
            Some(verb) if segments.count() < 2 => {
                return Err(DigestError::NoResource { verb, known: Box::new(request.into_owned()) });
            }
            Some(_) => request.verb = segments.take().into(),
            None => request.verb = verb::of_resource(method).into(),
        }

        if segments.first() == Some(NAMESPACES) {
            request.namespace = segments.get(1).unwrap_or_default().into();
            if segments.get(2).is_some_and(|third| !NAMESPACE_SUBRESOURCES.contains(&third)) {
                segments.take();
                segments.take();
            }
        }
        let parts = segments.rest();
        request.resource = segments.get(0).unwrap_or_default().into();
        request.name = segments.get(1).unwrap_or_default().into();
        if request.verb != "proxy" {
            request.subresource = segments.get(2).unwrap_or_default().into();
        }
        if request.name.is_empty() {
            digest_collection(&mut request, query);
        }
        let verb_source = if verb_in_path.is_some() { VerbSource::Path } else { VerbSource::Method };
        Ok(Digested { request, parts, verb_source })
    }
}

// === impl Digested ===

impl<'a> Digested<'a> {
    fn into_full(self, query: Query<'a>) -> FullRequestInfo<'a> {
        let mut full =
            FullRequestInfo { request: self.request, parts: self.parts.into(), ..FullRequestInfo::default() };
        let is_about_many = matches!(&*full.request.verb, "list" | "watch" | "deletecollection");
        if full.request.is_resource_request && is_about_many && self.verb_source == VerbSource::Method {
            full.field_selector = query.first("fieldSelector").unwrap_or_default();
            full.label_selector = query.first("labelSelector").unwrap_or_default();
        }
        full
    }
}

/// What the verb is when no object is named (DG-12 to DG-14).
fn digest_collection<'a>(request: &mut RequestInfo<'a>, query: Query<'a>) {
    match &*request.verb {
        "get" => {
            let options = ListOptions::decode(query).ok();
            let is_watch = match &options {
                Some(options) => options.watch,
                None => query.first("watch").is_some_and(|value| is_true(&value)),
            };
            request.verb = if is_watch { "watch" } else { "list" }.into();
            let name = options.and_then(|options| options.exact_field("metadata.name"));
            request.name = name.filter(|name| is_path_segment(name)).unwrap_or_default();
        }
        "delete" => request.verb = "deletecollection".into(),
        _ => {}
    }
}

fn is_path_segment(name: &str) -> bool {
    name != "." && name != ".." && !name.contains(['/', '%'])
}

fn is_among(prefixes: &[Box<str>], segment: Option<&str>) -> bool {
    segment.is_some_and(|segment| prefixes.iter().any(|prefix| **prefix == *segment))
}

/// The decoded path, and the query as it is.
#[inline]
pub(super) fn split_target(target: &str) -> Result<(Cow<'_, str>, Query<'_>), DigestError> {
    // Targets are so short that a plain loop beats a search that is made for long texts.
    let end = target.bytes().position(|byte| byte == b'?');
    let (path, query) = end.and_then(|end| target.split_at_checked(end)).unwrap_or((target, ""));
    Ok((decode_path(path)?, Query::new(query.get(1..).unwrap_or_default())))
}
