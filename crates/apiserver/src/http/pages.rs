//! Pages about the server itself: its paths, metrics and dumps, for authorized users.

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::debug::RequestColumns;
use http::{HeaderValue, StatusCode};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::json;

use super::call::Call;
use crate::failure::Failure;
use crate::response_data::ResponseData;
use crate::route::Dump;

/// The paths that `/` lists, in order.
const PATHS: [&str; 18] = [
    "/api",
    "/api/v1",
    "/apis",
    "/apis/flowcontrol.apiserver.k8s.io",
    "/apis/flowcontrol.apiserver.k8s.io/v1",
    "/apis/flowcontrol.apiserver.k8s.io/v1beta1",
    "/apis/flowcontrol.apiserver.k8s.io/v1beta2",
    "/apis/flowcontrol.apiserver.k8s.io/v1beta3",
    "/debug/api_priority_and_fairness/dump_priority_levels",
    "/debug/api_priority_and_fairness/dump_queues",
    "/debug/api_priority_and_fairness/dump_requests",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
];

const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// The paths of the server.
pub(super) fn index(call: Call<'_>) -> Result<ResponseData, Failure> {
    let line = Bytes::from(json!({ "paths": PATHS }).to_string());
    Ok(ResponseData::document(StatusCode::OK, line, call.asked.document()?))
}

/// The metrics of the API's own flow control.
pub(super) fn metrics(flow: &FlowControl) -> Result<ResponseData, Failure> {
    let mut registry = Registry::default();
    flow.register_metrics(&mut registry);
    let mut page = String::new();
    text::encode(&mut page, &registry).map_err(|_| Failure::plain("cannot write the metrics"))?;
    Ok(ResponseData::new(StatusCode::OK, OPEN_METRICS, page.into()))
}

/// What the API's own flow control is doing (section 9.2 of the specification of the engine).
pub(super) fn dump(dump: Dump, call: Call<'_>) -> ResponseData {
    let flow = &call.shared.flow;
    let page = match dump {
        Dump::PriorityLevels => flow.dump_priority_levels(),
        Dump::Queues => flow.dump_queues(),
        Dump::Requests => {
            let has_details = call.query.first("includeRequestDetails").is_some_and(|value| !value.is_empty());
            flow.dump_requests(if has_details { RequestColumns::WithDetails } else { RequestColumns::Basic })
        }
    };
    ResponseData::text(StatusCode::OK, page)
}
