//! `deprecated-version`: objects in old versions.

use evenkeel_api::Version;

use crate::analysis::{Analysis, Output};
use crate::finding::Finding;
use crate::rule::Rule;

pub(crate) fn run(analysis: &Analysis<'_>, output: &mut Output) {
    for located in analysis.checked.objects {
        if let Some(message) = located.version.deprecation(located.object.kind()) {
            let help = format!("use {}: `evenkeel convert --to v1` rewrites the file", Version::V1.api_version());
            let finding = Finding::new(Rule::DeprecatedVersion, located, "apiVersion", message, help);
            output.report.findings.push(finding);
        }
    }
}
