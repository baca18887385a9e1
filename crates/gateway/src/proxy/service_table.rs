//! `ServiceTable`: which service a request belongs to, by its host and its path.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use crate::config::{Config, ServiceConfig};

/// The services of the settings, for requests to be looked up in.
#[derive(Debug)]
pub(crate) struct ServiceTable {
    /// Services by host, in lower case.
    exact: HashMap<Box<str>, Vec<PathEntry>>,
    /// Services by the end of hosts, as `.example.com`: the longest first.
    below: Vec<(Box<str>, Vec<PathEntry>)>,
    any: Vec<PathEntry>,
}

/// The paths of one service.
#[derive(Debug)]
struct PathEntry {
    /// The prefix of the path, without a slash at the end. Of one host, the longest is first.
    path: Box<str>,
    service: ServiceMatch,
}

/// A service that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServiceMatch {
    /// The place of the service in the settings.
    pub(crate) index: usize,
    /// How long the path is that it was found by.
    pub(crate) path_len: usize,
}

/// Why there is no service for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoService {
    /// No service has this host.
    Host,
    /// A service has this host, but not with this path.
    Path,
}

// === impl Config ===

impl Config {
    /// The service that a request with this host, with or without a port, and this path in its normal form belongs to. None if it belongs to
    /// no service: then it goes to `upstreams`, if the gateway [has some](Config::has_default_pool).
    pub fn service_of(&self, host: Option<&str>, path: &str) -> Option<&str> {
        let found = ServiceTable::new(&self.services).find(host, path).ok()?;
        self.services.keys().nth(found.index).map(String::as_str)
    }
}

// === impl ServiceTable ===

impl ServiceTable {
    /// The services in the order of the settings, which have been checked.
    pub(crate) fn new(services: &BTreeMap<String, ServiceConfig>) -> Self {
        let (mut exact, mut below, mut any) =
            (HashMap::<Box<str>, Vec<PathEntry>>::new(), HashMap::<Box<str>, Vec<PathEntry>>::new(), Vec::new());
        for (index, service) in services.values().enumerate() {
            let root = ["/".to_owned()];
            let paths = if service.path.is_empty() { &root[..] } else { &service.path };
            let entries = || {
                paths.iter().map(|path| {
                    let path = path.trim_end_matches('/');
                    PathEntry { path: path.into(), service: ServiceMatch { index, path_len: path.len() } }
                })
            };
            if service.host.is_empty() {
                any.extend(entries());
            }
            for host in &service.host {
                let host = host.to_ascii_lowercase();
                match host.strip_prefix('*') {
                    Some(end) => below.entry(end.into()).or_default().extend(entries()),
                    None => exact.entry(host.into()).or_default().extend(entries()),
                }
            }
        }
        let mut below: Vec<_> = below.into_iter().collect();
        below.sort_by_key(|(end, _)| std::cmp::Reverse(end.len()));
        let all = exact.values_mut().chain(below.iter_mut().map(|(_, entries)| entries)).chain([&mut any]);
        for entries in all {
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.path.len()));
        }
        Self { exact, below, any }
    }

    /// The service for a request with this host, with or without a port, and this path in its normal form.
    pub(crate) fn find(&self, host: Option<&str>, path: &str) -> Result<ServiceMatch, NoService> {
        let host = host.map(without_port).unwrap_or_default();
        let host = host.strip_suffix('.').unwrap_or(host);
        let host: Cow<'_, str> = if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
            host.to_ascii_lowercase().into()
        } else {
            host.into()
        };
        let is_below = |end: &str| host.len() > end.len() && host.ends_with(end);
        let below = self.below.iter().filter(|(end, _)| is_below(end)).map(|(_, entries)| entries);
        let mut no_service = NoService::Host;
        for entries in self.exact.get(&*host).into_iter().chain(below).chain([&self.any]) {
            if let Some(entry) = entries.iter().find(|entry| is_at_or_below(path, &entry.path)) {
                return Ok(entry.service);
            }
            if !entries.is_empty() {
                no_service = NoService::Path;
            }
        }
        Err(no_service)
    }
}

/// A host as the header has it, without its port.
fn without_port(host: &str) -> &str {
    let is_port = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        // The last colon of an IPv6 address is inside of its brackets.
        Some((name, rest)) if is_port(rest) && (!name.contains(':') || name.ends_with(']')) => name,
        _ => host,
    }
}

