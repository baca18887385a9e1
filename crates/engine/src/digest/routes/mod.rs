//! Route templates: how the paths of a service that is no Kubernetes are to be understood.
//!
//! A template is a path of literal segments and placeholders. `{namespace}`, `{resource}`, `{name}`, `{subresource}`,
//! `{api_group}` and `{api_version}` each take one segment that is not empty and give it a meaning; `{_}` takes one
//! without a meaning. At the end, `{name...}` takes all segments that are left, at least one, and `{*}` does so without
//! a meaning. What the path does not say can be fixed beside the template.
//!
//! The path is cut at its slashes before escapes are decoded, so that a name may have a slash as `%2F`. Slashes at the
//! end do not count. Of the templates that match, the most specific one is taken, whatever the order in which they were
//! given: from left to right a literal segment goes before a placeholder, and a placeholder before the rest of the path;
//! a template for certain methods goes before the same one for all.
//!
//! The query is never looked at. What a service means by `?watch=true` is not known here, and seats of a watch are given
//! back early: clients must not be able to ask for that. A route that streams is given the verb `watch` explicitly.

mod compiled;
mod error;
mod template;
mod tree;

use std::borrow::Cow;

pub use error::{RouteError, RouteErrors, TemplateFault};
pub use template::Attribute;

use super::kubernetes::split_target;
use super::segments::Segments;
use super::{DigestError, verb};
use crate::RequestInfo;
use compiled::Compiled;
use tree::Tree;

/// One route: a template, and what holds for every request that it matches.
///
/// ```
/// use evenkeel_engine::digest::routes::{Attribute, Route};
///
/// let route = Route::new("/v2/tenants/{namespace}/orders/{name}/events")
///     .method("GET")
///     .verb("watch")
///     .fix(Attribute::Resource, "orders")
///     .fix(Attribute::Subresource, "events");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    template: Box<str>,
    methods: Vec<Box<str>>,
    verb: Option<Box<str>>,
    fixed: Vec<(Attribute, Box<str>)>,
    is_path_only: bool,
}

/// Routes, ready to digest requests. What a request costs depends on its path, not on the number of routes.
///
/// ```
/// use evenkeel_engine::digest::routes::{Attribute, Route, RouteTable};
///
/// let table = RouteTable::new([
///     Route::new("/v2/tenants/{namespace}/{resource}/{name}"),
///     Route::new("/v2/tenants/{namespace}/{resource}"),
///     Route::new("/files/{name...}").fix(Attribute::Resource, "files"),
/// ])
/// .unwrap();
///
/// let request = table.digest("DELETE", "/v2/tenants/acme/orders/17").unwrap();
/// assert_eq!((&*request.verb, &*request.namespace, &*request.resource, &*request.name), ("delete", "acme", "orders", "17"));
/// let request = table.digest("GET", "/v2/tenants/acme/orders?page=2").unwrap();
/// assert_eq!(request.verb, "list");
/// let request = table.digest("GET", "/files/a/b%20c").unwrap();
/// assert_eq!((&*request.verb, &*request.name), ("get", "a/b c"));
/// let request = table.digest("GET", "/healthz").unwrap();
/// assert!(!request.is_resource_request);
/// ```
#[derive(Debug, Clone)]
pub struct RouteTable {
    routes: Vec<Compiled>,
    tree: Tree,
}

// === impl Route ===

impl Route {
    /// A route for all methods.
    pub fn new(template: impl Into<Box<str>>) -> Self {
        Self { template: template.into(), methods: Vec::new(), verb: None, fixed: Vec::new(), is_path_only: false }
    }

    /// Only for this method, and others that are named in the same way. Methods are written in upper case.
    #[must_use]
    pub fn method(mut self, method: impl Into<Box<str>>) -> Self {
        self.methods.push(method.into());
        self
    }

    /// This verb, whatever the method.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<Box<str>>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// This value for an attribute that the template has no placeholder for.
    #[must_use]
    pub fn fix(mut self, attribute: Attribute, value: impl Into<Box<str>>) -> Self {
        self.fixed.push((attribute, value.into()));
        self
    }

    /// For requests that are about no resource: they are known by their method and their path, whatever the template names.
    #[must_use]
    pub fn path_only(mut self) -> Self {
        self.is_path_only = true;
        self
    }
}

