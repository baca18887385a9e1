//! Levels and matches in the settings: they govern requests, also by header (SF-1, SF-2), follow the settings, and are told apart from
//! objects (SF-4).

use crate::support;

use evenkeel_gateway::Config;
use evenkeel_gateway::config::AccessLogFormat;
use support::client::{Client, get};
use support::upstream::Upstream;
use support::{config, eventually, start};
use tokio::net::TcpSocket;

/// The settings of a test with this short form.
fn with(settings: Config, form: &str) -> Config {
    let read = Config::parse("evenkeel.yaml", form).unwrap();
    Config { levels: read.levels, matches: read.matches, ..settings }
}

const FORM: &str = "\
levels:
  everyone: {share: 100}
  blocked: {share: 0}
match:
- {path: /healthz, exempt: true}
- {header: {X-Plan: [free, trial]}, level: blocked}
- {method: POST, path: /reports/*, level: blocked}
- {level: everyone}
";

#[tokio::test]
async fn sf_1_the_first_match_says_where_a_request_goes() {
    let upstream = Upstream::echo().await;
    let running = start(with(config(&[upstream.address]), FORM)).await;
    for (path, headers, status) in [
        ("/orders", "", 200),
        ("/orders", "X-Plan: gold\r\n", 200),
        ("/orders", "x-plan: free\r\n", 429),
        ("/orders", "X-PLAN: trial\r\n", 429),
        // Nobody knows which of two the service goes by: the header counts as absent.
        ("/orders", "X-Plan: free\r\nX-Plan: gold\r\n", 200),
        ("/healthz", "X-Plan: free\r\n", 200),
        ("/healthz/db", "X-Plan: free\r\n", 429),
        ("/reports/7", "", 200),
    ] {
        let answer = get(running.address, path, headers).await;
        assert_eq!(answer.status, status, "{path} {headers}");
    }
    running.done().await;
}

#[tokio::test]
async fn levels_and_matches_follow_the_settings() {
    let upstream = Upstream::echo().await;
    let settings = config(&[upstream.address]);
    let mut running = start(with(settings.clone(), FORM)).await;
    assert_eq!(get(running.address, "/orders", "").await.status, 200);
    let closed =
        with(settings.clone(), "{levels: {everyone: {share: 1}, blocked: {share: 0}}, match: [{level: blocked}]}");
    let done = running.gateway.reconfigure(closed).await.unwrap();
    assert_eq!(done.changed, ["levels.everyone.share", "match"]);
    let flow = running.gateway.flow().clone();
    eventually("new objects govern", || {
        let explained = flow.explain(
            evenkeel::Attributes {
                user: &evenkeel::User::new("alice", ["staff"]),
                request: &evenkeel::RequestInfo::for_path("get", "/orders"),
            },
            evenkeel::WorkEstimate::ONE_SEAT,
        );
        explained.priority_level == "blocked"
    })
    .await;
    assert_eq!(get(running.address, "/orders", "").await.status, 429);
    // Where objects come from does not change without a restart.
    let without = running.gateway.reconfigure(settings).await.unwrap();
    assert_eq!(without.changed, [""; 0]);
    assert!(without.needs_restart.iter().any(|name| name == "match"), "{without:?}");
    assert_eq!(get(running.address, "/orders", "").await.status, 429);
    running.done().await;
}

#[tokio::test]
async fn too_few_seats_for_new_levels_are_refused() {
    let upstream = Upstream::echo().await;
    let mut settings = config(&[upstream.address]);
    settings.concurrency = Some(2.into());
    let mut running = start(with(settings.clone(), "{levels: {a: {share: 1}}, match: [{level: a}]}")).await;
    let more = with(settings, "{levels: {a: {share: 1}, b: {share: 1}, c: {share: 1}}, match: [{level: a}]}");
    let error = running.gateway.reconfigure(more).await.unwrap_err().to_string();
    assert!(error.contains("2 seats are too few"), "{error}");
    assert_eq!(get(running.address, "/orders", "").await.status, 200);
    running.done().await;
}

#[test]
fn sf_4_what_cannot_stand_beside_it_is_told() {
    let problems = |text: &str| {
        let found = Config::parse("evenkeel.yaml", text).unwrap().check_without_files();
        found.iter().map(ToString::to_string).filter(|text| !text.starts_with("upstreams")).collect::<Vec<_>>()
    };
    let form = "levels: {a: {share: 1}}\nmatch: [{level: a}]\n";
    assert_eq!(problems(form), [""; 0]);
    assert_eq!(
        problems(&format!("{form}objects: o.yaml\n")),
        ["objects: the settings have `levels` and `match`, which stand for objects; keep one of them"]
    );
    assert_eq!(
        problems(&format!("{form}preset: kubernetes\n")),
        ["levels: `levels` and `match` are for ordinary services; for a Kubernetes API, write objects (`objects`)"]
    );
    let route = problems(&format!("{form}requests: {{routes: [{{path: '/{{resource}}/{{name}}'}}]}}\n"));
    assert!(
        route.len() == 1 && route[0].starts_with("requests.routes[0]: requests of this route are known by"),
        "{route:?}"
    );
    let error = Config::parse("evenkeel.yaml", "concurrency: 5\nlevels: {a: {share: 1}}\nmatch:\n- {level: b}\n");
    assert_eq!(
        error.unwrap_err().to_string(),
        "evenkeel.yaml:4:4: match[0].level: unknown level `b`; did you mean `a`?"
    );
}

#[test]
fn settings_with_a_short_form_are_printed_and_read_back() {
    let config = Config::parse("evenkeel.yaml", FORM).unwrap();
    let config = Config { concurrency: Some(50.into()), ..config };
    let printed = config.to_yaml();
    assert_eq!(Config::parse("printed", &printed).unwrap_or_else(|error| panic!("{error}\n{printed}")), config);
    assert!(!Config::default().to_yaml().contains("match"));
}

/// One seat that the clients of a level share, told apart as `per` says.
fn shared_by(per: &str) -> String {
    format!("{{levels: {{shared: {{share: 1, queue: 4, perClient: 2}}}}, match: [{{level: shared, per: {per}}}]}}")
}

/// The flows of the lines in the access log, in their order.
fn logged_flows(file: &std::path::Path) -> Vec<(u64, String)> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.map(|line| (line["status"].as_u64().unwrap(), line["flow"].as_str().unwrap().to_owned())).collect()
}

#[tokio::test]
async fn clients_are_told_apart_by_their_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let (upstream, mut asked, leave) = Upstream::held().await;
    let mut settings = with(config(&[upstream.address]), &shared_by("address"));
    settings.concurrency = Some(1.into());
    settings.log.access = AccessLogFormat::Json;
    settings.log.access_file = Some(folder.path().join("access.log"));
    let running = start(settings).await;
    let gateway = running.address;
    let ask = |from: &'static str, path: &'static str| {
        tokio::spawn(async move {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(from.parse().unwrap()).unwrap();
            let mut client = Client::on(socket.connect(gateway).await.unwrap());
            client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
            client.answer().await.status
        })
    };
    let flow = running.gateway.flow().clone();
    let waiting = |count: usize| {
        let flow = flow.clone();
        move || flow.reading().levels.iter().map(|level| level.waiting).sum::<usize>() == count
    };
    // One client has one request that runs and two that wait, and then another client comes.
    let mut requests = vec![ask("127.0.0.1:0", "/1")];
    asked.recv().await.unwrap();
    for (count, path) in [(1, "/2"), (2, "/3")] {
        requests.push(ask("127.0.0.1:0", path));
        eventually("the request waits", waiting(count)).await;
    }
    requests.push(ask("127.0.0.2:0", "/other"));
    eventually("the request of the other client waits", waiting(3)).await;
    leave.add_permits(4);
    for request in requests {
        assert_eq!(request.await.unwrap(), 200);
    }
    running.done().await;
    let text = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let place = |path: &str| text.lines().position(|line| line.contains(&format!("\"path\":\"{path}\""))).unwrap();
    assert!(
        place("/other") < place("/3"),
        "the flow that has had nothing goes before the flow that has had much:\n{text}"
    );
    let flows = logged_flows(&folder.path().join("access.log"));
    assert_eq!(flows.iter().filter(|(_, flow)| flow == "127.0.0.1").count(), 3, "{flows:?}");
    assert_eq!(flows.iter().filter(|(_, flow)| flow == "127.0.0.2").count(), 1, "{flows:?}");
}

#[tokio::test]
async fn the_access_log_names_flows_by_header_but_no_credentials() {
    let folder = tempfile::tempdir().unwrap();
    for (per, expected) in [("header:X-Tenant", ["acme", ""]), ("header:Authorization", ["", ""])] {
        let upstream = Upstream::echo().await;
        let file = folder.path().join(per.replace(':', "-"));
        let mut settings = with(config(&[upstream.address]), &shared_by(&format!("'{per}'")));
        settings.log.access = AccessLogFormat::Json;
        settings.log.access_file = Some(file.clone());
        let running = start(settings).await;
        for headers in ["X-Tenant: acme\r\nAuthorization: Bearer s3cret\r\n", ""] {
            assert_eq!(get(running.address, "/", headers).await.status, 200);
        }
        running.done().await;
        assert_eq!(logged_flows(&file), expected.map(|flow| (200, flow.to_owned())), "{per}");
        assert!(!std::fs::read_to_string(&file).unwrap().contains("s3cret"));
    }
}
