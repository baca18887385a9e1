//! The hashes of flows that Kubernetes computed.

use evenkeel_engine::{FlowHasher, flow_hash};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    flow_schema: String,
    distinguisher: String,
    hash: String,
}

#[test]
fn fm_16_flow_hash() {
    let Some(golden) = evenkeel_recorded::golden() else { return };
    let rows: Vec<Row> = evenkeel_recorded::rows(&golden.join("engine/flow_hash.jsonl"));
    for Row { flow_schema, distinguisher, hash } in &rows {
        let what = format!("schema {flow_schema:?}, distinguisher {distinguisher:?}");
        assert_eq!(flow_hash(flow_schema, distinguisher).to_string(), *hash, "{what}");
        assert_eq!(FlowHasher::new(flow_schema).hash(distinguisher).to_string(), *hash, "{what}");
    }
    println!("{} hashes", rows.len());
}