// === impl RouteTable ===

impl RouteTable {
    /// Checks and compiles routes. All faults of all routes are reported.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Result<Self, RouteErrors> {
        let mut errors = Vec::new();
        let mut table = Self { routes: Vec::new(), tree: Tree::default() };
        for route in routes {
            match Compiled::new(route) {
                Ok(route) => table.add(route, &mut errors),
                Err(faults) => errors.extend(faults),
            }
        }
        if errors.is_empty() { Ok(table) } else { Err(RouteErrors(errors)) }
    }

    fn add(&mut self, route: Compiled, errors: &mut Vec<RouteError>) {
        let index = self.routes.len();
        let leaf = self.tree.leaf(&route.pieces);
        let rivals = leaf.iter().filter_map(|&rival| self.routes.get(rival)).filter(|rival| rival.rivals(&route));
        errors.extend(
            rivals.map(|rival| RouteError::Ambiguous { first: rival.template.clone(), second: route.template.clone() }),
        );
        leaf.push(index);
        self.routes.push(route);
    }

    /// Digests a request. The target is the path and the query as they were sent.
    pub fn digest<'a>(&'a self, method: &str, target: &'a str) -> Result<RequestInfo<'a>, DigestError> {
        self.digest_route(method, target).map(|(request, _)| request)
    }

    /// The same, with the route that matches, if one does: its position among those that the table was made of.
    pub fn digest_route<'a>(
        &'a self,
        method: &str,
        target: &'a str,
    ) -> Result<(RequestInfo<'a>, Option<usize>), DigestError> {
        let (path, _) = split_target(target)?;
        let segments = Segments::of(target.split_once('?').map_or(target, |(path, _)| path));
        let index = self.tree.find(segments, &|leaf| self.choose(leaf, method));
        let route = index.and_then(|index| self.routes.get(index)).filter(|route| !route.is_path_only);
        let Some(route) = route else {
            return Ok((RequestInfo { path, verb: verb::of_path(method), ..RequestInfo::default() }, index));
        };
        let mut request = RequestInfo { is_resource_request: true, path, ..RequestInfo::default() };
        route.fill(segments, &mut request);
        request.verb = match &route.verb {
            Some(verb) => Cow::Borrowed(verb),
            None => match (verb::of_resource(method), request.name.is_empty()) {
                ("get", true) => "list".into(),
                ("delete", true) => "deletecollection".into(),
                (verb, _) => verb.into(),
            },
        };
        Ok((request, index))
    }

    /// The route of a leaf that is for this method.
    fn choose(&self, leaf: &[usize], method: &str) -> Option<usize> {
        let find = |is_it: &dyn Fn(&Compiled) -> bool| {
            leaf.iter().copied().find(|&index| self.routes.get(index).is_some_and(is_it))
        };
        find(&|route| route.is_for(method)).or_else(|| find(&|route| route.methods.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(template: &str) -> Route {
        Route::new(template).fix(Attribute::Resource, "orders")
    }

    #[test]
    fn verbs_follow_methods_and_whether_an_object_is_named() {
        let table = RouteTable::new([orders("/orders"), orders("/orders/{name}")]).unwrap();
        for (method, of_all, of_one) in [
            ("GET", "list", "get"),
            ("HEAD", "list", "get"),
            ("POST", "create", "create"),
            ("PUT", "update", "update"),
            ("PATCH", "patch", "patch"),
            ("DELETE", "deletecollection", "delete"),
            ("OPTIONS", "", ""),
        ] {
            assert_eq!(table.digest(method, "/orders/").unwrap().verb, of_all, "{method}");
            assert_eq!(table.digest(method, "/orders/7").unwrap().verb, of_one, "{method}");
        }
        assert_eq!(table.digest("GET", "/orders?watch=true").unwrap().verb, "list");
        assert_eq!(table.digest("OPTIONS", "/other").unwrap().verb, "options");
    }

    #[test]
    fn a_route_is_known_by_its_position_and_may_be_about_a_path_only() {
        let table = RouteTable::new([orders("/orders/{name}"), Route::new("/export/{_}").path_only()]).unwrap();
        let found = |target| {
            let (request, route) = table.digest_route("GET", target).unwrap();
            (route, request.is_resource_request, request.verb.into_owned(), request.path.into_owned())
        };
        assert_eq!(found("/orders/7"), (Some(0), true, "get".to_owned(), "/orders/7".to_owned()));
        assert_eq!(found("/export/a"), (Some(1), false, "get".to_owned(), "/export/a".to_owned()));
        assert_eq!(found("/other"), (None, false, "get".to_owned(), "/other".to_owned()));
    }

    #[test]
    fn the_most_specific_template_wins_in_any_order() {
        let mut routes = vec![
            orders("/{*}").fix(Attribute::Name, "rest"),
            orders("/a/{_}/c").fix(Attribute::Name, "middle"),
            orders("/a/b/{_}").fix(Attribute::Name, "end"),
            orders("/a/b/{_}").fix(Attribute::Name, "put").method("PUT"),
        ];
        for _ in 0..routes.len() {
            routes.rotate_left(1);
            let table = RouteTable::new(routes.clone()).unwrap();
            for (method, path, name) in [
                ("GET", "/a/b/c", "end"),
                ("PUT", "/a/b/c", "put"),
                ("GET", "/a/x/c", "middle"),
                ("GET", "/a/b", "rest"),
                ("GET", "/a//c", "rest"),
            ] {
                assert_eq!(table.digest(method, path).unwrap().name, name, "{method} {path}");
            }
        }
    }

    #[test]
    fn a_route_for_other_methods_makes_way_for_a_less_specific_one() {
        let table = RouteTable::new([
            orders("/a/b").method("PUT").method("POST").verb("approve"),
            orders("/a/{name}").method("GET"),
        ])
        .unwrap();
        assert_eq!(table.digest("POST", "/a/b").unwrap().verb, "approve");
        assert_eq!(table.digest("GET", "/a/b").unwrap().name, "b");
        assert!(!table.digest("DELETE", "/a/b").unwrap().is_resource_request);
    }

    #[test]
    fn segments_are_cut_before_they_are_decoded() {
        let table = RouteTable::new([orders("/a b/{namespace}/{name...}")]).unwrap();
        let request = table.digest("GET", "/a%20b/x%2Fy/%7A/w").unwrap();
        assert_eq!((&*request.namespace, &*request.name, &*request.path), ("x/y", "z/w", "/a b/x/y/z/w"));
        assert_eq!(table.digest("GET", "/a%2"), Err(DigestError::Escape { position: 2 }));
    }

    #[test]
    fn errors_say_what_is_wrong_and_where() {
        let table = RouteTable::new([
            Route::new("orders/{resource}"),
            Route::new("/a//{resource}"),
            Route::new("/a/v{resource}"),
            Route::new("/a/{resource"),
            Route::new("/{tenant}/{resource}"),
            Route::new("/{resource}/{resource}"),
            Route::new("/{name...}/{resource}"),
            Route::new("/{resource}").fix(Attribute::Resource, "orders"),
            Route::new("/a/{name}"),
            Route::new("/b/{resource}"),
            Route::new("/b/{resource}/").method("GET"),
            Route::new("/b/{_}").fix(Attribute::Resource, "orders"),
            orders("/b/{name}").method("PUT").method("GET"),
        ]);
        assert_eq!(
            table.unwrap_err().to_string(),
            "route \"orders/{resource}\": a template starts with a slash\n\
             route \"/a//{resource}\", segment 2 \"\": a segment is empty\n\
             route \"/a/v{resource}\", segment 2 \"v{resource}\": a placeholder is a whole segment in braces\n\
             route \"/a/{resource\", segment 2 \"{resource\": a placeholder is a whole segment in braces\n\
             route \"/{tenant}/{resource}\", segment 1 \"{tenant}\": no such placeholder, use one of api_group, \
             api_version, namespace, resource, subresource, name, _ and *\n\
             route \"/{resource}/{resource}\", segment 2 \"{resource}\": resource has a value already\n\
             route \"/{name...}/{resource}\", segment 1 \"{name...}\": the rest of the path can only be the last segment\n\
             route \"/{resource}\": resource is fixed and has a placeholder as well\n\
             route \"/a/{name}\": the resource is neither fixed nor has a placeholder\n\
             routes \"/b/{resource}\" and \"/b/{_}\" match the same requests\n\
             routes \"/b/{resource}/\" and \"/b/{name}\" match the same requests"
        );
    }
}
