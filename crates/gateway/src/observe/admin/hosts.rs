//! Which host names the admin endpoint serves.
//!
//! A web page can make a browser connect to the admin endpoint under the page's own name, by changing what that name resolves to
//! (DNS rebinding), and read the responses. The `Host` header tells: it has the name of the page.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::HOST;

/// The names beside addresses and `localhost`.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Arc<[String]>);

/// The host that a `Host` header names.
enum HostName {
    Address,
    /// In lower case, without the dot of the root.
    Name(String),
}

/// Stands for every name.
const ANY: &str = "*";
/// Paths that any host name may ask for: what they show is not secret, and load balancers use all sorts of names.
pub(super) const HEALTH_CHECKS: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// Answers requests for names that are not known with 421.
pub(super) async fn check(State(hosts): State<Hosts>, request: Request, next: Next) -> Response {
    match hosts.unknown(&request) {
        Some(name) => {
            let text = format!(
                "the admin endpoint does not serve the host {name:?}; use its address, or add the name to `admin.hosts`\n"
            );
            (StatusCode::MISDIRECTED_REQUEST, text).into_response()
        }
        None => next.run(request).await,
    }
}

// === impl Hosts ===

impl Hosts {
    pub(super) fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// The name that a request is for, if it must be rejected.
    fn unknown(&self, request: &Request) -> Option<String> {
        if HEALTH_CHECKS.contains(&request.uri().path()) {
            return None;
        }
        // Clients of HTTP/1.0 need not send one. Browsers always do.
        let fields = request.headers().get_all(HOST).iter();
        let fields = fields.map(|field| String::from_utf8_lossy(field.as_bytes()).into_owned());
        let in_target = request.uri().authority().map(ToString::to_string);
        fields.chain(in_target).find(|host| !self.is_known(host))
    }

    fn is_known(&self, host: &str) -> bool {
        match HostName::parse(host) {
            Some(HostName::Address) => true,
            Some(HostName::Name(name)) => {
                name == "localhost"
                    || name.ends_with(".localhost")
                    || self.0.iter().any(|known| *known == name || known == ANY)
            }
            None => false,
        }
    }
}

// === impl HostName ===

impl HostName {
    /// Reads `host[:port]` (RFC 9110, 7.2) and nothing else: no user, and nothing after the bracket of an address but a port.
    fn parse(host: &str) -> Option<Self> {
        if let Some(rest) = host.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            return is_port(rest).then_some(Self::Address);
        }
        let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
        if !is_port(port) {
            return None;
        }
        if name.parse::<Ipv4Addr>().is_ok() {
            return Some(Self::Address);
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = name.split('.').all(|label| {
            !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        });
        is_name.then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// Whether the text is empty, or a colon and a port.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| {
            port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_machine_are_known() {
        let hosts = Hosts::new(&["Admin.Example".to_owned()]);
        for host in [
            "127.0.0.1",
            "10.1.2.3:9901",
            "[::1]:9901",
            "[::1]",
            "localhost:1",
            "localhost.",
            "LocalHost",
            "a.localhost",
            "admin.example",
        ] {
            assert!(hosts.is_known(host), "{host}");
        }
        let unknown =
            ["evil.example", "evil.example:9901", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b"];
        for host in unknown {
            assert!(!hosts.is_known(host), "{host}");
        }
        assert!(Hosts::new(&["*".to_owned()]).is_known("evil.example"));
    }

    #[test]
    fn what_only_looks_like_a_known_host_is_refused() {
        for hosts in [Hosts::new(&[]), Hosts::new(&["*".to_owned()])] {
            for host in [
                "[::1].evil.com",
                "[::1]evil.com:80",
                "[::1",
                "[127.0.0.1]",
                "evil@127.0.0.1",
                "evil.com:80@localhost",
                "127.0.0.1:80:80",
                "127.0.0.1:x",
                "127.0.0.1:99999",
                "::1",
                "localhost/",
                "local host",
                "localhost..",
                "127.0.0.1#",
            ] {
                assert!(!hosts.is_known(host), "{host}");
            }
        }
    }
}
