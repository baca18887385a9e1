//! What requests ask for, what they cost, and how long they take their seats.

mod paths;

use std::borrow::Cow;

use evenkeel::{Digest, Digested, EstimateWork, KubernetesWork, Occupancy, Preset, Watch, WorkInput};
use evenkeel_engine::digest::routes::{Attribute, Route, RouteTable};
use evenkeel_engine::digest::{DigestError, Kubernetes, Query};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use http::Method;
use http::request::Parts;

use crate::answers::is_grpc;
use crate::config::{Paths, RequestsConfig, RouteConfig, WhenClientLeaves};
use crate::h1::Noted;

/// Understands requests as the configuration says: by route, as a Kubernetes server would, or by method and path.
///
/// A request that a route fits carries the route's number in `api_prefix`, which nothing else is decided by; so the cost
/// of a request is known wherever its [`RequestInfo`] is. No client can put anything there.
#[derive(Debug, Clone)]
pub struct Requests {
    /// Finds the number of the route that fits a request, as its resource.
    numbers: RouteTable,
    rules: Vec<Rule>,
    kubernetes: Option<(Kubernetes, KubernetesWork)>,
    when_client_leaves: Option<WhenClientLeaves>,
    /// Whether a route says anything else about that.
    has_routes_about_leaving: bool,
    paths: Paths,
}

/// What holds for the requests of one route.
#[derive(Debug, Clone)]
struct Rule {
    number: Box<str>,
    /// What such a request asks for; without it, it is known by its method and path.
    meaning: Option<RouteTable>,
    work: WorkEstimate,
    occupancy: Occupancy,
    when_client_leaves: Option<WhenClientLeaves>,
}

/// Everything that is wrong with the routes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct RequestsError(
    /// What is wrong with which route, one each.
    pub Vec<String>,
);

// === impl Requests ===

impl Requests {
    /// Compiles the routes. The preset says what becomes of requests that no route fits.
    pub fn new(config: &RequestsConfig, preset: Preset) -> Result<Self, RequestsError> {
        let mut faults: Vec<String> = config.routes.iter().flat_map(faults).collect();
        // All routes in one table, to see whether two of them are for the same requests.
        if let Err(errors) = RouteTable::new(config.routes.iter().map(meaning)) {
            faults.extend(errors.0.iter().map(ToString::to_string));
        }
        let numbers = config.routes.iter().enumerate().map(|(number, route)| {
            with_methods(Route::new(nameless(&route.path)), route).fix(Attribute::Resource, number.to_string())
        });
        match RouteTable::new(numbers) {
            Ok(numbers) if faults.is_empty() => Ok(Self {
                numbers,
                rules: config.routes.iter().enumerate().map(|(number, route)| Rule::new(number, route)).collect(),
                kubernetes: (preset == Preset::Kubernetes).then(|| (Kubernetes::default(), KubernetesWork::default())),
                when_client_leaves: config.when_client_leaves,
                has_routes_about_leaving: config.routes.iter().any(|route| route.when_client_leaves.is_some()),
                paths: config.paths,
            }),
            // Its faults were found in the table above, under the names that the user gave.
            _ => Err(RequestsError(faults)),
        }
    }

    /// How long a request takes its seats.
    pub fn occupancy(&self, _parts: &Parts, request: &RequestInfo<'_>) -> Occupancy {
        match self.rule(request) {
            Some(rule) => rule.occupancy,
            None if self.kubernetes.is_some() => Occupancy::kubernetes(request),
            None => Occupancy::ToTheEnd,
        }
    }

    /// What becomes of a request at the upstream when its client leaves: what its route says, or else what the settings say
    /// for all, or else what is usual. Servers of gRPC stop when a call is cancelled.
    pub(crate) fn when_client_leaves(&self, parts: &Parts, noted: Noted) -> WhenClientLeaves {
        let of_route = || self.digest_path(parts).ok().and_then(|request| self.rule(&request)?.when_client_leaves);
        let said = self.has_routes_about_leaving.then(of_route).flatten().or(self.when_client_leaves);
        said.unwrap_or_else(|| {
            let is_grpc = noted.has(Noted::TYPE) && is_grpc(&parts.headers);
            if is_grpc { WhenClientLeaves::Cancel } else { WhenClientLeaves::Wait }
        })
    }

    /// Whether a request is a stream: it may be silent for long, and its body is passed on as it comes.
    pub(crate) fn is_stream(&self, parts: &Parts) -> bool {
        is_grpc(&parts.headers)
            || self.digest_path(parts).is_ok_and(|request| self.occupancy(parts, &request) != Occupancy::ToTheEnd)
    }

    /// How much work requests are by Kubernetes' rules, if those are followed: whoever knows how many objects there are
    /// can say so there.
    pub fn kubernetes_work(&self) -> Option<&KubernetesWork> {
        self.kubernetes.as_ref().map(|(_, work)| work)
    }

