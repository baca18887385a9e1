//! All settings that are paths.

use std::path::PathBuf;

use super::Config;

/// The files that the gateway makes itself.
pub(super) const MADE: [&str; 2] = ["log.accessFile", "takeoverSocket"];

/// Shows every path that is set, with the name of its setting.
pub(super) fn visit(config: &mut Config, see: &mut dyn FnMut(&str, &mut PathBuf)) {
    for (index, listen) in config.listen.iter_mut().enumerate() {
        if let Some(tls) = &mut listen.tls {
            see(&format!("listen[{index}].tls.certificate"), &mut tls.certificate);
            see(&format!("listen[{index}].tls.key"), &mut tls.key);
            if let Some(path) = &mut tls.client_ca {
                see(&format!("listen[{index}].tls.clientCa"), path);
            }
        }
    }
    if let Some(path) = &mut config.admin.token_file {
        see("admin.tokenFile", path);
    }
    for (index, upstream) in config.upstreams.iter_mut().enumerate() {
        let tls = &mut upstream.tls;
        for (name, path) in [("ca", &mut tls.ca), ("certificate", &mut tls.certificate), ("key", &mut tls.key)] {
            if let Some(path) = path {
                see(&format!("upstreams[{index}].tls.{name}"), path);
            }
        }
    }
    if let Some(path) = &mut config.objects {
        see("objects", path);
    }
    if let Some(path) = &mut config.log.access_file {
        see("log.accessFile", path);
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
