//! `diff`: which requests two configurations classify differently.
//!
//! A request that is classified differently matches a rule of the old schema and one of the new schema. By the same reasoning as for
//! reachability, the smallest caller that a subject of each matches is then classified differently too, so it is enough to look
//! at those callers. And one of the two schemas must have changed: as long as neither has, the one that comes first stays
//! first.

use std::collections::HashSet;
use std::sync::Arc;

use evenkeel_api::v1::FlowSchema;
use evenkeel_api::{AnyObject, Object, annotations, bootstrap};
use evenkeel_engine::User;
use serde::Serialize;

use crate::assumptions::Assumptions;
use crate::caller::Callers;
use crate::configuration::{Budget, Clause, Configuration, View};
use crate::finding::Located;
use crate::request::Request;
use crate::rules::validity;
use crate::space::{Point, Region, Space};

/// How many kinds of requests that move are described for each pair of schemas.
const DESCRIBED_MAX: usize = 5;

/// The result of comparing two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The requests that move. Empty if and only if no request is classified differently, unless something is undecided.
    pub differences: Vec<Difference>,
    /// Pairs of schemas for which it took too much work to find out.
    pub undecided: Vec<(String, String)>,
}

/// Requests that move from one schema, or its level, to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// Where they go now.
    pub old: Side,
    /// Where they will go.
    pub new: Side,
    /// One of them.
    pub witness: Request,
    /// Descriptions of such requests: who sends them, and what they ask for. The list may be incomplete.
    pub requests: Vec<String>,
}

/// A schema and its level.
///
/// Not `#[non_exhaustive]`: it is a pair of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Side {
    /// The flow schema.
    #[serde(rename = "flowSchema")]
    pub flow_schema: String,
    /// The priority level.
    #[serde(rename = "priorityLevel")]
    pub priority_level: String,
}

struct DiffSearch<'a> {
    old: View<'a>,
    new: View<'a>,
    space: Arc<Space>,
    callers: Callers,
    budget: Budget,
    outcome: Outcome,
}

/// An old and a new clause; the requests that both match are compared.
struct ClausePair<'a> {
    old: usize,
    new: usize,
    old_clause: &'a Clause,
    new_clause: &'a Clause,
}

/// The answer to a search.
enum Moved {
    At(Point),
    Nowhere,
    Undecided,
}

/// What changes for requests from the old objects to the new ones. Objects that are not valid do not count.
pub fn diff(old: &[Located<'_>], new: &[Located<'_>], assumptions: &Assumptions) -> Outcome {
    let [old, new] = [old, new].map(|objects| usable(objects, assumptions));
    let [old, new] = [old, new].map(|schemas| Configuration::new(schemas, assumptions.preset));
    let schemas: Vec<&FlowSchema> = old.schemas.iter().chain(&new.schemas).copied().collect();
    let space = Arc::new(Space::of(schemas.iter().copied()));
    let callers = Callers::of(schemas, assumptions.preset);
    let budget = Budget::new(assumptions.work_max, assumptions.work_max);
    let (old, new) = (View::new(old, &space), View::new(new, &space));
    let mut comparison = DiffSearch { old, new, space, callers, budget, outcome: Outcome::default() };
    comparison.run();
    comparison.outcome
}

