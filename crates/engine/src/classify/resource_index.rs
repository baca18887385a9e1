//! The resource rules of all flow schemas, indexed (FM-11).

use evenkeel_api::v1::{ResourcePolicyRule, Subject};

use super::SchemaIndex;
use super::clause_set::{ClauseSet, EMPTY, first_in_all};
use super::listed::Listed;
use super::resources::Resources;
use super::subjects::Subjects;
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
}

// === impl ResourceIndex ===

impl ResourceIndex {
    /// Takes in a rule of a schema, after those of all schemas that go before it.
    pub(super) fn add(&mut self, schema: SchemaIndex, subjects: &[Subject], rule: &ResourcePolicyRule) {
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
    }

    /// The first schema that has a rule for that request.
    pub(super) fn first(&self, user: &User, request: &RequestInfo<'_>) -> Option<SchemaIndex> {
        let mut first: Option<usize> = None;
        self.subjects.of(user, |subjects| {
            let namespaces = match &*request.namespace {
                "" => [&self.cluster_scope, &EMPTY],
                namespace => self.namespaces.of(namespace),
            };
            let found = first_in_all([
                subjects,
                &namespaces,
                &self.resources.of(&request.resource, &request.subresource),
                &self.verbs.of(&request.verb),
                &self.api_groups.of(&request.api_group),
            ]);
            first = first.into_iter().chain(found).min();
        });
        self.schemas.get(first?).copied()
    }
}
