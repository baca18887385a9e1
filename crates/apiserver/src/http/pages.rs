//! Pages about the server itself: its paths, metrics and dumps, for authorized users.

use bytes::Bytes;
use evenkeel::debug::RequestColumns;
use evenkeel::metrics::{MetricsPage, register_process};
use http::{HeaderValue, StatusCode};
use prometheus_client::registry::Registry;
use serde_json::json;

use super::call::Call;
use crate::failure::Failure;
use crate::response_data::ResponseData;
use crate::route::Dump;

/// The paths that `/` lists, in order.
const PATHS: [&str; 23] = [
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
    "/healthz/ping",
    "/healthz/store",
    "/livez",
    "/livez/ping",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/readyz/ping",
    "/readyz/store",
    "/version",
];

/// The paths of the server.
pub(super) fn index(call: Call<'_>) -> Result<ResponseData, Failure> {
    let line = Bytes::from(json!({ "paths": PATHS }).to_string());
    Ok(ResponseData::document(StatusCode::OK, line, call.asked.document()?))
}

/// The metrics of the API and its own flow control, of the process, and of whoever runs the API.
pub(super) fn metrics(call: Call<'_>) -> Result<ResponseData, Failure> {
    let mut registry = Registry::default();
    let registered = call.shared.flow.register_metrics(&mut registry);
    registered.map_err(|_| Failure::plain("cannot write the metrics"))?;
    registry.register_collector(Box::new(call.shared.metrics()));
    call.shared.other_metrics.register(&mut registry);
    register_process(&mut registry);
    let page = MetricsPage::new(&registry, &call.parts.headers);
    let page = page.map_err(|_| Failure::plain("cannot write the metrics"))?;
    Ok(ResponseData::new(StatusCode::OK, HeaderValue::from_static(page.content_type), page.text.into()))
}

/// The state of the API's own flow control (section 9.2 of the specification of the engine).
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
