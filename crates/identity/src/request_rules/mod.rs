//! `RequestRules`: interprets requests: what they ask for and cost, and how long they keep their seats.

mod explain;
mod paths;
mod routed;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use evenkeel::Preset;
use evenkeel::cost::{CostUnit, RouteCost};
use evenkeel::digest::{Digest, Digested};
use evenkeel::service::Occupancy;
use evenkeel::work::{EstimateWork, KubernetesWork, Watch, WorkInput};
use evenkeel_engine::cost::text_key;
use evenkeel_engine::digest::routes::{Attribute, Route, RouteTable};
use evenkeel_engine::digest::{DigestError, Kubernetes, PathParameters, Query};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use http::Method;
use http::request::Parts;

pub use explain::AskedModel;
pub use paths::{Target, set_path};
pub use routed::RoutedRequest;

use crate::config::{Paths, RequestsConfig, RouteConfig, RouteTimeouts, WhenClientLeaves};

/// Interprets requests as the settings say: by route, as a Kubernetes server would, or by method and path. Clones are cheap.
#[derive(Debug, Clone)]
pub struct RequestRules(Arc<Compiled>);

/// The route that a request belongs to, if it belongs to one. What the request costs follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouteMatch(Option<usize>);

#[derive(Debug)]
struct Compiled {
    /// The routes, in the order of `rules`.
    table: RouteTable,
    rules: Vec<Rule>,
    kubernetes: Option<(Kubernetes, KubernetesWork)>,
    when_client_leaves: Option<WhenClientLeaves>,
    paths: Paths,
    path_parameters: PathParameters,
}

/// The rule for the requests of one route.
#[derive(Debug)]
struct Rule {
    /// The path of the route.
    path: String,
    work: WorkEstimate,
    /// The unit of its requests' cost, if the route names one.
    cost: Option<CostUnit>,
    /// The number of the route in learnt costs.
    cost_key: u64,
    occupancy: Occupancy,
    when_client_leaves: Option<WhenClientLeaves>,
    timeouts: RouteTimeouts,
}

/// All problems of the routes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
#[non_exhaustive]
pub struct RequestRulesError(
    /// One text for each fault: the route, and what is wrong with it.
    pub Vec<String>,
);

// === impl RouteMatch ===

impl RouteMatch {
    /// Whether a route matches.
    pub fn is_route(self) -> bool {
        self.0.is_some()
    }
}

// === impl RequestRules ===

impl RequestRules {
    /// Compiles the routes. The preset says what becomes of requests that no route matches.
    pub fn new(config: &RequestsConfig, preset: Preset) -> Result<Self, RequestRulesError> {
        let mut faults: Vec<String> = config.routes.iter().flat_map(faults).collect();
        match RouteTable::new(config.routes.iter().map(route)) {
            Ok(table) if faults.is_empty() => Ok(Self(Arc::new(Compiled {
                table,
                rules: config.routes.iter().map(Rule::new).collect(),
                kubernetes: (preset == Preset::Kubernetes).then(|| (Kubernetes::default(), KubernetesWork::default())),
                when_client_leaves: config.when_client_leaves,
                paths: config.paths,
                path_parameters: config.path_parameters(preset),
            }))),
            Ok(_) => Err(RequestRulesError(faults)),
            Err(errors) => {
                faults.extend(errors.0.iter().map(ToString::to_string));
                Err(RequestRulesError(faults))
            }
        }
    }

    /// How a request is treated at the upstream when its client disconnects: by its route, or else by the settings for all, or
    /// else by default. Servers of gRPC stop when a call is cancelled.
    pub fn when_client_leaves(&self, route: RouteMatch, is_grpc: impl FnOnce() -> bool) -> WhenClientLeaves {
        let set = self.rule_of(route).and_then(|rule| rule.when_client_leaves).or(self.0.when_client_leaves);
        set.unwrap_or_else(|| if is_grpc() { WhenClientLeaves::Cancel } else { WhenClientLeaves::Wait })
    }

    /// How long the requests of a route may take, where that differs from what holds for all.
    pub fn timeouts(&self, route: RouteMatch) -> RouteTimeouts {
        self.rule_of(route).map(|rule| rule.timeouts).unwrap_or_default()
    }

    /// Whether the cost of a route's requests is counted in tokens.
    pub fn counts_tokens(&self, route: RouteMatch) -> bool {
        self.rule_of(route).is_some_and(|rule| rule.cost == Some(CostUnit::Tokens))
    }

    /// The template of a route.
    pub fn template(&self, route: RouteMatch) -> Option<&str> {
        self.rule_of(route).map(|rule| rule.path.as_str())
    }

    /// Whether a request runs for long by its nature, such as a watch.
    pub fn is_long_running(&self, digested: &Digested<'_, RouteMatch>) -> bool {
        Digest::occupancy(self, digested).is_some_and(|occupancy| occupancy != Occupancy::ToTheEnd)
    }

    /// The seats that the route of a request says, if it has one.
    pub fn seats_of_route(&self, route: RouteMatch) -> Option<WorkEstimate> {
        self.rule_of(route).map(|rule| rule.work)
    }

    /// How much work requests are by the rules of Kubernetes, if those apply: a caller that knows the numbers of objects
    /// can set them there.
    pub fn kubernetes_work(&self) -> Option<&KubernetesWork> {
        self.0.kubernetes.as_ref().map(|(_, work)| work)
    }

