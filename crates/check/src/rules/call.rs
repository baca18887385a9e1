//! `inversion`: calls that run in a level that does not outrank that of their caller.
//!
//! A request holds its seats while it waits for the calls that it makes. If those wait for seats of the same level, or of one
//! whose requests wait for the caller's in turn, all of them can wait for each other (OG-7). Levels rank by the schemas that lead
//! to them: the lower the precedence that a server tries first, the higher the level.

use std::collections::HashMap;

use evenkeel_api::bootstrap::EXEMPT;
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::Attributes;

use crate::analysis::{Analysis, Output};
use crate::calls::{Call, Endpoint};
use crate::finding::{Finding, ObjectName};
use crate::rule::Rule;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    let mut ranks: HashMap<&str, i32> = HashMap::new();
    for schema in &analysis.view.configuration.schemas {
        let rank = ranks.entry(level_of(schema)).or_insert(i32::MAX);
        *rank = schema.spec.matching_precedence.min(*rank);
    }
    let mut edges: Vec<(&str, &str)> = Vec::new();
    for call in analysis.checked.calls {
        match ends(analysis, call) {
            Ok((outer, inner)) => edges.push((level_of(outer), level_of(inner))),
            Err(message) => {
                let help = "name a flow schema of the files, or describe a request";
                output.report.findings.push(finding(None, call, message, help.to_owned()));
            }
        }
    }
    for call in analysis.checked.calls {
        let Ok((outer, inner)) = ends(analysis, call) else { continue };
        let (from, to) = (level_of(outer), level_of(inner));
        let rank = |level: &str| ranks.get(level).copied().unwrap_or(i32::MAX);
        if to == EXEMPT || (from != to && rank(to) < rank(from)) {
            continue;
        }
        let start =
            format!("a request of schema {:?} (level {from:?}) makes one of schema {:?}", outer.name(), inner.name());
        let message = if from == to {
            format!("{start}, in the same level: when all its seats are taken by callers, all of them wait")
        } else if leads_to(&edges, to, from) {
            format!("{start} (level {to:?}), whose requests call back: each level can wait for the other")
        } else {
            format!("{start} (level {to:?}), which does not outrank it: {} comes before {}", rank(from), rank(to))
        };
        let help = "classify the call to a level of its own that is matched before, or to `exempt`".to_owned();
        output.report.findings.push(finding(Some(inner), call, message, help));
    }
}

fn finding(schema: Option<&FlowSchema>, call: &Call, message: String, help: String) -> Finding {
    let name = schema.map_or_else(String::new, |schema| schema.name().to_owned());
    Finding {
        rule: Rule::Inversion,
        severity: Rule::Inversion.severity(),
        object: ObjectName { kind: "FlowSchema".to_owned(), name },
        place: call.place.clone(),
        message,
        help,
        witness: None,
        blockers: Vec::new(),
    }
}

fn level_of(schema: &FlowSchema) -> &str {
    &schema.spec.priority_level_configuration.name
}

fn ends<'a>(analysis: &Analysis<'a>, call: &Call) -> Result<(&'a FlowSchema, &'a FlowSchema), String> {
    Ok((end(analysis, &call.caller, "caller")?, end(analysis, &call.callee, "callee")?))
}

fn end<'a>(analysis: &Analysis<'a>, endpoint: &Endpoint, which: &str) -> Result<&'a FlowSchema, String> {
    let configuration = &analysis.view.configuration;
    match endpoint {
        Endpoint::FlowSchema(name) => {
            let found = configuration.schemas.iter().find(|schema| schema.name() == name).copied();
            found.ok_or_else(|| format!("{which}: there is no flow schema {name:?}"))
        }
        Endpoint::Request(request) => {
            let info = request
                .info(analysis.assumptions.preset)
                .map_err(|problem| format!("{which}: the request {problem}"))?;
            let attributes = Attributes { user: &request.user(), request: &info };
            configuration.schema_of(attributes).ok_or_else(|| format!("{which}: no flow schema matches the request"))
        }
    }
}

/// Whether calls lead from one level to another, over any number of them.
fn leads_to(edges: &[(&str, &str)], from: &str, to: &str) -> bool {
    let mut reached = vec![from];
    let mut next = 0;
    while let Some(level) = reached.get(next).copied() {
        if level == to {
            return true;
        }
        for (_, callee) in edges.iter().filter(|(caller, _)| *caller == level) {
            if !reached.contains(callee) {
                reached.push(callee);
            }
        }
        next += 1;
    }
    false
}