/// The schemas that a server would use.
fn usable<'a>(objects: &'a [Located<'a>], assumptions: &Assumptions) -> Vec<&'a FlowSchema> {
    let valid = validity::valid(objects, assumptions, &mut crate::Report::default());
    let mut levels: HashSet<&str> = bootstrap::mandatory().priority_levels.iter().map(Object::name).collect();
    for located in objects {
        if let AnyObject::PriorityLevelConfiguration(level) = &located.object {
            levels.insert(level.name());
        }
    }
    let schemas = valid.into_iter().filter_map(|located| match &located.object {
        AnyObject::FlowSchema(schema) => Some(schema),
        AnyObject::PriorityLevelConfiguration(_) => None,
    });
    schemas.filter(|schema| levels.contains(schema.spec.priority_level_configuration.name.as_str())).collect()
}

fn side(schema: &FlowSchema) -> Side {
    let priority_level = schema.spec.priority_level_configuration.name.clone();
    Side { flow_schema: schema.name().to_owned(), priority_level }
}

/// Whether both configurations have the same schema, and at the same place among the others: a built-in one is the first or the last
/// one, whatever its precedence.
fn is_unchanged(schema: &FlowSchema, other: &Configuration<'_>) -> bool {
    let asked = |schema: &FlowSchema| {
        let noted = &schema.metadata.annotations;
        (annotations::match_headers(noted), annotations::path_match(noted))
    };
    let is_same =
        |own: &&FlowSchema| own.name() == schema.name() && own.spec == schema.spec && asked(own) == asked(schema);
    other.schemas.iter().find(|own| is_same(own)).is_some_and(|own| is_built_in(own) == is_built_in(schema))
}

fn is_built_in(schema: &FlowSchema) -> bool {
    bootstrap::mandatory_flow_schema(schema.name()).is_some_and(|built_in| std::ptr::eq(built_in, schema))
}

// === impl DiffSearch ===

impl DiffSearch<'_> {
    fn run(&mut self) {
        let old_same: Vec<bool> =
            self.old.configuration.schemas.iter().map(|schema| is_unchanged(schema, &self.new.configuration)).collect();
        let new_same: Vec<bool> =
            self.new.configuration.schemas.iter().map(|schema| is_unchanged(schema, &self.old.configuration)).collect();
        for (old, old_same) in old_same.iter().enumerate() {
            for (new, new_same) in new_same.iter().enumerate() {
                if !(*old_same && *new_same) {
                    self.compare(old, new);
                }
            }
        }
    }

    /// Looks for requests that go to one schema in the old configuration and to the other in the new one.
    fn compare(&mut self, old: usize, new: usize) {
        let (Some(old_schema), Some(new_schema)) =
            (self.old.configuration.schema(old), self.new.configuration.schema(new))
        else {
            return;
        };
        let (from, to) = (side(old_schema), side(new_schema));
        if from == to {
            return;
        }
        let mut witness = None;
        let mut requests: Vec<String> = Vec::new();
        let mut is_undecided = false;
        'all: for old_clause in self.old.clauses_of(old) {
            for new_clause in self.new.clauses_of(new) {
                let Some(common) = old_clause.region.intersection(&new_clause.region) else { continue };
                let pair = ClausePair { old, new, old_clause, new_clause };
                for user in self.common_callers(&pair) {
                    match moved(&self.old, &self.new, &pair, &user, common.clone(), &mut self.budget) {
                        Moved::Nowhere => {}
                        Moved::Undecided => is_undecided = true,
                        Moved::At(point) => {
                            let text = self.describe(&pair, &user, &common, &point);
                            if !requests.contains(&text) {
                                requests.push(text);
                            }
                            witness.get_or_insert_with(|| self.old.example(&user, &point));
                        }
                    }
                    if requests.len() == DESCRIBED_MAX {
                        break 'all;
                    }
                }
            }
        }
        match witness {
            Some(witness) => self.outcome.differences.push(Difference { old: from, new: to, witness, requests }),
            None if is_undecided => self.outcome.undecided.push((from.flow_schema, to.flow_schema)),
            None => {}
        }
    }

    /// The smallest callers that a subject of each clause matches.
    fn common_callers(&self, pair: &ClausePair<'_>) -> Vec<User> {
        let subjects = |view: &View<'_>, schema: usize, rule: usize| {
            let schema = view.configuration.schema(schema);
            schema.and_then(|schema| schema.spec.rules.get(rule)).map_or(Vec::new(), |rule| rule.subjects.clone())
        };
        let old = subjects(&self.old, pair.old, pair.old_clause.rule);
        let new = subjects(&self.new, pair.new, pair.new_clause.rule);
        let mut users: Vec<User> = Vec::new();
        for (one, other) in old.iter().flat_map(|one| new.iter().map(move |other| (one, other))) {
            for user in self.callers.smallest(&[one, other]) {
                if !users.contains(&user) {
                    users.push(user);
                }
            }
        }
        users
    }

    /// The requests around one that move with it: what remains of the box around it without the clauses that are tried before.
    fn describe(&self, pair: &ClausePair<'_>, user: &User, common: &Region, point: &Point) -> String {
        let mut around = common.clone();
        for (view, schema) in [(&self.old, pair.old), (&self.new, pair.new)] {
            for (earlier, clauses) in view.clauses.iter().enumerate().take(schema) {
                for clause in clauses {
                    if clause.region.intersects(&around) && view.is_subject(earlier, clause.rule, user) {
                        let pieces = around.clone().without(&clause.region);
                        around = pieces.into_iter().find(|piece| piece.contains(point)).unwrap_or(around);
                    }
                }
            }
        }
        let groups: Vec<&str> = user.groups.iter().map(|group| &**group).collect();
        format!("by {} ({}); {}", user.name, groups.join(", "), self.space.describe(&around))
    }
}

/// A request of the region that goes to the old schema of the pair before, and to the new one after.
fn moved(
    old: &View<'_>,
    new: &View<'_>,
    pair: &ClausePair<'_>,
    user: &User,
    region: Region,
    budget: &mut Budget,
) -> Moved {
    let mut steps = budget.each();
    let mut left = vec![region];
    while let Some(region) = left.pop() {
        let Some(point) = old.space.pick(&region) else { continue };
        if !budget.spend(&mut steps) {
            return Moved::Undecided;
        }
        let taken = match (old.first(user, &point), new.first(user, &point)) {
            (Some(before), Some(after)) if before == pair.old && after == pair.new => return Moved::At(point),
            (Some(before), _) if before != pair.old => old.matching(before, user, &point),
            (_, Some(after)) => new.matching(after, user, &point),
            (_, None) => None,
        };
        let Some(taken) = taken else { return Moved::Undecided };
        left.extend(region.without(&taken.region));
    }
    Moved::Nowhere
}
