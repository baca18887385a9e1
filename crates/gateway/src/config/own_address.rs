//! Whether an upstream is the gateway itself: its requests would go round in circles.

use std::net::{IpAddr, SocketAddr};

use http::Uri;

use super::{ListenAddress, UpstreamAddress};

/// Whether a connection to this URL would arrive at this listener. Names other than `localhost` are not looked up.
pub(super) fn is_own(upstream: &UpstreamAddress, listen: &ListenAddress) -> bool {
    match (upstream, listen) {
        (UpstreamAddress::Unix(one), ListenAddress::Unix(other)) => one == other,
        (UpstreamAddress::Unix(_), _) | (_, ListenAddress::Unix(_)) => false,
        (UpstreamAddress::Url(url), listen) => is_own_url(url, listen),
    }
}

fn is_own_url(url: &Uri, listen: &ListenAddress) -> bool {
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let port = url.port_u16().unwrap_or(default);
    if listen.port() == Some(0) || listen.port() != Some(port) {
        return false;
    }
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    match (listen, host.parse::<IpAddr>()) {
        (ListenAddress::Socket(listen), Ok(host)) => is_reached(*listen, host),
        (ListenAddress::Socket(listen), Err(_)) => is_localhost(host) && is_local(listen.ip()),
        (ListenAddress::Name(name, _), Ok(host)) => is_localhost(name) && is_local(host),
        (ListenAddress::Name(name, _), Err(_)) => name.eq_ignore_ascii_case(host),
        (ListenAddress::Unix(_), _) => false,
    }
}

/// Connections to an unspecified address go to this machine, and a listener on one gets those to every address of its family.
fn is_reached(listen: SocketAddr, host: IpAddr) -> bool {
    let (listen, host) = (listen.ip(), host.to_canonical());
    let is_same_family = listen.is_ipv4() == host.is_ipv4();
    listen == host
        || is_same_family && is_local(listen) && is_local(host) && (listen.is_unspecified() || host.is_unspecified())
}

fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified()
}

fn is_localhost(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_and_the_machine_have_to_be_the_same() {
        for (url, listen, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080", true),
            ("http://127.0.0.1:8080/base", "0.0.0.0:8080", true),
            ("http://0.0.0.0:8080", "127.0.0.1:8080", true),
            ("http://localhost:8080", "127.0.0.1:8080", true),
            ("http://LOCALHOST:8080", "0.0.0.0:8080", true),
            ("http://localhost:8080", "[::1]:8080", true),
            ("http://[::1]:8080", "[::]:8080", true),
            ("http://127.0.0.1:8080", "localhost:8080", true),
            ("http://gateway:8080", "gateway:8080", true),
            ("http://127.0.0.1", "127.0.0.1:80", true),
            ("https://127.0.0.1", "127.0.0.1:443", true),
            ("http://10.0.0.5:8080", "10.0.0.5:8080", true),
            ("http://127.0.0.1:9000", "127.0.0.1:8080", false),
            ("http://127.0.0.1:8080", "127.0.0.1:0", false),
            ("http://127.0.0.2:8080", "127.0.0.1:8080", false),
            ("http://[::1]:8080", "127.0.0.1:8080", false),
            ("http://10.0.0.5:8080", "0.0.0.0:8080", false),
            ("http://orders:8080", "0.0.0.0:8080", false),
            ("http://orders:8080", "gateway:8080", false),
            ("unix:/run/a.sock", "unix:/run/a.sock", true),
            ("unix:/run/b.sock", "unix:/run/a.sock", false),
            ("http://a:80", "unix:/run/a.sock", false),
        ] {
            assert_eq!(is_own(&url.parse().unwrap(), &listen.parse().unwrap()), expected, "{url} {listen}");
        }
    }
}
