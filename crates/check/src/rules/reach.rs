//! `unreachable-schema` and `unreachable-rule`: schemas and rules that no request can be classified to.

use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::User;

use crate::analysis::{Analysis, Output};
use crate::caller::Callers;
use crate::configuration::{Budget, Clause, SearchResult, View};
use crate::cover;
use crate::finding::{Finding, Located, Witness};
use crate::rule::Rule;
use crate::space::{Region, Sort};

/// Whether a request can be classified to a schema by a clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Reachable,
    Unreachable,
    Undecided,
}

/// A schema whose reachability is asked for.
struct QueriedSchema<'a> {
    view: &'a View<'a>,
    callers: &'a Callers,
    schema: &'a FlowSchema,
    index: usize,
}

/// The names of some schemas as a list in a sentence.
pub(crate) fn quoted(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => format!("{one:?}"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("{name:?}")).collect();
            format!("{} and {last:?}", first.join(", "))
        }
    }
}

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let (view, callers) = (&analysis.view, &analysis.callers);
    for (index, schema) in view.configuration.schemas.iter().enumerate() {
        let target = QueriedSchema { view, callers, schema, index };
        if !view.space.tells(schema) {
            if let Some(located) = analysis.located(schema) {
                output.undecided(Rule::UnreachableSchema, located.name());
            }
            continue;
        }
        let reach = target.clauses(&mut output.budget);
        let is_unreachable = reach.iter().all(|reach| *reach == Reach::Unreachable);
        let Some(located) = analysis.located(schema).filter(|located| !analysis.is_original(&located.object)) else {
            continue;
        };
        if is_unreachable {
            let finding = target.unreachable(located, &mut output.budget);
            output.report.findings.push(finding);
            continue;
        }
        if reach.contains(&Reach::Undecided) {
            let is_reachable = reach.contains(&Reach::Reachable);
            output
                .undecided(if is_reachable { Rule::UnreachableRule } else { Rule::UnreachableSchema }, located.name());
        }
        let findings = target.unreachable_rules(located, &reach, &mut output.budget);
        output.report.findings.extend(findings);
    }
}

// === impl QueriedSchema ===

impl QueriedSchema<'_> {
    /// For each clause, whether a request can be classified to the schema by it.
    fn clauses(&self, budget: &mut Budget) -> Vec<Reach> {
        self.view.clauses_of(self.index).iter().map(|clause| self.clause(clause, budget)).collect()
    }

    fn clause(&self, clause: &Clause, budget: &mut Budget) -> Reach {
        let mut reach = Reach::Unreachable;
        for user in self.users(clause.rule) {
            match self.view.find(&user, clause.region.clone(), budget, |first| first == Some(self.index)) {
                SearchResult::Point(_) => return Reach::Reachable,
                SearchResult::Nothing => {}
                SearchResult::Undecided => reach = Reach::Undecided,
            }
        }
        reach
    }

    /// The smallest callers that the subjects of a rule match, each once.
    fn users(&self, rule: usize) -> Vec<User> {
        let subjects = self.schema.spec.rules.get(rule).map_or(&[][..], |rule| &rule.subjects);
        let mut users: Vec<User> = Vec::new();
        for user in subjects.iter().flat_map(|subject| self.callers.smallest(&[subject])) {
            if !users.contains(&user) {
                users.push(user);
            }
        }
        users
    }

    fn parts<'c>(&self, clauses: impl IntoIterator<Item = &'c Clause>) -> Vec<(User, Region)> {
        let of_clause = |clause: &'c Clause| {
            self.users(clause.rule).into_iter().map(|user| (user, clause.region.clone())).collect::<Vec<_>>()
        };
        clauses.into_iter().flat_map(of_clause).collect()
    }

    fn unreachable(&self, located: &Located<'_>, budget: &mut Budget) -> Finding {
        let clauses = self.view.clauses_of(self.index);
        if clauses.is_empty() {
            let message = "no request can be classified to this schema: it has no rules";
            return Finding::new(
                Rule::UnreachableSchema,
                located,
                "spec.rules",
                message,
                "add a rule, or remove the schema",
            );
        }
        let subject = "no request can be classified to this schema";
        let finding = self.blocked(Rule::UnreachableSchema, located, subject, &self.parts(clauses), budget);
        let help = "give the schema a lower matchingPrecedence, or remove it";
        Finding { place: located.place("metadata.name"), help: help.to_owned(), ..finding }
    }

    fn unreachable_rules(&self, located: &Located<'_>, reach: &[Reach], budget: &mut Budget) -> Vec<Finding> {
        let clauses: Vec<(&Clause, Reach)> =
            self.view.clauses_of(self.index).iter().zip(reach.iter().copied()).collect();
        let mut findings = Vec::new();
        for (rule, _) in self.schema.spec.rules.iter().enumerate() {
            let of_rule: Vec<_> = clauses.iter().filter(|(clause, _)| clause.rule == rule).collect();
            let is_whole = of_rule.iter().all(|(_, reach)| *reach == Reach::Unreachable);
            let mut find = |field: &str, what: &str, unreachable: &[&Clause]| {
                let subject = format!("no request can be classified to this schema by {what}");
                let parts = self.parts(unreachable.iter().copied());
                let finding = self.blocked(Rule::UnreachableRule, located, &subject, &parts, budget);
                findings.push(Finding { place: located.place(field), ..finding });
            };
            if is_whole && !of_rule.is_empty() {
                let unreachable: Vec<&Clause> = of_rule.iter().map(|(clause, _)| *clause).collect();
                find(&format!("spec.rules[{rule}]"), "this rule", &unreachable);
                continue;
            }
            for (clause, _) in of_rule.iter().filter(|(_, reach)| *reach == Reach::Unreachable) {
                let (list, what) = match clause.region.sort {
                    Sort::Resource => ("resourceRules", "this resource rule"),
                    Sort::Path => ("nonResourceRules", "this non-resource rule"),
                };
                find(&format!("spec.rules[{rule}].{list}[{}]", clause.index), what, &[clause]);
            }
        }
        findings
    }

    /// A finding that names the smallest set of schemas which take some parts, with a request that shows it.
    fn blocked(
        &self,
        rule: Rule,
        located: &Located<'_>,
        subject: &str,
        parts: &[(User, Region)],
        budget: &mut Budget,
    ) -> Finding {
        let help = "remove the rule, or give the schema a lower matchingPrecedence";
        if parts.is_empty() {
            let message = format!("{subject}: no client can be one of its subjects");
            return Finding::new(rule, located, "spec.rules", message, "correct the subjects");
        }
        let witness = parts.iter().find_map(|(user, region)| {
            let point = self.view.space.pick(region)?;
            let first = self.view.configuration.schema(self.view.first(user, &point)?)?;
            Some(Witness { request: self.view.example(user, &point), flow_schema: first.name().to_owned() })
        });
        let cover = cover::smallest(self.view, self.index, parts, budget);
        let (blockers, end) = match cover {
            Some(cover) => {
                let names = cover.schemas.iter().filter_map(|index| self.view.configuration.schema(*index));
                let names: Vec<String> = names.map(|schema| schema.name().to_owned()).collect();
                let verb = if names.len() == 1 { "takes" } else { "together take" };
                let note = if cover.is_smallest { "" } else { " (there may be a smaller set of them)" };
                let end = format!("{} {verb} everything that it matches{note}", quoted(&names));
                (names, end)
            }
            None => (Vec::new(), "schemas that are tried before it take everything that it matches".to_owned()),
        };
        let finding = Finding::new(rule, located, "", format!("{subject}: {end}"), help);
        Finding { blockers, ..finding }.witness(witness)
    }
}
