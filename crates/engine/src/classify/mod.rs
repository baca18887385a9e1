//! Which flow schema a request belongs to, and which flow of it (FM-1 to FM-15).
//!
//! Kubernetes tries one flow schema after the other. A [`Classifier`] finds the same one without that walk: every rule
//! of every schema becomes a numbered *clause*, in match order, and for each value that some rule lists (a user, a group, a
//! verb, a resource, a namespace, a path) there is the set of clauses that list it. A request looks up the sets of its
//! own values, and the first clause that is in all of them decides. So the cost is that of the look-ups, whatever the
//! number of schemas that do not fit and whatever they have in common.
//!
//! ```
//! use evenkeel_api::bootstrap;
//! use evenkeel_engine::classify::{Classifier, match_order};
//! use evenkeel_engine::{Attributes, RequestInfo, User};
//!
//! let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().collect();
//! schemas.sort_by(|a, b| match_order(a, b));
//! let classifier = Classifier::compile(schemas.iter().copied());
//!
//! let user = User::new("system:node:node-1", ["system:nodes", "system:authenticated"]);
//! let request = RequestInfo {
//!     is_resource_request: true,
//!     verb: "update".into(),
//!     api_group: "coordination.k8s.io".into(),
//!     resource: "leases".into(),
//!     namespace: "kube-node-lease".into(),
//!     ..RequestInfo::default()
//! };
//! let schema = classifier.classify(Attributes { user: &user, request: &request }).unwrap();
//! assert_eq!(schemas[schema.get()].name(), "system-node-high");
//! ```

mod clause_set;
mod distinguisher;
mod factor;
mod headers;
mod listed;
mod names;
mod path_index;
mod paths;
mod resource_index;
mod resources;
mod segments;
mod some_sets;
mod subjects;
mod text_hash;

pub use distinguisher::{distinguisher, flow_by};

use std::cmp::Ordering;

use evenkeel_api::annotations::{self, HeaderCondition, HeaderMatch, PathMatch};
use evenkeel_api::v1::FlowSchema;

use crate::Attributes;
use headers::Headers;
use path_index::PathIndex;
use resource_index::ResourceIndex;

/// Finds the flow schema of a request.
///
/// It is compiled once from the schemas, and does not change. [`classify`](Self::classify) allocates nothing.
#[derive(Debug, Default)]
pub struct Classifier {
    resources: ResourceIndex,
    paths: PathIndex,
}

/// What the annotations of a schema ask for beyond its rules (SF-2).
struct Conditions {
    paths: PathMatch,
    headers: Option<HeaderMatch>,
}

/// The place of a flow schema in the order in which a [`Classifier`] was given them, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchemaIndex(usize);

/// The order in which flow schemas are tried: by precedence, then by the bytes of the name (FM-1).
///
/// The built-in schemas that stand in for missing ones (CC-12) have places of their own, first and last, and do not
/// follow this order.
///
/// ```
/// use std::cmp::Ordering;
/// use evenkeel_api::v1::FlowSchema;
/// use evenkeel_engine::classify::match_order;
///
/// let [a, b, c] = [("a", 500), ("b", 7), ("c", 500)].map(|(name, precedence)| {
///     let builder = FlowSchema::builder(name).priority_level("some").matching_precedence(precedence);
///     builder.rule(|r| r.user("alice").everything()).build()
/// });
/// assert_eq!(match_order(&a, &b), Ordering::Greater);
/// assert_eq!(match_order(&a, &c), Ordering::Less);
/// ```
pub fn match_order(a: &FlowSchema, b: &FlowSchema) -> Ordering {
    let by_precedence = a.spec.matching_precedence.cmp(&b.spec.matching_precedence);
    by_precedence.then_with(|| a.name().as_bytes().cmp(b.name().as_bytes()))
}

// === impl Classifier ===

impl Classifier {
    /// The names of the headers by which schemas match, in lower case.
    pub(crate) fn matched_headers(&self) -> impl Iterator<Item = &str> {
        // Both indexes have the same.
        self.paths.headers()
    }

    /// A classifier for these schemas, in the order in which they are to be tried.
    pub fn compile<'a>(ordered: impl IntoIterator<Item = &'a FlowSchema>) -> Self {
        let conditional = |schema: &'a FlowSchema| (schema, Conditions::of(schema));
        let ordered: Vec<(&FlowSchema, Option<Conditions>)> = ordered.into_iter().map(conditional).collect();
        let headers = || Headers::new(ordered.iter().filter_map(|(_, asked)| asked.as_ref()?.headers.as_ref()));
        let mut classifier = Self { resources: ResourceIndex::new(headers()), paths: PathIndex::new(headers()) };
        for (index, (schema, conditions)) in ordered.iter().enumerate() {
            // No request fits a schema whose headers are not understood.
            let Some(conditions) = conditions else { continue };
            for rule in &schema.spec.rules {
                for resource_rule in &rule.resource_rules {
                    classifier.resources.add(SchemaIndex(index), &rule.subjects, resource_rule, conditions);
                }
                for path_rule in &rule.non_resource_rules {
                    classifier.paths.add(SchemaIndex(index), &rule.subjects, path_rule, conditions);
                }
            }
        }
        classifier
    }

    /// The first schema that matches a request. If there is none, the request goes to the schema `catch-all`, whatever
    /// the rules of that say (FM-4).
    pub fn classify(&self, attributes: Attributes<'_>) -> Option<SchemaIndex> {
        let Attributes { user, request } = attributes;
        if request.is_resource_request { self.resources.first(user, request) } else { self.paths.first(user, request) }
    }
}

// === impl Conditions ===

impl Conditions {
    /// What a schema asks for; `None` if nothing fits it.
    fn of(schema: &FlowSchema) -> Option<Self> {
        let noted = &schema.metadata.annotations;
        let headers = match annotations::match_headers(noted) {
            None => None,
            Some(HeaderCondition::Headers(headers)) => Some(headers),
            Some(HeaderCondition::NotUnderstood) => return None,
        };
        Some(Self { paths: annotations::path_match(noted), headers })
    }
}

// === impl SchemaIndex ===

impl SchemaIndex {
    /// The index as a number.
    pub fn get(self) -> usize {
        self.0
    }
}

impl From<SchemaIndex> for usize {
    fn from(index: SchemaIndex) -> Self {
        index.0
    }
}
