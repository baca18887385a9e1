//! Flow schemas in the order in which a server tries them, with the real classifier beside the boxes.

use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_api::bootstrap::{self, CATCH_ALL, EXEMPT};
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::{Attributes, User};

use crate::caller::is_matched;
use crate::request::Request;
use crate::space::{Point, Region, Sort, Space};

/// Some flow schemas in match order.
#[derive(Debug)]
pub(crate) struct Configuration<'a> {
    pub(crate) schemas: Vec<&'a FlowSchema>,
    classifier: Classifier,
}

/// A resource rule or a non-resource rule of a schema.
#[derive(Debug)]
pub(crate) struct Clause {
    /// The index of the rule that it belongs to.
    pub(crate) rule: usize,
    /// Its index among the resource rules or non-resource rules of the rule.
    pub(crate) index: usize,
    pub(crate) region: Region,
}

/// A configuration in a space, in which its clauses are boxes.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) configuration: Configuration<'a>,
    pub(crate) space: Arc<Space>,
    /// By schema.
    pub(crate) clauses: Vec<Vec<Clause>>,
}

/// How much work may be done before a question is left undecided.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    /// For all questions together.
    total: u64,
    /// For one question.
    each: u64,
}

/// The answer to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchResult {
    /// There is such a request.
    Point(Point),
    /// There is none.
    Nothing,
    /// The budget was not enough to find out.
    Undecided,
}

/// The clauses of a schema as boxes.
pub(crate) fn clauses(space: &Space, schema: &FlowSchema) -> Vec<Clause> {
    let conditions = space.conditions(schema);
    let of_rule = |(rule, with_subjects): (usize, &evenkeel_api::v1::PolicyRulesWithSubjects)| {
        let resources = with_subjects.resource_rules.iter().map(|rule| space.resource_rule(rule, &conditions));
        let paths = with_subjects.non_resource_rules.iter().map(|rule| space.non_resource_rule(rule, &conditions));
        let clause = move |(index, region)| Clause { rule, index, region };
        resources.enumerate().map(clause).chain(paths.enumerate().map(clause)).collect::<Vec<_>>()
    };
    schema.spec.rules.iter().enumerate().flat_map(of_rule).collect()
}

// === impl Configuration ===

impl<'a> Configuration<'a> {
    /// The schemas of a server that has these, and the mandatory ones that are missing.
    ///
    /// A Kubernetes API server stores the mandatory schemas, and tries them in their order. For an ordinary service they are
    /// built in, and the first and the last one (FM-1, CC-12).
    pub(crate) fn new(schemas: impl IntoIterator<Item = &'a FlowSchema>, preset: Preset) -> Self {
        let mut ordered: Vec<&FlowSchema> = schemas.into_iter().collect();
        let is_missing = |name: &str| ordered.iter().all(|schema| schema.name() != name);
        let [exempt, catch_all] =
            [EXEMPT, CATCH_ALL].map(|name| bootstrap::mandatory_flow_schema(name).filter(|_| is_missing(name)));
        if preset == Preset::Kubernetes {
            ordered.extend(exempt.into_iter().chain(catch_all));
        }
        ordered.sort_by(|one, other| match_order(one, other));
        match preset {
            Preset::Kubernetes => Self::ordered(ordered),
            Preset::Plain | Preset::Llm => Self::ordered(exempt.into_iter().chain(ordered).chain(catch_all).collect()),
        }
    }

    /// These schemas and no others, in the order given.
    pub(crate) fn ordered(schemas: Vec<&'a FlowSchema>) -> Self {
        let classifier = Classifier::compile(schemas.iter().copied());
        Self { schemas, classifier }
    }

