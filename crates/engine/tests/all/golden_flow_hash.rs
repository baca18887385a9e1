//! The hashes of flows that Kubernetes computed.

use evenkeel_engine::{FlowHasher, flow_hash};
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    flow_schema: String,
    distinguisher: String,
    hash: String,
}

#[test]
fn fm_16_flow_hash() {
    let recorded = golden_rows::<Row>(Golden::FlowHash);
    for (file, rows) in &recorded {
        for (row, Row { flow_schema, distinguisher, hash }) in rows.iter().enumerate() {
            let mut comparison = SideBySide::default();
            comparison.same("at once", hash, &flow_hash(flow_schema, distinguisher).to_string());
            comparison.same("in two parts", hash, &FlowHasher::new(flow_schema).hash(distinguisher).to_string());
            let place = format_args!("{}, row {}", file.display(), row + 1);
            comparison.assert(format_args!("{place}: schema {flow_schema:?}, distinguisher {distinguisher:?}"));
        }
    }
    compared("flow hashes", recorded.iter().map(|(_, rows)| rows.len()).sum());
}