    /// What a request with this method and this target asks for.
    fn interpret<'a>(&'a self, method: &Method, target: &'a str) -> Result<Digested<'a, RouteMatch>, DigestError> {
        let (info, route) = self.0.table.digest_route(method.as_str(), target)?;
        let info = match &self.0.kubernetes {
            Some((kubernetes, _)) if route.is_none() => kubernetes.digest(method.as_str(), target)?,
            _ => info,
        };
        Ok(Digested::new(info, RouteMatch(route)))
    }

    fn rule_of(&self, route: RouteMatch) -> Option<&Rule> {
        self.0.rules.get(route.0?)
    }

    /// The rules of Kubernetes, where they apply to a request.
    fn kubernetes_work_of(&self, route: RouteMatch) -> Option<&KubernetesWork> {
        if route.0.is_none() { self.kubernetes_work() } else { None }
    }
}

impl Digest for RequestRules {
    type Extra = RouteMatch;

    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a, RouteMatch>, DigestError> {
        let spelling = paths::spelling(parts.uri.path(), self.0.path_parameters)?;
        self.digest_spelling(&parts.method, &parts.uri, &spelling)
    }

    fn occupancy(&self, digested: &Digested<'_, RouteMatch>) -> Option<Occupancy> {
        Some(match self.rule_of(digested.extra) {
            Some(rule) => rule.occupancy,
            None if self.0.kubernetes.is_some() => Occupancy::kubernetes(&digested.info),
            None => Occupancy::ToTheEnd,
        })
    }

    fn wait_limit(&self, digested: &Digested<'_, RouteMatch>) -> Option<Duration> {
        self.timeouts(digested.extra).queue
    }
}

impl EstimateWork<RouteMatch> for RequestRules {
    fn estimate(&self, request: &WorkInput<'_, RouteMatch>) -> WorkEstimate {
        match (self.rule_of(*request.extra), &self.0.kubernetes) {
            (Some(rule), _) => rule.work,
            (None, Some((_, work))) => work.estimate(request),
            (None, None) => WorkEstimate::ONE_SEAT,
        }
    }

    fn rule(&self, request: &WorkInput<'_, RouteMatch>) -> Cow<'static, str> {
        match (self.rule_of(*request.extra), &self.0.kubernetes) {
            (Some(rule), _) => format!("the route {:?} of the settings", rule.path).into(),
            (None, Some((_, work))) => work.rule(request),
            (None, None) => "the same for every request without a route".into(),
        }
    }

    fn route_cost(&self, route: &RouteMatch) -> RouteCost<'_> {
        self.rule_of(*route)
            .map_or_else(RouteCost::default, |rule| RouteCost::new(rule.cost.as_ref(), Some(rule.cost_key)))
    }

    fn watch(&self, request: &RequestInfo<'_>, query: Query<'_>, route: &RouteMatch) -> Option<Watch> {
        self.kubernetes_work_of(*route)?.watch(request, query, route)
    }

    fn interested_watches(&self, request: &RequestInfo<'_>, route: &RouteMatch) -> Option<u64> {
        self.kubernetes_work_of(*route)?.interested_watches(request, route)
    }
}

// === impl Rule ===

impl Rule {
    fn new(route: &RouteConfig) -> Self {
        Self {
            path: route.path.clone(),
            work: WorkEstimate::seats(route.seats),
            cost: route.cost.clone(),
            cost_key: text_key(&format!("{} {}", route.methods.join(","), route.path)),
            occupancy: if route.long_running { Occupancy::ToTheHeaders } else { Occupancy::ToTheEnd },
            when_client_leaves: route.when_client_leaves,
            timeouts: route.timeouts,
        }
    }
}

/// The problems of a route beyond its template.
fn faults(route: &RouteConfig) -> Vec<String> {
    let path = &route.path;
    let mut faults = Vec::new();
    if route.seats == 0 && route.when_client_leaves.is_some() {
        let fault =
            "it has `seats: 0`, and a request without a seat always ends with its client; remove whenClientLeaves";
        faults.push(format!("route {path:?}: {fault}"));
    }
    if route.long_running && route.cost.is_some() {
        let fault =
            "it is `longRunning`, and gives its seats back before its cost is known; remove cost or longRunning";
        faults.push(format!("route {path:?}: {fault}"));
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
        let fault = "it names no resource, so it can set only the cost of a request; add `resource`, put {resource} into the \
                     path, or leave out the verb and write {_} and {*} instead of names";
        faults.push(format!("route {path:?}: {fault}"));
    }
    faults
}

fn is_about_resource(route: &RouteConfig) -> bool {
    route.resource.is_some() || route.path.contains("{resource")
}

/// The route as the engine knows it.
fn route(config: &RouteConfig) -> Route {
    let route =
        config.methods.iter().fold(Route::new(config.path.as_str()), |route, method| route.method(method.as_str()));
    let route = match &config.verb {
        Some(verb) => route.verb(verb.as_str()),
        None => route,
    };
    match &config.resource {
        Some(resource) => route.fix(Attribute::Resource, resource.as_str()),
        None if is_about_resource(config) => route,
        None => route.path_only(),
    }
}