/// Whether a path is this one, or a part of it ends there.
fn is_at_or_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A path with another beginning, for a service that replaces the prefix by which it was found. `None` if the path does not begin
/// with it as it is written.
pub(crate) fn replaced(path: &str, prefix: &str, replacement: &str) -> Option<String> {
    let rest = path.strip_prefix(prefix).filter(|_| is_at_or_below(path, prefix))?;
    let mut new = replacement.trim_end_matches('/').to_owned();
    new.push_str(rest);
    if new.is_empty() {
        new.push('/');
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(yaml: &[(&str, &[&str], &[&str])]) -> (ServiceTable, Vec<String>) {
        let owned = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect();
        let services: BTreeMap<String, ServiceConfig> = yaml
            .iter()
            .map(|(name, host, path)| {
                let service = ServiceConfig { host: owned(host), path: owned(path), ..ServiceConfig::default() };
                ((*name).to_owned(), service)
            })
            .collect();
        (ServiceTable::new(&services), services.into_keys().collect())
    }

    #[test]
    fn the_most_specific_service_gets_a_request() {
        let (table, names) = table(&[
            ("api", &["api.example.com"], &["/v2"]),
            ("api-admin", &["api.example.com"], &["/v2/admin"]),
            ("docs", &[], &["/docs"]),
            ("shop", &["Shop.example.com", "www.example.com"], &[]),
            ("tenants", &["*.example.com"], &[]),
            ("inner", &["*.inner.example.com"], &[]),
        ]);
        let found = |host, path| table.find(host, path).map(|found| &*names[found.index]);
        for (host, path, expected) in [
            ("api.example.com", "/v2", "api"),
            ("api.example.com", "/v2/", "api"),
            ("API.Example.com:8443", "/v2/x", "api"),
            ("api.example.com.", "/v2/administrator", "api"),
            ("api.example.com", "/v2/admin", "api-admin"),
            ("api.example.com", "/v2/admin/x", "api-admin"),
            // The host matches, but not the path: the next best host counts.
            ("api.example.com", "/v20", "tenants"),
            ("shop.example.com", "/docs", "shop"),
            ("www.example.com", "/", "shop"),
            ("a.example.com", "/", "tenants"),
            ("a.b.example.com", "/docs", "tenants"),
            ("x.inner.example.com", "/", "inner"),
            ("elsewhere", "/docs/x", "docs"),
            ("[::1]:8080", "/docs", "docs"),
        ] {
            assert_eq!(found(Some(host), path), Ok(expected), "{host} {path}");
        }
        assert_eq!(found(None, "/docs"), Ok("docs"));
        assert_eq!(found(Some("example.com"), "/docsy"), Err(NoService::Path));
        assert_eq!(found(None, "/"), Err(NoService::Path));
    }

    #[test]
    fn an_unknown_host_is_told_from_an_unknown_path() {
        let (table, _) = table(&[("a", &["a.example"], &["/x"]), ("b", &["*.b.example"], &[])]);
        assert_eq!(table.find(Some("a.example"), "/y"), Err(NoService::Path));
        for unknown in ["b.example", "c.example", "", "xb.example", ".b.example:1:2"] {
            assert_eq!(table.find(Some(unknown), "/x"), Err(NoService::Host), "{unknown}");
        }
        assert_eq!(table.find(None, "/x"), Err(NoService::Host));
    }

    #[test]
    fn hosts_have_no_port() {
        for (host, bare) in [
            ("a", "a"),
            ("a:1", "a"),
            ("a:", "a"),
            ("[::1]", "[::1]"),
            ("[::1]:80", "[::1]"),
            ("a:b", "a:b"),
            ("::1", "::1"),
        ] {
            assert_eq!(without_port(host), bare);
        }
    }

    #[test]
    fn prefixes_are_replaced() {
        for (path, prefix, replacement, expected) in [
            ("/api/x", "/api", "/", "/x"),
            ("/api", "/api", "/", "/"),
            ("/api/", "/api", "/", "/"),
            ("/api/x", "/api", "/v2/", "/v2/x"),
            ("/api", "/api", "/v2", "/v2"),
            ("/x", "", "/v2", "/v2/x"),
        ] {
            assert_eq!(replaced(path, prefix, replacement).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(replaced("/%61pi/x", "/api", "/"), None);
        assert_eq!(replaced("/a", "/api", "/"), None);
    }
}
