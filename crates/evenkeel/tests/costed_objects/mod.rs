//! The objects of a service whose costs or rates count: one level for all requests.

/// The annotation by which the level has a queue for each flow.
pub(crate) const PER_FLOW: &str = "evenkeel.dev/queuing: per-flow";

/// The level has the annotations `of_level`, and the flow schema, whose flows are users, those `of_schema`.
pub(crate) fn costed_objects(of_level: &str, of_schema: &str) -> String {
    format!(
        "
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: api, annotations: {{{of_level}}}}}
spec: {{type: Limited, limited: {{nominalConcurrencyShares: 1000, limitResponse: {{type: Queue, queuing: {{}}}}}}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {{name: users, annotations: {{{of_schema}}}}}
spec:
  matchingPrecedence: 100
  priorityLevelConfiguration: {{name: api}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: Group, group: {{name: '*'}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['*']}}]
"
    )
}
