//! `unknown-annotation`: annotations of Evenkeel that are not understood.

use evenkeel_api::annotations;

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
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
