//! Applies the routes of a gateway's settings to the requests of a workload.

use anyhow::Result;
use evenkeel::RequestInfo;
use evenkeel_gateway::RequestRules;
use evenkeel_sim::workload::{FlowGroup, Workload};
use http::{Method, Uri};

use crate::tool_settings::{ToolSettings, nanos};

/// Takes from routes what requests for paths ask for, how many seats they take and how long they wait, where the workload does
/// not say.
pub(super) fn apply(workload: &mut Workload, settings: &ToolSettings) -> Result<()> {
    let rules = settings.request_rules()?;
    for group in &mut workload.flows {
        if !group.caller.request.is_resource_request {
            route(group, &rules);
        }
        group.patience.get_or_insert(settings.wait_limit());
    }
    Ok(())
}

fn route(group: &mut FlowGroup, rules: &RequestRules) {
    let request = &group.caller.request;
    let method = Method::from_bytes(request.verb.to_uppercase().as_bytes());
    let (Ok(method), Ok(uri)) = (method, request.path.parse::<Uri>()) else { return };
    let Some(routed) = rules.routed(method, uri) else { return };
    group.seats = group.seats.or(Some(routed.seats));
    group.patience = group.patience.or(routed.wait_limit.map(nanos));
    let head = std::mem::take(&mut group.caller.request.head);
    group.caller.request = RequestInfo { head, ..routed.info };
}
