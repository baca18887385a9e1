//! `invalid-object` and `mandatory-edited`: errors that validation finds in one object.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use evenkeel_api::validate::{self, Context, FieldError, FieldErrors};
use evenkeel_api::{AnyObject, Preset, bootstrap};

use crate::assumptions::Assumptions;
use crate::finding::{Finding, Located, Report, SourceLocation};
use crate::rule::Rule;

/// How many problems of one object are told.
const PROBLEMS_MAX: usize = 100;

/// The objects that are valid, and the first of their name; what is wrong with the others goes into the report.
pub(crate) fn valid<'a>(
    objects: &'a [Located<'a>],
    assumptions: &Assumptions,
    report: &mut Report,
) -> Vec<&'a Located<'a>> {
    let mut seen = HashMap::new();
    let mut valid = Vec::new();
    for located in objects {
        let mut findings = problems(located, assumptions.preset);
        match seen.entry((located.object.kind(), located.object.name())) {
            Entry::Vacant(slot) => {
                slot.insert(located);
                if findings.is_empty() {
                    valid.push(located);
                }
            }
            Entry::Occupied(first) => findings.push(twice(located, first.get())),
        }
        report.findings.extend(findings);
    }
    valid
}

fn problems(located: &Located<'_>, preset: Preset) -> Vec<Finding> {
    let help = "correct the object: an API server rejects it as it is";
    let fault = |(at, message): &(_, String)| {
        Finding::new(Rule::InvalidObject, located, "", message.clone(), help).at(SourceLocation::new(located.file, *at))
    };
    let faults = located.faults.iter().map(fault);
    let Err(errors) = validate(located, preset) else { return faults.collect() };
    let is_mandatory = bootstrap::is_mandatory(located.object.kind(), located.object.name());
    let other = if preset.is_kubernetes() { Preset::Plain } else { Preset::Kubernetes };
    let problem = |error: &FieldError| {
        // The message of this one prints the whole specification.
        if is_mandatory && error.field() == "spec" {
            let message =
                format!("{:?} is mandatory, but this is not its mandatory specification", located.object.name());
            let help = "remove the object from the file: the server always has it, and restores it";
            return Finding::new(Rule::MandatoryEdited, located, error.field(), message, help);
        }
        let message = format!("{}: {}", error.field(), error.message());
        let is_verb = error.field().contains(".nonResourceRules[") && error.field().rsplit('.').next() == Some("verbs");
        if is_verb && !fails_in(located, other, error.field()) {
            let help = format!(
                "the preset {preset} does not have this verb, and {other} does: use `--preset {other}`, or a verb of {preset}"
            );
            return Finding::new(Rule::InvalidObject, located, error.field(), message, help);
        }
        Finding::new(Rule::InvalidObject, located, error.field(), message, help)
    };
    faults.chain(errors.iter().map(problem)).take(PROBLEMS_MAX).collect()
}

fn validate(located: &Located<'_>, preset: Preset) -> Result<(), FieldErrors> {
    let context = Context { preset, ..Context::from(located.version) };
    match &located.object {
        AnyObject::FlowSchema(schema) => validate::create(schema, context),
        AnyObject::PriorityLevelConfiguration(level) => validate::create(level, context),
    }
}

fn fails_in(located: &Located<'_>, preset: Preset, field: &str) -> bool {
    validate(located, preset).is_err_and(|errors| errors.iter().any(|error| error.field() == field))
}

fn twice(located: &Located<'_>, first: &Located<'_>) -> Finding {
    let place = first.place("");
    let place = place.at.map_or(String::new(), |at| format!(", first in {}:{at}", place.file));
    let message = format!("{} {:?} is defined twice{place}", located.object.kind(), located.object.name());
    Finding::new(Rule::InvalidObject, located, "", message, "keep one of them")
}
