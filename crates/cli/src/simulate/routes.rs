//! What the routes of a gateway's settings make of the requests of a workload.

use anyhow::Result;
use evenkeel::{FlowControl, RequestInfo};
use evenkeel_api::Preset;
use evenkeel_gateway::{Config, RequestRules};
use evenkeel_sim::workload::Workload;
use http::{Method, Uri};

use crate::exit::WrongUsage;

/// Lets routes say what requests for paths ask for and how many seats they take, where the workload does not say.
pub(super) fn apply(workload: &mut Workload, config: &Config) -> Result<()> {
    if config.requests.routes.is_empty() || config.preset != Preset::Plain {
        return Ok(());
    }
    let rules = RequestRules::new(&config.requests, config.preset).map_err(|error| WrongUsage(error.to_string()))?;
    let flow = FlowControl::builder().preset(config.preset).drive_by_hand().build();
    for group in workload.flows.iter_mut().filter(|group| !group.caller.request.is_resource_request) {
        let request = &group.caller.request;
        let method = Method::from_bytes(request.verb.to_uppercase().as_bytes());
        let (Ok(method), Ok(uri)) = (method, request.path.parse::<Uri>()) else { continue };
        let Ok(explained) = rules.explain(&flow, &group.caller.user, method, uri) else { continue };
        group.seats = group.seats.or(Some(explained.seats.initial));
        let asked = explained.request;
        if asked.is_resource_request {
            let head = std::mem::take(&mut group.caller.request.head);
            group.caller.request = RequestInfo {
                is_resource_request: true,
                path: asked.path.into(),
                verb: asked.verb.into(),
                api_group: asked.api_group.into(),
                api_version: asked.api_version.into(),
                namespace: asked.namespace.into(),
                resource: asked.resource.into(),
                subresource: asked.subresource.into(),
                name: asked.name.into(),
                head,
                ..RequestInfo::default()
            };
        }
    }
    Ok(())
}
