//! The non-resource rules of all flow schemas, indexed (FM-12).

use evenkeel_api::v1::{NonResourcePolicyRule, Subject};

use super::clause_set::{first_of, union_at};
use super::headers::Headers;
use super::listed::Listed;
use super::paths::Paths;
use super::subjects::Subjects;
use super::{Conditions, SchemaIndex};
use crate::{RequestInfo, User};

/// The non-resource rules of all flow schemas, one clause each.
#[derive(Debug, Default)]
pub(super) struct PathIndex {
    /// The schema of each clause.
    schemas: Vec<SchemaIndex>,
    subjects: Subjects,
    verbs: Listed,
    paths: Paths,
    headers: Headers,
}

// === impl PathIndex ===

impl PathIndex {
    /// For clauses that ask for these headers.
    pub(super) fn new(headers: Headers) -> Self {
        Self { headers, ..Self::default() }
    }

    /// The names of the headers that clauses may ask for, in lower case.
    pub(super) fn headers(&self) -> impl Iterator<Item = &str> {
        self.headers.names()
    }

    /// Takes in a rule of a schema, after those of all schemas that go before it.
    pub(super) fn add(
        &mut self,
        schema: SchemaIndex,
        subjects: &[Subject],
        rule: &NonResourcePolicyRule,
        conditions: &Conditions,
    ) {
        let clause = self.schemas.len();
        self.schemas.push(schema);
        self.subjects.add(subjects, clause);
        self.verbs.add(&rule.verbs, clause);
        self.paths.add(&rule.non_resource_urls, conditions.paths, clause);
        self.headers.add(conditions.headers.as_ref(), clause);
    }

    /// The first schema that has a rule for that request.
    pub(super) fn first(&self, user: &User, request: &RequestInfo<'_>) -> Option<SchemaIndex> {
        let mut first: Option<usize> = None;
        let verbs = self.verbs.factor(&request.verb);
        self.subjects.of(user, |subjects| {
            self.paths.covering(&request.path, |paths| {
                let found = first_of(subjects, |place, bits| {
                    let bits = verbs.narrow(place, bits & union_at(paths, place));
                    self.headers.narrow(place, bits, &request.head)
                });
                first = first.into_iter().chain(found).min();
            });
        });
        self.schemas.get(first?).copied()
    }
}
