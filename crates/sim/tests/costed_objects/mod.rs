//! The objects of a service whose costs or rates count: one level for all requests.

use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_engine::controller::Objects;

/// The flow schema has these annotations and this distinguisher (`null`: all requests are one flow), and the level this `queuing`.
pub(crate) fn costed_objects(annotations: &str, distinguisher: &str, queuing: &str) -> Objects {
    let text = format!(
        "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: api, annotations: {{evenkeel.dev/queuing: per-flow}}}}
spec: {{type: Limited, limited: {{nominalConcurrencyShares: 100, limitResponse: {{type: Queue, queuing: {queuing}}}}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: users, annotations: {{{annotations}}}}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {{name: api}}
  distinguisherMethod: {distinguisher}
  rules:
  - subjects: [{{kind: Group, group: {{name: '*'}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
    );
    let manifest = Manifest::read("objects", text.as_bytes(), Strictness::Strict).expect("objects");
    manifest.entries.into_iter().map(|entry| entry.object).collect()
}
