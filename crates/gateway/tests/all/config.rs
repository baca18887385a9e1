//! The settings: read, written, checked, and documented.
use std::path::Path;
use std::time::Duration;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::{
    ApiKeyIdentity, CertificateIdentity, CorsConfig, HeaderIdentity, HealthCheckConfig, IdentitySource, JwtIdentity,
    ListenConfig, LogFormat, PathParametersConfig, Paths, Preflights, Problem, Protocol, RequestIdFrom, ResponseFormat,
    ResponseTemplate, RouteConfig, RouteTimeouts, ServerTls, TokenIdentity, UpstreamConfig, UpstreamTls,
    WhenClientLeaves,
};

const EXAMPLE: &str = include_str!("../../../../deploy/evenkeel.yaml");
const DOCUMENTATION: &str = include_str!("../../../../docs/gateway.md");

fn parse(text: &str) -> Config {
    Config::parse("evenkeel.yaml", text).unwrap()
}

fn error(text: &str) -> String {
    Config::parse("evenkeel.yaml", text).unwrap_err().to_string()
}

/// Settings of which every one is set.
fn everything() -> Config {
    let mut config = Config::default();
    let path = |name: &str| Path::new("folder").join(name);
    config.listen[0].tls = Some(ServerTls { certificate: path("a"), key: path("b"), client_ca: Some(path("c")) });
    config.listen[0].proxy_protocol_from = vec!["10.0.0.0/24".parse().unwrap()];
    config.listen.push(ListenConfig {
        address: "unix:/run/evenkeel.sock".parse().unwrap(),
        mode: Some("0660".parse().unwrap()),
        ..ListenConfig::default()
    });
    config.responses.format = Some(ResponseFormat::Template);
    config.responses.rate_limit_fields = true;
    config.responses.template =
        Some(ResponseTemplate { content_type: "text/plain".to_owned(), body: "{{message}}".to_owned() });
    config.cors = CorsConfig { origins: vec!["https://app.example".to_owned()], preflights: Preflights::Pass };
    config.takeover_socket = Some(path("takeover.sock"));
    config.upstreams = vec![UpstreamConfig {
        protocol: Protocol::Http2,
        tls: UpstreamTls {
            ca: Some(path("d")),
            server_name: Some("inside".to_owned()),
            certificate: Some(path("e")),
            key: Some(path("f")),
        },
        weight: 3,
        ..UpstreamConfig::new("https://upstream:443/base").unwrap()
    }];
    let service =
        "{host: '*.example.com', path: /shop, replacePath: /, upstream: 'http://127.0.0.1:9001', concurrency: 9}";
    config.services = parse(&format!("services: {{shop: {service}}}")).services;
    config.dns.servers = vec!["127.0.0.1:8600".parse().unwrap()];
    config.dns.period = Some(Duration::from_secs(10));
    config.health.check = Some(HealthCheckConfig::new("/healthz"));
    config.objects = Some(path("objects"));
    let address = config.identity.sources.pop().unwrap();
    config.identity.sources = vec![
        IdentitySource::TrustedHeaders(HeaderIdentity {
            from_addresses: vec!["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()],
            from_certificates: vec!["front".to_owned()],
            ..HeaderIdentity::default()
        }),
        IdentitySource::ClientCertificate(CertificateIdentity::default()),
        IdentitySource::Jwt(JwtIdentity {
            keys: "https://issuer/keys".parse().unwrap(),
            keys_ca: Some(path("keys-ca")),
            issuer: Some("https://issuer".to_owned()),
            audiences: vec!["shop".to_owned()],
            user_prefix: "jwt: #".to_owned(),
            ..JwtIdentity::default()
        }),
        IdentitySource::Tokens(TokenIdentity { file: path("tokens") }),
        IdentitySource::ApiKey(ApiKeyIdentity { header: "x-key".parse().unwrap(), file: path("keys.csv") }),
        address,
    ];
    config.requests.routes = vec![RouteConfig {
        path: "/{namespace}/things/{name...}".to_owned(),
        resource: Some("things".to_owned()),
        verb: Some("ponder".to_owned()),
        methods: vec!["GET".to_owned(), "QUERY".to_owned()],
        seats: 3,
        cost: Some("header:X-Cost;keep".parse().unwrap()),
        long_running: false,
        when_client_leaves: Some(WhenClientLeaves::Cancel),
        timeouts: RouteTimeouts {
            response: Some(Duration::ZERO),
            stall: Some(Duration::from_secs(90)),
            total: Some(Duration::from_secs(3600)),
            queue: Some(Duration::from_secs(300)),
        },
    }];
    config.requests.paths = Paths::AsIs;
    config.requests.path_parameters = Some(PathParametersConfig::Strip);
    config.requests.request_id_from = RequestIdFrom::TrustedProxies;
    config.log.format = LogFormat::Json;
    config.workers = Some(3);
    config
}

#[test]
fn the_example_file_says_what_the_defaults_are() {
    let upstreams = vec![UpstreamConfig::new("http://127.0.0.1:9000").unwrap()];
    let concurrency = Some(Config::default().concurrency());
    assert_eq!(parse(EXAMPLE), Config { upstreams, concurrency, ..Config::default() });
    assert_eq!(parse(EXAMPLE).check(), []);
}

#[test]
fn what_is_commented_out_in_the_example_file_can_be_used() {
    // A line of settings in a comment has a name and a colon, or is an item of a list.
    let is_setting =
        |line: &str| line.trim_start_matches("- ").split_once(':').is_some_and(|(name, _)| !name.contains(' '));
    let lines = EXAMPLE.lines().filter(|line| !line.ends_with("routes: []")).map(|line| {
        let (indent, comment) = line.split_at(line.len() - line.trim_start().len());
        match comment.strip_prefix("# ") {
            Some(rest) if !indent.is_empty() && is_setting(rest.trim_start()) && rest.trim_start() != "For https:" => {
                format!("{indent}{rest}")
            }
            _ => line.to_owned(),
        }
    });
    let text: Vec<_> = lines.collect();
    let text = text.join("\n").replace("  - path: /v2", "  routes:\n  - path: /v2");
    let config = parse(&text);
    assert_eq!(config.identity.sources.len(), 6, "{text}");
    assert_eq!(config.requests.routes.len(), 6);
    assert!(config.listen[0].tls.as_ref().unwrap().client_ca.is_some() && config.upstreams[0].tls.key.is_some());
}

#[test]
fn all_settings_are_read_back_as_they_are_written() {
    for config in [Config::default(), everything(), parse(EXAMPLE)] {
        // What the preset says is written too.
        let written = Config { concurrency: Some(config.concurrency()), ..config.clone() };
        assert_eq!(parse(&config.to_yaml()), written, "{}", config.to_yaml());
    }
}

/// Every name in the settings.
fn names(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(members) => members.iter().for_each(|(name, value)| {
            found.push(name.clone());
            names(value, found);
        }),
        serde_json::Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

#[test]
fn every_setting_is_documented() {
    let mut found = Vec::new();
    names(&serde_json::to_value(everything()).unwrap(), &mut found);
    assert!(found.len() > 70, "{found:?}");
    let is_word = |text: &str, name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let is_letter = |c: char| c.is_ascii_alphanumeric();
            !text[..at].ends_with(is_letter) && !text[at + name.len()..].starts_with(is_letter)
        })
    };
    for name in found {
        assert!(is_word(DOCUMENTATION, &name), "docs/gateway.md does not mention {name}");
        assert!(is_word(EXAMPLE, &name), "deploy/evenkeel.yaml does not mention {name}");
    }
}