    /// What is asked for with this method and this target.
    fn understand<'a>(&'a self, method: &Method, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        let found = self.numbers.digest(method.as_str(), target)?;
        if found.is_resource_request {
            let Some(rule) = found.resource.parse::<usize>().ok().and_then(|number| self.rules.get(number)) else {
                return Ok(found);
            };
            let mut request = match &rule.meaning {
                Some(meaning) => meaning.digest(method.as_str(), target)?,
                None => RequestInfo { path: found.path, verb: path_verb(method), ..RequestInfo::default() },
            };
            request.api_prefix = Cow::Borrowed(&rule.number);
            return Ok(request);
        }
        match &self.kubernetes {
            Some((kubernetes, _)) => kubernetes.digest(method.as_str(), target),
            None => Ok(found),
        }
    }

    fn rule(&self, request: &RequestInfo<'_>) -> Option<&Rule> {
        self.rules.get(request.api_prefix.parse::<usize>().ok()?)
    }
}

impl Digest for Requests {
    type Extra = ();

    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        self.digest_path(parts).map(Digested::from)
    }
}

impl EstimateWork for Requests {
    fn estimate(&self, request: &WorkInput<'_>) -> WorkEstimate {
        match (self.rule(request.attributes.request), &self.kubernetes) {
            (Some(rule), _) => rule.work,
            (None, Some((_, work))) => work.estimate(request),
            (None, None) => WorkEstimate::ONE_SEAT,
        }
    }

    fn watch(&self, request: &RequestInfo<'_>, query: Query<'_>, extra: &()) -> Option<Watch> {
        let (None, Some((_, work))) = (self.rule(request), &self.kubernetes) else { return None };
        work.watch(request, query, extra)
    }

    fn interested_watches(&self, request: &RequestInfo<'_>, extra: &()) -> Option<u64> {
        let (None, Some((_, work))) = (self.rule(request), &self.kubernetes) else { return None };
        work.interested_watches(request, extra)
    }
}

// === impl Rule ===

impl Rule {
    fn new(number: usize, route: &RouteConfig) -> Self {
        let meaning = is_about_resource(route).then(|| RouteTable::new([meaning(route)]).ok()).flatten();
        let occupancy = if route.long_running { Occupancy::ToTheHeaders } else { Occupancy::ToTheEnd };
        Self {
            number: number.to_string().into(),
            meaning,
            work: WorkEstimate::seats(route.seats),
            occupancy,
            when_client_leaves: route.when_client_leaves,
        }
    }
}

/// What is wrong with a route beyond its template.
fn faults(route: &RouteConfig) -> Vec<String> {
    let path = &route.path;
    let mut faults = Vec::new();
    if route.seats == 0 {
        faults.push(format!("route {path:?}: seats must be at least 1"));
    }
    for method in &route.methods {
        if Method::from_bytes(method.as_bytes()).is_err() || method.bytes().any(|byte| byte.is_ascii_lowercase()) {
            faults.push(format!("route {path:?}: {method:?} is not a method; write one in upper case, as `GET`"));
        }
    }
    for (name, value) in [("resource", &route.resource), ("verb", &route.verb)] {
        if value.as_deref() == Some("") {
            faults.push(format!("route {path:?}: {name} is empty; leave it out"));
        }
    }
    if !is_about_resource(route) && (route.verb.is_some() || path.contains("{na")) {
        let fault = "it is about no resource, so that nothing can be said of it but what it costs; name the resource with \
                     {resource} or `resource`, or use {_} instead of names";
        faults.push(format!("route {path:?}: {fault}"));
    }
    faults
}

fn is_about_resource(route: &RouteConfig) -> bool {
    route.resource.is_some() || route.path.contains("{resource")
}

/// The route as the engine knows it.
fn meaning(route: &RouteConfig) -> Route {
    let mut meaning = with_methods(Route::new(route.path.as_str()), route);
    if let Some(verb) = &route.verb {
        meaning = meaning.verb(verb.as_str());
    }
    match &route.resource {
        Some(resource) => meaning.fix(Attribute::Resource, resource.as_str()),
        None if is_about_resource(route) => meaning,
        // Only to be told what is wrong with the template.
        None => meaning.fix(Attribute::Resource, "none"),
    }
}

fn with_methods(made: Route, route: &RouteConfig) -> Route {
    route.methods.iter().fold(made, |made, method| made.method(method.as_str()))
}

/// A template of the same shape that gives nothing a meaning.
fn nameless(template: &str) -> String {
    let segments = template.split('/').map(|segment| match segment {
        _ if !segment.starts_with('{') => segment,
        "{*}" => segment,
        _ if segment.ends_with("...}") => "{*}",
        _ => "{_}",
    });
    segments.collect::<Vec<_>>().join("/")
}

/// Of a path, the verb is the method in lower case.
fn path_verb(method: &Method) -> Cow<'static, str> {
    match *method {
        Method::GET => "get".into(),
        Method::HEAD => "head".into(),
        Method::POST => "post".into(),
        Method::PUT => "put".into(),
        Method::PATCH => "patch".into(),
        Method::DELETE => "delete".into(),
        Method::OPTIONS => "options".into(),
        _ => method.as_str().to_ascii_lowercase().into(),
    }
}