    pub(crate) fn schema(&self, index: usize) -> Option<&'a FlowSchema> {
        self.schemas.get(index).copied()
    }

    /// The schema that the real classifier chooses.
    pub(crate) fn classify(&self, attributes: Attributes<'_>) -> Option<usize> {
        self.classifier.classify(attributes).map(usize::from)
    }

    /// The schema of a request, with the last resort for requests that none matches (FM-4).
    pub(crate) fn schema_of(&self, attributes: Attributes<'_>) -> Option<&'a FlowSchema> {
        match self.classify(attributes) {
            Some(index) => self.schema(index),
            None => self.schemas.iter().find(|schema| schema.name() == CATCH_ALL).copied(),
        }
    }
}

// === impl View ===

impl<'a> View<'a> {
    pub(crate) fn new(configuration: Configuration<'a>, space: &Arc<Space>) -> Self {
        let clauses = configuration.schemas.iter().map(|schema| clauses(space, schema)).collect();
        let space = Arc::clone(space);
        Self { configuration, space, clauses }
    }

    pub(crate) fn clauses_of(&self, schema: usize) -> &[Clause] {
        self.clauses.get(schema).map_or(&[], Vec::as_slice)
    }

    /// The schema that the real classifier chooses for a point.
    pub(crate) fn first(&self, user: &User, point: &Point) -> Option<usize> {
        let request = self.space.request(point);
        self.configuration.classify(Attributes { user, request: &request })
    }

    /// The request of a point, for people.
    pub(crate) fn example(&self, user: &User, point: &Point) -> Request {
        Request::new(user, &self.space.request(point))
    }

    /// The clause of a schema that matches a point.
    pub(crate) fn matching(&self, schema: usize, user: &User, point: &Point) -> Option<&Clause> {
        self.clauses_of(schema)
            .iter()
            .find(|clause| clause.region.contains(point) && self.is_subject(schema, clause.rule, user))
    }

    /// Whether a user is among the subjects of a rule.
    pub(crate) fn is_subject(&self, schema: usize, rule: usize, user: &User) -> bool {
        let rule = self.configuration.schema(schema).and_then(|schema| schema.spec.rules.get(rule));
        rule.is_some_and(|rule| rule.subjects.iter().any(|subject| is_matched(subject, user)))
    }

    /// Looks for a request of a region for which the classifier gives a wanted answer.
    ///
    /// It tries one request of the region. If the answer is another one, the whole clause that gave it is taken away from the
    /// region, and what remains is searched. `wants` must treat all requests of a clause alike, which it does if it goes by the
    /// schema. Every request that is found has been classified by the real classifier.
    pub(crate) fn find(
        &self,
        user: &User,
        region: Region,
        budget: &mut Budget,
        mut wants: impl FnMut(Option<usize>) -> bool,
    ) -> SearchResult {
        let mut steps = budget.each;
        let mut left = vec![region];
        while let Some(region) = left.pop() {
            let Some(point) = self.space.pick(&region) else { continue };
            if !budget.spend(&mut steps) {
                return SearchResult::Undecided;
            }
            let first = self.first(user, &point);
            if wants(first) {
                return SearchResult::Point(point);
            }
            let Some(taken) = first.and_then(|schema| self.matching(schema, user, &point)) else {
                // Nothing matches, or the boxes do not say what the classifier says: claim nothing.
                return SearchResult::Undecided;
            };
            left.extend(region.without(&taken.region));
        }
        SearchResult::Nothing
    }

    /// All requests of both sorts.
    pub(crate) fn everything(&self) -> [Region; 2] {
        [Sort::Resource, Sort::Path].map(|sort| self.space.all(sort))
    }
}

// === impl Budget ===

impl Budget {
    pub(crate) fn new(total: u64, each: u64) -> Self {
        Self { total, each }
    }

    /// The steps that one question may take.
    pub(crate) fn each(&self) -> u64 {
        self.each
    }

    /// Takes one step, if there is one left for the question and for all together.
    pub(crate) fn spend(&mut self, steps: &mut u64) -> bool {
        if *steps == 0 || self.total == 0 {
            return false;
        }
        *steps -= 1;
        self.total -= 1;
        true
    }
}
