//! The settings of tracing: where spans are sent, and for which requests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use http::Uri;
use serde::{Deserialize, Serialize};

use super::{UpstreamTls, duration};

/// Spans of requests, sent to a collector with OTLP. Tracing is off without an endpoint.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct TracingConfig {
    /// The collector: `http://host:port` or `https://host:port`. Over HTTP, `/v1/traces` is appended to its path.
    #[serde(with = "endpoint")]
    pub endpoint: Option<Uri>,
    /// The protocol that the collector speaks at this endpoint.
    pub protocol: OtlpProtocol,
    /// The part of all requests that are traced, from 0 to 1.
    pub sample_ratio: f64,
    /// Whether a client that sends `traceparent` decides by its sampled flag. Otherwise the ratio decides for all requests.
    pub parent_based: bool,
    /// The name of the service, as traces show it.
    pub service_name: String,
    /// Further attributes of the resource, such as `deployment.environment.name`.
    pub resource_attributes: BTreeMap<String, String>,
    /// A file with headers for the collector, one `Name: value` a line, such as an API key. It is read again when it changes.
    pub headers_file: Option<PathBuf>,
    /// How long the collector may take to respond.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// How the certificate of the collector is checked, and what the gateway shows.
    pub tls: UpstreamTls,
}

/// How spans are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum OtlpProtocol {
    /// gRPC; collectors listen on port 4317.
    #[default]
    Grpc,
    /// Protobuf over HTTP/1.1; collectors listen on port 4318.
    Http,
}

// === impl TracingConfig ===

impl Default for TracingConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            protocol: OtlpProtocol::default(),
            sample_ratio: 1.0,
            parent_based: true,
            service_name: "evenkeel".to_owned(),
            resource_attributes: BTreeMap::new(),
            headers_file: None,
            timeout: Duration::from_secs(10),
            tls: UpstreamTls::default(),
        }
    }
}

/// The endpoint as text.
mod endpoint {
    use http::Uri;
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::config::upstream::parse_url;

    #[expect(clippy::ref_option, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(uri: &Option<Uri>, serializer: S) -> Result<S::Ok, S::Error> {
        match uri {
            Some(uri) => serializer.serialize_str(&uri.to_string()),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uri>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        let parse = |text: String| parse_url(&text, "a collector", "http://127.0.0.1:4317");
        text.map(parse).transpose().map_err(de::Error::custom)
    }
}
