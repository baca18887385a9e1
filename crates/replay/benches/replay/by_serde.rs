//! An audit event read by `serde_json` with borrowed fields, to compare with the scanner of this crate.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// The fields that a replay needs. `user` is not looked into here, as the scanner only finds where it ends: who sent a request is cached by
/// its text.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only reading is measured")]
pub(crate) struct AuditEvent<'a> {
    #[serde(borrow, rename = "auditID")]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stage: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "requestURI")]
    target: Option<Cow<'a, str>>,
    #[serde(borrow)]
    verb: Option<Cow<'a, str>>,
    user: Option<IgnoredAny>,
    impersonated_user: Option<IgnoredAny>,
    #[serde(borrow)]
    request_received_timestamp: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stage_timestamp: Option<Cow<'a, str>>,
    response_status: Option<ResponseStatus>,
    #[serde(borrow)]
    annotations: Option<Annotations<'a>>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only reading is measured")]
struct ResponseStatus {
    code: Option<u16>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "only reading is measured")]
struct Annotations<'a> {
    #[serde(borrow, rename = "apiserver.latency.k8s.io/apf-queue-wait")]
    wait: Option<Cow<'a, str>>,
    #[serde(rename = "authorization.k8s.io/decision")]
    decision: Option<IgnoredAny>,
}

// === impl AuditEvent ===

impl<'a> AuditEvent<'a> {
    /// Reads a line.
    pub(crate) fn read(line: &'a [u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }
}
