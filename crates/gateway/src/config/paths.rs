//! All settings that are paths.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Config, ServiceConfig, UpstreamConfig};

/// Whether a setting names a file that the gateway makes itself.
pub(super) fn is_made(field: &str) -> bool {
    matches!(field, "log.accessFile" | "takeoverSocket" | "fleet.lockFile") || field.ends_with("limit.stateFile")
}

/// Shows every path that is set, with the name of its setting.
pub(super) fn visit(config: &mut Config, see: &mut dyn FnMut(&str, &mut PathBuf)) {
    let listeners = config.listen.iter_mut().enumerate();
    let listeners = listeners.map(|(index, listen)| (format!("listen[{index}].tls"), &mut listen.tls));
    let for_envoy = config.ext_proc.iter_mut().map(|ext_proc| ("extProc.tls".to_owned(), &mut ext_proc.tls));
    for (field, tls) in listeners.chain(for_envoy) {
        if let Some(tls) = tls {
            see(&format!("{field}.certificate"), &mut tls.certificate);
            see(&format!("{field}.key"), &mut tls.key);
            if let Some(path) = &mut tls.client_ca {
                see(&format!("{field}.clientCa"), path);
            }
        }
    }
    if let Some(path) = &mut config.admin.token_file {
        see("admin.tokenFile", path);
    }
    for (field, upstream) in upstreams_of(&mut config.upstreams, &mut config.services) {
        let tls = &mut upstream.tls;
        for (name, path) in [("ca", &mut tls.ca), ("certificate", &mut tls.certificate), ("key", &mut tls.key)] {
            if let Some(path) = path {
                see(&format!("{field}.tls.{name}"), path);
            }
        }
    }
    if let Some(path) = &mut config.objects {
        see("objects", path);
    }
    if let Some(path) = config.shadow.as_mut().and_then(|shadow| shadow.objects.as_mut()) {
        see("shadow.objects", path);
    }
    if let Some(path) = &mut config.log.access_file {
        see("log.accessFile", path);
    }
    if let Some(path) = &mut config.limit.state_file {
        see("limit.stateFile", path);
    }
    for (name, service) in &mut config.services {
        if let Some(path) = &mut service.limit.state_file {
            see(&format!("services.{name}.limit.stateFile"), path);
        }
    }
    if let Some(fleet) = &mut config.fleet {
        fleet.visit_paths(see);
    }
    if let Some(path) = &mut config.takeover_socket {
        see("takeoverSocket", path);
    }
    let tracing = &mut config.tracing;
    let tls = &mut tracing.tls;
    for (name, path) in [
        ("headersFile", &mut tracing.headers_file),
        ("tls.ca", &mut tls.ca),
        ("tls.certificate", &mut tls.certificate),
        ("tls.key", &mut tls.key),
    ] {
        if let Some(path) = path {
            see(&format!("tracing.{name}"), path);
        }
    }
    config.identity.visit_paths(see);
}

/// All upstreams, with the names of their settings.
fn upstreams_of<'a>(
    upstreams: &'a mut [UpstreamConfig],
    services: &'a mut BTreeMap<String, ServiceConfig>,
) -> impl Iterator<Item = (String, &'a mut UpstreamConfig)> {
    let own = upstreams.iter_mut().enumerate().map(|(index, upstream)| (format!("upstreams[{index}]"), upstream));
    let of_services = services.iter_mut().flat_map(|(name, service)| {
        let field = move |index| format!("services.{name}.upstream[{index}]");
        service.upstream.iter_mut().enumerate().map(move |(index, upstream)| (field(index), upstream))
    });
    own.chain(of_services)
}
