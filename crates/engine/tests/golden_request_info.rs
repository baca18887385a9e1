//! Every recorded digest of a request (DG-3 to DG-20).

use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::{DigestError, FullRequestInfo, Kubernetes};
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    method: String,
    url: String,
    error: bool,
    info: Info,
}

#[derive(Debug, Deserialize, PartialEq)]
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
        let FullRequestInfo { request, parts, field_selector, label_selector } = full;
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
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/request_info.jsonl");
    let kubernetes = Kubernetes::default();
    let mut mismatches = Vec::new();
    let rows: Vec<Row> = rows(&file);
    for (index, row) in rows.iter().enumerate() {
        let full = kubernetes.digest_fully(&row.method, &row.url);
        let plain = kubernetes.digest(&row.method, &row.url);
        assert_eq!(plain, full.clone().map(|full| full.request), "both ways to digest agree on {}", row.url);
        let (error, info) = match full {
            Ok(full) => (false, Info::from(full)),
            Err(DigestError::NoResource { known, .. }) => (true, known_by_then(*known)),
            Err(DigestError::Escape { position }) => panic!("{}: escape at {position}", row.url),
        };
        if (error, &info) != (row.error, &row.info) {
            mismatches.push(format!(
                "{}:{}: {} {}\n  recorded error={} {:?}\n  actual   error={error} {info:?}",
                file.display(),
                index + 1,
                row.method,
                row.url,
                row.error,
                row.info,
            ));
        }
    }
    assert!(mismatches.is_empty(), "{} of {} rows:\n{}", mismatches.len(), rows.len(), mismatches.join("\n"));
    println!("{} rows compared", rows.len());
}

fn known_by_then(request: RequestInfo<'static>) -> Info {
    FullRequestInfo { request, ..FullRequestInfo::default() }.into()
}
