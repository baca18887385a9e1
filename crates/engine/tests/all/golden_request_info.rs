//! Every recorded digest of a request (DG-3 to DG-20).

use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, FullRequestInfo, Kubernetes};
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    method: String,
    url: String,
    error: bool,
    info: Info,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Info {
    is_resource_request: bool,
    path: String,
    verb: String,
    api_prefix: String,
    api_group: String,
    api_version: String,
    namespace: String,
    resource: String,
    subresource: String,
    name: String,
    parts: Vec<String>,
    field_selector: String,
    label_selector: String,
}

impl From<FullRequestInfo<'_>> for Info {
    fn from(full: FullRequestInfo<'_>) -> Self {
        let FullRequestInfo { request, parts, field_selector, label_selector, .. } = full;
        let parts = if request.is_resource_request && !parts.is_empty() {
            parts.split('/').map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        Self {
            is_resource_request: request.is_resource_request,
            path: request.path.into(),
            verb: request.verb.into(),
            api_prefix: request.api_prefix.into(),
            api_group: request.api_group.into(),
            api_version: request.api_version.into(),
            namespace: request.namespace.into(),
            resource: request.resource.into(),
            subresource: request.subresource.into(),
            name: request.name.into(),
            parts,
            field_selector: field_selector.into(),
            label_selector: label_selector.into(),
        }
    }
}

#[test]
fn every_recorded_request_is_digested_in_the_same_way() {
    let recorded = golden_rows::<Row>(Golden::RequestInfo);
    let kubernetes = Kubernetes::default();
    let mut mismatches = Vec::new();
    for (file, rows) in &recorded {
        for (index, row) in rows.iter().enumerate() {
            let place = format!("{}, row {}: {} {}", file.display(), index + 1, row.method, row.url);
            let full = kubernetes.digest_fully(&row.method, &row.url);
            let plain = kubernetes.digest(&row.method, &row.url);
            assert_eq!(plain, full.clone().map(|full| full.request), "{place}: both ways to digest agree");
            let (error, info) = match full {
                Ok(full) => (false, Info::from(full)),
                Err(DigestError::NoResource { known, .. }) => (true, known_by_then(*known)),
                Err(error) => panic!("{place}: {error}"),
            };
            let comparison = row.compare(error, &info);
            if !comparison.agrees() {
                mismatches.push(format!("{place}\n{comparison}"));
            }
        }
    }
    assert!(mismatches.is_empty(), "{} rows differ:\n{}", mismatches.len(), mismatches.join("\n"));
    compared("request digests", recorded.iter().map(|(_, rows)| rows.len()).sum());
}

impl Row {
    fn compare(&self, error: bool, actual: &Info) -> SideBySide {
        let expected = &self.info;
        let mut comparison = SideBySide::default();
        comparison.same("error", &self.error, &error);
        comparison.same("is resource request", &expected.is_resource_request, &actual.is_resource_request);
        for (name, expected, actual) in [
            ("path", &expected.path, &actual.path),
            ("verb", &expected.verb, &actual.verb),
            ("api prefix", &expected.api_prefix, &actual.api_prefix),
            ("api group", &expected.api_group, &actual.api_group),
            ("api version", &expected.api_version, &actual.api_version),
            ("namespace", &expected.namespace, &actual.namespace),
            ("resource", &expected.resource, &actual.resource),
            ("subresource", &expected.subresource, &actual.subresource),
            ("name", &expected.name, &actual.name),
            ("field selector", &expected.field_selector, &actual.field_selector),
            ("label selector", &expected.label_selector, &actual.label_selector),
        ] {
            comparison.same(name, expected, actual);
        }
        comparison.same("parts", &expected.parts, &actual.parts);
        comparison
    }
}

fn known_by_then(request: RequestInfo<'static>) -> Info {
    let mut full = FullRequestInfo::default();
    full.request = request;
    full.into()
}
