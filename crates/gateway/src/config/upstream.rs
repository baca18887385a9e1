//! The services behind the gateway.

use std::path::PathBuf;

use evenkeel_identity::config::hide_credentials;
use http::Uri;
use http::uri::Authority;
use serde::{Deserialize, Serialize};

use super::UpstreamAddress;

/// A service that requests are passed on to.
///
/// Not `#[non_exhaustive]`: programs that set up upstreams make it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamConfig {
    /// The address of the service: `http://host:port` or `https://host:port`, or `unix:/run/app.sock` for a Unix socket. The path of a URL is put
    /// before the path of every request.
    pub url: UpstreamAddress,
    /// The protocol that it speaks.
    #[serde(default)]
    pub protocol: Protocol,
    /// How its certificate is checked, and who the gateway says it is.
    #[serde(default)]
    pub tls: UpstreamTls,
    /// The share of the requests that the service gets beside the other upstreams: one with 2 gets twice as many as one with 1, the default.
    #[serde(default = "one")]
    pub weight: u32,
}

/// The protocol between the gateway and an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Protocol {
    /// What the two agree on under TLS; otherwise HTTP/1.1, and HTTP/2 for gRPC, which knows nothing else.
    #[default]
    Auto,
    /// HTTP/1.1 only.
    Http1,
    /// HTTP/2 only, without asking first where there is no TLS.
    Http2,
}

/// TLS to an upstream. The files are read again when they change.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamTls {
    /// The trusted authorities, in PEM. The default is those of the machine.
    pub ca: Option<PathBuf>,
    /// The name that the certificate must have, if it is not the host of the address.
    pub server_name: Option<String>,
    /// The certificate that the gateway shows, in PEM.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    pub key: Option<PathBuf>,
}

// === impl UpstreamConfig ===

impl UpstreamConfig {
    /// An upstream at this address, with everything else as it is by default.
    pub fn new(url: &str) -> Result<Self, String> {
        Ok(Self { url: url.parse()?, protocol: Protocol::default(), tls: UpstreamTls::default(), weight: one() })
    }
}

fn one() -> u32 {
    1
}

/// Reads the address of a server. Errors say whose address it is not, and what one looks like.
pub(super) fn parse_url(text: &str, whose: &str, example: &str) -> Result<Uri, String> {
    let shown = hide_credentials(text);
    let fault = |why: &str| format!("{shown:?} is not the address of {whose}: {why}; write it as `{example}`");
    let completed = format!("http://{text}");
    if !text.contains("://") && !text.starts_with('/') && completed.parse::<Uri>().is_ok() {
        let completed = hide_credentials(&completed);
        return Err(format!("{shown:?} is not the address of {whose}: it has no scheme; write it as `{completed}`"));
    }
    let uri: Uri = text.parse().map_err(|error| fault(&format!("{error}")))?;
    match uri.scheme_str() {
        Some("http" | "https") => {}
        Some(other) => return Err(fault(&format!("its scheme is {other}, not http or https"))),
        None => return Err(fault("it has no scheme")),
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(fault("it contains a user name"));
    }
    if uri.query().is_some() {
        return Err(fault("it has a query"));
    }
    let has_port = |authority: &Authority| authority.host().len() < authority.as_str().len();
    if uri.authority().is_some_and(has_port) && uri.port_u16().is_none_or(|port| port == 0) {
        return Err(fault("its port is not a number from 1 to 65535"));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_show_no_password() {
        for (url, shown) in [
            ("http://alice:s3cret@127.0.0.1:4317", "\"http://…@127.0.0.1:4317\" is not the address of an upstream"),
            ("https://s3cret@a", "\"https://…@a\""),
            ("ftp://alice:s3cret@a", "\"ftp://…@a\""),
            // None of these is a URL.
            ("http://alice:s3 cret@a", "\"http://…@a\""),
            ("http://alice:s3@cret/@a/b", "\"http://…@a/b\""),
            ("alice:s3cret@a:1", "\"…@a:1\""),
            ("alice:s3cret://@a:1", "\"…@a:1\""),
        ] {
            let error = UpstreamConfig::new(url).unwrap_err();
            assert!(error.starts_with(shown) && !error.contains("cret"), "{error}");
        }
        let error = UpstreamConfig::new("ftp://a/b").unwrap_err();
        assert!(error.starts_with("\"ftp://a/b\" is not the address"), "{error}");
    }
}
