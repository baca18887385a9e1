//! `unknown-annotation` and `useless-annotation`: annotations of Evenkeel that are not understood, and those without effect.

use evenkeel_api::annotations;
use evenkeel_api::v1::PriorityLevelConfiguration;

use crate::analysis::{Analysis, Output};
use crate::finding::{Finding, Located};
use crate::rule::Rule;
use crate::rules::flows::{is_per_flow, queues};

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    not_understood(analysis, output);
    without_effect(analysis, output);
}

fn not_understood(analysis: &Analysis<'_>, output: &mut Output) {
    for located in analysis.checked.objects {
        let own = &located.object.metadata().annotations;
        let values = annotations::not_understood(located.object.kind(), own);
        let mut problems: Vec<(String, String)> =
            values.into_iter().map(|found| (found.name.clone(), found.to_string())).collect();
        for (name, value) in own.iter().filter(|(name, _)| annotations::is_ours(name)) {
            if !annotations::is_known(name) {
                problems.push((name.clone(), format!("annotation {name}: Evenkeel has no annotation of this name")));
            }
            if name == annotations::IGNORE {
                let rules = value.split(',').map(str::trim).filter(|rule| rule.parse::<Rule>().is_err());
                problems
                    .extend(rules.map(|rule| (name.clone(), format!("annotation {name}: there is no rule {rule:?}"))));
            }
        }
        for (name, message) in problems {
            let help = "correct or remove the annotation; docs/modes.md and docs/check.md describe all of them";
            let finding = Finding::new(Rule::UnknownAnnotation, located, "", message, help);
            output.report.findings.push(finding.at(located.annotation_place(&name)));
        }
    }
}

/// Annotations that only levels which queue per flow heed.
fn without_effect(analysis: &Analysis<'_>, output: &mut Output) {
    let has_flow_queues = |level: &PriorityLevelConfiguration| queues(level).is_some() && is_per_flow(level);
    let mut accuse = |located: &Located<'_>, name: &str, message: String| {
        let help = format!("set `{}: per-flow` on the level, or remove the annotation", annotations::QUEUING);
        let finding = Finding::new(Rule::UselessAnnotation, located, "", message, help);
        output.accuse(analysis, located, finding.at(located.annotation_place(name)));
    };
    for (located, level) in analysis.levels.iter().filter(|(_, level)| !has_flow_queues(level)) {
        for name in [annotations::NEWCOMER_SEATS, annotations::FLOW_SEATS_MAX] {
            if level.metadata.annotations.contains_key(name) {
                let message = format!("annotation {name} has no effect: the level does not queue per flow");
                accuse(located, name, message);
            }
        }
    }
    for (located, schema) in &analysis.schemas {
        let name = annotations::FLOW_WEIGHT;
        let level = &schema.spec.priority_level_configuration.name;
        let level = analysis.levels.iter().find(|(_, own)| own.name() == level);
        if schema.metadata.annotations.contains_key(name) && level.is_some_and(|(_, level)| !has_flow_queues(level)) {
            let level = &schema.spec.priority_level_configuration.name;
            accuse(
                located,
                name,
                format!("annotation {name} has no effect: the level {level:?} does not queue per flow"),
            );
        }
    }
}
