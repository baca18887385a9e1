//! `suggested-edited`: suggested objects that a server would put back. Mandatory ones fail validation.

use evenkeel_api::bootstrap::{self, AUTO_UPDATE_ANNOTATION};

use crate::analysis::{Analysis, Output};
use crate::finding::{Finding, Located};
use crate::rule::Rule;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let suggested = analysis.assumptions.suggested();
    let schemas = analysis
        .schemas
        .iter()
        .map(|(located, schema)| (*located, suggested.flow_schemas.iter().any(|own| own.name() == schema.name())));
    let levels = analysis
        .levels
        .iter()
        .map(|(located, level)| (*located, suggested.priority_levels.iter().any(|own| own.name() == level.name())));
    for (located, is_suggested) in schemas.chain(levels) {
        if is_suggested && !is_kept(located) && !bootstrap::is_mandatory(located.object.kind(), located.object.name()) {
            let message = format!(
                "{:?} is a suggested object: the server puts back its own specification",
                located.object.name()
            );
            let help = format!(
                "set the annotation `{AUTO_UPDATE_ANNOTATION}: \"false\"` to keep the change, or use another name"
            );
            output.accuse(analysis, located, Finding::new(Rule::SuggestedEdited, located, "spec", message, help));
        }
    }
}

fn is_kept(located: &Located<'_>) -> bool {
    located.object.metadata().annotations.get(AUTO_UPDATE_ANNOTATION).is_some_and(|value| value == "false")
}
