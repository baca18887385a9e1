//! Findings as SARIF 2.1.0, the format of code scanning.

use evenkeel_check::{Finding, Report, Rule, Severity};
use serde_json::{Value, json};

use crate::percent_encoding::encoded;

pub(super) fn log(report: &Report) -> Value {
    let rules: Vec<Value> = Rule::ALL.iter().map(|rule| describe(*rule)).collect();
    let results: Vec<Value> = report.findings.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "evenkeel check",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

fn describe(rule: Rule) -> Value {
    json!({
        "id": rule.name(),
        "shortDescription": {"text": rule.summary()},
        "help": {"text": rule.page(), "markdown": rule.page()},
        "helpUri": rule.address(),
        "defaultConfiguration": {"level": level(rule.severity())},
    })
}

fn result(finding: &Finding) -> Value {
    let example = finding.witness.as_ref().map_or(String::new(), |witness| {
        format!(" For example: {}, which goes to {:?}.", witness.request, witness.flow_schema)
    });
    let name = format!("{}/{}", finding.object.kind, finding.object.name);
    let mut location = json!({"logicalLocations": [{"fullyQualifiedName": name, "kind": "object"}]});
    // Standard input has no address.
    if let Some(at) = finding.place.at.filter(|_| !finding.place.file.starts_with('<')) {
        location["physicalLocation"] = json!({
            "artifactLocation": {"uri": encoded(&finding.place.file, b"/")},
            "region": {"startLine": at.line, "startColumn": at.column},
        });
    }
    json!({
        "ruleId": finding.rule.name(),
        "ruleIndex": Rule::ALL.iter().position(|rule| *rule == finding.rule),
        "level": level(finding.severity),
        "message": {"text": format!("{}. {}.{example}", finding.message, finding.help)},
        "locations": [location],
    })
}
