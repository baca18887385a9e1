//! `precedence-tie`: two schemas of equal precedence that match a common request.

use std::collections::{HashMap, HashSet};

use evenkeel_api::v1::{FlowSchema, Subject, SubjectKind};

use crate::analysis::{Analysis, Output};
use crate::configuration::SearchResult;
use crate::finding::{Finding, Located, Witness};
use crate::rule::Rule;

/// How many pairs of clauses are compared at most, for all schemas together.
const PAIRS_MAX: u64 = 300_000;

/// Whether two schemas can have a caller in common, as far as can be told at once.
struct NamedCallers<'a> {
    /// The users and service accounts that are named.
    named: HashSet<(&'a str, &'a str)>,
    /// Whether there are subjects that stand for many callers.
    has_others: bool,
}

/// The answer for two schemas.
enum Tie {
    At(Box<Witness>),
    Nowhere,
    Undecided,
}

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let schemas = &analysis.view.configuration.schemas;
    let mut by_precedence: HashMap<i32, Vec<usize>> = HashMap::new();
    for (index, schema) in schemas.iter().enumerate() {
        by_precedence.entry(schema.spec.matching_precedence).or_default().push(index);
    }
    let names: Vec<NamedCallers<'_>> = schemas.iter().map(|schema| NamedCallers::of(schema)).collect();
    let mut pairs_left = PAIRS_MAX;
    for (second, schema) in schemas.iter().enumerate() {
        let Some(located) = analysis.located(schema) else { continue };
        let tied = by_precedence.get(&schema.spec.matching_precedence).map_or(&[][..], Vec::as_slice);
        for first in tied.iter().copied().take_while(|first| *first < second) {
            let may_meet = names.get(first).zip(names.get(second)).is_some_and(|(one, other)| one.may_meet(other));
            if !may_meet {
                continue;
            }
            match tie(analysis, output, &mut pairs_left, first, second) {
                Tie::Nowhere => {}
                Tie::Undecided => {
                    output.undecided(Rule::PrecedenceTie, located.name());
                    break;
                }
                // One finding is enough for each schema: its precedence has to change.
                Tie::At(witness) => {
                    let winner = analysis.view.configuration.schema(first);
                    report(analysis, output, located, schema, winner, *witness);
                    break;
                }
            }
        }
    }
}

fn report(
    analysis: &Analysis<'_>,
    output: &mut Output,
    located: &Located<'_>,
    schema: &FlowSchema,
    winner: Option<&FlowSchema>,
    witness: Witness,
) {
    let Some(winner) = winner else { return };
    let (precedence, name) = (schema.spec.matching_precedence, winner.name());
    let message = format!(
        "{:?} and {name:?} both have matchingPrecedence {precedence} and match some requests in common: {name:?} wins, by its name",
        schema.name()
    );
    let help = "give one of them another matchingPrecedence, so that the order does not depend on names";
    let field = "spec.matchingPrecedence";
    // If this schema is as the server made it, the other one has to change.
    let (of, place) = match analysis.is_original(&located.object).then(|| analysis.located(winner)) {
        None => (located, located.place(field)),
        Some(Some(other)) => (other, other.place(field)),
        Some(None) => return,
    };
    let finding = Finding::new(Rule::PrecedenceTie, of, field, message, help).at(place).witness(Some(witness));
    output.accuse(analysis, of, finding);
}

/// A request that both schemas match and that goes to the first of them.
fn tie(analysis: &Analysis<'_>, output: &mut Output, pairs_left: &mut u64, first: usize, second: usize) -> Tie {
    let view = &analysis.view;
    let mut answer = Tie::Nowhere;
    for one in view.clauses_of(first) {
        for other in view.clauses_of(second) {
            let Some(left) = pairs_left.checked_sub(1) else { return Tie::Undecided };
            *pairs_left = left;
            let Some(common) = one.region.intersection(&other.region) else { continue };
            let subjects = |schema: usize, rule: usize| {
                let schema = view.configuration.schema(schema);
                schema.and_then(|schema| schema.spec.rules.get(rule)).map_or(&[][..], |rule| &rule.subjects)
            };
            for a in subjects(first, one.rule) {
                for b in subjects(second, other.rule) {
                    for user in analysis.callers.smallest(&[a, b]) {
                        let found = view.find(&user, common.clone(), &mut output.budget, |at| at == Some(first));
                        match found {
                            SearchResult::Point(point) => {
                                let request = view.example(&user, &point);
                                let flow_schema =
                                    view.configuration.schema(first).map(|schema| schema.name().to_owned());
                                let flow_schema = flow_schema.unwrap_or_default();
                                return Tie::At(Box::new(Witness { request, flow_schema }));
                            }
                            SearchResult::Nothing => {}
                            SearchResult::Undecided => answer = Tie::Undecided,
                        }
                    }
                }
            }
        }
    }
    answer
}

// === impl NamedCallers ===

impl<'a> NamedCallers<'a> {
    fn of(schema: &'a FlowSchema) -> Self {
        let mut names = Self { named: HashSet::new(), has_others: false };
        for subject in schema.spec.rules.iter().flat_map(|rule| &rule.subjects) {
            match named(subject) {
                Some(name) => drop(names.named.insert(name)),
                None => names.has_others = true,
            }
        }
        names
    }

    fn may_meet(&self, other: &Self) -> bool {
        self.has_others || other.has_others || !self.named.is_disjoint(&other.named)
    }
}

/// The one caller that a subject stands for, if it is one: its namespace if it is a service account, and its name.
fn named(subject: &Subject) -> Option<(&str, &str)> {
    match (&subject.kind, &subject.user, &subject.service_account) {
        (SubjectKind::User, Some(user), _) if user.name != "*" => {
            let account = user.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
            Some(account.unwrap_or(("", &user.name)))
        }
        (SubjectKind::ServiceAccount, _, Some(account)) if account.name != "*" => {
            Some((&account.namespace, &account.name))
        }
        _ => None,
    }
}
