//! All requests that there can be, as far as rules tell them apart.
//!
//! Each attribute of a request is a number: that of a value which some rule lists, or one more for all other values. A
//! clause (a resource rule or a non-resource rule) is then a box of numbers, and a point of the box stands for all requests
//! that no rule tells apart from it.

mod headers;
mod names;
mod paths;
mod region;
mod set;

use evenkeel_api::annotations::{self, PathMatch};
use evenkeel_api::v1::{FlowSchema, NonResourcePolicyRule, ResourcePolicyRule};
use evenkeel_engine::{RequestHead, RequestInfo};

use headers::Headers;
pub(crate) use names::unused;
use names::{Names, lists_every};
use paths::{Paths, PathsBuilder};
pub(crate) use region::{Point, Region, Sort};
pub(crate) use set::Set;

/// The verbs of requests for resources, the most usual ones first.
const VERBS: [&str; 9] = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"];
/// The verbs of requests for paths: the methods of HTTP in lower case.
const METHODS: [&str; 9] = ["get", "post", "put", "delete", "patch", "head", "options", "connect", "trace"];
/// The number of requests without a namespace.
const CLUSTER_SCOPE: u32 = 0;

/// The values that the rules of some flow schemas list.
#[derive(Debug)]
pub(crate) struct Space {
    verbs: Names,
    api_groups: Names,
    resources: Names,
    namespaces: Names,
    path_verbs: Names,
    paths: Paths,
    headers: Headers,
}

/// The conditions of a schema's annotations on what it matches.
#[derive(Debug)]
pub(crate) struct Conditions {
    headers: Set,
    paths: PathMatch,
}

fn paths_region(verbs: Set, paths: Set, headers: Set) -> Region {
    Region { sort: Sort::Path, sides: [verbs, paths, Set::interval(0, 1), Set::interval(0, 1), headers] }
}

fn path_match(schema: &FlowSchema) -> PathMatch {
    annotations::path_match(&schema.metadata.annotations)
}

// === impl Space ===

