//! The manifests of the tests.

/// A flow schema that sends one user to a level.
pub(super) fn schema(name: &str, level: &str, precedence: u32) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: {name}
spec:
  priorityLevelConfiguration:
    name: {level}
  matchingPrecedence: {precedence}
  distinguisherMethod:
    type: ByUser
  rules:
  - subjects: [{{kind: User, user: {{name: alice}}}}]
    nonResourceRules: [{{verbs: ['*'], nonResourceURLs: ['/reports/*']}}]
"
    )
}

/// A priority level with that many shares.
pub(super) fn level(name: &str, shares: u32) -> String {
    format!(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: {name}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: {shares}
    limitResponse: {{type: Reject}}
"
    )
}
