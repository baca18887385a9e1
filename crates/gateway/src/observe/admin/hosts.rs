//! Which host names the admin endpoint serves.
//!
//! A web page can make a browser connect to the admin endpoint under the page's own name, by changing what that name
//! resolves to (DNS rebinding), and read what comes back. The `Host` header tells: it has the name of the page.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::HOST;
use http::uri::Authority;

/// The names beside addresses and `localhost`.
#[derive(Debug, Clone)]
pub(super) struct Hosts(Arc<[String]>);

/// Stands for every name.
const ANY: &str = "*";
/// What these show is no secret, and load balancers call them by all sorts of names.
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
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(&name);
        address.parse::<IpAddr>().is_ok()
            || name == "localhost"
            || name.ends_with(".localhost")
            || self.0.iter().any(|known| *known == name || known == ANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_machine_are_known() {
        let hosts = Hosts::new(&["Admin.Example".to_owned()]);
        for host in
            ["127.0.0.1", "10.1.2.3:9901", "[::1]:9901", "localhost:1", "LocalHost", "a.localhost", "admin.example"]
        {
            assert!(hosts.is_known(host), "{host}");
        }
        for host in ["evil.example", "evil.example:9901", "127.0.0.1.evil.example", "localhost.evil.example", "", "a b"]
        {
            assert!(!hosts.is_known(host), "{host}");
        }
        assert!(Hosts::new(&["*".to_owned()]).is_known("evil.example"));
    }
}
