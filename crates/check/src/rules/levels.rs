//! `dangling-level` and `unused-level`: schemas without their levels, and levels without schemas.

use std::collections::HashSet;

use evenkeel_api::AnyObject;

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let mut named: HashSet<&str> = HashSet::new();
    for located in analysis.checked.objects {
        if let AnyObject::FlowSchema(schema) = &located.object {
            named.insert(&schema.spec.priority_level_configuration.name);
        }
    }
    for (located, schema) in &analysis.schemas {
        let level = &schema.spec.priority_level_configuration.name;
        if analysis.level_names.contains(level.as_str()) {
            continue;
        }
        let message = format!("there is no priority level {level:?}: the schema has no effect");
        let suggested = analysis.assumptions.preset.suggested();
        let help = if suggested.priority_levels.iter().any(|suggested| suggested.name() == level) {
            "the level is a suggested one: check with `--with-suggested` if the server has those, or add it".to_owned()
        } else {
            "correct the name, or add the level".to_owned()
        };
        let field = "spec.priorityLevelConfiguration.name";
        // A suggested schema is of no use without its level either.
        output.report.findings.push(Finding::new(Rule::DanglingLevel, located, field, message, help));
    }
    for (located, level) in &analysis.levels {
        if !named.contains(level.name()) {
            let message = "no flow schema refers to this level: it gets no requests, but its shares reduce the seats of other levels";
            let help = "remove the level, or name it in a flow schema";
            output.accuse(analysis, located, Finding::new(Rule::UnusedLevel, located, "metadata.name", message, help));
        }
    }
}
