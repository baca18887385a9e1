//! `one-flow` and `useless-distinguisher`: schemas whose requests are not split into flows.

use evenkeel_api::annotations::{self, Queuing};
use evenkeel_api::v1::{FlowDistinguisherMethodType, FlowSchema, PriorityLevelConfiguration, QueuingConfiguration};

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;

/// The queues of a level, if it has some.
pub(crate) fn queues(level: &PriorityLevelConfiguration) -> Option<&QueuingConfiguration> {
    level.spec.limited.as_ref()?.limit_response.queuing.as_ref()
}

/// Whether each flow of a level has a queue of its own.
pub(crate) fn is_per_flow(level: &PriorityLevelConfiguration) -> bool {
    annotations::queuing(&level.metadata.annotations) == Queuing::PerFlow
}

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    for (located, schema) in &analysis.schemas {
        let level = &schema.spec.priority_level_configuration.name;
        let level = analysis.levels.iter().find(|(_, own)| own.name() == level).map(|(_, level)| *level);
        let has_queues =
            level.is_some_and(|level| queues(level).is_some_and(|queues| queues.queues > 1 || is_per_flow(level)));
        match &schema.spec.distinguisher_method {
            None if has_queues => {
                let message = format!(
                    "the level {:?} has queues, but all callers of this schema are one flow: each of them can delay the others",
                    level.map_or("", |level| level.name())
                );
                let help = "set distinguisherMethod to `type: ByUser` or `type: ByNamespace`";
                output.accuse(analysis, located, Finding::new(Rule::OneFlow, located, "spec", message, help));
            }
            Some(method) if method.method == FlowDistinguisherMethodType::ByNamespace && !has_namespaces(schema) => {
                let message =
                    "no rule of this schema matches a request with a namespace, so all its requests are one flow";
                let help = "use `type: ByUser`, or list namespaces in a resource rule";
                let field = "spec.distinguisherMethod";
                output.accuse(
                    analysis,
                    located,
                    Finding::new(Rule::UselessDistinguisher, located, field, message, help),
                );
            }
            _ => {}
        }
    }
}

fn has_namespaces(schema: &FlowSchema) -> bool {
    schema.spec.rules.iter().flat_map(|rule| &rule.resource_rules).any(|rule| !rule.namespaces.is_empty())
}
