//! The kubeconfig with which clients reach the server as its administrator.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The text of a kubeconfig.
pub(super) fn text(address: SocketAddr, authority: &str, user: &str, token: &str) -> String {
    // A server that listens everywhere is reached on this machine.
    let ip = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    let server = SocketAddr::new(ip, address.port());
    let authority = STANDARD.encode(authority);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: evenkeel
  cluster:
    server: https://{server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    token: {token}
contexts:
- name: evenkeel
  context:
    cluster: evenkeel
    user: {user}
current-context: evenkeel
"
    )
}
