//! Findings as commands of GitHub Actions, which shows them beside the lines of a pull request.

use evenkeel_check::{Finding, Report, Severity};

use crate::terminal::printable;

pub(super) fn commands(report: &Report) -> String {
    report.findings.iter().map(command).collect()
}

fn command(finding: &Finding) -> String {
    let command = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let place = match finding.place.at {
        Some(at) => format!("file={},line={},col={},", property(&finding.place.file), at.line, at.column),
        None => String::new(),
    };
    let example = finding.witness.as_ref().map_or(String::new(), |witness| {
        format!("\nFor example: {}, which goes to {:?}", witness.request, witness.flow_schema)
    });
    let text = format!(
        "{} {:?}: {}{example}\nHelp: {}",
        finding.object.kind, finding.object.name, finding.message, finding.help
    );
    format!("::{command} {place}title={}::{}\n", property(finding.rule.name()), escaped(&text))
}

/// A text as the message of a command.
pub(super) fn escaped(text: &str) -> String {
    printable(&text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")).into_owned()
}

/// A text as a property of a command.
fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}
