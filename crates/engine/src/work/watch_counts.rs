//! How many watches there are on each resource, namespace and object (WE-20 to WE-23).

use std::collections::HashMap;

use crate::RequestInfo;
use crate::digest::{ListOptions, Query};

/// Where estimates find out how many watches have to be told of a change.
///
/// An implementation may also keep the results as samples for a metric (WE-18).
pub trait WatchInterest {
    /// How many watches have to be told when this request changes something.
    fn interested(&self, request: &RequestInfo<'_>) -> u64;
}

/// Counts the watches in progress.
///
/// ```
/// use evenkeel_engine::digest::{Kubernetes, Query};
/// use evenkeel_engine::work::{WatchCounts, WatchInterest};
///
/// let kubernetes = Kubernetes::default();
/// let mut watches = WatchCounts::default();
///
/// let target = "/api/v1/namespaces/shop/pods?watch=1";
/// let watch = kubernetes.digest("GET", target).unwrap();
/// let registration = watches.register(&watch, Query::of_target(target)).unwrap();
///
/// let create = kubernetes.digest("POST", "/api/v1/namespaces/shop/pods").unwrap();
/// assert_eq!(watches.interested(&create), 1);
/// watches.forget(registration);
/// assert_eq!(watches.interested(&create), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct WatchCounts {
    /// One step for each part of the key, so that looking one up needs no text that is put together.
    by_resource: HashMap<Box<str>, ByGroup>,
}

type ByGroup = HashMap<Box<str>, ByNamespace>;
/// The empty namespace stands for all of them, and for objects that have none.
type ByNamespace = HashMap<Box<str>, Watches>;

/// The watches of one namespace.
#[derive(Debug, Clone, Default)]
struct Watches {
    on_all: u64,
    by_name: HashMap<Box<str>, u64>,
}

/// A watch that is counted until it is forgotten. It cannot be copied, so that it is forgotten only once.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a watch is counted until its registration is handed to `WatchCounts::forget`"]
pub struct WatchRegistration {
    api_group: Box<str>,
    resource: Box<str>,
    namespace: Box<str>,
    name: Box<str>,
}

/// Watches on the pods of one node are too many and too narrow to be counted (WE-21).
const INDEXED_RESOURCE: &str = "pods";
const INDEXED_FIELD: &str = "spec.nodeName";

// === impl WatchCounts ===

impl WatchCounts {
    /// Counts a watch that starts, unless it is no watch or one that is not counted.
    pub fn register(&mut self, request: &RequestInfo<'_>, query: Query<'_>) -> Option<WatchRegistration> {
        if request.verb != "watch" || is_on_one_node(request, query) {
            return None;
        }
        let registration = WatchRegistration {
            api_group: (*request.api_group).into(),
            resource: (*request.resource).into(),
            namespace: (*request.namespace).into(),
            name: (*request.name).into(),
        };
        let by_group = self.by_resource.entry(registration.resource.clone()).or_default();
        let by_namespace = by_group.entry(registration.api_group.clone()).or_default();
        let watches = by_namespace.entry(registration.namespace.clone()).or_default();
        if registration.name.is_empty() {
            watches.on_all += 1;
        } else {
            *watches.by_name.entry(registration.name.clone()).or_default() += 1;
        }
        Some(registration)
    }

    /// Stops counting a watch that has ended.
    pub fn forget(&mut self, registration: WatchRegistration) {
        let WatchRegistration { api_group, resource, namespace, name } = registration;
        // Names come from clients: a watch that is no longer counted must leave nothing behind.
        change(&mut self.by_resource, &resource, HashMap::is_empty, |by_group| {
            change(by_group, &api_group, HashMap::is_empty, |by_namespace| {
                change(by_namespace, &namespace, Watches::is_empty, |watches| {
                    if name.is_empty() {
                        watches.on_all = watches.on_all.saturating_sub(1);
                    } else {
                        change(&mut watches.by_name, &name, |count| *count == 0, |count| *count -= 1);
                    }
                });
            });
        });
    }

    /// Whether no watch is counted.
    pub fn is_empty(&self) -> bool {
        self.by_resource.is_empty()
    }
}

impl WatchInterest for WatchCounts {
    fn interested(&self, request: &RequestInfo<'_>) -> u64 {
        if matches!(&*request.verb, "get" | "list" | "watch" | "proxy") {
            return 0;
        }
        let by_group = self.by_resource.get(&*request.resource);
        let Some(by_namespace) = by_group.and_then(|by_group| by_group.get(&*request.api_group)) else { return 0 };
        let everywhere = by_namespace.get("").map_or(0, |watches| watches.on_all);
        let Some(watches) = by_namespace.get(&*request.namespace) else { return everywhere };
        let in_namespace = if request.namespace.is_empty() { 0 } else { watches.on_all };
        let on_object = watches.by_name.get(&*request.name).copied().unwrap_or_default();
        everywhere + in_namespace + on_object
    }
}

// === impl Watches ===

impl Watches {
    fn is_empty(&self) -> bool {
        self.on_all == 0 && self.by_name.is_empty()
    }
}

fn is_on_one_node(request: &RequestInfo<'_>, query: Query<'_>) -> bool {
    request.resource == INDEXED_RESOURCE
        && ListOptions::decode(query)
            .ok()
            .and_then(|options| options.exact_field(INDEXED_FIELD))
            .is_some_and(|node| !node.is_empty())
}

/// Changes the value of a key, and removes it if nothing is left of it.
fn change<V>(map: &mut HashMap<Box<str>, V>, key: &str, is_empty: impl Fn(&V) -> bool, change: impl FnOnce(&mut V)) {
    if let Some(value) = map.get_mut(key) {
        change(value);
        if is_empty(value) {
            map.remove(key);
        }
    }
}
