//! The resource rules of all flow schemas, indexed (FM-11).

use evenkeel_api::v1::{ResourcePolicyRule, Subject};

use super::clause_set::{ClauseSet, first_of};
use super::headers::Headers;
use super::listed::Listed;
use super::resources::Resources;
use super::subjects::Subjects;
use super::{Conditions, SchemaIndex};
use crate::{RequestInfo, User};

/// The resource rules of all flow schemas, one clause each.
#[derive(Debug, Default)]
pub(super) struct ResourceIndex {
    /// The schema of each clause.
    schemas: Vec<SchemaIndex>,
    subjects: Subjects,
    verbs: Listed,
    api_groups: Listed,
    resources: Resources,
    namespaces: Listed,
    cluster_scope: ClauseSet,
    headers: Headers,
}

// === impl ResourceIndex ===

impl ResourceIndex {
    /// For clauses that ask for these headers.
    pub(super) fn new(headers: Headers) -> Self {
        Self { headers, ..Self::default() }
    }

    /// Takes in a rule of a schema, after those of all schemas that go before it.
    pub(super) fn add(
        &mut self,
        schema: SchemaIndex,
        subjects: &[Subject],
        rule: &ResourcePolicyRule,
        conditions: &Conditions,
    ) {
        let clause = self.schemas.len();
        self.schemas.push(schema);
        self.subjects.add(subjects, clause);
        self.verbs.add(&rule.verbs, clause);
        self.api_groups.add(&rule.api_groups, clause);
        self.resources.add(&rule.resources, clause);
        self.namespaces.add(&rule.namespaces, clause);
        if rule.cluster_scope {
            self.cluster_scope.push(clause);
        }
        self.headers.add(conditions.headers.as_ref(), clause);
    }

    /// The first schema that has a rule for that request.
    pub(super) fn first(&self, user: &User, request: &RequestInfo<'_>) -> Option<SchemaIndex> {
        let mut first: Option<usize> = None;
        let namespaces = self.namespaces.factor_unless_empty(&request.namespace, &self.cluster_scope);
        let resources = self.resources.factor(&request.resource, &request.subresource);
        let verbs = self.verbs.factor(&request.verb);
        let api_groups = self.api_groups.factor(&request.api_group);
        self.subjects.of(user, |subjects| {
            let found = first_of(subjects, |place, bits| {
                let bits = namespaces.narrow(place, bits);
                let bits = resources.narrow(place, bits);
                let bits = verbs.narrow(place, bits);
                let bits = api_groups.narrow(place, bits);
                self.headers.narrow(place, bits, &request.head)
            });
            first = first.into_iter().chain(found).min();
        });
        self.schemas.get(first?).copied()
    }
}
