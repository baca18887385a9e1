//! Levels and matches in the settings: they govern requests, also by header (SF-1, SF-2), follow the settings, and are told apart from
//! objects (SF-4).

use crate::support;

use evenkeel_gateway::Config;
use support::client::get;
use support::upstream::Upstream;
use support::{config, eventually, start};

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
    settings.concurrency = 2;
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
    let printed = config.to_yaml();
    assert_eq!(Config::parse("printed", &printed).unwrap_or_else(|error| panic!("{error}\n{printed}")), config);
    assert!(!Config::default().to_yaml().contains("match"));
}