impl Space {
    /// The space in which the rules of these schemas are boxes.
    pub(crate) fn of<'a>(schemas: impl IntoIterator<Item = &'a FlowSchema>) -> Self {
        let schemas: Vec<&FlowSchema> = schemas.into_iter().collect();
        let [mut verbs, mut api_groups, mut resources, mut namespaces, mut path_verbs] =
            std::array::from_fn(|_| Names::default());
        // The empty namespace is the first one, and has the number of `CLUSTER_SCOPE`.
        namespaces.add_one("");
        let mut paths = PathsBuilder::default();
        let rules = schemas.iter().flat_map(|schema| schema.spec.rules.iter().map(|rule| (path_match(schema), rule)));
        for (matching, rule) in rules {
            for rule in &rule.resource_rules {
                verbs.add(&rule.verbs);
                api_groups.add(&rule.api_groups);
                resources.add(&rule.resources);
                namespaces.add(&rule.namespaces);
            }
            for rule in &rule.non_resource_rules {
                path_verbs.add(&rule.verbs);
                rule.non_resource_urls.iter().for_each(|entry| paths.add(entry, matching));
            }
        }
        // The verb of a method that the Kubernetes API does not know, such as OPTIONS, is empty.
        verbs.choose_other(&VERBS, "");
        path_verbs.choose_other(&METHODS, "propfind");
        api_groups.choose_other(&[], "example.com");
        resources.choose_other(&[], "widgets");
        namespaces.choose_other(&[], "some-namespace");
        let headers = Headers::of(schemas);
        Self { verbs, api_groups, resources, namespaces, path_verbs, paths: paths.build(), headers }
    }

    /// The conditions of a schema's annotations on what it matches.
    pub(crate) fn conditions(&self, schema: &FlowSchema) -> Conditions {
        Conditions { headers: self.headers.asked_by(schema), paths: path_match(schema) }
    }

    /// Whether the boxes of a schema say what it matches. They do not if schemas ask for too many headers.
    pub(crate) fn tells(&self, schema: &FlowSchema) -> bool {
        self.headers.tells(schema)
    }

    /// The requests that a resource rule matches (FM-11).
    pub(crate) fn resource_rule(&self, rule: &ResourcePolicyRule, conditions: &Conditions) -> Region {
        let namespaces = if lists_every(&rule.namespaces) {
            Set::interval(CLUSTER_SCOPE + 1, self.namespaces.other_number() + 1)
        } else {
            self.namespaces.listed(&rule.namespaces).difference(&Set::interval(CLUSTER_SCOPE, CLUSTER_SCOPE + 1))
        };
        let cluster = if rule.cluster_scope { CLUSTER_SCOPE + 1 } else { CLUSTER_SCOPE };
        let namespaces = Set::union_of(namespaces.iter_intervals().chain([(CLUSTER_SCOPE, cluster)]));
        Region {
            sort: Sort::Resource,
            sides: [
                self.verbs.listed(&rule.verbs),
                self.api_groups.listed(&rule.api_groups),
                self.resources.listed(&rule.resources),
                namespaces,
                conditions.headers.clone(),
            ],
        }
    }

    /// The requests that a non-resource rule matches (FM-12).
    pub(crate) fn non_resource_rule(&self, rule: &NonResourcePolicyRule, conditions: &Conditions) -> Region {
        let paths = self.paths.covered(&rule.non_resource_urls, conditions.paths);
        paths_region(self.path_verbs.listed(&rule.verbs), paths, conditions.headers.clone())
    }

    /// All requests of a sort.
    pub(crate) fn all(&self, sort: Sort) -> Region {
        match sort {
            Sort::Path => paths_region(self.path_verbs.all(), self.paths.all(), self.headers.all()),
            Sort::Resource => {
                let names = [&self.verbs, &self.api_groups, &self.resources, &self.namespaces];
                let [verbs, api_groups, resources, namespaces] = names.map(Names::all);
                Region { sort, sides: [verbs, api_groups, resources, namespaces, self.headers.all()] }
            }
        }
    }

    /// A request of a region, unless it is empty.
    pub(crate) fn pick(&self, region: &Region) -> Option<Point> {
        let [first, second, third, fourth, headers] = &region.sides;
        let headers = headers.first()?;
        let sides = match region.sort {
            Sort::Resource => [
                self.verbs.pick(first)?,
                self.api_groups.pick(second)?,
                self.resources.pick(third)?,
                self.namespaces.pick(fourth)?,
                headers,
            ],
            Sort::Path => [self.path_verbs.pick(first)?, second.first()?, third.first()?, fourth.first()?, headers],
        };
        Some(Point { sort: region.sort, sides })
    }

    /// The request of a point, as the classifier sees it.
    pub(crate) fn request(&self, point: &Point) -> RequestInfo<'_> {
        let [first, second, third, fourth, headers] = point.sides;
        let head = if headers == 0 { RequestHead::default() } else { self.headers.head(headers).into() };
        match point.sort {
            Sort::Path => RequestInfo {
                head,
                verb: self.path_verbs.name(first).into(),
                path: self.paths.example(second).into(),
                ..RequestInfo::default()
            },
            Sort::Resource => {
                let listed = self.resources.name(third);
                // The slash of `pods/` is part of the resource: nothing follows it.
                let (resource, subresource) =
                    listed.split_once('/').filter(|(_, subresource)| !subresource.is_empty()).unwrap_or((listed, ""));
                RequestInfo {
                    is_resource_request: true,
                    verb: self.verbs.name(first).into(),
                    api_group: self.api_groups.name(second).into(),
                    resource: resource.into(),
                    subresource: subresource.into(),
                    namespace: self.namespaces.name(fourth).into(),
                    head,
                    ..RequestInfo::default()
                }
            }
        }
    }

    /// Describes what the requests of a region have in common, for people.
    pub(crate) fn describe(&self, region: &Region) -> String {
        let [first, second, third, fourth, headers] = &region.sides;
        let headers = self.headers.describe(headers);
        match region.sort {
            Sort::Path => {
                format!("verbs: {}; paths: {}{headers}", self.path_verbs.describe(first), self.paths.describe(second))
            }
            Sort::Resource => {
                let scope = self.describe_scope(fourth);
                format!(
                    "verbs: {}; API groups: {}; resources: {}; namespaces: {scope}{headers}",
                    self.verbs.describe(first),
                    self.api_groups.describe(second),
                    self.resources.describe(third),
                )
            }
        }
    }

    /// The namespaces of a set, and whether requests without one are in it.
    fn describe_scope(&self, set: &Set) -> String {
        let cluster = Set::interval(CLUSTER_SCOPE, CLUSTER_SCOPE + 1);
        let namespaces = set.difference(&cluster);
        if namespaces.is_empty() {
            return "none (cluster-scoped)".to_owned();
        }
        // The number of requests without a namespace is not one of those that `any but` leaves out.
        let others = namespaces.contains(self.namespaces.other_number()).then_some((CLUSTER_SCOPE, CLUSTER_SCOPE + 1));
        let scope = self.namespaces.describe(&Set::union_of(namespaces.iter_intervals().chain(others)));
        if set.contains(CLUSTER_SCOPE) { format!("{scope}, and cluster-scoped") } else { scope }
    }
}
