//! `catches-everything`: a schema that takes every authenticated request that is left. `no-catch-all`: requests of an ordinary service
//! that no schema takes.

use evenkeel_api::Preset;
use evenkeel_api::bootstrap::CATCH_ALL;
use evenkeel_engine::User;
use evenkeel_engine::implied_groups::ANONYMOUS;

use crate::analysis::{Analysis, Output};
use crate::configuration::SearchResult;
use crate::finding::{Finding, Witness};
use crate::rule::Rule;
use crate::space::{Point, Sort};

/// A schema that takes all requests of a caller in no other group takes those of every authenticated caller, so it is enough to
/// ask which schema is the last one that such a caller gets to.
pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    match analysis.assumptions.preset {
        Preset::Kubernetes => catches_everything(analysis, output),
        // The last schema of an ordinary service is meant to take all requests that are left.
        Preset::Plain | Preset::Llm => no_catch_all(analysis, output),
    }
}

/// Looks for a request that only the built-in schema for the rest takes: of an authenticated caller in no other group, or of an
/// anonymous one.
fn no_catch_all(analysis: &Analysis<'_>, output: &mut Output) {
    let view = &analysis.view;
    let own = view.configuration.schemas.iter().rev().find_map(|schema| analysis.located(schema));
    let Some(last) = own else { return };
    let is_left = |index: usize| view.configuration.schema(index).is_none_or(|schema| schema.name() == CATCH_ALL);
    let everything = view.space.all(Sort::Path);
    for user in [analysis.callers.authenticated(), User::new(ANONYMOUS, [""; 0]).with_implied_groups()] {
        let found = view.find(&user, everything.clone(), &mut output.budget, |first| first.is_none_or(is_left));
        match found {
            SearchResult::Nothing => {}
            SearchResult::Undecided => return output.undecided(Rule::NoCatchAll, last.name()),
            SearchResult::Point(point) => {
                let message = "some requests match no schema: they go to the built-in level \"catch-all\", which has few seats and no \
                               queue";
                let help = "end with a match for everybody, as `- {level: NAME}`, or with a flow schema that matches everything";
                let witness = Witness { request: view.example(&user, &point), flow_schema: CATCH_ALL.to_owned() };
                let finding = Finding::new(Rule::NoCatchAll, last, "spec.rules", message, help);
                return output.accuse(analysis, last, finding.witness(Some(witness)));
            }
        }
    }
}

fn catches_everything(analysis: &Analysis<'_>, output: &mut Output) {
    let view = &analysis.view;
    let user = analysis.callers.authenticated();
    let mut last: Option<(usize, Point)> = None;
    for region in view.everything() {
        let mut seen = last.map_or(0, |(index, _)| index);
        // Looking for a later schema again and again ends at the last one.
        loop {
            let found =
                view.find(&user, region.clone(), &mut output.budget, |first| first.is_none_or(|first| first > seen));
            match found {
                SearchResult::Nothing => break,
                SearchResult::Undecided => return undecided(analysis, seen, output),
                SearchResult::Point(point) => match view.first(&user, &point) {
                    None => return,
                    Some(index) => {
                        seen = index;
                        last = Some((index, point));
                    }
                },
            }
        }
    }
    let Some((index, point)) = last else { return };
    let Some(schema) = view.configuration.schema(index).filter(|schema| schema.name() != CATCH_ALL) else { return };
    let Some(located) = analysis.located(schema) else { return };
    let message =
        format!("every authenticated request that reaches {:?} matches it: later schemas get none", schema.name());
    let help = "match fewer requests, or leave the rest to the schema catch-all";
    let witness = Witness { request: view.example(&user, &point), flow_schema: schema.name().to_owned() };
    let finding = Finding::new(Rule::CatchesEverything, located, "spec.rules", message, help);
    output.accuse(analysis, located, finding.witness(Some(witness)));
}

/// Too much work is needed to find out whether a schema after this one is the last. The first of those that may be is named.
fn undecided(analysis: &Analysis<'_>, seen: usize, output: &mut Output) {
    let rest = analysis.view.configuration.schemas.iter().skip(seen);
    let mut candidates = rest.filter(|schema| schema.name() != CATCH_ALL).filter_map(|schema| analysis.located(schema));
    if let Some(located) = candidates.next() {
        output.undecided(Rule::CatchesEverything, located.name());
    }
}
