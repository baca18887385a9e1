//! The specification of a flow schema (API-37 to API-40).

mod policy_rule;
mod subject;

use super::rules::{Mandatory, Rules};
use super::{Context, EmptyRules, FieldError, Path, Value, names};
use crate::Preset;
use crate::bootstrap::{self, EXEMPT};
use crate::v1::{
    FlowDistinguisherMethod, FlowDistinguisherMethodType, FlowSchemaSpec, MATCHING_PRECEDENCE_MAX,
    PolicyRulesWithSubjects,
};

/// The place that is kept for the flow schema named `exempt`.
const MATCHING_PRECEDENCE_EXEMPT: i32 = 1;

impl Rules for FlowSchemaSpec {
    fn check(&self, name: &str, context: Context, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        check_precedence(self.matching_precedence, name, &path.child("matchingPrecedence"), errors);
        if let Some(method) = &self.distinguisher_method {
            check_method(method, &path.child("distinguisherMethod"), errors);
        }
        check_level(&self.priority_level_configuration.name, &path.child("priorityLevelConfiguration"), errors);
        let rules = path.child("rules");
        for (index, rule) in self.rules.iter().enumerate() {
            check_rule(rule, context.preset, &rules.index(index), errors);
        }
    }

    fn mandatory(&self, name: &str) -> Option<Mandatory<Self>> {
        bootstrap::mandatory_flow_schema(name).map(|schema| Mandatory { spec: schema.spec.clone(), except: "" })
    }
}

fn check_precedence(precedence: i32, name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut invalid = |detail: &str| errors.push(FieldError::invalid(path, &Value::json(&precedence), detail));
    if precedence <= 0 {
        invalid("must be a positive value");
    }
    if precedence > MATCHING_PRECEDENCE_MAX {
        invalid(&format!("must not be greater than {MATCHING_PRECEDENCE_MAX}"));
    }
    if precedence == MATCHING_PRECEDENCE_EXEMPT && name != EXEMPT {
        invalid("only the schema named 'exempt' may have matchingPrecedence 1");
    }
}

fn check_method(method: &FlowDistinguisherMethod, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if let FlowDistinguisherMethodType::Other(_) = method.method {
        let value = Value::internal(method, EmptyRules::Absent);
        errors.push(FieldError::no_choice(path.child("type"), &value, &FlowDistinguisherMethodType::CHOICE));
    }
}

fn check_level(name: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(path, "must reference a priority level"));
    } else {
        names::report(errors, &path, name, names::subdomain(name));
    }
}

fn check_rule(rule: &PolicyRulesWithSubjects, preset: Preset, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let subjects = path.child("subjects");
    if rule.subjects.is_empty() {
        errors.push(FieldError::required(subjects, "subjects must contain at least one value"));
    }
    for (index, subject) in rule.subjects.iter().enumerate() {
        subject::check(subject, &subjects.index(index), errors);
    }
    if rule.resource_rules.is_empty() && rule.non_resource_rules.is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    let resource_rules = path.child("resourceRules");
    for (index, rule) in rule.resource_rules.iter().enumerate() {
        policy_rule::check_resource(rule, &resource_rules.index(index), errors);
    }
    let non_resource_rules = path.child("nonResourceRules");
    for (index, rule) in rule.non_resource_rules.iter().enumerate() {
        policy_rule::check_non_resource(rule, preset, &non_resource_rules.index(index), errors);
    }
}