#[test]
fn the_old_name_of_the_response_timeout_still_works() {
    let seconds = |config: &Config| config.timeouts.response.as_secs();
    assert_eq!(seconds(&parse("timeouts: {answer: 7s}")), 7);
    assert_eq!(seconds(&parse("timeouts: {response: 7s}")), 7);
    assert!(parse("timeouts: {answer: 7s}").to_yaml().contains("response: 7s"));
    assert!(error("timeouts: {answer: 7s, response: 8s}").contains("timeouts"), "one of them, not both");
}

#[test]
fn there_need_be_no_listener_for_operators() {
    assert_eq!(parse("admin: null").admin.address, None);
    assert_eq!(parse("admin: {address: null}").admin.address, None);
    assert_eq!(parse("").admin, Config::default().admin);
    assert_eq!(parse("admin: {}").admin, Config::default().admin);
}

#[test]
fn mistakes_are_told_with_their_place_and_setting() {
    for (text, start) in [
        ("timeouts:\n  idle: 5x", "evenkeel.yaml:2:9: timeouts.idle: \"5x\" is not a duration"),
        ("timeouts:\n  idel: 5s", "evenkeel.yaml:2:3: timeouts.idel: unknown setting `idel`; did you mean `idle`?"),
        (
            "listen:\n- address: 1.2.3.4\n",
            "evenkeel.yaml:2:12: listen[0].address: \"1.2.3.4\" has no port; write an address or a name and a port, as `127.0.0.1:8080`",
        ),
        ("concurency: 5", "evenkeel.yaml:1:1: concurency: unknown setting `concurency`; did you mean `concurrency`?"),
        (
            "speed: 5",
            "evenkeel.yaml:1:1: speed: unknown setting `speed`; known ones are preset, listen, extProc, admin,",
        ),
        (
            "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema",
            "evenkeel.yaml:1:1: this is a manifest of objects; pass it with --objects",
        ),
        ("{kind: List, apiVersion: v1, items: []}", "evenkeel.yaml:1:2: this is a manifest of objects; pass it with"),
        ("kind: Pod\napiVersion: v1", "evenkeel.yaml:1:1: this is a manifest of a Pod, not a settings file"),
        ("timeouts:\n\tidle: 5s", "evenkeel.yaml:2:1: YAML does not allow tabs; indent with spaces"),
        (
            "upstreams: [{url: 'localhost:9000'}]",
            "evenkeel.yaml:1:19: upstreams[0].url: \"localhost:9000\" is not the address of an upstream: it has no scheme; write it \
             as `http://localhost:9000`",
        ),
        ("listen:\n- address: 1.2.3.4:80\n  tls:\n    certificate: a\n", "evenkeel.yaml:4:5: listen[0].tls"),
        (
            "upstreams: [{url: 'ftp://a'}]",
            "evenkeel.yaml:1:19: upstreams[0].url: \"ftp://a\" is not the address of an upstream",
        ),
        (
            "upstreams: [{url: 'http://a:90000'}]",
            "evenkeel.yaml:1:19: upstreams[0].url: \"http://a:90000\" is not the address of an upstream: its port",
        ),
        (
            "concurrency: -1",
            "evenkeel.yaml:1:14: concurrency: is -1, but must be a whole number from 1 to 4294967295, written in digits",
        ),
        ("concurrency: lots", "evenkeel.yaml:1:14: concurrency: is \"lots\", but must be a whole number from 1 to"),
        (
            "concurrency: 5000000000",
            "evenkeel.yaml:1:14: concurrency: is 5000000000, but must be a whole number from 1 to",
        ),
        ("concurrency:", "evenkeel.yaml:1:12: concurrency: is empty, but must be a whole number"),
        ("limits: {streams: [1]}", "evenkeel.yaml:1:19: limits.streams: is a list, but must be"),
        (
            "timeouts: 5s",
            "evenkeel.yaml:1:11: timeouts: is \"5s\", but must be a group of settings; write them below it",
        ),
        (
            "upstreams: [http://a:1]",
            "evenkeel.yaml:1:13: upstreams[0]: is \"http://a:1\", but must be a group of settings; write it as `- url: http",
        ),
        (
            "identity:\n  sources: [jwt]",
            "evenkeel.yaml:2:16: identity.sources[0]: is \"jwt\", but must be a group of settings; write it as `- address: ",
        ),
        (
            "upstreams: {url: 'http://a'}",
            "evenkeel.yaml:1:12: upstreams: is a group of settings, but must be a list; begin",
        ),
        ("log: {filter: [info]}", "evenkeel.yaml:1:15: log.filter: is a list, but must be text"),
        ("hello", "evenkeel.yaml:1:1: is \"hello\", but must be settings; write a line `name: value` for each"),
        ("identity: {tellUpstream: 1}", "evenkeel.yaml:1:26: identity.tellUpstream: is 1, but must be true or false"),
        (
            "identity: {sources: [{jwt: {keys: 'http://issuer.example/keys'}}]}",
            "evenkeel.yaml:1:35: identity.sources[0].jwt.keys: \"http://issuer.example/keys\" is not a URL of keys: without TLS",
        ),
        ("concurrency: 1\nconcurrency: 2", "evenkeel.yaml:2:1: "),
        (
            "identity:\n  sources:\n  - trustedHeaders:\n      fromAddresses: [10.1.2.3/8]",
            "evenkeel.yaml:4:23: identity.sources[0].trustedHeaders.fromAddresses[0]: \"10.1.2.3/8\" is not a range",
        ),
        (
            "identity: {sources: [{apiKey: {header: 'a b', file: k}}]}",
            "evenkeel.yaml:1:40: identity.sources[0].apiKey.header: \"a b\" is not the name of a header",
        ),
        ("identity: {sources: [{password: {}}]}", "evenkeel.yaml:1:23: identity.sources[0]"),
        ("log: {format: xml}", "evenkeel.yaml:1:15: log.format: unknown variant `xml`"),
        ("preset: Plain", "evenkeel.yaml:1:9: preset: "),
        ("a: [", "evenkeel.yaml:"),
    ] {
        let found = error(text);
        assert!(found.starts_with(start), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn a_setting_that_appears_twice_is_named() {
    for (text, expected) in [
        (
            "admin: {address: null}\nupstreams: []\nconcurrency: 4\n# again\nadmin:\n  hosts: [a]\n",
            "x.yaml:5:1: admin: appears twice; write it once, with all that belongs to it",
        ),
        (
            "timeouts:\n  idle: 1s\n  queue: 1s\nlimits:\n  streams: 1\ntimeouts: {idle: 2s}\n",
            "x.yaml:6:1: timeouts: appears twice; write it once, with all that belongs to it",
        ),
        (
            "listen:\n- address: 127.0.0.1:1\n  tls: {certificate: a, key: b, certificate: c}\n",
            "x.yaml:3:33: listen[0].tls.certificate: appears twice; write it once, with all that belongs to it",
        ),
    ] {
        assert_eq!(Config::parse("x.yaml", text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn no_text_is_too_much() {
    assert!(error(&"#".repeat(2 << 20)).contains("more than 1048576 bytes"));
    let line = |level: u32| format!("a{}: &a{} [{}]", level + 1, level + 1, vec![format!("*a{level}"); 9].join(","));
    let bomb = (0..9).map(line).collect::<Vec<_>>().join(
        "
",
    );
    assert!(!error(&format!("a0: &a0 [x]\n{bomb}")).is_empty());
    assert!(!error(&"[".repeat(100_000)).is_empty());
    assert_eq!(parse(""), Config::default());
    assert_eq!(parse("# nothing\n\n"), Config::default());
}

#[test]
fn paths_are_relative_to_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("evenkeel.yaml");
    std::fs::write(&file, "objects: manifests\nidentity: {sources: [{tokens: {file: /etc/tokens}}]}\n").unwrap();
    let config = Config::read(&file).unwrap();
    assert_eq!(config.objects, Some(folder.path().join("manifests")));
    assert_eq!(config.identity.sources, [IdentitySource::Tokens(TokenIdentity { file: "/etc/tokens".into() })]);
    let missing = Config::read(&folder.path().join("other.yaml")).unwrap_err().to_string();
    assert!(missing.ends_with("name a file that exists and is readable"), "{missing}");
}

#[test]
fn a_request_buffer_that_no_body_reaches_is_refused_with_one_that_works() {
    let found = |limits: &str, identity: &str| {
        let text = format!("upstreams: [{{url: 'http://127.0.0.1:9000'}}]\nlimits: {limits}\nidentity: {identity}\n");
        parse(&text).check().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let nobody = "{}";
    assert_eq!(
        found("{requestBuffer: 67108864, bufferBytes: 134217728}", nobody),
        [
            "limits.requestBuffer: is never reached: one client has a quarter of limits.bufferBytes, 33554432 bytes; set it to at \
             most 33554432, or limits.bufferBytes to at least 268435456"
        ]
    );
    for works in
        ["{requestBuffer: 33554432, bufferBytes: 134217728}", "{requestBuffer: 67108864, bufferBytes: 268435456}"]
    {
        assert!(found(works, nobody).is_empty(), "{works}");
    }
    // A trusted proxy has no share.
    let proxy = "{sources: [{trustedHeaders: {fromAddresses: [127.0.0.1/32]}}]}";
    assert!(found("{requestBuffer: 67108864, bufferBytes: 134217728}", proxy).is_empty());
    assert_eq!(
        found("{requestBuffer: 134217729, bufferBytes: 134217728}", proxy),
        [
            "limits.requestBuffer: is never reached: limits.bufferBytes is for all buffers, 134217728 bytes; set it to at most \
             134217728, or limits.bufferBytes to at least 134217729"
        ]
    );
}

#[test]
fn all_problems_are_told_at_once() {
    let text = "
listen: [{address: 127.0.0.1:80}, {address: 127.0.0.1:0}, {address: 127.0.0.1:0}, {address: 127.0.0.1:80}]
admin: {address: 127.0.0.1:80}
concurrency: 0
workers: 0
objects: nowhere
health: {failures: 0, pause: 2s, pauseMax: 1s, errorShare: 1, check: {path: healthz, interval: 0, expect: []}}
identity:
  openPaths: [/healthz, public]
  sources:
  - address: {ipv4Bits: 33}
  - trustedHeaders: {fromCertificates: [front], groupHeader: x-remote-user}
  - trustedHeaders: {}
  - clientCertificate: {}
  - jwt: {userClaim: ''}
requests:
  routes: [{path: '/{tenant}', seats: 0, methods: [get], whenClientLeaves: wait}, {path: '/a/{name}'}]
timeouts: {queue: 2h, total: 10s, connect: 0s, drain: 2h}
limits: {connections: 0, headBytes: 100, headers: 1}
log: {filter: loud}
";
    let texts = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let found = texts(parse(text).check());
    let mut without_files = found.clone();
    without_files.retain(|problem| !problem.contains("No such file"));
    assert_eq!(texts(parse(text).check_without_files()), without_files);
    let starts = [
        "listen[3].address: 127.0.0.1:80 is also the address of listen[0].address",
        "admin.address: 127.0.0.1:80 is also the address of",
        "upstreams: no upstream is configured; name one",
        "health.failures: must be at least 1",
        "health.pauseMax: is shorter than",
        "health.errorShare: must be a number between 0 and 1",
        "health.check.path: \"healthz\" is no path; write it as `/healthz`",
        "health.check.interval: must be longer than zero",
        "health.check.expect: must be at least 1",
        "objects: nowhere: No such file",
        "identity.sources[4].jwt.keys: is missing",
        "identity.openPaths[1]: \"public\" does not begin with a slash; write `/healthz`",
        "identity.sources[0].address.ipv4Bits: must be at most 32",
        "identity.sources[0].address: every client has an address",
        "identity.sources[1].trustedHeaders.fromCertificates: no listener asks",
        "identity.sources[1].trustedHeaders.groupHeader: is the same as userHeader",
        "identity.sources[2].trustedHeaders: no proxy is trusted",
        "identity.sources[3].clientCertificate: no listener asks",
        "identity.sources[4].jwt.userClaim: is empty",
        "requests.routes: route \"/{tenant}\": it has `seats: 0`, and a request without a seat",
        "requests.routes: route \"/{tenant}\": \"get\" is not a method",
        "requests.routes: route \"/a/{name}\": it names no resource",
        "requests.routes: route \"/{tenant}\", segment 1 \"{tenant}\": no such placeholder",
        "timeouts.connect: must be longer than zero",
        "timeouts.queue: a request waits at most one hour",
        "timeouts.response: is longer than timeouts.total",
        "timeouts.drain: must be at most one hour",
        "limits.connections: must be at least 1",
        "limits.headBytes: must be from 8192",
        "limits.headers: must be from 16",
        "concurrency: must be at least 1",
        "workers: must be at least 1",
        "log.filter: \"loud\" is neither",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found}\nis not\n{start}");
    }
}

#[test]
fn the_gateway_is_not_its_own_upstream() {
    let found = |text: &str| parse(text).check().iter().map(ToString::to_string).collect::<Vec<_>>();
    let own = "upstreams[1].url: the upstream http://localhost:8080 is the gateway's own address; name the address of the service, \
               or let the gateway listen on another port (`listen`, `--listen`)";
    assert_eq!(found("upstreams: [{url: 'http://127.0.0.1:9000'}, {url: 'http://localhost:8080'}]"), [own]);
    assert_eq!(found("{upstreams: [{url: 'http://127.0.0.1:8080'}], listen: [{address: '127.0.0.1:8081'}]}"), [""; 0]);
}

#[test]
fn tls_of_upstreams_has_to_fit() {
    let text = "upstreams: [{url: 'http://a', tls: {certificate: x}}, {url: 'http://a'}]";
    let found: Vec<_> = parse(text).check().iter().map(ToString::to_string).collect();
    assert!(found[0].starts_with("upstreams[0].tls: a certificate needs its key"), "{found:?}");
    assert!(found[1].starts_with("upstreams[0].tls: http://a/ is not encrypted"), "{found:?}");
    assert!(found[2].starts_with("upstreams[1].url: http://a/ is already upstreams[0]"), "{found:?}");
}
