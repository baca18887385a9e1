//! The settings of tracing.

use evenkeel_gateway::config::{OtlpProtocol, TracingConfig};
use evenkeel_gateway::{Config, Gateway, objects};

use crate::support::config;

const UPSTREAM: &str = "upstreams: [{url: http://127.0.0.1:9000}]";

fn problems(tracing: &str) -> Vec<String> {
    let config = Config::parse("a", &format!("{UPSTREAM}\ntracing: {tracing}\n")).unwrap();
    config.check().iter().map(ToString::to_string).collect()
}

#[test]
fn tracing_is_off_by_default() {
    let config = Config::parse("a", UPSTREAM).unwrap();
    assert_eq!((config.tracing.endpoint.is_none(), &config.tracing), (true, &TracingConfig::default()));
}

#[test]
fn all_settings_are_read_and_written() {
    let text = format!(
        "{UPSTREAM}
concurrency: 50
tracing:
  endpoint: https://collector.example:4318/otlp
  protocol: http
  sampleRatio: 0.01
  parentBased: false
  serviceName: shop
  resourceAttributes: {{deployment.environment.name: prod}}
  headersFile: headers
  timeout: 3s
  tls: {{serverName: collector}}
"
    );
    let config = Config::parse("a", &text).unwrap();
    assert_eq!(config.tracing.protocol, OtlpProtocol::Http);
    assert_eq!(config.tracing.endpoint.as_ref().unwrap().to_string(), "https://collector.example:4318/otlp");
    assert_eq!(Config::parse("b", &config.to_yaml()).unwrap(), config);
    let without: Vec<_> = config.check_without_files();
    assert_eq!(without, []);
}

#[test]
fn what_makes_no_sense_is_said() {
    assert_eq!(problems("{endpoint: http://127.0.0.1:4317}"), [""; 0]);
    assert_eq!(
        problems(
            "{endpoint: http://127.0.0.1:4317, sampleRatio: 2, timeout: 0s, serviceName: '', tls: {serverName: a}}"
        ),
        [
            "tracing.sampleRatio: must be a number from 0 to 1",
            "tracing.timeout: must be longer than zero",
            "tracing.serviceName: is empty; set the name of the service in traces",
            "tracing.tls: http://127.0.0.1:4317/ is not encrypted; use an https URL, or remove tls",
        ]
    );
    let [missing] = &problems("{headersFile: /nowhere/headers}")[..] else { panic!("one problem") };
    assert!(missing.starts_with("tracing.headersFile: /nowhere/headers: "), "{missing}");
    for (endpoint, reason) in [
        ("127.0.0.1:4317", "it has no scheme"),
        ("grpc://127.0.0.1:4317", "its scheme is grpc, not http or https"),
        ("http://me:s3cret@127.0.0.1", "it contains a user name"),
    ] {
        let error = Config::parse("a", &format!("tracing: {{endpoint: '{endpoint}'}}")).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("is not the address of a collector"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[tokio::test]
async fn headers_that_cannot_be_read_keep_the_gateway_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headers");
    std::fs::write(&file, "s3cret").unwrap();
    let mut settings = config(&["127.0.0.1:9".parse().unwrap()]);
    settings.tracing.endpoint = Some("http://127.0.0.1:9".parse().unwrap());
    settings.tracing.headers_file = Some(file.clone());
    let objects = objects::source(&settings);
    let error = Gateway::start(settings, objects).await.unwrap_err().to_string();
    let expected =
        format!("tracing.headersFile: {}:1: this is not a header; write it as `Name: value`", file.display());
    assert_eq!(error, expected);
}
