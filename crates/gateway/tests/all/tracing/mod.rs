//! Tracing: spans of requests, read with messages that are not ours.

mod collector;
mod context;
mod export;
mod real_collector;
mod reload;
mod settings;
mod spans;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::OtlpProtocol;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;

use collector::Collector;

/// Settings with which all requests are traced, if the client does not say otherwise.
fn traced(mut config: Config, collector: &Collector) -> Config {
    config.tracing.endpoint = Some(format!("http://{}", collector.address).parse().unwrap());
    config.tracing.protocol = OtlpProtocol::Http;
    config
}

/// The value of an attribute, as text.
fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found: Vec<_> = attributes.iter().filter(|attribute| attribute.key == key).collect();
    assert!(found.len() <= 1, "{key} is there more than once");
    match found.first()?.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

fn of(span: &Span, key: &str) -> Option<String> {
    attribute(&span.attributes, key)
}

/// The attributes of a span as `key=value`, without those that differ from run to run.
fn steady(span: &Span) -> Vec<String> {
    let varies = ["evenkeel.request_id", "client.address", "server.port", "url.full"];
    let mut steady: Vec<_> = (span.attributes.iter())
        .filter(|attribute| !varies.contains(&attribute.key.as_str()))
        .map(|attribute| format!("{}={}", attribute.key, of(span, &attribute.key).unwrap()))
        .collect();
    steady.sort();
    steady
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect()
}
