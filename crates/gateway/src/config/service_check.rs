//! Whether services make sense: names, hosts and paths, and that no two match the same requests.

use std::collections::BTreeMap;

use evenkeel_engine::digest::normal_path;
use http::uri::Authority;

use evenkeel_engine::auto_limit::Concurrency;

use super::service::DEFAULT_SERVICE;
use super::{Config, Problem, ServiceConfig};

/// How many services there may be, and how long their names.
const SERVICES_MAX: usize = 256;
const NAME_MAX: usize = 63;

/// Everything that is wrong with the services but their upstreams.
pub(super) fn check(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |field: String, message: String| problems.push(Problem::new(field, message));
    if config.services.len() > SERVICES_MAX {
        add("services".to_owned(), format!("there are more than {SERVICES_MAX} services"));
    }
    let mut taken: BTreeMap<(String, String), &str> = BTreeMap::new();
    for (name, service) in &config.services {
        let field = format!("services.{name}");
        if let Some(message) = name_fault(name) {
            add(field.clone(), message);
        }
        if service.upstream.is_empty() && config.ext_proc.is_none() {
            let message = "has no upstream; name one, as `upstream: http://127.0.0.1:9000`, or let Envoy forward its requests \
                           (`extProc`)";
            add(field.clone(), message.to_owned());
        }
        if service.concurrency == Some(Concurrency::Fixed(0)) {
            add(format!("{field}.concurrency"), "must be at least 1".to_owned());
        }
        for host in &service.host {
            if let Some(message) = host_fault(host) {
                add(format!("{field}.host"), message);
            }
        }
        for path in &service.path {
            if let Some(message) = path_fault(path) {
                add(format!("{field}.path"), message);
            }
        }
        if let Some(replacement) = &service.replace_path {
            if let Some(message) = path_fault(replacement) {
                add(format!("{field}.replacePath"), message);
            } else if service.path.is_empty() {
                let message = "there is no `path` that it could replace; set one, or remove replacePath".to_owned();
                add(format!("{field}.replacePath"), message);
            }
        }
        if service.host.is_empty() && service.path.is_empty() && !config.upstreams.is_empty() {
            let message = "has neither host nor path, so it gets all requests that no other service matches, and so do \
                           `upstreams`; set one of them, or remove `upstreams`";
            add(field.clone(), message.to_owned());
        }
        for (host, path) in matched(service) {
            let shown = shown(&host, &path);
            if let Some(other) = taken.insert((host, path), name) {
                let message = if other == name {
                    format!("{shown} occurs twice; remove one")
                } else {
                    format!(
                        "{shown} is also that of services.{other}; each request needs one service: change one of them"
                    )
                };
                add(field.clone(), message);
            }
        }
    }
    let files = config.services.keys().filter(|name| config.concurrency_of(name).auto().is_some());
    let files = files.filter_map(|name| Some((config.limit_of(name).state_file?, name)));
    let own = config.concurrency().auto().and(config.limit.state_file.clone());
    let mut file_of: BTreeMap<_, _> = own.map(|file| (file, "limit.stateFile".to_owned())).into_iter().collect();
    for (file, name) in files {
        let field = format!("services.{name}.limit.stateFile");
        let shown = file.display().to_string();
        if let Some(other) = file_of.insert(file, field.clone()) {
            problems.push(Problem::new(field, format!("{shown} is also that of {other}; name another file")));
        }
    }
    problems
}

/// The hosts and paths of a service, as they are compared.
fn matched(service: &ServiceConfig) -> impl Iterator<Item = (String, String)> {
    let any = |all: &[String]| if all.is_empty() { vec![String::new()] } else { all.to_vec() };
    let (hosts, paths) = (any(&service.host), any(&service.path));
    hosts.into_iter().flat_map(move |host| {
        let with_host = move |path: String| (host.to_ascii_lowercase(), path.trim_end_matches('/').to_owned());
        paths.clone().into_iter().map(with_host)
    })
}

fn shown(host: &str, path: &str) -> String {
    match (host, path) {
        ("", "") => "what it matches (every request)".to_owned(),
        ("", path) => format!("the path {path}"),
        (host, "") => format!("the host {host}"),
        (host, path) => format!("the host {host} with the path {path}"),
    }
}

fn name_fault(name: &str) -> Option<String> {
    let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if name == DEFAULT_SERVICE {
        return Some(format!("{DEFAULT_SERVICE:?} is what `upstreams` are called; choose another name"));
    }
    let is_name = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_good);
    (!is_name).then(|| {
        format!(
            "{name:?} cannot be the name of a service; use at most {NAME_MAX} lower case letters, digits, `-` and `_`"
        )
    })
}

fn host_fault(host: &str) -> Option<String> {
    let fault =
        |why: &str| Some(format!("{host:?} is not a host: {why}; write it as `shop.example.com` or `*.example.com`"));
    let bare = host.strip_prefix("*.").unwrap_or(host);
    match bare.parse::<Authority>() {
        _ if host.contains("://") || host.contains('/') => fault("it has a scheme or a path"),
        _ if bare.contains('*') => fault("`*` may only be its first part"),
        Ok(authority) if authority.host() == bare => None,
        Ok(authority) if authority.port_u16().is_some() => fault("it has a port, which hosts are matched without"),
        _ => fault("it cannot be in a URL"),
    }
}

fn path_fault(path: &str) -> Option<String> {
    let fault = |why: &str| Some(format!("{path:?} is not a path: {why}; write it as `/api`"));
    if !path.starts_with('/') {
        return fault("it does not begin with a slash");
    }
    if path.contains('*') {
        return fault("it has a `*`; all paths below it are meant anyway");
    }
    if path.contains(['?', '#', ';']) {
        return fault("it has more than a path");
    }
    match normal_path(path) {
        Ok(normal) if normal.path == path && !normal.has_encoded_slash => None,
        _ => fault("it is not in its normal form"),
    }
}
