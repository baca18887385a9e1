//! `one-flow` and `useless-distinguisher`: schemas whose requests are not split into flows.

use std::collections::HashSet;

use evenkeel_api::annotations::{self, Queuing};
use evenkeel_api::v1::{
    FlowDistinguisherMethodType, FlowSchema, PriorityLevelConfiguration, QueuingConfiguration, Subject,
};

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

/// How many flows can exist in a level at most, by all flow schemas that a server would use; `None` if any number can.
pub(crate) fn flow_count(analysis: &Analysis<'_>, level: &str) -> Option<usize> {
    let schemas = analysis.view.configuration.schemas.iter();
    let mut own = schemas.filter(|schema| schema.spec.priority_level_configuration.name == level);
    own.try_fold(0_usize, |count, schema| Some(count.saturating_add(flows_of(schema)?)))
}

/// How many flows a flow schema can have: as many as its distinguisher can tell apart.
fn flows_of(schema: &FlowSchema) -> Option<usize> {
    let rules = &schema.spec.rules;
    match schema.spec.distinguisher_method.as_ref().map(|method| &method.method) {
        None => Some(1),
        Some(FlowDistinguisherMethodType::ByUser) => {
            let users: Option<HashSet<_>> = rules.iter().flat_map(|rule| &rule.subjects).map(one_user).collect();
            users.map(|users| users.len())
        }
        Some(FlowDistinguisherMethodType::ByNamespace) => {
            let mut namespaces = HashSet::new();
            for rule in rules {
                // Requests without a namespace are a flow too.
                namespaces.extend((!rule.non_resource_rules.is_empty()).then_some(""));
                for rule in &rule.resource_rules {
                    namespaces.extend(rule.cluster_scope.then_some(""));
                    namespaces.extend(rule.namespaces.iter().map(String::as_str));
                }
            }
            (!namespaces.contains("*")).then_some(namespaces.len())
        }
        // Objects with another method are invalid, and left out of the analysis.
        Some(FlowDistinguisherMethodType::Other(_)) => None,
    }
}

/// The only user that a subject matches, if there is only one.
fn one_user(subject: &Subject) -> Option<String> {
    let name = match (&subject.user, &subject.service_account) {
        (Some(user), _) if user.name != "*" => user.name.clone(),
        (_, Some(account)) if account.name != "*" => {
            format!("system:serviceaccount:{}:{}", account.namespace, account.name)
        }
        _ => return None,
    };
    Some(name)
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
